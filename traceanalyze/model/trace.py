"""One rank's recording as a handful of tables, whatever profiler wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from isal.isal_zlib import crc32
from numpy.typing import NDArray

from traceanalyze.model.columns import MISSING, Rows, Sparse, Strings
from traceanalyze.model.intervals import Intervals, active
from traceanalyze.model.patterns import by_identity, dataclass, regex

if TYPE_CHECKING:
    import pandas as pd

    from traceanalyze.model.collectives import VendorCollectives


_BREAK = regex(r"\s*\n\s*")


class OtherExport(NamedTuple):
    """What is cheap to know of it; None where it does not tell."""

    source: str
    """Its files."""
    steps: "tuple[VendorStep, ...]" = ()
    """The profile's own step times as this form gives them."""
    windows: tuple[int, ...] | None = None
    """Durations of the steps on the host, ns."""
    kernels: int | None = None
    """Compute kernels of the whole recording."""
    kernel_time: int | None = None
    """Sum of their durations, ns."""


@dataclass(frozen=True, eq=False)
class Events:
    """Things with a duration, in file order.

    `ts` and `dur` are int64 ns (`dur` ≥ 0, time relative to `Trace.base_ns`); `name` and `cat` are int32 codes into
    `Trace.strings` (the profiler's own category, unclassified); `track` is an int32 index into `Trace.tracks`.
    `fields` are the arguments that only some events have, by canonical name (see `readers/kineto.py`):
    correlation, external_id, device, stream, bytes, sequence, fwd_thread, shapes, dtypes, stack, module, …
    """

    ts: NDArray[np.int64]
    dur: NDArray[np.int64]
    name: NDArray[np.int32]
    cat: NDArray[np.int32]
    track: NDArray[np.int32]
    fields: Mapping[str, Sparse]

    def __len__(self) -> int:
        return len(self.ts)

    def active(self, rows: Rows) -> Intervals:
        """When any of some events runs."""
        return active(self.ts, self.dur, rows)

    def numbers(self, field: str, rows: Rows, missing: int = MISSING) -> NDArray[np.int64]:
        """A whole-number argument of some rows (-1: no row), or codes of a text; `missing` where a row has none."""
        column = self.fields.get(field)
        if column is None:
            return np.full(len(rows), missing, np.int64)
        if column.value.dtype != np.int32:
            return column.take(rows, missing).astype(np.int64, copy=False)
        codes = column.take(rows, -1).astype(np.int64)
        return codes if missing == -1 else np.where(codes < 0, missing, codes)


@by_identity
class Instants(NamedTuple):
    """Things without a duration (allocator records, marks), in file order; columns as in `Events`."""

    ts: NDArray[np.int64]
    name: NDArray[np.int32]
    cat: NDArray[np.int32]
    track: NDArray[np.int32]
    fields: Mapping[str, Sparse]


@by_identity
class Flows(NamedTuple):
    """Arrows between events, in file order; equal `id` and `cat` belong together.

    `id` is the int64 written, or INT64_MIN + string code for any other text; `phase` is the letter s, t or f.
    """

    ts: NDArray[np.int64]
    track: NDArray[np.int32]
    cat: NDArray[np.int32]
    id: NDArray[np.int64]
    phase: NDArray[np.uint8]


class Device(NamedTuple):
    """An accelerator as the profile describes it; None where it does not say."""

    id: int
    name: str
    memory_bytes: int | None = None
    compute_units: int | None = None
    capability: str | None = None


class Origin(NamedTuple):
    """Where a trace came from and who made it."""

    path: str
    format: str = "kineto"
    """kineto or ascend."""
    form: str = ""
    """Of an Ascend profile, what was read: text, db; of tables alone that of kernels (tables) or of steps (sums)."""
    plugin: str = ""
    """Name of the plug-in that read it; empty for the tool's own readers."""
    level: str = ""
    """Of an Ascend profile, how much was recorded: Level_none, Level0, Level1, Level2; empty when unknown."""
    size_bytes: int = 0
    """Size of the file as stored."""
    text_bytes: int = 0
    """Size of the JSON text scanned."""
    compressed: bool = False
    host: str | None = None
    pid: int | None = None
    rank: int | None = None
    rank_source: str = ""
    """What `rank` was taken from: distributedInfo, file name, order, or empty when unknown."""
    world_size: int | None = None
    backend: str | None = None
    trace_name: str | None = None
    graphs: tuple[int, int] = (0, 0)
    """How often device graphs were captured, and launched."""


