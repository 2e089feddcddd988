"""What the files of a dead or slow job say, in one form for all sources: the input of every judgement on an incident.

Nothing here judges. Who prints a timeout waited; who prints nothing is the suspect: that is for the reader of this.

Times. `time_ns` is ns of Unix time (UTC), None where no clock can be told. A log without a zone is taken as UTC shifted
by the offset that `Evidence.zone` tells, which is found where two sources share an event; `clock` stays "local" then.
`stamp_ns` is what the source's own clock said, for the order of events of one source (since boot for "boot").

Ranks. `rank` is the global rank, None where the source does not tell; the rank inside a group is in `data` as
`group_rank`, the one on a host as `local_rank`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

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


class Zone(NamedTuple):
    """How times without a zone were placed."""

    offset_ns: int
    """Local time minus UTC; taken off."""
    source: str
    """What two sources share, or why UTC is assumed."""
    known: bool


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
