"""`torch.cuda.memory_stats()` saved as JSON beside a snapshot: what the whole process saw, which no ring forgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.model.snapshot import ProcessStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = ("*memory_stats*.json", "*memory-stats*.json")
_MOST = 1 << 20
"""Bytes: such files are a few kB."""


def statistics_beside(path: str) -> ProcessStatistics | None:
    """The statistics in the folder of a snapshot; None where there are none, or several that could be meant."""
    folder = Path(path).parent
    files = sorted({file for name in _NAMES for file in folder.glob(name) if file.is_file()})
    found = [stats for file in files if (stats := _read(file)) is not None]
    return found[0] if len(found) == 1 else None


def _read(file: Path) -> ProcessStatistics | None:
    """Statistics of a file, None when it holds something else."""
    if file.stat().st_size > _MOST:
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict):
        return None
    flat = _flat(content)
    if "num_alloc_retries" not in flat and "reserved_bytes.all.peak" not in flat:
        return None
    return ProcessStatistics(
        path=str(file),
        retries=flat.get("num_alloc_retries"),
        ooms=flat.get("num_ooms"),
        peak_allocated=flat.get("allocated_bytes.all.peak"),
        peak_reserved=flat.get("reserved_bytes.all.peak"),
        peak_requested=flat.get("requested_bytes.all.peak"),
        peak_inactive=flat.get("inactive_split_bytes.all.peak"),
    )


def _flat(content: Mapping[str, object], prefix: str = "") -> dict[str, int]:
    """`{"allocated_bytes": {"all": {"peak": 1}}}` and `{"allocated_bytes.all.peak": 1}` alike."""
    found: dict[str, int] = {}
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name.count(".") < 4:
            found |= _flat(value, f"{name}.")
        elif type(value) is int and value >= 0:
            found[name] = value
    return found
