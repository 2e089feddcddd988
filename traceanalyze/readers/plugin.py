"""Recordings of formats that the tool itself does not know: readers that plug-ins bring.

A package names its `Reader` under the entry-point group `traceanalyze.readers`; README, "Plug-ins". Readers see
only files that the tool's own readers refuse, so none can take a Chrome trace or an Ascend profile over.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze import plugins
from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.columns import Sparse, Strings
from traceanalyze.model.trace import Events, Flows, Instants, Origin, ReadReport, Trace
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.source import STDIN, Source
from traceanalyze.readers.streams import read_head

_EARLIEST, _LATEST = -(1 << 61), 1 << 61
"""ns; sums of two such times are still int64."""
_VALUES = frozenset({"int64", "float64", "int32"})


def require_sound(trace: object, dtypes: Mapping[str, str]) -> Trace:
    """The trace that a reader made, if it is one; `dtypes` are those of the fields that are known by their names.

    Raises:
        TypeError: It is no `Trace`, or a column is of another type than `model/trace.py` says.
        ValueError: Columns do not fit together.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"{type(trace).__name__} is no traceanalyze.model.trace.Trace")
    events, instants, flows = trace.events, trace.instants, trace.flows
    _about(trace)
    _strings(trace.strings)
    tables: tuple[tuple[str, Events | Instants | Flows, tuple[str, ...]], ...] = (
        ("events", events, ("ts", "dur")),
        ("instants", instants, ("ts",)),
        ("flows", flows, ("ts", "id")),
    )
    for table, columns, numbers in tables:
        texts = ("cat",) if table == "flows" else ("name", "cat")
        for name in (*numbers, *texts, "track"):
            dtype = "int64" if name in numbers else "int32"
            _column(f"{table}.{name}", getattr(columns, name), dtype, len(columns.ts))
        _within(f"{table}.ts", columns.ts, _EARLIEST, _LATEST)
        _within(f"{table}.track", columns.track, 0, len(trace.tracks))
        for name in texts:
            _within(f"{table}.{name}", getattr(columns, name), 0, len(trace.strings))
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


_NEVER = frozenset({Kind.EMPTY, Kind.BLANK, Kind.SNAPSHOT, Kind.SNAPSHOT_JSON, Kind.PICKLE, Kind.MEMORY_TIMELINE})
"""Files that hold nothing, or that `traceanalyze memory` shows."""


class Reader(NamedTuple):
    """How to know and read files of one format."""

    recognises: Callable[[Path], bool]
    """Whether a file is of the format; by its content rather than by its name."""
    read: Callable[[Path], Trace]
    """The recording of one rank. `traceanalyze.readers.kineto.read_text` makes a `Trace` of Chrome events as JSON. An
    `InputError` tells the user, in one line, why a file cannot be read."""
    suffixes: tuple[str, ...] = ()
    """Ends of names, in any case, that are worth opening when a folder is searched; a named file always is."""


def wants(source: Source) -> bool:
    """Whether a plug-in recognises a file that was found by searching, and that is no trace to the tool itself."""
    name = Path(source.path).name.lower()
    ends = (end.lower() for _, reader in _readers() for end in reader.suffixes)
    return any(map(name.endswith, ends)) and _recognised(source) is not None


def read_by_plugin(source: Source, refused: InputError) -> Trace:
    """The recording of a file that the tool's own readers refused.

    Raises:
        InputError: No plug-in recognises it (then why it was refused, and what went wrong in plug-ins), or the one
            that does cannot read it.
    """
    found = _recognised(source)
    if found is None:
        why = refused.phrase
        for each in plugins.faults(plugins.READERS):
            why = Phrase("{why}; the reader plug-in {name} failed: {error}", why, each.name, each.error)
        raise InputError("{why}", why) from refused
    # Imported here: folders are searched without them.
    from traceanalyze.readers.header import DTYPES

    name, reader = found
    try:
        with plugins.stdout_aside():
            made = reader.read(Path(source.path))
        trace = require_sound(made, DTYPES)
    except plugins.FAILURES as error:
        told = isinstance(error, InputError)
        fault = str(error).removeprefix(f"{source.name}: ") if told else plugins.one_line(error)
        raise InputError("{file}: the reader plug-in {name} cannot read it: {why}", source.name, name, fault) from error
    origin = trace.origin._replace(path=source.name, size_bytes=source.size or 0, plugin=name)
    notes = (Phrase("read by the plug-in {name}", name), *trace.read.notes)
    return replace(trace, origin=origin, read=trace.read._replace(notes=notes))


def _recognised(source: Source) -> tuple[str, Reader] | None:
    """The plug-in that recognises a file, the first by name; one that fails in looking at it does not."""
    readers = _readers()
    if not readers or not _may_be_shown(source):
        return None
    for name, reader in readers:
        try:
            with plugins.stdout_aside():
                recognised = reader.recognises(Path(source.path))
            if recognised:
                return name, reader
        except plugins.FAILURES as error:
            plugins.failed(plugins.READERS, name, error)
    return None


def _may_be_shown(source: Source) -> bool:
    """Only whole files: plug-ins open them by themselves."""
    if source.path == STDIN or source.member or source.folder or source.size is None:
        return False
    try:
        return sniff(read_head(source), source.name) not in _NEVER
    except InputError:
        return os.access(source.path, os.R_OK)


def _readers() -> tuple[tuple[str, Reader], ...]:
    return plugins.load(plugins.READERS, _checked)


def _checked(name: str, reader: object) -> tuple[str, Reader]:
    if not isinstance(reader, Reader):
        raise TypeError(f"{type(reader).__name__} is no traceanalyze.readers.plugin.Reader")
    if not isinstance(reader.suffixes, tuple) or not all(isinstance(each, str) for each in reader.suffixes):
        raise TypeError("suffixes is no tuple of texts")
    if not (callable(reader.recognises) and callable(reader.read)):
        raise TypeError("recognises and read are no functions")
    return name, reader
