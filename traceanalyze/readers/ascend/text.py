"""The text form of an Ascend profile: trace_view.json as the scanner found it, and the tables beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.frozen import frozen
from traceanalyze.model.collectives import VendorCollectives
from traceanalyze.model.columns import Sparse
from traceanalyze.model.trace import (
    Device,
    Events,
    Flows,
    ModuleMemory,
    Origin,
    OtherExport,
    ReadReport,
    Trace,
    VendorNumbers,
)
from traceanalyze.readers.ascend import shared
from traceanalyze.readers.ascend.comm_tables import FIRST_STREAM, collective_fields, communication_tables
from traceanalyze.readers.ascend.folder import Profile
from traceanalyze.readers.ascend.hardware import CORES, kernel_columns, kernel_rows, task_category
from traceanalyze.readers.ascend.info import About, read_about
from traceanalyze.readers.ascend.other_export import database_beside
from traceanalyze.readers.ascend.processes import Places, Process, places
from traceanalyze.readers.ascend.sampled_memory import module_memory, process_memory
from traceanalyze.readers.ascend.shared import ABSENT, NONE_32, Allocations, Columns, Parts, Texts
from traceanalyze.readers.ascend.tables import KERNELS, MEMORY_RECORD, Table, allocations, read_table, step_times
from traceanalyze.readers.header import process_names, thread_names
from traceanalyze.readers.scan import Scan

_T = TypeVar("_T")


@frozen
class TextTables:
    """The contents of the tables beside a timeline; None for those that are missing."""

    kernels: Table | None
    memory: Allocations | None
    vendor: VendorNumbers | None
    collectives: VendorCollectives | None
    other: OtherExport | None
    module_memory: tuple[ModuleMemory, ...]
    process_memory: tuple[ModuleMemory, ...]
    notes: tuple[str, ...]

    @property
    def only_device(self) -> int | None:
        """The device's number where the tables name just one."""
        named: set[int] = set()
        if self.kernels is not None:
            named |= set(self.kernels.integers("device").tolist())
        if self.memory is not None:
            named |= set(self.memory.device[self.memory.device_type == 1].tolist())
        named.discard(ABSENT)
        return named.pop() if len(named) == 1 else None


def _read_tables(profile: Profile, about: About) -> TextTables:
    """Read the tables of a profile's text form. One that cannot be read is noted and left out."""
    notes: list[str] = []
    kernels = _read(profile, "kernel_details.csv", lambda path: read_table(path, KERNELS), notes)
    record = _read(profile, "memory_record.csv", lambda path: read_table(path, MEMORY_RECORD), notes)
    operators = profile.table("operator_memory.csv")
    memory = None
    try:
        memory = allocations(operators, record) if operators or record else None
    except OSError as error:
        notes.append(f"operator_memory.csv cannot be read ({error.strerror or error}): no memory curves")
    vendor = _read(profile, "step_trace_time.csv", step_times, notes)
    modules = _read(profile, "npu_module_mem.csv", module_memory, notes) or ()
    process = () if record is None else process_memory(record)
    collectives = communication_tables(profile, about, notes)
    other = database_beside(profile, notes)
    notes += _missing(profile, kernels)
    return TextTables(kernels, memory, vendor, collectives, other, modules, process, tuple(notes))


_PAIRS = (
    ("operator_memory.csv", "memory_record.csv", "which operator allocated what is not known"),
    ("memory_record.csv", "operator_memory.csv", "no totals beside those of operators, no memory of the whole process"),
    ("step_trace_time.csv", "kernel_details.csv", "no step times of the profile's own to compare with"),
)
"""Tables that are written together: what is lost with the first alone."""


def _missing(profile: Profile, kernels: Table | None) -> list[str]:
    notes = []
    if profile.output is not None and profile.table("kernel_details.csv") is None:
        notes.append("kernel_details.csv is missing: no operator types, cores, shapes and counters of kernels")
    if kernels is not None and kernels.short:
        notes.append(f"kernel_details.csv: {kernels.short:,} rows are cut off and were left out")
    if kernels is not None and kernels.rows and (kernels.times("start") == ABSENT).any():
        notes.append(
            "kernel_details.csv: some start times are no exact numbers (was it saved by a spreadsheet?): "
            "these rows cannot be joined to the timeline"
        )
    notes += [
        f"{name} is missing: {lost}"
        for name, other, lost in _PAIRS
        if profile.table(name) is None and profile.table(other) is not None
    ]
    return notes


def _read(profile: Profile, name: str, read: Callable[[Path], _T | None], notes: list[str]) -> _T | None:
    path = profile.table(name)
    if path is None:
        return None
    try:
        return read(path)
    except OSError as error:
        notes.append(f"{name} cannot be read ({error.strerror or error}) and was left out")
        return None


_SLACK_NS = 2
"""How far a task may begin outside its operation: both are rounded to ns by themselves."""


def _operations(found: Scan, place: Places) -> NDArray[np.int64]:
    """Rows of group-level collectives: on a communication process, on no plane."""
    track = found.events.track
    here = place.process[track] == Process.COMMUNICATION
    return np.flatnonzero(here & (place.plane[track] < 0))


