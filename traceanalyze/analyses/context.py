"""One trace and what all analyses share of it; what one analysis computes for others is kept by `Context.once`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, TypeVarTuple, cast

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.clocks import APART_SHARE, Placed, on_host_clock
from traceanalyze.analyses.host.events import ApiCalls, api_calls
from traceanalyze.analyses.host.links import FLOWS_TO_DEVICE, enqueuing_calls, launch_links, launching_ops, only_queue
from traceanalyze.analyses.host.nesting import Nest, innermost, nest_rows
from traceanalyze.analyses.kernels.events import DeviceEvents, begin_impossibly, by_start, device_events, repeated
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.partition import ClassSets, class_sets
from traceanalyze.analyses.steps.steps import Markers, complete, find_markers, ownership, step_windows, whole_window
from traceanalyze.analyses.steps.window import Steps, settled
from traceanalyze.model import intervals
from traceanalyze.model.classify import (
    event_kind,
    is_annotation_op,
    is_known_runtime,
    is_metrics_of_kernel,
    is_of_xpu,
    marks_step,
)
from traceanalyze.model.columns import distinct, narrow, rows_of, short, taken
from traceanalyze.model.trace import Flows, Trace
from traceanalyze.model.vocabulary import ApiClass, DeviceClass, EventKind, Mode

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


_TOLD = (("compute", DeviceClass.COMPUTE, "computing"), ("communication", DeviceClass.COMM, "communication"))
"""Parts of a step with the class of their events, and what `VendorStep` calls them."""
_TRIFLE = 0.01
"""Share of the device's time that a kind of work must take for its absence to be a loss."""
_HOST = EventKind.HOST_OP, EventKind.ANNOTATION
"""From the one to the other."""
_CHEAP = ("host_rows", "host_names", "op_names", "ownership", "launch_start", "launch_end")
"""Large columns that take less time to make again than their memory is worth."""
OUT_OF_ORDER = 0.05
"""Part of the recorded time by which events stand before earlier ones in a file that is in the order of time."""


