"""What a dead or slow job leaves beside traces and snapshots: `read_evidence` reads it, one module a source.

Its content tells what a file is: logs of ranks, launchers and kernels, dumps of the flight recorder, states of devices,
stacks, TensorBoard's scalars. Nothing in a file makes it fail; what cannot be read or is not understood is counted.

A package adds to it under the entry-point group `traceanalyze.evidence`: a tuple of rows (`said`, `loop` or `Block`
of `traceanalyze.incident.text`), or a `Format` for files that the tool itself does not know.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

from traceanalyze import plugins
from traceanalyze.errors import InputError
from traceanalyze.incident.evidence import Event, Evidence, FileRead, Source, Value, What, derived_step_times, placed
from traceanalyze.incident.flight import is_flight, read_flight
from traceanalyze.incident.hardware import KERNEL, is_device_table, read_npu, read_query, read_table, read_xml
from traceanalyze.incident.lines import YEAR_2200, message_of, stamp_of
from traceanalyze.incident.process_log import ROWS
from traceanalyze.incident.stacks import BLOCKS, spy_json, terminated, traceback_of
from traceanalyze.incident.tensorboard import is_event_file, read_events
from traceanalyze.incident.text import Block, Loop, Pattern, Row, Table, chunks, read_text
from traceanalyze.model.patterns import regex
from traceanalyze.readers import source as readers
from traceanalyze.readers.detect import Kind, sniff
from traceanalyze.readers.sources import files_of
from traceanalyze.readers.streams import Stream, open_stream

__all__ = ["Format", "read_evidence"]


class Format(NamedTuple):
    """How a plug-in knows and reads files of one format."""

    recognises: Callable[[bytes], bool]
    """Whether it is of the format, by its first 64 KiB (unpacked)."""
    read: Callable[[Path], Evidence]


_TEXTS: Final = {Kind.TEXT, Kind.TABLE, Kind.HTML, Kind.JSON, Kind.BLANK}
_NO_LOGS: Final = regex(
    r".*\.(?:pyi?|c|cc|cpp|cuh?|h|hpp|go|rs|sh|md|rst|ya?ml|toml|ini|cfg|conf|lock|diff|patch|html?|css|js|ipynb|csv\.gz)",
    2,
)
"""Names of programs and settings: they hold messages that nobody printed."""
_SPY: Final = regex(rb'\s*\[\s*\{\s*"pid": ?\d+,\s*"thread_id"')
"""What py-spy writes is a list of objects, as a trace may be."""
_DOCUMENT: Final = 8 << 20
"""Bytes of a file that is read as one JSON document."""
_XML: Final = 16 << 20


def read_evidence(paths: Sequence[str], progress: Callable[[int], None] | None = None) -> Evidence:
    """Everything that files below some paths say of an incident; `progress` gets the bytes of each file read."""
    rows, formats = _plugged()
    table = Table((*ROWS, *KERNEL, *BLOCKS, *rows))
    parts = _ranked([_read(one, table, formats, progress) for one in _sources(paths)])
    notes = [f"the plug-in {one.name} failed: {one.error}" for one in plugins.faults(plugins.EVIDENCE)]
    joined = Evidence(
        events=tuple(event for part in parts for event in part.events),
        series=derived_step_times([series for part in parts for series in part.series]),
        stacks=tuple(
            stack if stack.rank is not None or not part.files else stack._replace(rank=part.files[0].rank)
            for part in parts
            for stack in part.stacks
        ),
        flights=_one_each(parts),
        processes=tuple(dict.fromkeys(one for part in parts for one in part.processes)),
        devices=tuple(device for part in parts for device in part.devices),
        files=tuple(sorted((file for part in parts for file in part.files), key=lambda file: file.path)),
        notes=tuple(notes),
    )
    return placed(_hosted(joined))


def _one_each(parts: Sequence[Evidence]) -> tuple[Any, ...]:
    """Dumps by rank; of a dump that is there as pickle and as JSON the one that has stacks."""
    kept: dict[tuple[object, ...], Any] = {}
    for flight in (flight for part in parts for flight in part.flights):
        record = flight.entries.record
        key = (flight.rank, int(record[-1]) if len(record) else flight.source.path)
        if key not in kept or (flight.entries.stack.any() and not kept[key].entries.stack.any()):
            kept[key] = flight
    return tuple(sorted(kept.values(), key=lambda flight: (-1 if flight.rank is None else flight.rank, flight.source)))


def _sources(paths: Sequence[str]) -> Iterator[readers.Source]:
    seen = set()
    for path in paths:
        try:
            for one in files_of(path):
                key = (os.path.realpath(one.path), one.member)
                if key not in seen:
                    seen.add(key)
                    yield one
        except OSError:
            continue


# --- One file --------------------------------------------------------------------------------------------------------


def _read(
    source: readers.Source, table: Table, formats: Sequence[tuple[str, Format]], progress: Callable[[int], None] | None
) -> Evidence:
    path, size = source.name, source.size or 0
    other = FileRead(path, "other", size)
    if source.folder or (not source.member and not Path(source.path).is_file()):
        return Evidence(files=(other,))
    try:
        with open_stream(source, progress) as stream:
            found = _content(stream, source, table, alone=_place(path)[1] is not None)
            if found.files[0].kind == "other":
                found = _by_plugin(stream.head, source, formats) or found
    except InputError as error:
        found = Evidence(files=(other._replace(fault=str(error).removeprefix(f"{path}: ")),))
    except Exception as error:
        # Whatever a torn or hostile file does to a reader, the others are read.
        found = Evidence(files=(other._replace(fault=f"not understood: {plugins.one_line(error)}"),))
    return found


def _content(stream: Stream, source: readers.Source, table: Table, *, alone: bool) -> Evidence:
    head, path, size = stream.head, source.name, source.size or 0
    if is_flight(head):
        return read_flight(stream, path, size)
    if is_event_file(head):
        return read_events(stream, path, size)
    kind = sniff(head, path)
    text = kind in _TEXTS or (kind is Kind.BINARY and _mostly_text(head)) or _SPY.match(head) is not None
    if not text or _NO_LOGS.fullmatch(PurePath(path).name):
        return Evidence(files=(FileRead(path, "other", size, fault=stream.fault or ""),))
    tool = is_device_table(head)
    if tool is not None:
        return _device(stream, path, size, tool)
    document = _document(stream, path, size) if kind in {Kind.JSON, Kind.TRACE} else None
    if document is None and kind is Kind.JSON:
        # Lines that begin with a bracket; the stream has been read.
        with open_stream(source) as again:
            return _log(again, path, size, table, alone=alone)
    return document or _log(stream, path, size, table, alone=alone)


def _mostly_text(head: bytes) -> bool:
    """Whether it is lines of text but for stray bytes: holes of zeros that a crash leaves, bars that go back."""
    full = head.replace(b"\0", b"")
    odd = full.translate(None, _PRINTED)
    return b"\n" in full and len(odd) * 50 < len(full)


_PRINTED: Final = bytes([*range(8, 14), 27, *range(32, 127), *range(128, 256)])


def _log(stream: Stream, path: str, size: int, table: Table, *, alone: bool) -> Evidence:
    named = _rank_of(path)
    found = read_text(stream, path, size, table, rank=named, alone=alone)
    (read,) = found.files
    why = "" if read.rank is None else "its name" if named is not None else "its lines"
    return found._replace(files=(read._replace(rank_source=why),))


def _device(stream: Stream, path: str, size: int, tool: str) -> Evidence:
    if b"<nvidia_smi_log" in stream.head:
        return read_xml(next(_text(stream, _XML)).decode("utf-8", "replace"), path, size)
    if tool == "npu_smi":
        return read_npu(_lines(stream), path, size)
    if tool == "nvidia_smi" and b" : " in stream.head[:4000]:
        return read_query(_lines(stream), path, size)
    return read_table(_lines(stream), path, size, tool)


def _text(stream: Stream, most: int) -> Iterator[bytes]:
    buffer, text = memoryview(bytearray(1 << 18)), bytearray()
    while len(text) < most and (count := stream.readinto(buffer)):
        text += buffer[:count]
    yield bytes(text[:most])


def _lines(stream: Stream) -> Iterator[bytes]:
    for text, _, _ in chunks(stream):
        yield from text.split(b"\n")[: -1 if text.endswith(b"\n") else None]


# --- Documents of launchers ------------------------------------------------------------------------------------------


def _document(stream: Stream, path: str, size: int) -> Evidence | None:
    """What a JSON document tells; None where it is none, but lines of a log."""
    text = next(_text(stream, _DOCUMENT + 1))
    if len(text) > _DOCUMENT:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        torn = path.endswith(".json")
        return Evidence(files=(FileRead(path, "other", size, fault="JSON that is torn"),)) if torn else None
    lines = text.count(b"\n") + 1
    if isinstance(value, list) and value and isinstance(value[0], dict) and "frames" in value[0]:
        stacks = tuple(spy_json(value, path))
        rank = _rank_of(path)
        stacks = tuple(stack._replace(rank=rank) for stack in stacks)
        return Evidence(stacks=stacks, files=(FileRead(path, "stacks", size, len(value), len(stacks), rank=rank),))
    if isinstance(value, dict) and (event := _error_json(value, path)):
        rank = _rank_of(path)
        at, why = event.stamp_ns, "" if rank is None else "its name"
        read = FileRead(path, "launcher_error", size, lines, 1, rank=rank, rank_source=why)
        read = read._replace(first_ns=at, last_ns=at, clock=event.clock)
        return Evidence((event._replace(rank=rank),), files=(read,))
    events = tuple(_pods(value, path)) if isinstance(value, dict) else ()
    kind = "kubernetes" if events or b"containerStatuses" in text else "other"
    return Evidence(events, files=(FileRead(path, kind, size, lines, len(events)),))


_SIGNALLED: Final = regex(r"Signal (\d{1,9}) \((\w+)\) received by PID (\d{1,9})\b")


def _error_json(value: Mapping[str, Any], path: str) -> Event | None:
    """The error file of torchelastic, of any version."""
    message = value.get("message")
    inner: Mapping[str, Any] = message if isinstance(message, dict) else value
    text = inner.get("message")
    extra = inner.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    time = extra.get("timestamp") or inner.get("timestamp") or value.get("timestamp")
    if not isinstance(text, str) or (not extra and time is None and not _SIGNALLED.search(text)):
        return None
    stamp: int | None = None
    with suppress(TypeError, ValueError, OverflowError):
        seconds = float(str(time))
        stamp = int(seconds * 10**9) if 0 < seconds < YEAR_2200 else None
    data: dict[str, Value] = {}
    if found := _SIGNALLED.search(text):
        event = Event(What.EXIT, text, Source(path), data={"exitcode": -int(found[1]), "pid": int(found[3])})
    else:
        stack = extra.get("py_callstack")
        made = traceback_of(stack.encode(), path) if isinstance(stack, str) else None
        data = {"type": text.partition(":")[0]} if made is None else dict(made.data)
        event = Event(What.EXCEPTION, message_of(text.encode()), Source(path), data=data)
    code = inner.get("errorCode")
    if isinstance(code, int):
        event = event._replace(data={**event.data, "exitcode": code})
    return event._replace(stamp_ns=stamp, clock="none" if stamp is None else "utc")


def _pods(value: Mapping[str, Any], path: str) -> Iterator[Event]:
    """Containers that ended, of `kubectl get pod -o json`."""
    items = value.get("items") if isinstance(value.get("items"), list) else [value]
    for pod in items or ():
        status = pod.get("status") if isinstance(pod, dict) else None
        found = status.get("containerStatuses") if isinstance(status, dict) else None
        spec = pod.get("spec") if isinstance(pod, dict) else None
        host = spec.get("nodeName") if isinstance(spec, dict) else None
        for container in found if isinstance(found, list) else ():
            for key in ("lastState", "state"):
                ended = container.get(key) if isinstance(container, dict) else None
                ended = ended.get("terminated") if isinstance(ended, dict) else None
                if not isinstance(ended, dict):
                    continue
                event = terminated(
                    str(ended.get("reason", "")), str(ended.get("exitCode", "")), Source(path), _pod_name(pod)
                )
                if event is None:
                    continue
                stamp = stamp_of(str(ended.get("finishedAt", "")).encode())
                if stamp is not None:
                    event = event._replace(stamp_ns=stamp.ns, clock=stamp.clock)
                yield event._replace(host=host if isinstance(host, str) else None)


def _pod_name(pod: Mapping[str, Any]) -> str:
    about = pod.get("metadata")
    name = about.get("name") if isinstance(about, dict) else None
    return f"pod {name}" if isinstance(name, str) else "container"


# --- Plug-ins --------------------------------------------------------------------------------------------------------


def _plugged() -> tuple[tuple[Row, ...], tuple[tuple[str, Format], ...]]:
    loaded = plugins.load(plugins.EVIDENCE, _checked)
    rows = tuple(row for _, one in loaded if not isinstance(one, Format) for row in one)
    return rows, tuple((name, one) for name, one in loaded if isinstance(one, Format))


def _checked(name: str, made: object) -> tuple[str, Format | tuple[Row, ...]]:
    if isinstance(made, Format):
        return name, made
    if not isinstance(made, tuple) or not all(isinstance(row, Pattern | Loop | Block) for row in made):
        raise TypeError(f"{type(made).__name__} is neither a Format nor a tuple of rows")
    return name, made


def _by_plugin(head: bytes, source: readers.Source, formats: Sequence[tuple[str, Format]]) -> Evidence | None:
    if source.member:
        return None
    for name, one in formats:
        try:
            with plugins.stdout_aside():
                if not one.recognises(head):
                    continue
                made = one.read(Path(source.path))
            if not isinstance(made, Evidence):
                raise TypeError(f"{type(made).__name__} is no Evidence")
            files = made.files or (FileRead(source.name, name, source.size or 0),)
            return made._replace(files=tuple(file._replace(kind=name) for file in files))
        except plugins.FAILURES as error:
            plugins.failed(plugins.EVIDENCE, name, error, source.name)
    return None


# --- Whose file it is ------------------------------------------------------------------------------------------------

_NAMED_RANK: Final = regex(r"(?i)(?<![a-z])(?:global_?)?rank[_.-]?(\d{1,7})(?!\d)")
_LAUNCHER: Final = regex(r"(.*)[/!]attempt_\d+/(\d+)/[^/]*")


def _rank_of(path: str) -> int | None:
    """The global rank that a path names."""
    found = _NAMED_RANK.findall("/".join(PurePath(path).parts[-3:]))
    return int(found[-1]) if found else None


def _place(path: str) -> tuple[str, int | None]:
    """The launcher's folder and the local rank in it, of a tree that torchrun made."""
    found = _LAUNCHER.fullmatch(path)
    return (found[1], int(found[2])) if found else ("", None)


