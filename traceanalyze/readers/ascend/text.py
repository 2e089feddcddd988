"""The text form of an Ascend profile: trace_view.json as the scanner found it, and the tables beside it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Lost, Phrase
from traceanalyze.model.columns import Sparse
from traceanalyze.model.trace import Device, Events, Flows, Origin, ReadReport, Trace
from traceanalyze.readers.ascend import shared
from traceanalyze.readers.ascend.comm_tables import FIRST_STREAM, collective_fields, communication_tables
from traceanalyze.readers.ascend.folder import SUMS, Profile
from traceanalyze.readers.ascend.hardware import (
    CORES,
    hit_rates,
    kernel_columns,
    kernel_rows,
    rows_not_drawn,
    task_category,
    timeline_of,
)
from traceanalyze.readers.ascend.info import About, read_about
from traceanalyze.readers.ascend.other_export import database_beside, text_beside
from traceanalyze.readers.ascend.processes import Places, Process, iterations, places
from traceanalyze.readers.ascend.sampled_memory import module_memory, process_memory
from traceanalyze.readers.ascend.shared import ABSENT, NO_TEXT, NONE_32, Columns, Records, Texts
from traceanalyze.readers.ascend.tables import (
    KERNELS,
    L2_CACHE,
    MEMORY_RECORD,
    OPTIONAL,
    ROWS,
    Table,
    allocator_records,
    joined,
    read_table,
    step_times,
)
from traceanalyze.readers.header import process_names, thread_names
from traceanalyze.readers.scan.result import Scan

_T = TypeVar("_T")


def ascend_trace(
    found: Scan, profile: Profile, origin: Origin, read: ReadReport, again: Callable[[bytes], Scan] | None = None
) -> Trace:
    """The trace of one rank: from its scanned trace_view.json, and the tables of the profile that it belongs to.

    `again` scans the timeline with more events, those that only the table of kernels has.
    """
    notes: list[str] = []
    about = read_about(profile)
    kernels = _read(
        profile, "kernel_details.csv", lambda path: read_table(path, KERNELS, notes, optional=OPTIONAL), notes
    )
    kernels = kernels or _summary(profile, notes)
    cache = None
    if kernels is not None:
        cache = _read(profile, "l2_cache.csv", lambda path: read_table(path, L2_CACHE, notes), notes)
    if cache is not None and (cache.sizes("hit_rate", 1) == ABSENT).all():
        cache = None
    notes[:0] = [*_missing(profile, _READ if cache is None else _READ | {"l2_cache"}), *read.notes]
    record = _read(profile, "memory_record.csv", lambda path: read_table(path, MEMORY_RECORD, notes), notes)
    memory = _memory(profile, record, notes)
    vendor: dict[str, Any] = {
        "vendor": _read(profile, "step_trace_time.csv", lambda path: step_times(path, notes), notes),
        "module_memory": _read(profile, "npu_module_mem.csv", lambda path: module_memory(path, notes), notes) or (),
        "process_memory": () if record is None else process_memory(record),
        "vendor_collectives": communication_tables(profile, about, notes),
        "other_export": database_beside(profile, notes)
        or (text_beside(profile, notes, ["op_statistic.csv"]) if origin.form == "tables" else None),
    }
    only = _only_device(kernels, memory)
    times = np.empty(0, np.int64) if kernels is None else kernels.times("start")
    place = places(found, only)
    if kernels is not None and again is not None:
        lacking = _drawn(found, place, kernels, times, profile, only, notes)
        if lacking:
            no_tasks = not (place.process[found.events.track] == Process.HARDWARE).any()
            read, found = read._replace(no_copies=no_tasks), again(lacking)
            place = places(found, only)
    texts = Texts(found.strings)
    conversion = _Conversion(found, texts, place, kernels, times, about, cache)
    events = conversion.events()
    instants = shared.no_instants() if memory is None else shared.memory_instants(memory, texts, track=0)
    trace = Trace(
        origin=origin._replace(form=origin.form or "text", pid=place.host),
        read=read._replace(notes=tuple(notes)),
        strings=texts.table(),
        tracks=place.tracks,
        events=events,
        instants=instants,
        flows=conversion.flows(),
        process_names=process_names(found.metadata),
        thread_names=thread_names(found.metadata),
        devices=tuple(Device(number, "") for number in sorted({n for n in place.device.tolist() if n >= 0})),
        **vendor,
    )
    return shared.completed(trace, about)


def _read(profile: Profile, name: str, read: Callable[[Path], _T | None], notes: list[str]) -> _T | None:
    path = profile.table(name)
    if path is None:
        return None
    try:
        return read(path)
    except OSError as error:
        notes.append(Lost("{name} cannot be read ({reason}) and was left out", name, error.strerror or error))
        return None


def _summary(profile: Profile, notes: list[str]) -> Table | None:
    """The tables of kernels that msprof exports as one; None without any."""
    try:
        read = [read_table(path, KERNELS, notes, optional=OPTIONAL) for path in profile.summaries]
    except OSError as error:
        notes.append(Lost("{name} cannot be read ({reason}) and was left out", "op_summary", error.strerror or error))
        return None
    tables = [table for table in read if table is not None]
    return joined(tables) if tables else None


def _memory(profile: Profile, record: Table | None, notes: list[str]) -> Records | None:
    operators = profile.table("operator_memory.csv")
    try:
        return allocator_records(operators, record, notes) if operators or record else None
    except OSError as error:
        notes.append(Lost("operator_memory.csv cannot be read ({reason}): no memory curves", error.strerror or error))
        return None


_READ = frozenset(
    {"kernel_details", "step_trace_time", "op_statistic", "operator_memory", "memory_record", "npu_module_mem"}
)
_DRAWN_TOO = frozenset({"operator_details", "api_statistic"})
"""Tables with nothing but what the timeline tells, too."""


def _missing(profile: Profile, read: frozenset[str]) -> Iterator[Phrase]:
    """What is lost: of tables that are written together, where one of them is missing."""
    operators, totals, details, steps = (
        profile.table(f"{name}.csv") is not None
        for name in ("operator_memory", "memory_record", "kernel_details", "step_trace_time")
    )
    if profile.main is not None and profile.main == profile.table(SUMS):
        yield Lost(
            "only {name} tells of the device's work: no kernels, nothing of the host, of copies and of waiting", SUMS
        )
        return
    if profile.timeline is None and profile.output is not None:
        yield Lost(
            "trace_view.json is missing: kernels and collectives are those of kernel_details.csv, and nothing is known "
            "of the host, of copies and of waiting in collectives"
        )
    if profile.output is not None and not details:
        yield Lost("kernel_details.csv is missing: no operator types, cores, shapes and counters of kernels")
    if totals and not operators:
        yield Lost("operator_memory.csv is missing: which operator allocated what is not known")
    if operators and not totals:
        yield Lost("memory_record.csv is missing: no totals beside those of operators, no memory of the whole process")
    if details and not steps:
        yield Phrase("step_trace_time.csv is missing: no step times of the profile's own to compare with")
    known = read if profile.timeline is None else read | _DRAWN_TOO
    tables = profile.output.glob("*.csv") if profile.output is not None else ()
    if others := sorted(path.name for path in tables if path.stem not in known):
        yield Phrase("{names}: passed over, nothing of it is in any number here", ", ".join(others))


def _drawn(
    found: Scan,
    place: Places,
    kernels: Table,
    times: NDArray[np.int64],
    profile: Profile,
    only: int | None,
    notes: list[str],
) -> bytes:
    """Rows of the kernel table, which start at `times`, that the timeline does not hold, as events; b"" without any."""
    process, starts = place.process[found.events.track], found.events.ts
    tasks, plane = starts[process == Process.HARDWARE], place.plane[found.events.track]
    rows = rows_not_drawn(kernels, times, tasks, starts[(process == Process.COMMUNICATION) & (plane < 0)])
    begin, end = (int(starts.min()), int(starts.max())) if len(starts) else (0, 0)
    path = profile.table("kernel_details.csv")
    # A table of another run is none of this one.
    rows &= (times >= 2 * begin - end) & (times <= 2 * end - begin)
    if not rows.any() or path is None or (table := read_table(path, ROWS, [], optional=OPTIONAL)) is None:
        return b""
    used = {number for number in place.device.tolist() if number >= 0}
    notes.append(
        Lost(
            "{count:,} of {all:,} kernels and collectives are not in trace_view.json: what is known of them is what "
            "{name} says",
            *(int(rows.sum()), len(rows), path.name),
        )
    )
    return timeline_of(table, rows, used.pop() if len(used) == 1 else only)[1:-1]


def _only_device(kernels: Table | None, memory: Records | None) -> int | None:
    """The device's number where the tables name just one."""
    named: set[int] = set() if kernels is None else set(kernels.integers("device").tolist())
    if memory is not None:
        named |= set(memory["device"][memory["device_type"] == 1].tolist())
    named.discard(ABSENT)
    return named.pop() if len(named) == 1 else None


