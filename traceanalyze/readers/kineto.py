"""A recording as a `Trace`: a Chrome trace of the PyTorch profiler (Kineto, any torch since 1.8), or an Ascend profile.

Both kinds of Chrome trace go through the same scanner; what it found tells which of them it was.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from traceanalyze.errors import InputError, Phrase, joined, some
from traceanalyze.model.classify import OVERLAY_CATEGORY
from traceanalyze.model.columns import MISSING, Sparse, Strings
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import Origin, ReadReport, Trace
from traceanalyze.readers import header
from traceanalyze.readers.ascend.folder import (
    KERNELS,
    Profile,
    is_ascend,
    looks_ascend,
    part_alone,
    profile_at,
    profile_of,
    stray,
)
from traceanalyze.readers.detect import HEAD_BYTES, Kind, explain, sniff
from traceanalyze.readers.remote import is_remote, local_copy
from traceanalyze.readers.runs import explicit_rank, host_and_pid
from traceanalyze.readers.scan import scan
from traceanalyze.readers.scan.result import REASONS, Scan
from traceanalyze.readers.source import STDIN, Source
from traceanalyze.readers.streams import Stream, open_stream

_DROPPED = ("no_phase", "no_ts", "bad_ts", "no_dur", "bad_dur", "negative_dur")
_MEMBERS_SHOWN = 4
_WANTED = Phrase("give the file export_chrome_trace wrote")
_ACTIVE = Phrase("was the profiler stopped, or its schedule not yet active, while the program worked?")


def no_events(found: Scan, kind: Kind, name: str) -> InputError:
    """The error for a text without any event that can be used; `kind` is what its first bytes look like."""
    if found.root == "none":
        return explain(kind if kind is Kind.BLANK else Kind.TEXT, name)
    counts = found.counts
    dropped = joined("; ", [Phrase("{count:,} {what}", counts[key], REASONS[key]) for key in _DROPPED if counts[key]])
    place = Phrase("at its end") if found.fault is None else Phrase("at byte {place:,}", found.fault)
    phases = joined(", ", [Phrase('{count:,} of phase "{phase}"', n, phase) for phase, n in found.phases.items()])
    names = [key.decode("utf-8", "replace") for key in found.header]
    members = some(names, _MEMBERS_SHOWN) or Phrase("none")
    reasons = (
        (dropped, Phrase("no event could be used: {dropped}; record the trace again", dropped)),
        (
            counts["malformed"] or (found.truncated and not found.phases),
            Phrase("broken {place}, and no event can be read; copy the file again, or record the trace again", place),
        ),
        (
            counts["not_object"],
            Phrase("a list of {count:,} values that are no events; {advice}", counts["not_object"], _WANTED),
        ),
        (phases, Phrase("nothing was recorded, only metadata or counters ({phases}); {advice}", phases, _ACTIVE)),
        (kind is Kind.JSON and stray(name), stray(name)),
        (
            kind is Kind.JSON,
            Phrase('JSON without "traceEvents", not a trace (its members: {members}); {advice}', members, _WANTED),
        ),
        (True, Phrase("the trace has no events; {advice}", _ACTIVE)),
    )
    return InputError("{name}: {why}", name, next(text for applies, text in reasons if applies))


_NUMBER = regex(r"[0-9]{1,18}")


def read_trace(
    source: Source, progress: Callable[[int], None] | None = None, *, brief: bool = False, threads: bool = True
) -> Trace:
    """Read one recording; `progress` is called with the bytes of the stored file read so far.

    In `brief` what the summary of one of many ranks needs. Without `threads` in this one alone, which takes less CPU
    time: for one of many, as others are read meanwhile.

    Raises:
        InputError: The source cannot be read, is something else that no plug-in reads, or holds no event.
    """
    try:
        return (_from_copy if is_remote(source.folder) else _read)(source, progress, brief=brief, threads=threads)
    except InputError as error:
        # Imported when needed: most recordings are none of others.
        from traceanalyze.readers.plugin import read_by_plugin

        return read_by_plugin(source, error)


def _from_copy(source: Source, progress: Callable[[int], None] | None, *, brief: bool, threads: bool) -> Trace:
    """A profile elsewhere: its files know each other by their paths."""
    with local_copy(source.folder) as folder:
        profile = profile_at(folder)
        if profile is None or profile.main is None or profile.others:
            raise InputError("{name}: copy this profile to this machine: it is several databases", source.name)
        size = sum(path.stat().st_size for path in (profile.main, *profile.more))
        main = Source(str(profile.main), folder=str(folder), size=size, more=tuple(map(str, profile.more)))
        found = _read(main, progress, brief=brief, threads=threads)
    return replace(found, origin=found.origin._replace(path=source.name))


def _read(source: Source, progress: Callable[[int], None] | None, *, brief: bool, threads: bool) -> Trace:
    profile = profile_at(Path(source.folder)) if source.folder else None
    if profile is not None and profile.timeline is None and profile.database is not None:
        return _database(profile, progress)
    if profile is not None and profile.timeline is None:
        return _tables(profile, source)
    with open_stream(source, progress, threads=threads) as stream:
        kind = sniff(stream.head, source.name)
        if kind in {Kind.ASCEND_DB, Kind.SQLITE} and not source.member and source.path != STDIN:
            return _database(profile_of(Path(source.path), database=True), progress)
        if kind not in {Kind.TRACE, Kind.JSON, Kind.BLANK}:
            raise explain(kind, _name(source, stream))
        ascend = profile is not None or looks_ascend(stream.head)
        found = _scan(stream, ascend=ascend, brief=brief)
    if not _has_rows(found):
        raise no_events(found, kind, _name(source, stream))
    part = None if profile else part_alone(source.member or source.path, found)
    if part is not None:
        raise InputError("{name}: {what}", source.name, part)
    if is_ascend(found) != ascend:
        if source.size is None:
            raise InputError("{name}: its beginning does not tell what it is; save it to a file first", source.name)
        ascend = not ascend
        with open_stream(source) as again:
            found = _scan(again, ascend=ascend, brief=brief)
    trailing = stream.trailing_bytes
    notes = (Phrase("{trailing:,} bytes after the end of the gzip stream were ignored", trailing),) if trailing else ()
    origin = Origin(path=source.name, size_bytes=source.size or stream.consumed, compressed=stream.compressed)
    file = source.member or source.path

    def with_events(text: bytes) -> Scan:
        """The same with more events in its list, as the first of it."""
        with open_stream(source) as whole:
            begin = _LIST.search(whole.head)
            whole.insert(begin.end() if begin else 0, text + b"," if begin else b"")
            read = _scan(whole, ascend=True, brief=brief)
        return replace(read, fault=found.fault, size=found.size)

    profile = profile or (profile_of(Path(file)) if ascend else None)
    more = with_events if source.size is not None else None
    return _trace(found, origin, file, profile, ascend=ascend, stream_fault=stream.fault, notes=notes, again=more)


_LIST = regex(rb'^[\s\xef\xbb\xbf]*\[|"traceEvents"\s*:\s*\[')


def read_text(text: bytes, name: str = "text") -> Trace:
    """Read a recording that is in memory already, as uncompressed JSON."""
    ascend = looks_ascend(text[:HEAD_BYTES])
    found = _scan(io.BytesIO(text), ascend=ascend)
    if not _has_rows(found):
        raise no_events(found, sniff(text[:HEAD_BYTES]), name)
    if is_ascend(found) != ascend:
        ascend = not ascend
        found = _scan(io.BytesIO(text), ascend=ascend)
    origin = Origin(path=name, size_bytes=len(text))
    return _trace(found, origin, name, Profile(Path(name), None), ascend=ascend)


def _name(source: Source, stream: Stream) -> str:
    return f"{source.name}: {stream.fault}" if stream.fault else source.name


def _scan(stream: Stream | io.BytesIO, *, ascend: bool, brief: bool = False) -> Scan:
    """With the arguments of events that traces of Kineto, or of Ascend, have: one list has no room for all."""
    every = header.ASCEND_FIELDS if ascend else header.EVENT_FIELDS, header.INSTANT_FIELDS
    fields, instant_fields = map(header.of_summary, every) if brief and not ascend else every
    split = stream.split if isinstance(stream, Stream) else tuple

    def watch(memory: int) -> None:
        if not isinstance(stream, Stream) or (memory <= _ROOM and stream.text_bytes <= _TEXT_ROOM):
            return
        too_long = stream.swells(stream.text_bytes, _TEXT_ROOM, _TEXT_PER_PACKED_BYTE)
        if too_long or stream.swells(memory, _ROOM, _PER_PACKED_BYTE):
            raise InputError(
                "{name}: {text} bytes of text in {packed} of the file hold far more than recordings do; "
                "unpack it first if it is one",
                *(stream.name, *(f"{size:,}" for size in (stream.text_bytes, stream.consumed))),
            )

    return scan(stream.readinto, event_fields=fields, instant_fields=instant_fields, split=split, watch=watch)


_TEXT_ROOM, _TEXT_PER_PACKED_BYTE = 64 << 20, 200
"""A small file may hold any recording; of a larger one four times what the best packed recordings hold is none."""
_ROOM, _PER_PACKED_BYTE = 128 << 20, 70
"""The same of the memory that it may take: 10 MB of recordings (gzip -9) 150 to 300 MB, of tiny events 2.5 GB."""


def _has_rows(found: Scan) -> bool:
    return any(len(ts) for ts in (found.events.ts, found.instants.ts, found.flows.ts))


def _trace(
    found: Scan,
    origin: Origin,
    file: str,
    profile: Profile | None,
    *,
    ascend: bool,
    stream_fault: str | None = None,
    notes: tuple[str, ...] = (),
    again: Callable[[bytes], Scan] | None = None,
) -> Trace:
    """The trace of a file: of its name `file`, or of the `profile` that it belongs to; `again` reads it with more."""
    origin = origin._replace(text_bytes=found.size)
    read = ReadReport(found.counts, found.phases, found.fault, found.truncated, stream_fault, notes)
    read = read._replace(no_copies=origin.form in {"tables", "sums"})
    if ascend:
        # Imported when needed: other traces need not wait for what reads the tables of a profile.
        from traceanalyze.readers.ascend.text import ascend_trace

        return ascend_trace(found, profile or profile_of(Path(file)), origin, read, again)
    names = header.process_names(found.metadata)
    trace = Trace(
        origin=origin,
        read=read,
        strings=found.strings,
        tracks=found.tracks,
        events=replace(found.events, fields=_present(found.events.fields)),
        instants=found.instants._replace(fields=_present(found.instants.fields)),
        flows=found.flows,
        resolution_ns=1 if found.fractional and _finer_than_us(found) else 1000,
        process_names=names,
        thread_names=header.thread_names(found.metadata),
    )
    trace = whole_groups(header.with_header(trace, found.header))
    host, pid = _process(names, (file, trace.origin.trace_name or ""))
    origin, rank = trace.origin._replace(host=host, pid=pid, graphs=_graphs(trace)), explicit_rank(file)
    if origin.rank is None and rank is not None:
        origin = origin._replace(rank=rank, rank_source="file name")
    return replace(trace, origin=origin, base_ns=_base(trace))


def _graphs(trace: Trace) -> tuple[int, int]:
    """How often graphs were captured, and launched."""
    strings, names = trace.strings, trace.events.name
    captured, launched = (
        int(strings.matches(names, called.fullmatch).sum()) if strings.may_have(part) else 0
        for part, called in (("BeginCapture", _CAPTURED), ("GraphLaunch", _LAUNCHED))
    )
    return captured, launched


_CAPTURED, _LAUNCHED = regex(r"(cuda|hip)StreamBeginCapture"), regex(r"(cuda|cu|hip)GraphLaunch")


def _tables(profile: Profile, source: Source) -> Trace:
    """Of a profile of which only tables are there: that of kernels, else that of the sums of its steps."""
    from traceanalyze.readers.ascend.hardware import timeline_of, timeline_of_sums
    from traceanalyze.readers.ascend.tables import OPTIONAL, ROWS, read_table, step_times

    notes: list[str] = []
    path, sums = Path(source.path), profile.table(KERNELS) is None
    steps = step_times(path, notes) if sums else None
    table = None if sums else read_table(path, ROWS, notes, optional=OPTIONAL)
    drawn = b"" if table is None else timeline_of(table)
    found = _scan(io.BytesIO(drawn if steps is None else timeline_of_sums(steps, notes)), ascend=True)
    if not _has_rows(found):
        raise InputError("{name}: no row tells when a kernel ran; copy all of the profile", source.name)
    origin = Origin(path=source.name, form="sums" if sums else "tables", size_bytes=source.size or 0)
    return _trace(found, origin, source.path, profile, ascend=True, notes=tuple(notes))


def _database(profile: Profile, progress: Callable[[int], None] | None) -> Trace:
    # Imported when needed: most recordings are none, and SQLite takes time to load.
    from traceanalyze.readers.ascend.db import read_database

    return read_database(profile, progress)


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


def _finer_than_us(found: Scan) -> bool:
    """Whether the recording itself has such times: what this tool has drawn over it does not tell its clock."""
    events, drawn = found.events, found.strings.matches(found.events.cat, OVERLAY_CATEGORY.__eq__)
    if not drawn.any():
        return True
    own = ~drawn
    times = (events.ts[own], events.dur[own], found.instants.ts, found.flows.ts)
    return any(bool((column % 1000).any()) for column in times)


def _base(trace: Trace) -> int:
    """Time zero of the trace. Tools that rewrite traces may keep the member beside absolute times: then it is 0."""
    latest = max((int(np.max(ts)) for ts in (trace.events.ts, trace.instants.ts) if len(ts)), default=0)
    return trace.base_ns if latest < trace.base_ns else 0


_CUT = "..."
"""Stands for ranks of a process group: of more than 30 torch writes 29 and the last one."""


def whole_groups(trace: Trace) -> Trace:
    """The trace with the ranks of such groups as its header lists them (`pg_config`), by name and size; else with none.

    A part of the ranks would pass for all of them. Without any, the group is known by its size, and by its name with
    what the list begins and ends with, as several groups may have one name.
    """
    fields = trace.events.fields
    ranks, name = fields.get("group_ranks"), fields.get("group")
    if ranks is None:
        return trace
    cut = trace.strings.matches(ranks.value, lambda text: _CUT in text)
    if not cut.any():
        return trace
    rows = ranks.row.astype(np.int64)
    named = np.full(len(cut), -1, np.int64) if name is None else name.take(rows, -1)
    size = trace.events.numbers("group_size", rows)
    texts: dict[int, str] = {}
    for code in set(named[cut & (named >= 0)].tolist()):
        members = trace.groups.get(trace.strings.text(code), ())
        stated = set(size[cut & (named == code)].tolist()) - {MISSING}
        if members and stated <= {len(members)}:
            texts[code] = str(list(members))
    kept = ~cut | np.isin(named, list(texts))
    lost = list(zip(named[~kept].tolist(), ranks.value[~kept].tolist(), strict=True))
    names = {pair: _named(trace.strings, *pair) for pair in dict.fromkeys(lost)}
    strings, place = _with_texts(trace.strings, tuple(dict.fromkeys((*texts.values(), *names.values()))))
    value = ranks.value.copy()
    for code, text in texts.items():
        value[cut & (named == code)] = place[text]
    every = rows[~kept] if name is None else np.union1d(name.row, rows[~kept])
    of = np.full(len(every), -1, np.int32) if name is None else name.take(every, -1).astype(np.int32)
    of[np.searchsorted(every, rows[~kept])] = [place[names[pair]] for pair in lost]
    whole = {
        **fields,
        "group": Sparse(every.astype(np.uint32), of),
        "group_ranks": Sparse(ranks.row[kept], value[kept]),
    }
    present = {key: column for key, column in whole.items() if len(column.row)}
    return replace(trace, strings=strings, events=replace(trace.events, fields=present))


def _named(strings: Strings, name: int, listed: int) -> str:
    """Of a group whose ranks are not all known: `dp (0, 2, …, 62)`."""
    first = re.findall(r"\d+", strings.text(listed))
    some = ", ".join((*first[:2], "…", *first[-1:]))
    return f"{strings.text(name)} ({some})" if name >= 0 else some


def _with_texts(strings: Strings, texts: tuple[str, ...]) -> tuple[Strings, dict[str, int]]:
    """The dictionary with some more texts, and the codes of these."""
    written = [text.encode() for text in texts]
    blob = np.concatenate((strings.blob, np.frombuffer(b"".join(written), np.uint8)))
    ends = strings.offsets[-1] + np.cumsum([len(each) for each in written], dtype=np.int64)
    place = {text: len(strings) + number for number, text in enumerate(texts)}
    return Strings(blob, np.concatenate((strings.offsets, ends))), place
