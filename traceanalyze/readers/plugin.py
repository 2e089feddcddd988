"""Recordings of formats that the tool itself does not know: readers that plug-ins bring.

A package names its `Reader` under the entry-point group `traceanalyze.readers`; README, "Plug-ins". Readers are asked
only about files that the tool's own readers refuse, so none can take a Chrome trace or an Ascend profile over.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze import plugins
from traceanalyze.errors import InputError
from traceanalyze.frozen import frozen
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.source import STDIN
from traceanalyze.readers.streams import read_head

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceanalyze.model.trace import Trace
    from traceanalyze.readers.source import Source

_NEVER = frozenset({Kind.EMPTY, Kind.BLANK, Kind.SNAPSHOT, Kind.SNAPSHOT_JSON, Kind.PICKLE, Kind.MEMORY_TIMELINE})
"""Files that hold nothing, or that `traceanalyze memory` shows."""


@frozen
class Reader:
    """How to know and read files of one format."""

    recognises: Callable[[Path], bool]
    """Whether a file is of the format; by its content rather than by its name."""
    read: Callable[[Path], Trace]
    """The recording of one rank. `traceanalyze.readers.kineto.read_text` makes a `Trace` of Chrome events as JSON. An
    `InputError` tells the user, in one line, why a file cannot be read."""
    suffixes: tuple[str, ...] = ()
    """Ends of names, in any case, that are worth opening when a folder is searched; a named file always is."""


class _Named(NamedTuple):
    name: str
    """Of the plug-in."""
    reader: Reader


def wants(source: Source) -> bool:
    """Whether a plug-in recognises a file that was found by searching, and that is no trace to the tool itself."""
    name = Path(source.path).name.lower()
    ends = (end.lower() for one in _readers() for end in one.reader.suffixes)
    return any(map(name.endswith, ends)) and _who(source) is not None


def read_by_plugin(source: Source, refused: InputError) -> Trace:
    """The recording of a file that the tool's own readers refused.

    Raises:
        InputError: No plug-in recognises it (then why it was refused, and what went wrong in plug-ins), or the one
            that does cannot read it.
    """
    one = _who(source)
    if one is None:
        broken = (f"; the reader plug-in {each.name} failed: {each.error}" for each in plugins.faults(plugins.READERS))
        raise InputError("".join((str(refused), *broken))) from refused
    # Imported here: folders are searched without them.
    from traceanalyze.model.soundness import require_sound
    from traceanalyze.readers.fields import DTYPES

    told = f"{source.name}: the reader plug-in {one.name} cannot read it: "
    try:
        with plugins.told_aside():
            made = one.reader.read(Path(source.path))
        trace = require_sound(made, DTYPES)
    except InputError as error:
        raise InputError(told + str(error).removeprefix(f"{source.name}: ")) from error
    except plugins.FAILURES as error:
        raise InputError(told + plugins.one_line(error)) from error
    origin = replace(trace.origin, path=source.name, size_bytes=source.size or 0, plugin=one.name)
    notes = (f"read by the plug-in {one.name}", *trace.read.notes)
    return replace(trace, origin=origin, read=replace(trace.read, notes=notes))


def _who(source: Source) -> _Named | None:
    """The plug-in that recognises a file, the first by name; one that fails in looking at it does not."""
    found = _readers()
    if not found or not _may_be_asked(source):
        return None
    for one in found:
        try:
            with plugins.told_aside():
                mine = one.reader.recognises(Path(source.path))
            if mine:
                return one
        except plugins.FAILURES as error:
            plugins.failed(plugins.READERS, one.name, error)
    return None


def _may_be_asked(source: Source) -> bool:
    """Only about whole files: plug-ins open them by themselves."""
    if source.path == STDIN or source.member or source.folder or source.size is None:
        return False
    try:
        return sniff(read_head(source), source.name) not in _NEVER
    except InputError:
        return os.access(source.path, os.R_OK)


def _readers() -> tuple[_Named, ...]:
    return plugins.load(plugins.READERS, _named)


def _named(name: str, reader: object) -> _Named:
    if not isinstance(reader, Reader):
        raise TypeError(f"{type(reader).__name__} is no traceanalyze.readers.plugin.Reader")
    if not isinstance(reader.suffixes, tuple) or not all(isinstance(each, str) for each in reader.suffixes):
        raise TypeError("suffixes is no tuple of texts")
    if not (callable(reader.recognises) and callable(reader.read)):
        raise TypeError("recognises and read are no functions")
    return _Named(name, reader)
