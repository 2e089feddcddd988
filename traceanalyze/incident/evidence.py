"""What the files of a dead or slow job say, in one form and on one clock: the input of every judgement on an incident.

Nothing here judges. Who prints a timeout waited; who prints nothing is the suspect: that is for the reader of this.

Times. `time_ns` is ns of Unix time (UTC), None where no clock can be told. A log without a zone is taken as UTC shifted
by the offset that `Evidence.zone` tells, which is found where two sources share an event; `clock` stays "local" then.
`stamp_ns` is what the source's own clock said, for the order of events of one source (since boot for "boot").

Ranks. `rank` is the global rank, None where the source does not tell; the rank inside a group is in `data` as
`group_rank`, the one on a host as `local_rank`.
"""

from __future__ import annotations

import time
from calendar import timegm
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Value = int | float | str
UNKNOWN = -(1 << 63)
"""In columns of int64: not told. In columns of float64 it is NaN only where the source printed NaN."""


class What(StrEnum):
    """Kinds of events; behind each what `Event.data` may hold, always optional.

    `device` of an event is what its source calls it: a bus id, `GPU 6` (index that the process sees), `NPU 3`.
    """

    # What a process says of collectives.
    TIMEOUT = "timeout"
    """A watchdog gave up waiting: group_rank, seq, op, numel_in, numel_out, timeout_ms, ran_ms, lib (NCCL, HCCL, gloo).
    The wait began `ran_ms` before the event."""
    GROUP_STATUS = "group_status"
    """group (name), group_desc, group_id, group_rank, seq, enqueued, completed: numbers of collectives, −1 for none."""
    DUMP_SIGNAL = "dump_signal"
    """Who asked for the dump of the flight recorder: from_rank (absent: this one), enqueued, completed."""
    WATCHDOG_STUCK = "watchdog_stuck"
    """The watchdog itself made no progress, or the interpreter's lock was held: seconds."""
    DESYNC = "desync"
    """Ranks ran different collectives, or the desync report names who lags: group_ranks ("3, 5"), op, other_op, seq."""
    COMM_ERROR = "comm_error"
    """A library of collectives failed: lib, code (EI0006, ncclRemoteError), peer, nic, status (InfiniBand), remote."""
    STORE_ERROR = "store_error"
    """The TCP store is gone: mostly the effect of the death of rank 0."""
    # What a process says of itself.
    OOM = "oom"
    """The device's allocator found no room: asked, free, total, in_use, allocated, reserved, unallocated (reserved and
    unused), pools (private), others (other processes): bytes."""
    HOST_OOM = "host_oom"
    """The host's: pid, process, cgroup, anon_rss, asked (bytes), scope (host or cgroup), oom_kill (1: killed)."""
    DEVICE_ERROR = "device_error"
    """CUDA, HIP, ACL: code, vendor, hardware (1 where the text itself says that the device is at fault)."""
    DEVICE_ASSERT = "device_assert"
    """An assertion in a kernel: file, line, expression."""
    EXCEPTION = "exception"
    """A Python traceback: type, frames (count), own (file:line of the innermost frame outside libraries), own_function,
    chained (exceptions before it: the message is that of the first, the cause); fatal (1: faulthandler's)."""
    NAN = "nan"
    """A printed loss or gradient norm is not finite, or the loop counts such iterations: series, step, count."""
    OVERFLOW = "overflow"
    """A step was skipped by the loss scaler: step, scale, exhausted (1: at its minimum, the run ends)."""
    CHECKPOINT_BEGIN = "checkpoint_begin"
    """step."""
    CHECKPOINT_END = "checkpoint_end"
    """step, seconds."""
    LOADER = "loader"
    """A data loader worker died or waits: pid, signal."""
    RESTART = "restart"
    """The launcher or the writer of a log starts again: attempt, left (attempts)."""
    # What launchers say.
    EXIT = "exit"
    """A process ended: exitcode (negative: the signal), pid, local_rank, task, root_cause (1: the launcher's table says
    so), reason."""
    SIGNAL = "signal"
    """A process got or was sent a signal: signal, pid."""
    CANCELLED = "cancelled"
    """The job was stopped from outside: reason."""
    # What the kernel and devices say.
    XID = "xid"
    """code, pid, process, meaning, action, hardware (1: mostly hardware, 0: mostly the program), subcode."""
    SXID = "sxid"
    """Of a switch: code, fatal."""
    ECC = "ecc"
    """Uncorrected or corrected errors of memory: corrected, uncorrected (counts), where (device or host)."""
    THROTTLE = "throttle"
    """reason, clock_mhz, temperature, mask; `time_ns` is the first sample, `until_ns` the last."""
    LINK_ERROR = "link_error"
    """PCIe, NVLink, HCCS, network: nic, link."""
    DEVICE_LOST = "device_lost"
    """The driver no longer reaches the device, or resets it."""
    DEVICE_HEALTH = "device_health"
    """The tool's own judgement: health (Warning, Alarm …), or what it recommends."""
    HOST_FAULT = "host_fault"
    """Machine checks, soft lock-ups, hung tasks, a host's throttling, storage: part, pid, process, seconds."""
    SEGFAULT = "segfault"
    """pid, process, library."""
    MARK = "mark"
    """Another line that a plug-in or a table found worth keeping."""


