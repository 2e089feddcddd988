"""Derived tables of one trace, each computed once, when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from traceanalyze.analyses.communication.parts import CollectiveParts, collective_parts
from traceanalyze.analyses.communication.ranges import describing, named_ranges
from traceanalyze.analyses.host.computes import host_computes
from traceanalyze.analyses.host.events import ApiCalls, ByTrack, api_calls, by_track, is_sync_call
from traceanalyze.analyses.host.frames import Frames, user_frame_of_stack
from traceanalyze.analyses.host.links import enqueuing_calls, launch_links, launching_ops, only_queue, unskewed
from traceanalyze.analyses.host.nesting import Nest, innermost, innermost_at, nest_rows
from traceanalyze.analyses.idle import idle as idle_analysis
from traceanalyze.analyses.idle.host_state import API_CAUSE, States, layered
from traceanalyze.analyses.idle.launches import Queue, launch_queue
from traceanalyze.analyses.idle.syncs import blocking_copies
from traceanalyze.analyses.kernels.events import DeviceEvents, device_events
from traceanalyze.analyses.kernels.work import Work, device_work
from traceanalyze.analyses.steps.partition import ClassSets, class_sets, device_order
from traceanalyze.analyses.steps.phases import PhaseRanges, event_phases
from traceanalyze.analyses.steps.steps import Markers, find_markers, ownership, step_windows, whole_window
from traceanalyze.model import intervals
from traceanalyze.model.classify import event_kind, is_annotation_op, is_data_loading, is_peer_wait
from traceanalyze.model.columns import occurs
from traceanalyze.model.vocabulary import ApiClass, Cause, EventKind, Mode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.options import Options
    from traceanalyze.analyses.results import Steps
    from traceanalyze.model.trace import Trace

_Made = TypeVar("_Made")


class Context:
    """One trace and everything derived from it."""

    def __init__(self, trace: Trace, options: Options) -> None:
        self.trace = trace
        self.options = options
        self._made: dict[Callable[[Context], Any], Any] = {}
        self._states: dict[tuple[int, bool], States] = {}
        self._class_sets: dict[int, ClassSets] = {}

    def once(self, compute: Callable[[Context], _Made]) -> _Made:
        """What a function of the context returns, computed when it is first asked for."""
        if compute not in self._made:
            self._made[compute] = compute(self)
        made: _Made = self._made[compute]
        return made

    @cached_property
    def kind(self) -> NDArray[np.uint8]:
        """`EventKind` of every event."""
        trace, classify = self.trace, self.options.classify
        kind = trace.strings.lookup(trace.events.cat, lambda text: event_kind(text, classify)).astype(np.uint8)
        ops = np.flatnonzero(kind == EventKind.HOST_OP)
        renamed = trace.strings.lookup(trace.events.name[ops], is_annotation_op).astype(np.bool_)
        kind[ops[renamed]] = EventKind.ANNOTATION
        return kind

    @cached_property
    def device(self) -> DeviceEvents:
        """Device events."""
        return device_events(self.trace, self.kind, self.options.classify)

    @cached_property
    def calls(self) -> ApiCalls:
        """Runtime calls."""
        return api_calls(self.trace, self.kind)

    @cached_property
    def queue_only(self) -> bool:
        """Whether calls of the runtime itself were not recorded, only those of the queue before it."""
        return only_queue(self.trace, self.calls)

    @cached_property
    def link(self) -> NDArray[np.int64]:
        """Position in `calls` of each device event's launch, or -1."""
        return launch_links(self.trace, self.device, self.calls)

    @cached_property
    def launch_start(self) -> NDArray[np.int64]:
        """Launch time of each device event (0 where unlinked); clock skew that a vendor is known for is taken out."""
        return unskewed(self.trace, self.device, self._at_link(self.calls.start))

    @cached_property
    def launch_end(self) -> NDArray[np.int64]:
        """Return of the launch call of each device event (0 where unlinked)."""
        return self._at_link(self.calls.end)

    @cached_property
    def asked(self) -> NDArray[np.int64]:
        """Position in `calls` of the call by which the program asked for each device event, or -1.

        That is the launch itself; but where a queue stands between (Ascend), and no operator is around the launch, the
        `Enqueue` on the thread of the operator.
        """
        enqueue = enqueuing_calls(self.trace, self.calls)
        queued = (enqueue >= 0) & (self.call_op < 0)
        found, linked = np.full(len(self.device), -1, np.int64), self.link >= 0
        found[linked] = np.where(queued, enqueue, np.arange(len(enqueue)))[self.link[linked]]
        return found

    def _at_link(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        out = np.zeros(len(self.device), np.int64)
        linked = self.link >= 0
        out[linked] = values[self.link[linked]]
        return out

    @cached_property
    def queue(self) -> Queue:
        """What waits on the streams."""
        return launch_queue(self)

    @cached_property
    def markers(self) -> Markers | None:
        """Step markers, None when there are none."""
        return find_markers(self.trace, self.kind, self.options.classify)

    @cached_property
    def mode(self) -> Mode:
        """What the windows are."""
        if len(self.device):
            return Mode.STEPS if self.markers is not None else Mode.WHOLE_TRACE
        return Mode.HOST_ONLY if len(self.host_rows) or len(self.calls) else Mode.EMPTY

    @cached_property
    def host_computes(self) -> bool:
        """Whether the host alone computed, so that its time is that of the step."""
        return host_computes(self)

    @cached_property
    def all_steps(self) -> Steps:
        """Every window, before any selection."""
        if self.markers is not None:
            return step_windows(self.markers, self.device, *ownership(self))
        if len(self.device):
            return whole_window(int(self.device.start.min()), int(self.device.end.max()), owned=len(self.device))
        if self.mode == Mode.EMPTY:
            return whole_window(0, 0, owned=0)
        rows = np.concatenate((self.host_rows, self.calls.row))
        start = self.trace.events.ts[rows]
        return whole_window(int(start.min()), int((start + self.trace.events.dur[rows]).max()), owned=0)

    @cached_property
    def steps(self) -> Steps:
        """The windows to analyse."""
        chosen = self.options.steps(self.all_steps) if self.options.steps else None
        return self.all_steps if chosen is None else self.all_steps.select(chosen)

    @cached_property
    def devices(self) -> list[int]:
        """Devices by busy time inside the windows, the headline device first."""
        return device_order(self.device, self.steps.start, self.steps.end)

    def class_sets(self, device: int) -> ClassSets:
        """When a device does work of each class."""
        if device not in self._class_sets:
            self._class_sets[device] = class_sets(self.device, device)
        return self._class_sets[device]

    @cached_property
    def host_rows(self) -> NDArray[np.int64]:
        """Operators and annotations."""
        return np.flatnonzero((self.kind == EventKind.HOST_OP) | (self.kind == EventKind.ANNOTATION))

    @cached_property
    def ops(self) -> ByTrack:
        """Operators by thread."""
        return by_track(self.trace, np.flatnonzero(self.kind == EventKind.HOST_OP))

    @cached_property
    def host_windows(self) -> intervals.Intervals:
        """When a host event must begin to be counted: in an analysed window; without steps at any time.

        A trace without steps is analysed from the first device event to the last, and the host runs ahead of these.
        """
        if self.mode != Mode.WHOLE_TRACE:
            return intervals.merge(self.steps.start, self.steps.end)
        start = self.trace.events.ts
        return intervals.Intervals(start.min(keepdims=True), (start + self.trace.events.dur).max(keepdims=True) + 1)

    @cached_property
    def op_nest(self) -> Nest:
        """Call trees of the operators."""
        return nest_rows(self.trace, np.flatnonzero(self.kind == EventKind.HOST_OP))

    @cached_property
    def call_op(self) -> NDArray[np.int64]:
        """Place in `op_nest` of the innermost operator around each runtime call, -1 for none."""
        return innermost(self.op_nest, self.calls.track, self.calls.start)

    @cached_property
    def event_op(self) -> NDArray[np.int64]:
        """Place in `op_nest` of the operator that launched each device event, -1 for none."""
        return launching_ops(self)

    @cached_property
    def _ranges(self) -> tuple[ByTrack, ByTrack]:
        """Data-loading and peer-wait ranges by thread."""
        rows, names = self.host_rows, self.trace.events.name[self.host_rows]
        classify = self.options.classify
        data = self.trace.strings.lookup(names, lambda text: is_data_loading(text, classify)).astype(np.bool_)
        peer = self.trace.strings.lookup(names, is_peer_wait).astype(np.bool_)
        return by_track(self.trace, rows[data]), by_track(self.trace, rows[peer])

    @property
    def loading(self) -> ByTrack:
        """Ranges in which a thread waits for its data loader, by thread."""
        return self._ranges[0]

    def data_loading(self, track: int) -> intervals.Intervals:
        """When a thread waits for its data loader."""
        return self._row_set(self.loading.of(track))

    @cached_property
    def data_loading_seen(self) -> bool:
        """Whether the trace has any data-loading range."""
        return len(self.loading.rows) > 0

    @cached_property
    def blocking(self) -> NDArray[np.bool_]:
        """Asynchronous copy calls that block in effect."""
        return blocking_copies(self.trace, self.calls, self.device, self.link)

    @cached_property
    def is_sync(self) -> NDArray[np.bool_]:
        """Runtime calls that count as sync points."""
        return is_sync_call(self.calls, self.blocking)

    @cached_property
    def threads(self) -> list[int]:
        """Launching threads of the process that launches most (or holds the step markers), most launches first.

        Threads that put work into a queue launch it too, as much as the thread that takes it out.
        """
        linked = self.link >= 0
        call = np.concatenate((self.link[linked], self.asked[linked & (self.asked != self.link)]))
        track, count = np.unique(self.calls.track[call], return_counts=True)
        ordered = [int(t) for t in track[np.lexsort((track, -count))]]
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

    def states(self, track: int, with_data: bool) -> States:
        """What a host thread is doing at each instant; its data loading too only if `with_data`."""
        if (track, with_data) not in self._states:
            data, peer = self._ranges
            first, last = np.searchsorted(self.calls.track, (track, track + 1))
            calls = np.arange(first, last)[self.calls.outermost[first:last]]
            sync, klass = self.is_sync[calls], self.calls.klass[calls]
            layers = [
                (Cause.SYNC, self._call_set(calls[sync])),
                (Cause.PEER_WAIT, self._row_set(peer.of(track))),
            ]
            if with_data:
                layers.insert(0, (Cause.DATA_LOADING, self._row_set(data.of(track))))
            layers.extend(
                (API_CAUSE[each], self._call_set(calls[~sync & (klass == each)]))
                for each in (ApiClass.LAUNCH, ApiClass.COPY, ApiClass.ALLOC, ApiClass.OTHER)
            )
            layers.append((Cause.HOST_OP, self._row_set(self.ops.of(track))))
            self._states[track, with_data] = layered(layers)
        return self._states[track, with_data]

    def _call_set(self, calls: NDArray[np.int64]) -> intervals.Intervals:
        return intervals.merge(self.calls.start[calls], self.calls.end[calls])

    def _row_set(self, rows: NDArray[np.int64]) -> intervals.Intervals:
        start = self.trace.events.ts[rows]
        return intervals.merge(start, start + self.trace.events.dur[rows])

    @cached_property
    def gaps(self) -> idle_analysis.Gaps:
        """Gaps of the headline device from the first step to the last, whichever steps were chosen."""
        start, end = int(self.all_steps.start.min()), int(self.all_steps.end.max())
        return idle_analysis.find_gaps(self.device, self.link, self.calls, device=self.devices[0], start=start, end=end)

    @cached_property
    def pieces(self) -> idle_analysis.Pieces:
        """Causes of the gaps of the headline device."""
        return idle_analysis.explain(self.gaps, self.calls.track, self.threads, self.step_track, self.states)

    @cached_property
    def stretches(self) -> intervals.Intervals:
        """The analysed time: chosen steps, and the time between two of them that follow each other."""
        every, chosen = self.all_steps, occurs(self.all_steps.start, self.steps.start)
        bridged = chosen[:-1] & chosen[1:]
        return intervals.merge(
            np.concatenate((every.start[chosen], every.end[:-1][bridged])),
            np.concatenate((every.end[chosen], every.start[1:][bridged])),
        )

    @cached_property
    def collective_records(self) -> Nest:
        """Call trees of the host events that describe collectives; only where a field `collective` is recorded."""
        return describing(self)

    @cached_property
    def collective_ranges(self) -> Nest:
        """Call trees of the host events that are calls of communication libraries by their names."""
        return named_ranges(self)

    @cached_property
    def collective_parts(self) -> CollectiveParts | None:
        """What collectives consist of; None where the profile does not record it."""
        return collective_parts(self)

    @cached_property
    def work(self) -> Work:
        """Device events inside the analysed windows, with their operators and groups."""
        return device_work(self)

    @cached_property
    def phase_ranges(self) -> PhaseRanges:
        """Phases of the threads."""
        return PhaseRanges(self)

    @cached_property
    def event_phases(self) -> NDArray[np.uint8]:
        """`Phase` in which each device event was launched."""
        return event_phases(self)

    @cached_property
    def frames(self) -> Frames:
        """User Python frames."""
        return Frames(self.trace, self.kind)

    def ops_at(self, track: int, t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of the innermost operator of a thread at each instant, -1 for none."""
        at = innermost_at(self.op_nest, t, track)
        rows = np.full(len(t), -1, np.int64)
        rows[at >= 0] = self.op_nest.row[at[at >= 0]]
        return rows

    def locate(self, track: int, t: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str | None], list[str | None]]:
        """Innermost operator (row, name) and user frame of a thread at each instant."""
        rows = self.ops_at(track, t)
        events, strings = self.trace.events, self.trace.strings
        names = [strings.text(int(events.name[row])) if row >= 0 else None for row in rows.tolist()]
        if self.frames.recorded:
            return rows, names, self.frames.at(track, t)
        stack = events.fields.get("stack")
        if stack is None:
            return rows, names, [None] * len(t)
        codes = stack.take(np.maximum(rows, 0), -1)
        known = {c: user_frame_of_stack(strings.text(c)) for c in set(codes.tolist()) if c >= 0}
        return rows, names, [known.get(c) if row >= 0 else None for c, row in zip(codes.tolist(), rows, strict=True)]