def _tasks(found: Scan, place: Places) -> NDArray[np.int64]:
    """Rows of the _tasks that collectives consist of."""
    return np.flatnonzero(place.plane[found.events.track] >= 0)


def _put_operations(found: Scan, place: Places, texts: Texts, about: About, columns: Columns) -> None:
    """Fill in what is known of each group-level collective."""
    rows = _operations(found, place)
    if len(rows) == 0:
        return
    track = found.events.track[rows]
    streams = {one: FIRST_STREAM - index for index, one in enumerate(sorted(place.group))}
    columns.put("stream", rows, np.array([streams[one] for one in track.tolist()], np.int64))
    text = found.strings.text
    dtype = _argument(found, "data_type", rows, -1)
    described = collective_fields(
        texts,
        about,
        names=[text(code) for code in found.events.name[rows].tolist()],
        groups=[place.group[one] for one in track.tolist()],
        dtypes=[text(code) if code >= 0 else None for code in dtype.tolist()],
        count=_argument(found, "count", rows),
        ranks=_argument(found, "rank_size", rows),
    )
    for name, values in described.items():
        columns.put(name, rows, values)
    columns.put("algorithm", rows, _argument(found, "algorithm", rows, -1))


def _put_tasks(found: Scan, place: Places, columns: Columns) -> None:
    """Fill in what is known of each task, and which collective it is part of."""
    rows = _tasks(found, place)
    if len(rows) == 0:
        return
    columns.put("part_of", rows, _owners(found, place, rows))
    columns.put("plane", rows, place.plane[found.events.track[rows]])
    columns.put("stream", rows, _argument(found, "task_stream", rows))
    columns.put("bytes", rows, _argument(found, "task_bytes", rows))
    for name in ("src_rank", "dst_rank"):
        rank = _argument(found, name, rows)
        columns.put(name, rows, np.where(rank == NONE_32, ABSENT, rank))
    for name in ("link_type", "transport"):
        columns.put(name, rows, _argument(found, name, rows, -1))