class Context:
    """One trace, its events by kind, what launched what, its steps and call trees: each computed when first used.

    Work of a device whose clock is off is moved to the clock of the host, once for all analyses (`host/clocks.py`).
    """

    def __init__(self, trace: Trace, options: Options) -> None:
        self._recorded = trace
        self.options = options
        self._kept: dict[tuple[Any, ...], Any] = {}

    def once(self, compute: Callable[[Context, *Ts], T], *arguments: *Ts) -> T:
        """What a pure function makes of this context, computed when first asked for and dropped with the context."""
        key = (compute, *arguments)
        if key not in self._kept:
            self._kept[key] = compute(self, *arguments)
        return cast("T", self._kept[key])

    def forget(self, *computed: object) -> None:
        """Let go of what functions made of this context: who asks again has it made again."""
        for key in [key for key in self._kept if key[0] in computed]:
            del self._kept[key]
        for name in _CHEAP:
            vars(self).pop(name, None)

    def apart(self) -> Context:
        """The same context with what is known of it; what is computed from now on is dropped with it."""
        found = copy(self)
        found._kept = self._kept.copy()
        return found

    def connected(self, computed: Iterable[object], fields: Container[str]) -> Context:
        """The same context for who asks no more what belongs to what than is known of it: large things are let go.

        Gone are arrows to device events, arguments `fields` of events, and what the functions `computed` made; that
        is computed again if it is asked for. Devices, calls, operators and what launched what are as they were.
        """
        found, trace, _ = copy(self), self.trace, (self.event_op, self.issued_by, self.steps)
        arguments = {name: column for name, column in trace.events.fields.items() if name not in fields}
        others = ~trace.strings.matches(trace.flows.cat, lambda text: text in FLOWS_TO_DEVICE)
        flows = Flows._make(column[others] for column in trace.flows)
        cat = narrow(trace.events.cat)
        trace = replace(trace, events=replace(trace.events, cat=cat, fields=arguments), flows=flows)
        found._recorded, found._placed, found.trace = trace, self._placed._replace(trace=trace), trace
        found._kept = self._kept.copy()
        found.forget(*computed)
        return found

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """`EventKind` of every event."""
        return self._kinds[0]

    @cached_property
    def _kinds(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The kind of every event; and the rows of the device's work, in order of start."""
        trace, classify = self._recorded, self.options.classify
        kind = trace.strings.lookup(trace.events.cat, lambda text: event_kind(text, classify), np.uint8)
        host = short(rows_of(kind, *_HOST))
        names = taken(trace.events.name, host)
        kind[host[trace.strings.matches(names, is_annotation_op)]] = EventKind.ANNOTATION
        kernels = rows_of(kind, EventKind.KERNEL)
        metrics = trace.strings.matches(trace.events.name[kernels], is_metrics_of_kernel)
        kind[kernels[metrics]] = EventKind.DEVICE_CONTROL
        row = by_start(trace, kind)
        impossible = begin_impossibly(trace, kind, row)
        kind[impossible] = EventKind.IMPOSSIBLE
        if not len(impossible):
            # They need not be looked for again.
            self.host_rows, self.host_names = host, names
        row = row[kind[row] <= int(EventKind.MEMSET)]
        again = repeated(trace, row)
        kind[again] = EventKind.REPEATED
        return kind, row[kind[row] != int(EventKind.REPEATED)] if len(again) else row

    @cached_property
    def _placed(self) -> Placed:
        recorded, kind = self._recorded, self.kind
        _, row = vars(self).pop("_kinds")  # Nobody else asks for the rows.
        device = device_events(recorded, kind, row, self.options.classify)
        link = launch_links(recorded, device, self.calls)
        placed = on_host_clock(recorded, self.kind, device, self.calls, link)
        # Nobody asks for times on the other clock any more.
        self._recorded = placed.trace
        return placed

    @cached_property
    def trace(self) -> Trace:
        """The recording, with all times on the clock of the host."""
        return self._placed.trace

    @property
    def begin(self) -> int:
        """When the first event begins whose time is possible; there must be one."""
        return int(self.trace.events.ts[self.kind != EventKind.IMPOSSIBLE].min())

    @cached_property
    def device(self) -> DeviceEvents:
        """Device events."""
        return self._placed.device

    @cached_property
    def doubt(self) -> str | None:
        """Why nothing can be told from launches (delays, queue depths, which came late), None if it can.

        Clocks that could not be put right; names or work that is lost; or calls mostly of a runtime that is not known.
        """
        if self.trace.read.nameless:
            return "no_names"
        if self._lost or self.trace.origin.form == "sums":
            return "work_lost" if self._lost else "only_sums"
        if not all(clock.moved for clock in self.trace.clocks or ()):
            return "clocks_disagree"
        foreign = self.trace.origin.format != "ascend" and len(self.calls) > 0
        known = foreign and (
            2 * np.count_nonzero(self.trace.strings.matches(self.calls.name, is_known_runtime)) > len(self.calls)
            or {ApiClass.LAUNCH, ApiClass.SYNC} <= set(distinct(self.calls.klass).tolist())
        )
        return "unknown_runtime" if foreign and not known else None

    @cached_property
    def unmeasured(self) -> Mapping[str, str]:
        """Parts of steps of which nobody knows the device's work, and why: copies and fills, or what is lost."""
        read = self._recorded.read
        copies = "no_names" if read.nameless else "no_timeline" if read.no_copies else ""
        # Where the tasks of compute are lost, so are those that copy.
        if "compute" in self._lost and not (self.device.klass == DeviceClass.MEM).any():
            copies = copies or "work_lost"
        # Communication that compute hides cannot be told from any other without compute.
        lost = dict.fromkeys((*self._lost, "communication", "idle") if self._lost else (), "work_lost")
        return lost | ({"memory_ops": copies} if copies else {})

    @cached_property
    def _lost(self) -> tuple[str, ...]:
        """Kinds of work that the profile's own numbers (of either export) tell of, and the recording has none of."""
        vendor, other = self._recorded.vendor, self._recorded.other_export
        steps = (*(vendor.steps if vendor else ()), *(other.steps if other else ()))
        if self.options.keep is not None or not len(self.device):
            return ()
        return tuple(
            part
            for part, klass, name in _TOLD
            if sum(getattr(step, name) or 0 for step in steps) > _TRIFLE * sum(step.stage or 0 for step in steps)
            and not (self.device.klass == klass).any()
        )

    @property
    def doubt_of_idle(self) -> str | None:
        """Why nothing tells what the host did while the device was idle, and what its waiting cost; None if it does.

        So much starts before its launch that the clocks have nothing to do with each other.
        """
        apart = any(not clock.moved and clock.share > APART_SHARE for clock in self.trace.clocks or ())
        return self.doubt if apart or self.doubt in {"unknown_runtime", "no_names", "work_lost", "only_sums"} else None

    @cached_property
    def calls(self) -> ApiCalls:
        """Runtime calls."""
        return api_calls(self._recorded, self.kind)

    @cached_property
    def queue_only(self) -> bool:
        """Whether calls of the runtime itself were not recorded, only those of the queue before it."""
        return only_queue(self.trace, self.calls)

    @cached_property
    def waits_lost(self) -> str | None:
        """Why calls that wait, and those of allocators, were not recorded; None if they were.

        Intel's profiler records what submits work only (PTI ≥ 0.12): no program of a device never waits for it.
        """
        if self.queue_only:
            return "no_cann_calls"
        of_xpu = self.trace.strings.matches(self.calls.name, is_of_xpu).any()
        return "no_wait_calls" if of_xpu and not (self.calls.klass == ApiClass.SYNC).any() else None

    @cached_property
    def link(self) -> NDArray[np.int32]:
        """Position in `calls` of each device event's launch, or -1."""
        return self._placed.link

    @cached_property
    def launch_start(self) -> NDArray[np.int64]:
        """Launch time of each device event (0 where unlinked)."""
        return self._at_link(self.calls.start)

    @cached_property
    def launch_end(self) -> NDArray[np.int64]:
        """Return of the launch call of each device event (0 where unlinked)."""
        return self._at_link(self.calls.end)

    @cached_property
    def issued_by(self) -> NDArray[np.int32]:
        """Position in `calls` of the call by which the program asked for each device event, or -1.

        That is the launch itself; but where a queue stands between (Ascend), and no operator is around the launch, the
        `Enqueue` on the thread of the operator.
        """
        enqueue = enqueuing_calls(self.trace, self.calls)
        if not (enqueue >= 0).any():
            return self.link
        queued = (enqueue >= 0) & (self.call_op < 0)
        found, linked = np.full(len(self.device), -1, np.int32), self.link >= 0
        found[linked] = taken(np.where(queued, enqueue, np.arange(len(enqueue))), self.link[linked])
        return found

    def _at_link(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        out = np.zeros(len(self.device), np.int64)
        linked = self.link >= 0
        out[linked] = taken(values, self.link[linked])
        return out

    @cached_property
    def markers(self) -> Markers | None:
        """Step markers, None when there are none."""
        return find_markers(self.trace, self.kind, (self.host_rows, self.host_names), self.options.classify)

    @cached_property
    def mode(self) -> Mode:
        """What the windows are."""
        if len(self.device):
            return Mode.STEPS if self.markers is not None else Mode.WHOLE_TRACE
        return Mode.HOST_ONLY if len(self.host_rows) or len(self.calls) else Mode.EMPTY

    @cached_property
    def ownership(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Time at which the program asked for each device event, and whether it is known.

        The start of the call that asked for it; on Ascend, where the call was not recorded, that of its operator, else
        of the step that it belongs to.
        """
        known = self.link >= 0
        time = np.zeros(len(self.device), np.int64)
        time[known] = taken(self.calls.start, self.issued_by[known])
        if self.trace.origin.format != "ascend" or known.all():
            return time, known
        by_op = ~known & (self.event_op >= 0)
        time[by_op] = taken(self.op_nest.start, self.event_op[by_op])
        return ownership(self.trace, self.markers, self.device, time, known | by_op)

    @cached_property
    def cut_at(self) -> int | None:
        """From when on device work may be missing because the file ends in the middle; None where it does not.

        Of a file in the order of time the end is missing; buffers one after the other lack work of any time.
        """
        read, device = self.trace.read, self.device
        if read.whole or not len(device):
            return None
        begun, first, last = device.start[np.argsort(device.row)], int(device.start.min()), int(device.end.max())
        back = int((np.maximum.accumulate(begun) - begun).max())
        return first if back > OUT_OF_ORDER * (last - first) else last

    def unfinished(self, steps: Steps) -> NDArray[np.bool_]:
        """Which of the windows go on after the file ends, or after torch stopped recording.

        Torch ends what is under way together with the event that stands for the recording, or later: that tells of
        iterations. Of steps without a device it is the last if it has not its operators.
        """
        cut, events = self.cut_at, self.trace.events
        found = np.zeros(len(steps), np.bool_) if cut is None else steps.end > cut
        if steps.iterations is not None:
            rows = self.trace.strings.matches(events.cat, lambda text: text.casefold() == "trace")
            if rows.any():
                found |= steps.host_end >= (events.ts + events.dur)[rows].max() - 1
        elif not len(self.device):
            begun = np.sort(events.ts[self.kind == EventKind.HOST_OP])
            found[-1] |= not complete(np.searchsorted(begun, steps.end) - np.searchsorted(begun, steps.start))[-1]
        return found

    @cached_property
    def all_steps(self) -> Steps:
        """Every window, before any selection."""
        if self.markers is not None:
            steps = step_windows(self.markers, self.device, *self.ownership)
            whole = steps.complete & ~self.unfinished(steps)
            return replace(steps, complete=whole) if whole.any() else steps
        if len(self.device):
            return whole_window(int(self.device.start.min()), int(self.device.end.max()), owned=len(self.device))
        if self.mode == Mode.EMPTY:
            return whole_window(0, 0, owned=0)
        rows = np.concatenate((self.host_rows, self.calls.row))
        start = self.trace.events.ts[rows]
        return whole_window(int(start.min()), int((start + self.trace.events.dur[rows]).max()), owned=0)

    @cached_property
    def steps(self) -> Steps:
        """The windows to show; what counts in sums and means is `counted`."""
        steps, choose, agreed = self.all_steps, self.options.steps, self.options.agreed
        if choose is not None:
            steps = steps.select(choose(steps))
        return settled(steps, agreed) if choose is None or agreed is not None else steps

    @cached_property
    def counted(self) -> Steps:
        """The windows that every sum and mean is over: the same for all tables."""
        return self.steps.select(self.steps.counted)

    @cached_property
    def devices(self) -> list[int]:
        """Devices by busy time inside the windows, the headline device first."""
        found: list[int] = distinct(self.device.device).tolist()
        if len(found) < 2:
            return found
        start, end = self.counted.start, self.counted.end
        active = [intervals.union(*self.class_sets(device).values()) for device in found]
        busy = [int(intervals.coverage(runs, start, end).sum()) for runs in active]
        return [device for _, device in sorted(zip(busy, found, strict=True), key=lambda one: (-one[0], one[1]))]

    def class_sets(self, device: int) -> ClassSets:
        """When a device does work of each class."""
        return self.once(_class_sets, device)

    @cached_property
    def host_rows(self) -> NDArray[np.int32]:
        """Operators and annotations."""
        return short(rows_of(self.kind, *_HOST))

    @cached_property
    def host_names(self) -> NDArray[np.int32]:
        """Code of the name of each of them."""
        return taken(self.trace.events.name, self.host_rows)

    @cached_property
    def host_recorded(self) -> bool:
        """Whether there are any: on Ascend but marks of steps, which a profile of the device alone has too."""
        if self.trace.origin.format != "ascend":
            return len(self.host_rows) > 0
        return not self.trace.strings.matches(self.host_names, marks_step(self.options.classify)).all()

    @cached_property
    def host_windows(self) -> intervals.Intervals:
        """When a host event must begin to be counted: in a window that counts; without steps at any time.

        A trace without steps is analysed from the first device event to the last, and the host runs ahead of these.
        """
        if self.mode != Mode.WHOLE_TRACE:
            return intervals.merge(self.counted.start, self.counted.end)
        start = self.trace.events.ts
        return intervals.Intervals(start.min(keepdims=True), (start + self.trace.events.dur).max(keepdims=True) + 1)

    @cached_property
    def op_nest(self) -> Nest:
        """Call trees of the operators."""
        return nest_rows(self.trace, rows_of(self.kind, EventKind.HOST_OP))

    @cached_property
    def op_names(self) -> NDArray[np.int32]:
        """Code of the name of each operator in `op_nest`."""
        return taken(self.trace.events.name, self.op_nest.row)

    @cached_property
    def call_op(self) -> NDArray[np.int32]:
        """Place in `op_nest` of the innermost operator around each runtime call, -1 for none."""
        return short(innermost(self.op_nest, self.calls.track, self.calls.start))

    @cached_property
    def event_op(self) -> NDArray[np.int32]:
        """Place in `op_nest` of the operator that launched each device event, -1 for none.

        The innermost operator around the call by which the program asked for the event, on the thread of the call; else
        the one an `async_npu` arrow starts at; the `External id` decides only where the launch was not recorded.
        """
        around, linked = np.full(len(self.device), -1, np.int32), self.link >= 0
        around[linked] = taken(self.call_op, self.issued_by[linked])
        return short(launching_ops(self.trace, self.device, self.op_nest, around, linked))

    @cached_property
    def threads(self) -> list[int]:
        """Launching threads of the process that launches most (or holds the step markers), most launches first.

        Threads that put work into a queue launch it too, as much as the thread that takes it out.
        """
        linked = self.link >= 0
        call = np.concatenate((self.link[linked], self.issued_by[linked & (self.issued_by != self.link)]))
        count = np.bincount(taken(self.calls.track, call))
        ordered = [t for t in np.argsort(-count, kind="stable").tolist() if count[t]]
        marked = self.markers is not None and self.markers.track >= 0
        lead = self.markers.track if self.markers is not None and marked else next(iter(ordered), -1)
        return [t for t in ordered if self.trace.tracks[t, 0] == self.trace.tracks[lead, 0]]

    @cached_property
    def step_track(self) -> int:
        """Thread of the step markers; without markers the thread that launches most, or has most host events."""
        if self.markers is not None and self.markers.track >= 0:
            return self.markers.track
        if self.threads:
            return self.threads[0]
        rows = self.host_rows if len(self.host_rows) else self.calls.row
        if len(rows) == 0:
            return -1
        return int(np.bincount(self.trace.events.track[rows]).argmax())


def _class_sets(context: Context, device: int) -> ClassSets:
    return class_sets(context.device, device)
