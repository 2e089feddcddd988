"""A Chrome trace of the PyTorch profiler (Kineto, any torch since 1.8) as a `Trace`."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.trace import Origin, ReadReport, Trace
from traceanalyze.readers.detect import HEAD_BYTES, Kind, explain, sniff
from traceanalyze.readers.fields import EVENT_FIELDS, INSTANT_FIELDS
from traceanalyze.readers.filenames import explicit_rank, host_and_pid
from traceanalyze.readers.header import parse_header, process_names, thread_names
from traceanalyze.readers.nothing import no_events
from traceanalyze.readers.scan import scan
from traceanalyze.readers.streams import open_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from traceanalyze.readers.header import Header
    from traceanalyze.readers.scan import Scan, Sparse
    from traceanalyze.readers.source import Source

_NUMBER = re.compile(r"[0-9]{1,18}")
_ASCEND_PROCESSES = {"Ascend Hardware", "CANN"}


def read_trace(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """Read one recording.

    Args:
        source: What to read.
        progress: Called with the bytes of the stored file read so far.

    Raises:
        InputError: The source cannot be read, is something else, or holds no event.
    """
    with open_stream(source, progress) as stream:
        kind = sniff(stream.head, source.name)
        if kind not in {Kind.TRACE, Kind.JSON, Kind.BLANK}:
            raise explain(kind, _with_fault(source.name, stream.fault))
        found = scan(stream.readinto, event_fields=EVENT_FIELDS, instant_fields=INSTANT_FIELDS)
    if not _has_rows(found):
        raise no_events(found, kind, _with_fault(source.name, stream.fault))
    trailing = stream.trailing_bytes
    stored = _Stored(
        name=source.name,
        file=source.member or source.path,
        size=source.size or stream.consumed,
        compressed=stream.compressed,
        fault=stream.fault,
        notes=(f"{trailing:,} bytes after the end of the gzip stream were ignored",) if trailing else (),
    )
    return _trace(found, stored)


def read_text(text: bytes, name: str = "text") -> Trace:
    """Read a recording that is in memory already, as uncompressed JSON.

    Raises:
        InputError: It holds no event.
    """
    found = scan(io.BytesIO(text).readinto, event_fields=EVENT_FIELDS, instant_fields=INSTANT_FIELDS)
    if not _has_rows(found):
        raise no_events(found, sniff(text[:HEAD_BYTES]), name)
    return _trace(found, _Stored(name=name, file=name, size=len(text)))


@dataclass(frozen=True, slots=True)
class _Stored:
    """The file a text came from, and how unpacking it went."""

    name: str
    file: str
    size: int
    compressed: bool = False
    fault: str | None = None
    notes: tuple[str, ...] = ()


def _has_rows(found: Scan) -> bool:
    return any(len(ts) for ts in (found.events.ts, found.instants.ts, found.flows.ts))


def _trace(found: Scan, stored: _Stored) -> Trace:
    names = process_names(found.metadata)
    if _ASCEND_PROCESSES & {name.partition(" [")[0] for name in names.values()}:
        raise explain(Kind.ASCEND, stored.name)
    header = parse_header(found.header)
    read = ReadReport(
        counts=found.counts,
        phases=found.phases,
        fault=found.fault,
        truncated=found.truncated,
        stream_fault=stored.fault,
        notes=(*header.notes, *stored.notes),
    )
    return Trace(
        origin=_origin(stored, found.size, header, names),
        read=read,
        strings=found.strings,
        tracks=found.tracks,
        events=replace(found.events, fields=_present(found.events.fields)),
        instants=replace(found.instants, fields=_present(found.instants.fields)),
        flows=found.flows,
        base_ns=_base(found, header),
        resolution_ns=1 if found.fractional else 1000,
        devices=header.devices,
        process_names=names,
        thread_names=thread_names(found.metadata),
        groups=header.groups,
        options=header.options,
        versions=header.versions,
    )


def _origin(stored: _Stored, text_bytes: int, header: Header, names: Mapping[str, str]) -> Origin:
    named = explicit_rank(stored.file)
    host, pid = _process(names, (stored.file, header.trace_name or ""))
    return Origin(
        path=stored.name,
        size_bytes=stored.size,
        text_bytes=text_bytes,
        compressed=stored.compressed,
        host=host,
        pid=pid,
        rank=named if header.rank is None else header.rank,
        rank_source="distributedInfo" if header.rank is not None else "" if named is None else "file name",
        world_size=header.world_size,
        backend=header.backend,
        trace_name=header.trace_name,
    )


def _process(names: Mapping[str, str], paths: Sequence[str]) -> tuple[str | None, int | None]:
    """Host and process recorded: the one process labelled CPU, and the file name that agrees with it."""
    pids = [int(pid) for pid, name in names.items() if name.endswith("[CPU]") and _NUMBER.fullmatch(pid)]
    labelled = pids[0] if len(pids) == 1 else None
    for path in paths:
        host, pid = host_and_pid(path)
        if host is not None and labelled in {None, pid}:
            return host, pid
    return None, labelled


def _present(fields: Mapping[str, Sparse]) -> dict[str, Sparse]:
    """Columns with a value; absence of a column means that no event has it."""
    return {name: column for name, column in fields.items() if len(column.row)}


def _base(found: Scan, header: Header) -> int:
    """Time zero of the trace. Tools that rewrite traces may keep the member beside absolute times: then it is 0."""
    latest = max((int(np.max(ts)) for ts in (found.events.ts, found.instants.ts) if len(ts)), default=0)
    return header.base_ns if latest < header.base_ns else 0


def _with_fault(name: str, fault: str | None) -> str:
    return f"{name}: {fault}" if fault else name