class ReadReport(NamedTuple):
    """What reading had to leave out. `counts` and their meaning: `readers/scan/result.py`, `REASONS`."""

    counts: Mapping[str, int]
    phases: Mapping[str, int]
    fault: int | None = None
    truncated: bool = False
    stream_fault: str | None = None
    """What was wrong with the compressed stream, e.g. that it ends early."""
    notes: tuple[str, ...] = ()
    nameless: bool = False
    """Whether the names of everything are lost."""
    no_copies: bool = False
    """Whether what tells of copies and fills is."""

    @property
    def whole(self) -> bool:
        """Whether the file goes on to the end of the recording."""
        return not self.truncated and self.stream_fault is None


class DeviceClock(NamedTuple):
    """The clock of a device that is off: its work begins before its launch, or (ahead) ends after waits for it."""

    device: int
    early: int
    """Device events that start before their launch, as recorded; of a clock ahead, waits that return too early."""
    linked: int
    """Of so many whose launch, or what they wait for, is known."""
    first: int
    """By how much later its work is to be when the first of these starts, ns; negative: its clock is ahead."""
    last: int
    """The same of the last one; another number where the clock drifts."""
    span: tuple[int, int]
    """Starts of the first and the last, ns, as recorded."""
    moved: bool
    """Whether the times of the trace were put right; False where the clock is off by more than one can believe."""

    @property
    def share(self) -> float:
        """Of the linked events, those that start before their launch."""
        return self.early / self.linked

    def on_host(self, t: NDArray[np.int64], tick: int = 1) -> NDArray[np.int64]:
        """Times of this clock on that of the host; a drift is rounded up to whole ticks."""
        if self.first == self.last:
            return t + self.first
        since = (t - self.span[0]) / max(self.span[1] - self.span[0], 1)
        return t + self.first + np.ceil((self.last - self.first) * since / tick).astype(np.int64) * tick


class VendorStep(NamedTuple):
    """One row of the profile's own table of step times (Ascend `step_trace_time`); ns, None where it does not say.

    `stage` is the span of the device's work without `bubble`, the time in receive operations; `preparing` is the time
    from the step's start on the host to its first device work. Copies count as `free`.
    """

    step: int | None
    device: int | None
    computing: int | None
    communication: int | None
    not_overlapped: int | None
    overlapped: int | None
    free: int | None
    stage: int | None
    bubble: int | None
    preparing: int | None


class VendorNumbers(NamedTuple):
    """What the profile says of its own steps: printed beside our numbers and compared with them, never used in them."""

    source: str
    """File or table it is from."""
    steps: tuple[VendorStep, ...]


class ModuleMemory(NamedTuple):
    """Device memory that one component of the vendor's software reserved (Ascend: HCCL, RUNTIME, GE …)."""

    component: str
    device: int
    peak: int
    """Bytes; highest sample."""
    last: int
    samples: int


class Bulk(NamedTuple):
    """What is known of the events of a trace that were let go."""

    content: tuple[int, int, int]
    """As `Trace.content`."""
    start: int
    """First start, on the trace's clock; so is `end`, the last one."""
    end: int


