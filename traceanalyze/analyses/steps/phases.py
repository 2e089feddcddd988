"""Device and host time of the phases of a training step (definitions §10)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.computes import for_recording
from traceanalyze.analyses.host.frames import python_rows
from traceanalyze.analyses.idle.host_state import States, layered, loading_ranges, together
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.window import step_labels, window_of
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct, occurs
from traceanalyze.model.phases import Role, annotation_role, frame_role, op_role
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, declare
from traceanalyze.model.vocabulary import DeviceClass, EventKind, Mode, Phase

_PHASE = Column("phase", Kind.TERM, "part of the training step")
_DEVICE = Column(
    "device_ns", Kind.DURATION, "as long as work of this phase is running on the device; phases may overlap"
)
_HOST = Column("host_ns", Kind.DURATION, "as long as some thread is in this phase")
_PHASES = declare(
    "phases",
    "Phases of the step (mean of {steps} complete steps)",
    _PHASE,
    _DEVICE,
    Column("device_step_share", Kind.SHARE, "part of the step", heading="of step"),
    _HOST,
    Column("device_events", Kind.COUNT, "kernels, copies and fills launched in the step", minor=True),
    title_one="Phases of the step",
)
_STEP_PHASES = declare(
    "step_phases",
    "Phases step by step",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    _PHASE,
    _DEVICE,
    _HOST,
    detail=True,
)

_WITH_PARTS = {Phase.BACKWARD: (Phase.BACKWARD, Phase.RECOMPUTE), Phase.OPTIMIZER: (Phase.OPTIMIZER, Phase.ZERO_GRAD)}


def event_phases(context: Context) -> NDArray[np.uint8]:
    """Phase of each device event: that of the instant it was launched, or of its operator if only that is known."""
    phase = np.full(len(context.device), Phase.UNKNOWN, np.uint8)
    track, t = launch_places(context)
    known = track >= 0
    phase[known] = context.once(PhaseRanges).at(track[known], t[known])
    return phase


def backward_only(context: Context) -> frozenset[str]:
    """Names of compute that the backward pass alone launches."""
    device = context.device
    back = (context.once(event_phases) == Phase.BACKWARD) & (device.klass == DeviceClass.COMPUTE)
    alone = distinct(device.name[back])
    return frozenset(context.trace.strings.texts(alone[~occurs(alone, device.name[~back])]))


def launch_places(context: Context) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Thread and time at which the program asked for each device event; the thread is -1 where nothing is known."""
    track = np.full(len(context.device), -1, np.int32)
    t = np.zeros(len(context.device), np.int64)
    linked = context.link >= 0
    track[linked] = context.calls.track[context.issued_by[linked]]
    t[linked] = context.calls.start[context.issued_by[linked]]
    by_op = np.flatnonzero(~linked & (context.event_op >= 0))
    place = context.event_op[by_op]
    track[by_op] = context.trace.events.track[context.op_nest.row[place]]
    t[by_op] = context.op_nest.start[place]
    return track, t


def phases(context: Context) -> tuple[Table, Table]:
    """Time of each phase in the mean step, and in every step; phases that run at the same time overlap."""
    if not context.once(PhaseRanges).known:
        return _PHASES.missing("no_host_ops", detail=True), _STEP_PHASES.missing("no_host_ops")
    steps, device, phase = context.steps, context.device, context.once(event_phases)
    counted, shown = np.zeros((2, len(device)), np.bool_)
    if len(device):
        counted[context.once(device_work).event] = True
        shown = device.device == context.devices[0]
    states = together(context.once(PhaseRanges).states(track) for track in program_threads(context))
    inside = intervals.contains(context.host_windows, launch_places(context)[1])
    found: list[tuple[str, NDArray[np.int64], NDArray[np.int64], int, bool]] = []
    for each in Phase:
        parts = _WITH_PARTS.get(each, (each,))
        own = np.flatnonzero(shown & occurs(phase, parts))
        ran = intervals.merge(device.start[own], device.end[own])
        host = states.of(parts)
        time = intervals.coverage(ran, steps.start, steps.end), intervals.coverage(host, *_host_steps(context))
        if counted[own].any() or time[0].any() or time[1].any():
            early = bool(counted[own].any()) and not time[1].any() and not inside[own[counted[own]]].any()
            found.append((f"phase_{each.name.lower()}", *time, int(counted[own].sum()), early))
    names, on_device, on_host, events, before = zip(*found, strict=True) if found else ((),) * 5
    window = window_of(steps)
    sums = [window.sum(time) for time in on_device]
    table = _PHASES.fill(
        phase=names,
        device_ns=[window.mean(time) for time in sums],
        device_step_share=[window.share(time) for time in sums],
        host_ns=[
            NotMeasured("launched_before") if early else window.mean(window.sum(time))
            for time, early in zip(on_host, before, strict=True)
        ],
        device_events=events,
    )
    table = replace(table, title_values=(("steps", Kind.COUNT, window.count),))
    by_step = _STEP_PHASES.fill(
        step=[label for label in step_labels(steps.name) for _ in names],
        phase=names * len(steps),
        device_ns=np.transpose(on_device).ravel() if len(device) else NotMeasured("no_device_events"),
        host_ns=np.transpose(on_host).ravel(),
    )
    return for_recording(table, device=len(device) > 0), by_step