class Source(NamedTuple):
    """Where something was read."""

    path: str
    line: int = 0
    """From 1; 0 where the file has none. In binary files the record."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class Event(NamedTuple):
    """One thing that a source says happened."""

    what: What
    message: str
    """In the words of the source, one line, at most 400 characters."""
    source: Source
    time_ns: int | None = None
    clock: str = "none"
    """utc, local, boot or none: the source's."""
    stamp_ns: int | None = None
    rank: int | None = None
    host: str | None = None
    device: str | None = None
    data: Mapping[str, Value] = {}
    seen: int = 1
    """Events of this kind, rank and wording that this one stands for, the first of them; `until_ns` is the last."""
    until_ns: int | None = None


class Series(NamedTuple):
    """A quantity over steps or time, as one source wrote it."""

    name: str
    """step_time (s), loss, grad_norm, throughput (tokens/s), samples (samples/s), data_time (s), loss_scale;
    of devices clock, memory_clock (MHz), power (W), temperature (°C), utilisation (%), memory_used (bytes),
    throttle (mask), ecc_uncorrected, pcie_replays, xid (counts or codes); else the source's own name."""
    unit: str
    steps: NDArray[np.int64]
    times: NDArray[np.int64]
    """ns UTC, `UNKNOWN` where none was printed."""
    values: NDArray[np.float64]
    """NaN and inf are what was printed."""
    source: Source
    rank: int | None = None
    host: str | None = None
    device: str | None = None
    clock: str = "none"
    derived: str = ""
    """How it was got where it was not printed, such as "difference of times"; "smoothed" where the loop does that."""