def _ranked(parts: Sequence[Evidence]) -> list[Evidence]:
    """Files with their global ranks where lines of theirs, or of those beside them, tell."""
    sole: dict[int, list[str]] = defaultdict(list)
    bases: dict[str, set[int]] = defaultdict(set)
    trees = {tree for part in parts if (tree := _place(part.files[0].path)[0])}
    for part in parts:
        path, rank = part.files[0].path, part.files[0].rank
        tree, local = _place(path)
        if local is not None and rank is not None:
            bases[tree].add(rank - local)
        named = {event.rank for event in part.events if event.rank is not None}
        if len(named) == 1:
            sole[named.pop()].append(path)
    # Logs side by side, each of which names a rank of its own.
    own = {paths[0]: rank for rank, paths in sole.items() if len(paths) == 1 and len(sole) > 1}
    made = []
    for part in parts:
        file = part.files[0]
        tree, local = _place(file.path)
        # One tree alone is a job on one node, where local ranks are the global ones.
        base = bases.get(tree, {0} if len(trees) == 1 else set())
        if file.rank is not None or (local is None and file.kind != "process_log"):
            made.append(part)
        elif local is not None and len(base) == 1:
            why = "its place in the launcher's folder" if tree in bases else "its local rank, of the only node"
            made.append(_of_rank(part, min(base) + local, why))
        else:
            made.append(_of_rank(part, own[file.path], "its lines") if file.path in own else part)
    return made