@dataclass(frozen=True, eq=False)
class Trace:
    """One rank's recording. Time is int64 ns; absolute time is `base_ns` + t."""

    origin: Origin
    read: ReadReport
    strings: Strings
    tracks: NDArray[np.int32]
    """(n, 2) string codes: the text of the process id and of the thread id of each track."""
    events: Events
    instants: Instants
    flows: Flows
    base_ns: int = 0
    resolution_ns: int = 1
    """1000 when every timestamp is a whole microsecond (torch ≤ 2.2), else 1."""
    devices: tuple[Device, ...] = ()
    process_names: Mapping[str, str] = field(default_factory=dict)
    """Process id text → name (plus its labels in brackets)."""
    thread_names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(process id text, thread id text) → name."""
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Process group name → ranks, from distributedInfo."""
    options: Mapping[str, bool] = field(default_factory=dict)
    """Profiler options the file states: record_shapes, with_stack, profile_memory, with_modules, with_flops."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions the file states: schema, cuda_runtime, cuda_driver, cupti, hip_runtime, roctracer, torch, torch_npu,
    cann …"""
    vendor: VendorNumbers | None = None
    """The profile's own step times, where it has them."""
    vendor_collectives: "VendorCollectives | None" = None
    """The same of its collectives."""
    clocks: tuple[DeviceClock, ...] | None = None
    """Clocks of devices that are off; None while nobody looked at them, as in what a reader returns."""
    other_export: OtherExport | None = None
    """Of a profile exported as text and as a database, what the form that was not read says."""
    module_memory: tuple[ModuleMemory, ...] = ()
    """Components of the vendor's software by what they reserved, most first; empty where that is not sampled."""
    process_memory: tuple[ModuleMemory, ...] = ()
    """What the driver counts for the whole process, a row a device; empty where that is not sampled."""
    environment: Mapping[str, str] | None = None
    """Environment variables that the profile states, and that are of this vendor's libraries; a variable with an empty
    text was not set. None where the profile states none."""
    bulk: "Bulk | None" = None
    """Of a trace without its bulk what is known of that."""

    @property
    def content(self) -> tuple[int, int, int]:
        """What tells recordings apart: the number of events, and checksums of their starts and durations."""
        if self.bulk is not None:
            return self.bulk.content
        start, length = (crc32(np.ascontiguousarray(each).data) for each in (self.events.ts, self.events.dur))
        return len(self.events), start, length

    @property
    def span(self) -> tuple[int, int]:
        """First start and last end, in absolute time; of no events the base."""
        if self.bulk is not None:
            return self.base_ns + self.bulk.start, self.base_ns + self.bulk.end
        events = self.events
        start = next((ts for ts in (events.ts, self.instants.ts, self.flows.ts) if len(ts)), np.zeros(1, np.int64))
        end = events.ts + events.dur if len(events) else start
        return self.base_ns + int(start.min()), self.base_ns + int(end.max())

    def device_name(self, device: int | None) -> str | None:
        """Name of a device; the only name that the file states also fits a device that is numbered otherwise."""
        names = {one.name for one in self.devices if one.id == device} or {one.name for one in self.devices}
        return (names.pop() or None) if len(names) == 1 else None

    def to_pandas(self) -> "pd.DataFrame":
        """A row an event, in file order: names, categories, ids of process and thread, times in ns, and arguments.

        Times count from `base_ns`; an argument that an event does not have is NA.
        """
        import pandas as pd

        found, texts = self.events, self.strings
        columns = {"name": found.name, "cat": found.cat}
        columns |= dict(zip(("pid", "tid"), self.tracks[found.track].T, strict=True))
        frame = pd.DataFrame({key: pd.Categorical(texts.each(codes)) for key, codes in columns.items()})
        frame["ts_ns"], frame["dur_ns"] = found.ts, found.dur
        for key, column in found.fields.items():
            at, kind = pd.Index(column.row.astype(np.int64)), column.value.dtype
            if kind == np.int32:
                written = pd.Series(texts.each(column.value), at, dtype="category")
                # A file that was printed for people breaks shapes over many lines.
                frame[key] = written.map(lambda text: _BREAK.sub("", text)).astype("category")
            else:
                frame[key] = pd.Series(column.value, at, dtype="Float64" if kind == np.float64 else "Int64")
        return frame

    def __repr__(self) -> str:
        """File, rank and size."""
        rank = "" if self.origin.rank is None else f"rank {self.origin.rank}, "
        return f"<trace {self.origin.path[:1000]}: {rank}{len(self.events)} events>"

    def track_text(self, track: int) -> tuple[str, str]:
        """Process id and thread id of a track, as written in the file."""
        pid, tid = self.tracks[track]
        return self.strings.text(int(pid)), self.strings.text(int(tid))


YEAR_2000_NS = 946_684_800 * 10**9
"""Times before count from something else, such as the start of the machine."""
APART_NS, APART = 60 * 10**9, 10
"""Own: clocks of hosts differ by seconds; who begins so much later, and so many recordings, was recorded later."""


def at_other_times(traces: Sequence[Trace]) -> list[bool]:
    """Which of a run's recordings were made at another time than most, and so are of another run in a rank's place."""
    start, end = np.array([one.span for one in traces], np.int64).reshape(-1, 2).T
    apart, known = np.zeros(len(traces), np.bool_), np.flatnonzero(start >= YEAR_2000_NS)
    if len(known):
        known = known[np.argsort(start[known])]
        room = max(APART_NS, APART * float(np.median((end - start)[known])))
        # Ranks that are recorded in turn begin one soon after the other.
        part = np.cumsum(np.diff(start[known], prepend=start[known[0]]) > room)
        count = np.bincount(part)
        apart[known] = (2 * count.max() > len(known)) & (part != count.argmax())
    found: list[bool] = apart.tolist()
    return found


class Run(NamedTuple):
    """Traces that belong together, ordered by rank; `notes` says what is missing, repeated or was left out."""

    name: str
    traces: tuple[Trace, ...]
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """Rank of each trace, None where the profile does not tell."""
        return tuple(trace.origin.rank for trace in self.traces)

    def __repr__(self) -> str:
        """Name and recordings."""
        return f"<run {self.name}: {', '.join(map(repr, self.traces[:20]))}>"[:2000]

    def _repr_html_(self) -> str:
        # Imported here: it brings a table of 2,231 characters.
        from html import escape

        lines = "".join(f"<br>{escape(repr(each)[1:-1][:500])}" for each in self.traces[:20])
        more = f"<br>… {len(self.traces) - 20} more" if len(self.traces) > 20 else ""
        notes = "".join(f"<br>{escape(note[:500])}" for note in self.notes[:5])
        return f"<p><b>{escape(self.name[:200])}</b>{lines}{more}{notes}</p>"