class Stack(NamedTuple):
    """What a thread did at one moment."""

    frames: tuple[str, ...]
    """`function (file:line)`, innermost first; the file without the folders of libraries."""
    state: str
    """waiting (in a collective or a synchronisation), starved (for data), checkpoint, own (the program's own code), or
    unknown: of the innermost frames that tell."""
    source: Source
    rank: int | None = None
    thread: str = ""
    pid: int | None = None
    main: bool = False
    """The thread that runs the program."""
    holds_gil: bool | None = None
    time_ns: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for threads that do the same: functions and files, the line only of the innermost frame."""
        inner = self.frames[:1]
        return (*inner, *(frame.rpartition(":")[0] for frame in self.frames[1:]))


class Collectives(NamedTuple):
    """Entries of one flight recorder, oldest first, as columns; codes are of `names`."""

    names: tuple[str, ...]
    """Operations, sizes, types, stacks: whatever a code stands for; "" is code 0."""
    record: NDArray[np.int64]
    """Running number of the process."""
    group: NDArray[np.int64]
    """Row of `Flight.groups`."""
    seq: NDArray[np.int64]
    """Number of the collective in its group, the key among ranks; `UNKNOWN` where the version has none."""
    p2p_seq: NDArray[np.int64]
    op: NDArray[np.int64]
    """Without the library: all_reduce, send."""
    sizes: NDArray[np.int64]
    """`[[4, 2]] -> [[4, 2]]`."""
    dtypes: NDArray[np.int64]
    """`Float -> Float`."""
    state: NDArray[np.int64]
    """scheduled, started or completed."""
    stack: NDArray[np.int64]
    """Frames, innermost first, one a line as of `Stack.frames`; "" where the dump has none (every JSON)."""
    created: NDArray[np.int64]
    """Enqueued by the host: ns UTC, the best clock here. `started` and `completed` are when a host thread noticed."""
    started: NDArray[np.int64]
    completed: NDArray[np.int64]
    duration: NDArray[np.float64]
    """ms on the device, NaN where it was not measured."""
    timeout: NDArray[np.int64]
    """ms."""
    p2p: NDArray[np.bool_]
    retired: NDArray[np.bool_]


class Group(NamedTuple):
    """A process group as one rank knows it; the same group has the same name on all its ranks."""

    name: str
    desc: str
    ranks: tuple[int, ...]
    """Global; empty where the dump does not say."""
    id: int = -1
    """Of this process: no key among ranks."""
    enqueued: int | None = None
    """Number of the last collective: of the dump's status, else of its entries; −1 for none, None where not told."""
    started: int | None = None
    completed: int | None = None
    library: str = ""
    """nccl, hccl, gloo … ; states and starts of gloo mean nothing."""


class Flight(NamedTuple):
    """One flight-recorder dump."""

    rank: int | None
    """By the number at the end of its name."""
    version: str
    groups: tuple[Group, ...]
    entries: Collectives
    source: Source
    rank_source: str = ""
    timed: bool = False
    """Whether starts were recorded: without, `scheduled` is no evidence that a kernel did not run."""


class Process(NamedTuple):
    """Which process was which rank."""

    rank: int | None
    pid: int
    host: str | None
    source: Source
    device: str | None = None
    local_rank: int | None = None


class Device(NamedTuple):
    """A device that a tool listed."""

    host: str | None
    number: int | None
    bus: str
    """`0000:3b:00`, lower case, without the function; "" where not told."""
    name: str
    source: Source


class FileRead(NamedTuple):
    """What became of one file."""

    path: str
    kind: str
    """flight_recorder, process_log, kernel_log, launcher_error, kubernetes, nvidia_smi, dcgm, npu_smi, stacks,
    tensorboard, the name of a plug-in, or other (not a source of this module)."""
    size: int
    lines: int = 0
    """Lines, or records of a binary file."""
    understood: int = 0
    """Lines or records that gave an event, a point of a series, a stack or an entry."""
    notable: int = 0
    """Lines that look like an error and that no pattern knows."""
    examples: tuple[str, ...] = ()
    """The first three of them."""
    fault: str = ""
    """Why the rest of it could not be read: torn, unreadable, refused."""
    rank: int | None = None
    rank_source: str = ""
    host: str | None = None
    first_ns: int | None = None
    """Of the times in it, the last too: a rank that fell silent shows here."""
    last_ns: int | None = None
    clock: str = "none"
    """Of these times, as of an event."""
    alike: int = 0
    """Lines like many others that are only counted."""


class Zone(NamedTuple):
    """How times without a zone were placed."""

    offset_ns: int
    """Local time minus UTC; taken off."""
    source: str
    """What two sources share, or why UTC is assumed."""
    known: bool


def first_ns(events: Iterable[Event]) -> int | None:
    """When the first of them happened, as far as it is known."""
    return min((one.time_ns for one in events if one.time_ns is not None), default=None)


class Evidence(NamedTuple):
    """All that was read below some paths."""

    events: tuple[Event, ...] = ()
    """By time; those without one last, in the order of their files."""
    series: tuple[Series, ...] = ()
    stacks: tuple[Stack, ...] = ()
    flights: tuple[Flight, ...] = ()
    """By rank."""
    processes: tuple[Process, ...] = ()
    devices: tuple[Device, ...] = ()
    files: tuple[FileRead, ...] = ()
    """Every file that was looked at, by path, traces and snapshots among them as `other`."""
    zone: Zone = Zone(0, "no time without a zone", True)
    notes: tuple[str, ...] = ()

    def of(self, *kinds: What) -> tuple[Event, ...]:
        """Events of some kinds."""
        return tuple(each for each in self.events if each.what in kinds)