def _owners(found: Scan, place: Places, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the collective that each task is part of: of the nearest group thread below the plane's thread number."""
    events = found.events
    ops = _operations(found, place)
    pid = found.tracks[:, 0]
    owner_track = np.full(len(place.process), -1, np.int64)
    heads = sorted(place.group, key=lambda one: (int(pid[one]), int(place.number[one])))
    for one in np.flatnonzero(place.plane >= 0).tolist():
        below = [head for head in heads if pid[head] == pid[one] and place.number[head] < place.number[one]]
        owner_track[one] = below[-1] if below else -1
    owner = np.full(len(rows), ABSENT, np.int64)
    of_task = owner_track[events.track[rows]]
    for head in heads:
        mine = ops[events.track[ops] == head]
        mine = mine[np.argsort(events.ts[mine], kind="stable")]
        here = np.flatnonzero(of_task == head)
        if len(mine) == 0 or len(here) == 0:
            continue
        start = events.ts[rows[here]]
        at = np.searchsorted(events.ts[mine], start + _SLACK_NS, "right") - 1
        op = mine[np.maximum(at, 0)]
        inside = (at >= 0) & (start <= events.ts[op] + events.dur[op] + _SLACK_NS)
        owner[here[inside]] = op[inside]
    return owner


def _argument(found: Scan, name: str, rows: NDArray[np.int64], missing: int = ABSENT) -> NDArray[np.int64]:
    """A scanned argument of some rows."""
    return found.events.fields[name].take(rows, missing)


_HOST_FIELDS = ("sequence", "fwd_thread", "stack", "module", "concrete")
_HOST_CATEGORIES = {"enqueue": shared.QUEUE, "dequeue": shared.QUEUE, "GC": shared.GC}
_WHOLE_PROCESS = {Process.GC: shared.GC, Process.CANN: shared.CANN, Process.OVERLAP: shared.OVERLAP}
_FLOWS = frozenset({"async_npu", "fwdbwd"})


def ascend_trace(found: Scan, profile: Profile, origin: Origin, read: ReadReport) -> Trace:
    """The trace of one rank.

    Args:
        found: The scanned trace_view.json.
        profile: The files it belongs to.
        origin: Path as the user names it, and sizes.
        read: What reading had to leave out.
    """
    texts = Texts(found.strings)
    about = read_about(profile)
    tables = _read_tables(profile, about)
    memory = tables.memory
    place = places(found, tables.only_device)
    conversion = _Conversion(found, texts, place, tables, about)
    parts = Parts(
        texts=texts,
        tracks=place.tracks,
        events=conversion.events(),
        instants=shared.memory_instants(memory, texts, track=0) if memory is not None else shared.no_instants(),
        flows=conversion.flows(),
        process_names=process_names(found.metadata),
        thread_names=thread_names(found.metadata),
        devices=tuple(Device(number, "") for number in sorted({n for n in place.device.tolist() if n >= 0})),
        vendor=tables.vendor,
        vendor_collectives=tables.collectives,
        other_export=tables.other,
        module_memory=tables.module_memory,
        process_memory=tables.process_memory,
    )
    return shared.assemble(
        parts, about, replace(origin, form="text", pid=place.host), replace(read, notes=(*read.notes, *tables.notes))
    )


@frozen
class _Conversion:
    """What the tables of the trace are made of."""

    found: Scan
    texts: Texts
    place: Places
    tables: TextTables
    about: About

    def events(self) -> Events:
        scanned, texts = self.found.events, self.texts
        process = self.place.process[scanned.track]
        cat = self._categories(process)
        columns = Columns(len(scanned))
        device = self.place.device[scanned.track]
        on_device = np.flatnonzero(device >= 0)
        columns.put("device", on_device, device[on_device])
        self._put_hardware(np.flatnonzero(process == Process.HARDWARE), cat, columns)
        _put_operations(self.found, self.place, texts, self.about, columns)
        _put_tasks(self.found, self.place, columns)
        fields = {name: scanned.fields[name] for name in _HOST_FIELDS}
        fields["correlation"], fields["queue_id"] = scanned.fields["connection"], scanned.fields["queue_id"]
        for name, change in (("shapes", shared.shapes_as_json), ("dtypes", shared.dtypes_as_json)):
            column = scanned.fields[name]
            fields[name] = Sparse(column.row, texts.mapped(column.value, change))
        fields = {name: column for name, column in fields.items() if len(column.row)}
        track = self.place.track_map[scanned.track]
        return Events(scanned.ts, scanned.dur, scanned.name, cat, track, fields | columns.fields())

    def _categories(self, process: NDArray[np.int64]) -> NDArray[np.int32]:
        """Category of every event in the model's words."""
        found, texts = self.found, self.texts
        cat = found.events.cat.copy()
        host = np.flatnonzero(process == Process.HOST)
        renamed = found.strings.lookup(
            cat[host], lambda text: texts.code(_HOST_CATEGORIES[text]) if text in _HOST_CATEGORIES else -1
        )
        cat[host[renamed >= 0]] = renamed[renamed >= 0]
        for kind, ours in _WHOLE_PROCESS.items():
            cat[process == kind] = texts.code(ours)
        hardware = np.flatnonzero(process == Process.HARDWARE)
        cat[hardware] = self._task_categories(hardware)
        cat[_operations(found, self.place)] = texts.code(shared.KERNEL)
        cat[_tasks(found, self.place)] = texts.code(shared.HCCL_TASK)
        return cat

    def _task_categories(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The same for _tasks on the hardware, decided once a distinct (type, name)."""
        strings = self.found.strings
        kind = np.maximum(_argument(self.found, "task_type", rows, 0), 0).astype(np.int64)
        key, position = np.unique(kind * len(strings) + self.found.events.name[rows], return_inverse=True)
        decided = [
            self.texts.code(task_category(strings.text(code // len(strings)), strings.text(code % len(strings))))
            for code in key.tolist()
        ]
        out: NDArray[np.int32] = np.array(decided, np.int32)[position.reshape(-1)]
        return out

    def _put_hardware(self, rows: NDArray[np.int64], cat: NDArray[np.int32], columns: Columns) -> None:
        """Streams of device _tasks, sizes and directions of copies, and what the kernel table says of kernels."""
        found, texts = self.found, self.texts
        stream = _argument(found, "task_stream", rows)
        stream = np.where(stream == ABSENT, self.place.number[found.events.track[rows]], stream)
        columns.put("stream", rows, stream)
        copies = rows[cat[rows] == texts.code(shared.COPY)]
        columns.put("bytes", copies, _argument(found, "task_bytes", copies))
        directions = texts.mapped(_argument(found, "operation", copies, -1).astype(np.int32), shared.copy_direction)
        columns.put("copy_kind", copies, directions)
        kernel = cat[rows] == texts.code(shared.KERNEL)
        kernels, streams = rows[kernel], stream[kernel]
        cores = texts.mapped(
            _argument(found, "task_type", kernels, -1).astype(np.int32),
            # "AI_CORE" stands for vector kernels too in the timeline of some versions.
            lambda text: text if text in CORES and text != "AI_CORE" else None,
        )
        columns.put("core", kernels, cores)
        if self.tables.kernels is None:
            return
        row = kernel_rows(self.tables.kernels, found.events.ts[kernels], streams, _argument(found, "task", kernels))
        known = np.flatnonzero(row >= 0)
        for name, values in kernel_columns(self.tables.kernels, row[known], texts).items():
            stated = np.flatnonzero(shared.present(values))
            columns.put(name, kernels[known[stated]], values[stated])

    def flows(self) -> Flows:
        """Arrows from operators to device events and from forward to backward; without CANN's calls also its own."""
        flows = self.found.flows
        calls = (self.place.process[self.found.events.track] == Process.CANN).any()
        wanted = _FLOWS if calls else _FLOWS | {"HostToDevice"}
        kept = np.flatnonzero(self.found.strings.lookup(flows.cat, lambda text: text in wanted))
        return Flows(
            flows.ts[kept],
            self.place.track_map[flows.track[kept]],
            flows.cat[kept],
            flows.id[kept],
            flows.phase[kept],
        )
