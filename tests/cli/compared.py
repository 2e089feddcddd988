"""What the JSON of a comparison says."""

from __future__ import annotations

import json
from typing import Any


def compared(text: str) -> dict[str, Any]:
    """The one report of a document, with its sides and its remarks by their names."""
    (report,) = json.loads(text)["reports"]
    base, candidate = report["tables"]["compare_sides"]["rows"]
    return {**report, **report["remarks"], "base": base, "candidate": candidate}