# --- One clock -------------------------------------------------------------------------------------------------------

YEARLESS: Final = "yearless"
"""Clock of times, while a file is read, whose year is still to be found: they are of 1972."""
_SECOND: Final = 10**9
_QUARTER: Final = 900 * _SECOND
"""Offsets of zones are whole ones."""
_FARTHEST: Final = 14 * 3600 * _SECOND
_SLACK: Final = 300 * _SECOND
"""Between the times that two sources give one event."""


def placed(found: Evidence) -> Evidence:
    """With years and `time_ns`, in the order of time."""
    reference = _reference(found)

    def dated(one: Any, *fields: str) -> Any:
        if one.clock != YEARLESS:
            return one
        stamps = {field: getattr(one, field) for field in fields}
        years = {field: stamp if stamp is None else in_year(stamp, reference) for field, stamp in stamps.items()}
        return one._replace(clock="local", **years)

    events = [dated(one, "stamp_ns", "until_ns") for one in found.events]
    files = [dated(one, "first_ns", "last_ns") for one in found.files]
    series = [
        one._replace(times=np.array([in_year(each, reference) for each in one.times.tolist()], np.int64), clock="local")
        if one.clock == YEARLESS
        else one
        for one in found.series
    ]
    found = found._replace(events=tuple(events), series=tuple(series), files=tuple(files))
    zone = _zone(found)
    shifts = {"utc": 0, "local": zone.offset_ns}

    def moved(stamp: int | None, clock: str) -> int | None:
        return None if stamp is None or clock not in shifts else stamp - shifts[clock]

    timed = [
        one._replace(time_ns=moved(one.stamp_ns, one.clock), until_ns=moved(one.until_ns, one.clock)) for one in events
    ]
    timed.sort(key=lambda one: (one.time_ns is None, one.time_ns or 0))
    placed_files = (
        one._replace(first_ns=moved(one.first_ns, one.clock), last_ns=moved(one.last_ns, one.clock)) for one in files
    )
    return found._replace(
        events=tuple(timed), series=tuple(_moved(one, shifts) for one in series), files=tuple(placed_files), zone=zone
    )


def _moved(series: Series, shifts: Mapping[str, int]) -> Series:
    if series.clock not in shifts:
        return series._replace(times=np.full(len(series.times), UNKNOWN, np.int64))
    known = series.times != UNKNOWN
    return series._replace(times=np.where(known, series.times - np.where(known, shifts[series.clock], 0), UNKNOWN))


def _reference(found: Evidence) -> int:
    """A time near the incident: of sources that tell the year, else of the files themselves."""
    clocks = {"utc", "local"}
    times = [one.stamp_ns for one in found.events if one.clock in clocks and one.stamp_ns is not None]
    times += [one.last_ns for one in found.files if one.clock in clocks and one.last_ns is not None]
    if not times:
        # No file tells what came after it was written: of the year before that, and a few days for clocks.
        written = list(_written(found.files).values()) or [time.time_ns()]
        times = [one - 175 * 86400 * _SECOND for one in written]
    return int(np.median(np.array(times, np.int64)))


def _written(files: Sequence[FileRead]) -> dict[str, int]:
    """When logs with times in them were last written."""
    found = {}
    for one in files:
        if one.last_ns is not None and one.kind in {"process_log", "kernel_log"}:
            try:
                found[one.path] = Path(one.path).stat().st_mtime_ns
            except OSError:
                continue
    return found