_SLACK_NS = 2
"""How far a task may begin outside its operation: both are rounded to ns by themselves."""
_HOST_FIELDS = ("sequence", "fwd_thread", "stack", "module", "concrete")
_HOST_CATEGORIES = {"enqueue": shared.QUEUE, "dequeue": shared.QUEUE, "GC": shared.GC}
_WHOLE_PROCESS = {
    Process.GC: shared.GC,
    Process.CANN: shared.CANN,
    Process.OVERLAP: shared.OVERLAP,
    Process.STEPS: shared.OVERLAP,
}
_FLOWS = frozenset({"async_npu", "fwdbwd"})


class _Conversion:
    """A scanned timeline in the model's words."""

    def __init__(
        self,
        found: Scan,
        texts: Texts,
        place: Places,
        kernels: Table | None,
        times: NDArray[np.int64],
        about: About,
        cache: Table | None,
    ) -> None:
        self._found, self._texts, self._place, self._kernels, self._about = found, texts, place, kernels, about
        self._times, self._cache = times, cache
        """Starts of the rows of the kernel table."""
        self._track = found.events.track
        self._process = place.process[self._track]
        plane = place.plane[self._track]
        self._operations = np.flatnonzero((self._process == Process.COMMUNICATION) & (plane < 0))
        """Rows of group-level collectives."""
        self._parts = np.flatnonzero(plane >= 0)
        """Rows of the tasks that collectives consist of."""
        self._hardware = np.flatnonzero(self._process == Process.HARDWARE)

    def events(self) -> Events:
        scanned, columns = self._found.events, Columns()
        cat, track = self._categories(), self._place.track_map[self._track]
        device = self._place.device[self._track]
        on_device = np.flatnonzero(device >= 0)
        columns.put("device", on_device, device[on_device])
        names = self._put_iterations(cat, track, columns)
        self._put_hardware(cat, columns)
        if len(self._operations):
            self._put_operations(columns)
        if len(self._parts):
            self._put_parts(columns)
        fields = {name: scanned.fields[name] for name in _HOST_FIELDS}
        fields["correlation"], fields["queue_id"] = scanned.fields["connection"], scanned.fields["queue_id"]
        for name, change in (("shapes", shared.shapes_as_json), ("dtypes", shared.dtypes_as_json)):
            column = scanned.fields[name]
            fields[name] = Sparse(column.row, self._texts.mapped(column.value, change))
        # Copies: a column that looks into the scanner's memory keeps all of it (`completed` makes other times).
        own = {name: Sparse(one.row.copy(), one.value.copy()) for name, one in fields.items() if len(one.row)}
        return Events(scanned.ts, scanned.dur.copy(), names, cat, track, own | columns.fields())

    def _put_iterations(self, cat: NDArray[np.int32], track: NDArray[np.int32], columns: Columns) -> NDArray[np.int32]:
        """Names of all events: iterations are the program's steps, each with the device's work that begins in it.

        They stand on the thread with most calls, if there is any.
        """
        events, name = self._found.events, self._found.events.name.copy()
        rows, number = iterations(self._found, self._process)
        if len(rows) == 0:
            return name
        calls = track[np.isin(self._process, (Process.HOST, Process.CANN))]
        cat[rows] = self._texts.code("user_annotation")
        name[rows] = self._texts.codes(f"ProfilerStep#{each}" for each in number.tolist())
        track[rows] = np.bincount(calls).argmax() if len(calls) else track[rows]
        work = np.flatnonzero(self._place.device[self._track] >= 0)
        at = np.searchsorted(events.ts[rows], events.ts[work], "right") - 1
        row = rows[np.maximum(at, 0)]
        inside = (at >= 0) & (events.ts[work] < events.ts[row] + events.dur[row])
        columns.put("step", work[inside], number[at[inside]])
        return name

    def flows(self) -> Flows:
        """Arrows from operators to device events and from forward to backward; without CANN's calls also its own."""
        flows = self._found.flows
        wanted = _FLOWS if (self._process == Process.CANN).any() else _FLOWS | {"HostToDevice"}
        kept = np.flatnonzero(self._found.strings.lookup(flows.cat, lambda text: text in wanted))
        track = self._place.track_map[flows.track[kept]]
        return Flows(flows.ts[kept], track, flows.cat[kept], flows.id[kept], flows.phase[kept])

    def _argument(self, name: str, rows: NDArray[np.int64], missing: int = ABSENT) -> NDArray[Any]:
        return self._found.events.fields[name].take(rows, missing)

    def _categories(self) -> NDArray[np.int32]:
        texts = self._texts
        cat = self._found.events.cat.copy()
        host = np.flatnonzero(self._process == Process.HOST)
        renamed = self._found.strings.lookup(
            cat[host], lambda text: texts.code(_HOST_CATEGORIES[text]) if text in _HOST_CATEGORIES else -1
        )
        cat[host[renamed >= 0]] = renamed[renamed >= 0]
        for kind, category in _WHOLE_PROCESS.items():
            cat[self._process == kind] = texts.code(category)
        cat[self._hardware] = self._task_categories()
        cat[self._operations] = texts.code(shared.KERNEL)
        cat[self._parts] = texts.code(shared.HCCL_TASK)
        return cat

    def _task_categories(self) -> NDArray[np.int32]:
        """The same of tasks on the hardware, decided once a distinct (type, name); what repeats a part is no work."""
        strings, rows = self._found.strings, self._hardware
        kind = np.maximum(self._argument("task_type", rows, 0), 0).astype(np.int64)
        key, position = np.unique(kind * len(strings) + self._found.events.name[rows], return_inverse=True)
        decided = [
            self._texts.code(task_category(strings.text(code // len(strings)), strings.text(code % len(strings))))
            for code in key.tolist()
        ]
        out: NDArray[np.int32] = np.array(decided, np.int32)[position.reshape(-1)]
        start = self._found.events.ts
        parts = set(zip(start[self._parts].tolist(), self._argument("task_stream", self._parts).tolist(), strict=True))
        copies = np.flatnonzero(out == self._texts.code(shared.COPY)) if parts else np.empty(0, np.int64)
        stream = self._streams(rows[copies]).tolist()
        repeats = [place in parts for place in zip(start[rows[copies]].tolist(), stream, strict=True)]
        out[copies[np.array(repeats, np.bool_)]] = self._texts.code(shared.CONTROL)
        return out

    def _streams(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Streams of tasks on the hardware: as they say, else the thread they are on."""
        stream = self._argument("task_stream", rows)
        return np.where(stream == ABSENT, self._place.number[self._track[rows]], stream)

    def _put_hardware(self, cat: NDArray[np.int32], columns: Columns) -> None:
        """Streams of device tasks, sizes and directions of copies, and what the kernel table says of kernels."""
        texts, rows = self._texts, self._hardware
        stream = self._streams(rows)
        columns.put("stream", rows, stream)
        copies = rows[cat[rows] == texts.code(shared.COPY)]
        columns.put("bytes", copies, self._argument("task_bytes", copies))
        directions = texts.mapped(self._argument("operation", copies, NO_TEXT), shared.copy_direction)
        columns.put("copy_kind", copies, directions)
        kernel = cat[rows] == texts.code(shared.KERNEL)
        kernels, streams = rows[kernel], stream[kernel]
        cores = texts.mapped(
            self._argument("task_type", kernels, NO_TEXT),
            # "AI_CORE" stands for vector kernels too in the timeline of some versions.
            lambda text: text if text in CORES and text != "AI_CORE" else None,
        )
        columns.put("core", kernels, cores)
        if self._kernels is None:
            return
        row = kernel_rows(
            self._kernels, self._times, self._found.events.ts[kernels], streams, self._argument("task", kernels)
        )
        known = np.flatnonzero(row >= 0)
        if len(known) < len(kernels):
            lost = self._kernels.name, len(kernels) - len(known), len(kernels)
            self._kernels.notes.append(
                Lost("{name} has no row for {count:,} of {all:,} kernels: types, shapes and counters are lost", *lost)
            )
        for name, values in kernel_columns(self._kernels, row[known], texts).items():
            stated = np.flatnonzero(shared.present(values))
            columns.put(name, kernels[known[stated]], values[stated])
        if self._cache is not None:
            name, task = self._found.events.name[kernels], self._argument("task", kernels)
            rate = hit_rates(self._cache, lambda number: self._found.strings.lookup(name, number), streams, task)
            stated = np.flatnonzero(shared.present(rate))
            columns.put("l2_hit_rate", kernels[stated], rate[stated])

    def _put_operations(self, columns: Columns) -> None:
        rows, groups = self._operations, self._place.group
        track = self._track[rows].tolist()
        streams = {one: FIRST_STREAM - index for index, one in enumerate(sorted(groups))}
        columns.put("stream", rows, np.array([streams[one] for one in track], np.int64))
        text = self._found.strings.text
        described = collective_fields(
            self._texts,
            self._about,
            names=[text(code) for code in self._found.events.name[rows].tolist()],
            groups=[groups[one] for one in track],
            dtypes=[text(code) if code >= 0 else None for code in self._argument("data_type", rows, NO_TEXT).tolist()],
            count=self._argument("count", rows),
            ranks=self._argument("rank_size", rows),
        )
        for name, values in described.items():
            columns.put(name, rows, values)
        columns.put("algorithm", rows, self._argument("algorithm", rows, NO_TEXT))

    def _put_parts(self, columns: Columns) -> None:
        """What is known of each task of a collective, and which one it is part of."""
        rows = self._parts
        columns.put("part_of", rows, self._owners())
        columns.put("plane", rows, self._place.plane[self._track[rows]])
        columns.put("stream", rows, self._argument("task_stream", rows))
        columns.put("bytes", rows, self._argument("task_bytes", rows))
        for name in ("src_rank", "dst_rank"):
            rank = self._argument(name, rows)
            columns.put(name, rows, np.where(rank == NONE_32, ABSENT, rank))
        for name in ("link_type", "transport"):
            columns.put(name, rows, self._argument(name, rows, NO_TEXT))

    def _owners(self) -> NDArray[np.int64]:
        """Row of the collective that each task is part of: of the nearest group thread below the plane's number."""
        events, place = self._found.events, self._place
        pid = self._found.tracks[:, 0]
        owner_track = np.full(len(place.process), -1, np.int64)
        heads = sorted(place.group, key=lambda one: (int(pid[one]), int(place.number[one])))
        for one in np.flatnonzero(place.plane >= 0).tolist():
            own = [head for head in heads if pid[head] == pid[one]]
            below = [head for head in own if place.number[head] < place.number[one]]
            # Planes of 2023 come first, and the thread of their operations after them.
            owner_track[one] = below[-1] if below else own[0] if own else -1
        owner = np.full(len(self._parts), ABSENT, np.int64)
        of_part = owner_track[self._track[self._parts]]
        for head in heads:
            ops = self._operations[self._track[self._operations] == head]
            ops = ops[np.argsort(events.ts[ops], kind="stable")]
            here = np.flatnonzero(of_part == head)
            if len(ops) == 0 or len(here) == 0:
                continue
            start = events.ts[self._parts[here]]
            at = np.searchsorted(events.ts[ops], start + _SLACK_NS, "right") - 1
            op = ops[np.maximum(at, 0)]
            inside = (at >= 0) & (start <= events.ts[op] + events.dur[op] + _SLACK_NS)
            owner[here[inside]] = op[inside]
        return owner
