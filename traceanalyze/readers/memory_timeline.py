"""Timelines of `export_memory_timeline`: the summed form (.json, .json.gz) and the raw one (.raw.json.gz)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.errors import InputError
from traceanalyze.model.timeline import CATEGORIES, MemoryTimeline
from traceanalyze.readers.streams import open_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from traceanalyze.readers.source import Source

_ADVICE = "give the .json or .raw.json.gz file export_memory_timeline wrote"
_ACTIONS = (1, 2, 3, 4)
"""Preexisting, create, increment version, destroy."""


def read_memory_timeline(source: Source, progress: Callable[[int], None] | None = None) -> MemoryTimeline:
    """Read one timeline.

    Raises:
        InputError: It cannot be read or is something else.
    """
    parts = []
    with open_stream(source, progress) as stream:
        buffer = memoryview(bytearray(1 << 20))
        while count := stream.readinto(buffer):
            parts.append(bytes(buffer[:count]))
        size = source.size or stream.consumed
    try:
        value = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.name}: this timeline is damaged ({error}); export it again") from error
    if not isinstance(value, list) or not value:
        raise InputError(f"{source.name}: this is no memory timeline; {_ADVICE}")
    read = _summed if len(value) == 2 and _is_nested(value[1]) else _raw
    time, sizes, rows = read(value, source.name)
    return MemoryTimeline(source.name, time, sizes, size, rows)


def _is_nested(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, list) for row in value)


def _table(rows: object, width: int, name: str) -> NDArray[np.int64]:
    """Rows of whole numbers as an array."""
    try:
        table = np.array(rows, np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name}: its rows are not whole numbers of equal length; {_ADVICE}") from error
    if table.ndim != 2 or table.shape[1] < width:
        raise InputError(f"{name}: its rows have not {width} members; {_ADVICE}")
    return table


def _summed(value: list[Any], name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """`[times in µs, sizes]`; the first column of sizes is always 0."""
    times, sizes = value
    table = _table(sizes, 1 + len(CATEGORIES), name)
    if not isinstance(times, list) or len(times) != len(table):
        raise InputError(f"{name}: it has another number of times than of sizes; {_ADVICE}")
    return _table([times], len(table), name)[0] * 1000, table[:, 1 : 1 + len(CATEGORIES)], len(table)


def _raw(value: list[Any], name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """`[time in ns, action, bytes, category]`; time -1 is before recording. Bytes carry their sign."""
    table = _table(value, 4, name)
    time, action, size, category = (table[:, column] for column in range(4))
    if ((category < 0) | (category >= len(CATEGORIES))).any() or not np.isin(action, _ACTIONS).all():
        raise InputError(f"{name}: it has unknown actions or categories; {_ADVICE}")
    first = int(time[time >= 0].min()) if (time >= 0).any() else 0
    time = np.where(time < 0, first, time)
    order = np.argsort(time, kind="stable")
    change = np.zeros((len(table), len(CATEGORIES)), np.int64)
    change[np.arange(len(table)), category] = size
    return time[order], np.cumsum(change[order], axis=0), len(table)
