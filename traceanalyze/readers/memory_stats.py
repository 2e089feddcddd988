"""`torch.cuda.memory_stats()` saved as JSON beside a snapshot: what the whole process saw, which no ring forgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.model.snapshot import ProcessStatistics
from traceanalyze.readers.memory_ranks import rank_in_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = ("*memory_stats*.json", "*memory-stats*.json")
_MOST = 1 << 20
"""Bytes: such files are a few kB."""


def statistics_beside(path: str, rank: int | None = None) -> tuple[ProcessStatistics | None, str | None]:
    """The statistics in the folder of a snapshot, and a remark where there are some of which none can be chosen.

    Args:
        path: The snapshot.
        rank: Its rank, if that is known: statistics named after another rank are none of its own.
    """
    folder = Path(path).parent
    files = sorted({file for name in _NAMES for file in folder.glob(name) if file.is_file()})
    found = [stats for file in files if (stats := _read(file)) is not None]
    own = [one for one in found if rank is not None and rank_in_name(one.path) == rank]
    open_to_all = [one for one in found if rank is None or rank_in_name(one.path) is None]
    for chosen in (own, open_to_all):
        if len(chosen) == 1:
            return chosen[0], None
        if chosen:
            names = ", ".join(Path(one.path).name for one in chosen)
            return None, f"memory statistics not used: nothing tells which of {names} is of {Path(path).name}"
    if found:
        names = ", ".join(Path(one.path).name for one in found)
        return None, f"memory statistics not used: {names}: of another rank than {Path(path).name}"
    return None, None


def _read(file: Path) -> ProcessStatistics | None:
    """Statistics of a file, None when it holds something else."""
    if file.stat().st_size > _MOST:
        return None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
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
