"""Recordings for the repository: without the folders and the name of the machine they were made on."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def without_paths(text: str) -> str:
    """The text without the directories and the name of this machine."""
    for folder in (str(ROOT) + "/", sys.prefix + "/", sys.base_prefix + "/"):
        text = text.replace(json.dumps(folder)[1:-1], "")
    text = re.sub(r"lib/python3\.\d+/(site-packages/)?", "", text)
    text = re.sub(r'"host_name": "[^"]*"', '"host_name": "host"', text)
    return re.sub(r'"traceName": "[^"]*"', '"traceName": "trace.json"', text)