def _host_steps(context: Context) -> intervals.Intervals:
    """The windows of the steps; of a trace without steps, all of it."""
    whole = context.mode == Mode.WHOLE_TRACE
    return context.host_windows if whole else intervals.Intervals(context.steps.start, context.steps.end)


def program_threads(context: Context) -> list[int]:
    """Threads of the step thread's process that run operators, and the step thread itself."""
    tracks = context.trace.tracks
    busy = np.flatnonzero(np.diff(context.op_nest.bounds)).tolist()
    same = [track for track in busy if tracks[track, 0] == tracks[context.step_track, 0]]
    return sorted({*same, context.step_track})


class PhaseRanges:
    """Phases of the threads of a trace; a thread is worked out when it is first asked for."""

    def __init__(self, context: Context) -> None:
        # Not the context, which keeps these ranges: a cycle would keep the whole trace until the next collection.
        self._nest, self._loading, self._events = context.op_nest, context.once(loading_ranges), context.trace.events
        self._op_role = _op_roles(context)
        # By autograd.
        self._recorded = context.trace.events.numbers("sequence", context.op_nest.row) >= 0
        events, strings, kind = context.trace.events, context.trace.strings, context.kind
        annotations = np.flatnonzero(kind == EventKind.ANNOTATION)
        python = python_rows(context, frame_role)
        roles = ((annotations, annotation_role), (python, frame_role))
        role = np.concatenate([strings.lookup(events.name[rows], of_name) for rows, of_name in roles])
        rows = np.concatenate((annotations, python))
        telling = np.flatnonzero(role != Role.NONE)
        telling = telling[np.argsort(events.track[rows[telling]], kind="stable")]
        self._row, self._role, self._track = rows[telling], role[telling], events.track[rows[telling]]
        self._optimizer_annotated = bool((self._role & Role.OPTIMIZER).any())
        self._states: dict[int, States] = {}

    @property
    def known(self) -> bool:
        """Whether anything was recorded that tells phases."""
        return len(self._op_role) > 0 or len(self._row) > 0

    def states(self, track: int) -> States:
        """Segments of a thread with the phase of each."""
        if track not in self._states:
            self._states[track] = layered(self._layers(track))
        return self._states[track]

    def at(self, track: NDArray[np.int32], t: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Phase of a thread at an instant each."""
        phase = np.full(len(t), Phase.OTHER, np.uint8)
        order = np.argsort(track, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(track[order])) + 1) if len(t) else ():
            states = self.states(int(track[own[0]]))
            segment = np.searchsorted(states.start, t[own], "right") - 1
            inside = segment >= 0
            inside[inside] = t[own[inside]] < states.end[segment[inside]]
            phase[own[inside]] = states.cause[segment[inside]]
        return phase

    def _layers(self, track: int) -> list[tuple[int, intervals.Intervals]]:
        """Phases in the order in which they are looked for."""
        here = self._nest.of(track)
        role, start, end = self._op_role[here], self._nest.start[here], self._nest.end[here]

        told = slice(*np.searchsorted(self._track, (track, track + 1)))
        row, roles = self._row[told], self._role[told]
        # Most of thousands of threads have none.
        known = int(np.bitwise_or.reduce(role))

        def ops(wanted: Role) -> intervals.Intervals:
            if not known & wanted:
                return intervals.EMPTY
            member = (role & wanted) != 0
            return intervals.merge(start[member], end[member])

        def named(wanted: Role) -> intervals.Intervals:
            """Annotations and Python functions of a role."""
            return self._events.active(row[(roles & wanted) != 0]) if len(row) else intervals.EMPTY

        optimizer = named(Role.OPTIMIZER)
        if not self._optimizer_annotated:
            optimizer = intervals.intersect(ops(Role.FUSED), named(Role.OPTIMIZER_FRAME))
        # A checkpoint runs the backward pass of what it has recomputed inside itself; that is not recomputation.
        checkpoint = intervals.subtract(ops(Role.CHECKPOINT), ops(Role.NODE))
        recorded = self._recorded[here]
        forward = intervals.union(intervals.merge(start[recorded], end[recorded]), ops(Role.FORWARD))
        return [
            (Phase.DATA_LOADING, self._events.active(self._loading.of(track))),
            (Phase.ZERO_GRAD, named(Role.ZERO_GRAD)),
            (Phase.OPTIMIZER, optimizer),
            (Phase.RECOMPUTE, intervals.union(checkpoint, named(Role.RECOMPUTE))),
            (Phase.BACKWARD, ops(Role.BACKWARD)),
            (Phase.FORWARD, intervals.union(forward, named(Role.FORWARD))),
            (Phase.OTHER, intervals.merge(start, end)),
        ]


def _op_roles(context: Context) -> NDArray[np.int32]:
    """Roles of each operator of `context.op_nest`: by its name, or because an arrow from forward ends at it."""
    nested, flows = context.op_nest, context.trace.flows
    role = context.trace.strings.lookup(context.op_names, op_role)
    if len(flows.ts):
        arrow = context.trace.strings.matches(flows.cat, lambda text: text == "fwdbwd")
        arrow &= flows.phase == ord("f")
        for track in np.flatnonzero(np.bincount(flows.track[arrow])).tolist():
            here = nested.of(track)
            at = here.start + np.flatnonzero(occurs(nested.start[here], flows.ts[arrow & (flows.track == track)]))
            role[at] |= Role.BACKWARD
    return role
