"""What some tests need beside the package and its extra `test`."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
HERE = {
    "browser": BROWSER is not None,
    "node": shutil.which("node") is not None,
    "tensorboard": find_spec("tensorboard") is not None and find_spec("torch_tb_profiler") is not None,
    "torch": find_spec("torch") is not None,
}
REQUIRED = "TRACEANALYZE_REQUIRE"
"""Variable that names what must be here."""


def need(name: str) -> None:
    """Without it the test is skipped, or fails where it is required."""
    if HERE[name]:
        return
    if name in os.environ.get(REQUIRED, "").split():
        pytest.fail(f"{name} is required here and is not installed")
    pytest.skip(f"{name} is not installed")
