"""Timelines of `export_memory_timeline`: the summed form (.json, .json.gz) and the raw one (.raw.json.gz)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.snapshot import CATEGORIES, MemoryTimeline, ProcessStatistics
from traceanalyze.readers.memory_sources import rank_in_name
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import open_stream

_ADVICE = Phrase("give the .json or .raw.json.gz file export_memory_timeline wrote")
_ACTIONS = (1, 2, 3, 4)
"""Preexisting, create, increment version, destroy."""


def read_memory_timeline(source: Source, progress: Callable[[int], None] | None = None) -> MemoryTimeline:
    """Read one timeline."""
    with open_stream(source, progress) as stream:
        text = stream.read()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("{name}: this timeline is damaged ({error}); export it again", source.name, error) from error
    if not isinstance(value, list) or not value:
        raise InputError("{name}: this is no memory timeline; {advice}", source.name, _ADVICE)
    summed = len(value) == 2 and isinstance(value[1], list) and all(isinstance(row, list) for row in value[1])
    read = _summed if summed else _raw
    time, sizes, rows = read(value, source.name)
    return MemoryTimeline(source.name, time, sizes, rows)


def _table(rows: object, width: int, name: str) -> NDArray[np.int64]:
    try:
        table = np.array(rows, np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError("{name}: its rows are not whole numbers of equal length; {advice}", name, _ADVICE) from error
    if table.ndim != 2 or table.shape[1] < width:
        raise InputError("{name}: its rows have not {width} members; {advice}", name, width, _ADVICE)
    return table


def _summed(value: list[Any], name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """`[times in µs, sizes]`; the first column of sizes is always 0."""
    times, sizes = value
    table = _table(sizes, 1 + len(CATEGORIES), name)
    if not isinstance(times, list) or len(times) != len(table):
        raise InputError("{name}: it has another number of times than of sizes; {advice}", name, _ADVICE)
    return _table([times], len(table), name)[0] * 1000, table[:, 1 : 1 + len(CATEGORIES)], len(table)


def _raw(value: list[Any], name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """`[time in ns, action, bytes, category]`; time -1 is before recording. Bytes carry their sign."""
    table = _table(value, 4, name)
    time, action, size, category = (table[:, column] for column in range(4))
    if ((category < 0) | (category >= len(CATEGORIES))).any() or not np.isin(action, _ACTIONS).all():
        raise InputError("{name}: it has unknown actions or categories; {advice}", name, _ADVICE)
    first = int(time[time >= 0].min()) if (time >= 0).any() else 0
    time = np.where(time < 0, first, time)
    order = np.argsort(time, kind="stable")
    change = np.zeros((len(table), len(CATEGORIES)), np.int64)
    change[np.arange(len(table)), category] = size
    return time[order], np.cumsum(change[order], axis=0), len(table)


_NAMES = ("*memory_stats*.json", "*memory-stats*.json")
_MOST = 1 << 20
"""Bytes: such files are a few kB."""


def statistics_beside(path: str, rank: int | None = None) -> tuple[ProcessStatistics | None, str | None]:
    """The statistics in the folder of a snapshot, and a remark where there are some of which none can be chosen.

    Where its rank is known, statistics named after another rank are none of its own.
    """
    folder = Path(path).parent
    files = sorted({file for name in _NAMES for file in folder.glob(name) if file.is_file()})
    found = [stats for file in files if (stats := _read(file)) is not None]
    own = [one for one in found if rank is not None and rank_in_name(one.path) == rank]
    open_to_all = [one for one in found if rank is None or rank_in_name(one.path) is None]
    chosen = own or open_to_all
    if len(chosen) == 1:
        return chosen[0], None
    if not found:
        return None, None
    names, name = ", ".join(Path(one.path).name for one in chosen or found), Path(path).name
    why = f"nothing tells which of {names} is of {name}" if chosen else f"{names}: of another rank than {name}"
    return None, f"memory statistics not used: {why}"


def _read(file: Path) -> ProcessStatistics | None:
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
        failed_requests=flat.get("num_ooms"),
        peak_block_bytes=flat.get("allocated_bytes.all.peak"),
        peak_reserved_memory=flat.get("reserved_bytes.all.peak"),
        peak_requested_bytes=flat.get("requested_bytes.all.peak"),
        peak_inactive_bytes=flat.get("inactive_split_bytes.all.peak"),
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
