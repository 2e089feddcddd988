"""Whether a trace that others made holds what the analyses take for granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.model.trace import Origin, ReadReport, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.model.columns import Sparse, Strings

_EARLIEST, _LATEST = -(1 << 61), 1 << 61
"""ns; sums of two such times are still int64."""
_VALUES = frozenset({"int64", "float64", "int32"})


def require_sound(trace: object, dtypes: Mapping[str, str]) -> Trace:
    """The trace, if it is one.

    Args:
        trace: What a reader made.
        dtypes: Type of the values of each field that is known by its name.

    Raises:
        TypeError: It is no `Trace`, or a column is of another type than `model/trace.py` says.
        ValueError: Columns do not fit together.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"{type(trace).__name__} is no traceanalyze.model.trace.Trace")
    events, instants, flows = trace.events, trace.instants, trace.flows
    _about(trace)
    _strings(trace.strings)
    tables = {
        "events": ({"ts": events.ts, "dur": events.dur}, {"name": events.name, "cat": events.cat}, events.track),
        "instants": ({"ts": instants.ts}, {"name": instants.name, "cat": instants.cat}, instants.track),
        "flows": ({"ts": flows.ts, "id": flows.id}, {"cat": flows.cat}, flows.track),
    }
    for table, (numbers, texts, track) in tables.items():
        columns: dict[str, NDArray[Any]] = {**numbers, **texts, "track": track}
        for name, column in columns.items():
            _column(f"{table}.{name}", column, "int64" if name in numbers else "int32", len(numbers["ts"]))
        _within(f"{table}.ts", numbers["ts"], _EARLIEST, _LATEST)
        _within(f"{table}.track", track, 0, len(trace.tracks))
        for name, column in texts.items():
            _within(f"{table}.{name}", column, 0, len(trace.strings))
    _column("flows.phase", flows.phase, "uint8", len(flows.ts))
    _within("events.dur", events.dur, 0, _LATEST)
    _within("tracks", trace.tracks.reshape(-1), 0, len(trace.strings))
    _fields("events", events.fields, len(events), len(trace.strings), dtypes)
    _fields("instants", instants.fields, len(instants.ts), len(trace.strings), dtypes)
    if not len(events.ts) + len(instants.ts) + len(flows.ts):
        raise ValueError("it has no event")
    return trace


def _about(trace: Trace) -> None:
    if not isinstance(trace.origin, Origin) or not isinstance(trace.read, ReadReport):
        raise TypeError("origin is no Origin, or read no ReadReport")
    if not isinstance(trace.base_ns, int) or not _EARLIEST <= trace.base_ns < _LATEST:
        raise ValueError(f"base_ns is no int of ns since 1970: {trace.base_ns!r}")
    for name, number in (("rank", trace.origin.rank), ("world_size", trace.origin.world_size)):
        if number is not None and (not isinstance(number, int) or number < 0):
            raise ValueError(f"origin.{name} is no int from 0 on: {number!r}")
    if not isinstance(trace.tracks, np.ndarray) or trace.tracks.dtype != np.int32 or trace.tracks.shape[1:] != (2,):
        raise TypeError("tracks is no (n, 2) array of int32")


def _strings(strings: Strings) -> None:
    offsets = strings.offsets
    _column("strings.blob", strings.blob, "uint8", len(strings.blob))
    if not strings.blob.flags.c_contiguous:
        raise ValueError("strings.blob does not lie in one piece")
    _column("strings.offsets", offsets, "int64", len(offsets))
    if len(offsets) < 2 or offsets[:2].any() or (np.diff(offsets) < 0).any() or offsets[-1] > len(strings.blob):
        raise ValueError("strings.offsets are no ends of texts, the first of them empty")


def _column(name: str, column: NDArray[Any], dtype: str, count: int) -> None:
    if not isinstance(column, np.ndarray) or column.dtype != dtype or column.ndim != 1:
        raise TypeError(f"{name} is no column of {dtype}")
    if len(column) != count:
        raise ValueError(f"{name} has {len(column):,} rows, not {count:,}")


def _within(name: str, column: NDArray[Any], least: int, limit: int) -> None:
    if len(column) and not (least <= column.min() and column.max() < limit):
        raise ValueError(f"{name} has values outside {least:,} … {limit - 1:,}")


def _fields(table: str, fields: Mapping[str, Sparse], rows: int, strings: int, dtypes: Mapping[str, str]) -> None:
    for name, column in fields.items():
        place = f"{table}.fields[{name}]"
        allowed = {dtypes[name]} if name in dtypes else _VALUES
        if column.value.dtype.name not in allowed:
            raise TypeError(f"{place} is no column of {', '.join(sorted(allowed))}")
        _column(f"{place}.row", column.row, "uint32", len(column.value))
        _within(f"{place}.row", column.row, 0, rows)
        if not (column.row[1:] > column.row[:-1]).all():
            raise ValueError(f"{place}.row does not ascend")
        if column.value.dtype == np.int32:
            _within(place, column.value, 0, strings)