def in_year(stamp: int, reference: int) -> int:
    """A time of 1972 in the year that brings it nearest to another time."""
    if stamp == UNKNOWN:
        return stamp
    part, year = time.gmtime(stamp // _SECOND), time.gmtime(reference // _SECOND).tm_year
    # The 29th of February is the 1st of March where there is none.
    around = [timegm((each, *part[1:6])) * _SECOND + stamp % _SECOND for each in (year - 1, year, year + 1)]
    return min(around, key=lambda each: abs(each - reference))


def _zone(found: Evidence) -> Zone:
    """What local times are ahead of UTC, by most of the events that two sources share."""
    locals_ = [one for one in found.events if one.clock == "local"]
    if not locals_ and not any(one.clock == "local" for one in found.files):
        return Zone(0, "no time without a zone", known=True)
    for source, differences in (
        ("a timeout in a log and in a flight recorder", _of_flights(found)),
        ("the failure of a rank in its error file and in the launcher's table", _of_errors(found)),
        ("losses in a log and in TensorBoard's files", _of_losses(found)),
    ):
        offsets = Counter(_offsets(differences, _SLACK))
        if offsets:
            return Zone(offsets.most_common(1)[0][0], source, known=True)
    last = {one.path: one.last_ns for one in found.files if one.clock == "local" and one.last_ns is not None}
    written = _written(found.files)
    at_end = Counter(_offsets((last[path] - written[path] for path in last.keys() & written.keys()), 90 * _SECOND))
    if at_end:
        return Zone(at_end.most_common(1)[0][0], "when logs were last written", known=False)
    return Zone(0, "nothing tells the zone: taken as UTC", known=False)


def _offsets(differences: Iterator[int], slack: int) -> Iterator[int]:
    """Whole quarters of an hour near differences of local times and UTC."""
    for difference in differences:
        offset = round(difference / _QUARTER) * _QUARTER
        if abs(difference - offset) <= slack and abs(offset) <= _FARTHEST:
            yield offset


def _of_flights(found: Evidence) -> Iterator[int]:
    for event in found.events:
        if event.what is What.TIMEOUT and event.clock == "local" and event.stamp_ns is not None:
            seq, ran = event.data.get("seq"), event.data.get("ran_ms")
            if isinstance(seq, int) and isinstance(ran, int):
                for entries in (one.entries for one in found.flights if one.rank == event.rank):
                    for created in entries.created[(entries.seq == seq) & (entries.created != UNKNOWN)].tolist():
                        yield event.stamp_ns - ran * 10**6 - created


def _of_errors(found: Evidence) -> Iterator[int]:
    kinds = {one.path for one in found.files if one.kind == "launcher_error"}
    exact = {one.rank: one.stamp_ns for one in found.events if one.source.path in kinds and one.clock == "utc"}
    for event in found.events:
        if event.what is What.EXIT and event.clock == "local" and event.stamp_ns is not None:
            other = exact.get(event.rank)
            if event.rank is not None and other is not None:
                yield event.stamp_ns - other


def _of_losses(found: Evidence) -> Iterator[int]:
    exact: dict[int, int] = {}
    for series in found.series:
        if series.clock == "utc" and series.name == "loss":
            exact.update(zip(series.steps.tolist(), series.times.tolist(), strict=True))
    for series in found.series if exact else ():
        if series.clock == "local" and series.name == "loss":
            for step, at in zip(series.steps.tolist(), series.times.tolist(), strict=True):
                if at != UNKNOWN and step in exact:
                    yield at - exact[step]


def derived_step_times(found: Sequence[Series]) -> tuple[Series, ...]:
    """With step times by the difference of printed times, where a log prints none."""
    made = list(found)
    printed = {(one.source.path, one.rank) for one in found if one.name == "step_time"}
    for one in found:
        if one.name != "loss" or (one.source.path, one.rank) in printed:
            continue
        rows = (one.times != UNKNOWN) & (one.steps != UNKNOWN)
        steps, times = one.steps[rows], one.times[rows]
        if len(steps) < 3:
            continue
        ahead, passed = np.diff(steps), np.diff(times)
        # A restart goes back.
        good = (ahead > 0) & (passed >= 0)
        if good.any():
            values = passed[good] / ahead[good] / _SECOND
            new = one._replace(name="step_time", unit="s", derived="difference of times")
            made.append(new._replace(steps=steps[1:][good], times=times[1:][good], values=values))
    return tuple(made)