def _of_rank(part: Evidence, rank: int, why: str) -> Evidence:
    def fill(one: Any) -> Any:
        return one if one.rank is not None else one._replace(rank=rank)

    return part._replace(
        events=tuple(map(fill, part.events)),
        series=tuple(map(fill, part.series)),
        stacks=tuple(map(fill, part.stacks)),
        files=tuple(file._replace(rank=rank, rank_source=why) for file in part.files),
    )


_HOST_NAME: Final = regex(
    r"(?i)(?:dmesg|syslog|kern(?:el)?|journal|nvidia[-_]?smi|npu[-_]?smi|dcgm)[._-]+([a-z0-9][\w-]*)"
)


def _hosted(found: Evidence) -> Evidence:
    """Files with their hosts: the one that all lines name, else one that is known and stands in the path."""
    named: dict[str, set[str]] = defaultdict(set)
    for event in found.events:
        if event.host and event.what not in {What.EXIT, What.CANCELLED}:
            named[event.source.path].add(event.host)
    known = sorted({event.host for event in found.events if event.host}, key=len, reverse=True)
    hosts: dict[str, str] = {}
    for file in found.files:
        own = named.get(file.path, set())
        host = next(iter(own)) if len(own) == 1 else next((each for each in known if _stands_in(each, file.path)), None)
        by_name = _HOST_NAME.search(PurePath(file.path).name)
        if host is None and by_name and any(map(str.isdigit, by_name[1])):
            host = by_name[1]
        if host:
            hosts[file.path] = host

    def fill(one: Any) -> Any:
        host = hosts.get(one.source.path)
        return one if one.host is not None or host is None else one._replace(host=host)

    return found._replace(
        events=tuple(map(fill, found.events)),
        series=tuple(map(fill, found.series)),
        processes=tuple(map(fill, found.processes)),
        devices=tuple(map(fill, found.devices)),
        files=tuple(file._replace(host=file.host or hosts.get(file.path)) for file in found.files),
    )


def _stands_in(host: str, path: str) -> bool:
    at = path.find(host)
    while at >= 0:
        around = path[max(at - 1, 0) : at] + path[at + len(host) : at + len(host) + 1]
        if not any(each.isalnum() for each in around):
            return True
        at = path.find(host, at + 1)
    return False
