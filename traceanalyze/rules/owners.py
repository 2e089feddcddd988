"""Which large parts of a step no finding explains (definitions §18: every large part of the step has an owner)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import lines_in, user_frames
from traceanalyze.analyses.idle.idle import IdleCauses, idle_gaps
from traceanalyze.analyses.kernels.op_work import device_peaks
from traceanalyze.analyses.kernels.work import device_work, ratio_argument
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.classify import is_peer_wait
from traceanalyze.model.columns import occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.vocabulary import IDLE_GROUPS, ApiClass, Cause, DeviceClass
from traceanalyze.replay.parts import shorter
from traceanalyze.rules.common.communication import WAIT_POSSIBLE
from traceanalyze.rules.common.computing import FUSIBLE, computing
from traceanalyze.rules.common.launching import FEW_STEPS, GRAPH, begun_before, excerpt
from traceanalyze.rules.common.op_chains import fusible_rows
from traceanalyze.rules.common.replay import saved
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding, Severity, Unexplained, intervals_of, merged

LARGE = 0.2
"""Part of the step from which a class of work or cause of idle time must be explained (definitions §18)."""
EXPLAINED = 0.5
"""Part of it that findings must account for to be its owners; own: most of it."""
_DRAWS: Mapping[str, tuple[str, ...]] = {
    "fusible": (),
    "fusible_shapes": (),
    "communication": ("comm_exposed",),
    "memory_ops": ("mem_exposed",),
    "data_loading": ("idle.data_loading", "host.data_loading"),
    "sync": ("idle.sync",),
    "allocation": ("idle.dispatch",),
    "dispatch": ("idle.dispatch", "idle.host_op"),
    "device_gap": ("idle.device_side",),
    "device_dependency": ("idle.device_side",),
    "untraced": ("idle.untraced", "host.untraced"),
}
"""Classes of time that findings about a part draw from (`Finding.draws`)."""
SPLIT = 0.15
"""Own: part of the step from which it has one finding of medium severity, where small ones share it."""
ALONE = 0.8
"""Own: of a part, what lies in one of three steps or more."""
_CLASSES = {"communication": "comm_exposed", "memory_ops": "mem_exposed", "idle": "idle"}
LONGEST = 100
"""So many of the longest stretches tell in which line the host is."""
_OF_HOST = {"dispatch", "untraced"}
"""Parts that Python functions would explain further."""


def unexplained(facts: Facts, findings: Sequence[Finding]) -> tuple[Unexplained, ...]:
    """Parts of at least a fifth of the step without a finding of at least medium severity, or a note, largest first.

    Compute is the program's own work: only passes over memory that fusing could save need an owner, and without a
    finding about it, it is said what tells that it is no waste, or what is missing to judge it. A finding accounts for
    a part with the time that it is tied to, else with the cost of the class that it draws from. Of an excerpt all idle
    time is one part, which nothing explains, and so is what waits for work launched before the recording.
    """
    device = bool(facts.analysis.partitions)
    if not (device or facts.host_computes) or not facts.step_time:
        return ()
    if device and facts.once(excerpt):
        idle = facts.share(facts.length(facts.idle()))
        return (Unexplained("idle", idle, "excerpt"),) if idle >= LARGE else ()
    before, found = facts.once(begun_before) if device else intervals.EMPTY, []
    if LARGE * facts.step_time <= facts.mean(intervals.total(before)):
        share = facts.share(facts.mean(intervals.total(before)))
        found.append(Unexplained("device_dependency", share, "begun_before"))
    # A note without a saving tells what the time is, too.
    owners = [
        one
        for one in findings
        if one.once
        or ((one.severity or 0) >= Severity.MEDIUM and explains(one))
        or (not one.severity and one.saving is None and one.cost)
    ]
    tied = _tied(owners)
    for part, every in _parts(facts) if device else _of_host(facts):
        spans = intervals.subtract(every, before)
        time = facts.mean(intervals.total(spans))
        if time < LARGE * facts.step_time:
            continue
        left = max(0, time - _accounted(facts, part, intervals.intersect(spans, tied), owners))
        if left > (1 - EXPLAINED) * time:
            python = part in _OF_HOST and facts.context.once(user_frames).recorded
            line = _line(facts, intervals.subtract(spans, tied)) if python and part == "untraced" else ""
            why = f"{part}_line" if line else f"{part}_python" if python else part
            if part == "device_dependency" and 2 * intervals.total(_in_graphs(facts, spans)) >= intervals.total(spans):
                why = "in_graphs"
            found.append(Unexplained(part, left / facts.step_time, why, line, step=_alone(facts, spans)))
    work = {"compute"} if device else {"compute", "host", "host.ops"}
    told = any((one.severity or 0) >= Severity.MEDIUM and one.draws in work for one in findings)
    rest = () if told else _compute(facts) if device else _operator(facts)
    return (*sorted(found, key=lambda one: -one.share), *rest)


def _alone(facts: Facts, spans: Intervals) -> str:
    """The step of three or more that has nearly all of some time; empty where none has."""
    step = facts.by_step(intervals_of(*spans))
    if len(step) < FEW_STEPS or step.max() < ALONE * step.sum():
        return ""
    return step_labels(facts.analysis.steps.name)[facts.window.rows[int(step.argmax())]]


def _operator(facts: Facts) -> Iterator[Unexplained]:
    """Of a host that computes the one operator that takes a large part of the step."""
    nest = facts.context.op_nest
    inside = np.flatnonzero(facts.inside(nest.start))
    waits = facts.context.trace.strings.matches(facts.context.op_names[inside], is_peer_wait)
    inside = inside[~waits]
    each = group(facts.context.op_names[inside])
    time = each.sum(nest.own[inside])
    if len(each) and facts.share(facts.mean(int(time.max()))) >= LARGE:
        name = facts.context.op_names[inside[each.first[int(time.argmax())]]]
        share = min(facts.share(facts.mean(int(time.max()))), 1.0)
        yield Unexplained("host_op", share, "host_operator", facts.context.trace.strings.text(int(name)))


def _compute(facts: Facts) -> Iterator[Unexplained]:
    """What the recording tells of compute that no finding is about, where it is a large part of the step."""
    work, time = facts.once(computing), facts.amount_of("compute") or 0
    whole = int(work.time.sum())
    if facts.host_computes or not whole or time < LARGE * facts.step_time or facts.context.doubt == "only_sums":
        return
    share, calls = time / facts.step_time, facts.context.calls
    # What the host waits for in syncs and copies is not always recorded: at most it is all that computes meanwhile.
    waits = occurs(calls.klass, (ApiClass.SYNC, ApiClass.COPY))
    blocked = intervals.intersect(intervals.merge(calls.start[waits], calls.end[waits]), facts.windows)
    most = facts.mean(intervals.total(intervals.intersect(blocked, facts.busy(DeviceClass.COMPUTE))))
    # Without launches nothing tells what the device would wait for.
    if most < LARGE * time and not facts.missing("L"):
        most = min(time, most + saved(facts, shorter(facts.context, work.event, 1.0)))
        if most < LARGE * time:
            why = "compute_hidden_communication" if facts.communicates else "compute_hidden"
            yield Unexplained("compute", share, why, most=most / facts.step_time)
            return
    table, trace = facts.analysis.tables["op_rates"], facts.context.trace
    rates = () if table.absent is not None else table.records()
    reaching = [(one.device_time_ns, one.roofline_share) for one in rates if isinstance(one.roofline_share, float)]
    few = int(work.time[ratio_argument(facts.context, "blocks_per_sm", work.row) < 1].sum())
    call = facts.context.link[work.event]
    names = calls.name[np.maximum(call, 0)] if len(calls) else work.name
    graph = int(work.time[(call >= 0) & trace.strings.matches(names, GRAPH.search)].sum())
    # The rates are those of all devices.
    every = facts.context.once(device_work)
    total = int(every.time[facts.context.device.klass[every.event] == DeviceClass.COMPUTE].sum())
    rated = sum(each for each, _ in reaching)
    if few >= EXPLAINED * whole:
        yield Unexplained("compute", share, "compute_few_blocks", of=few / whole)
    elif rated >= LARGE * total:
        reached = sum(each * min(part, 1.0) for each, part in reaching) / rated
        yield Unexplained("compute", share, "compute_rated", of=min(rated / total, 1.0), reached=reached)
    else:
        recorded = {"shapes", "kernel_outputs"} & set(trace.events.fields)
        lacking = "shapes" if not recorded else "formulas" if facts.context.once(device_peaks) else "peaks"
        yield Unexplained("compute", share, f"compute_{'graphs' if graph >= EXPLAINED * whole else lacking}")


def _in_graphs(facts: Facts, spans: Intervals) -> Intervals:
    """What of some idle time lies before work of a graph that was launched before it."""
    context, gaps = facts.context, facts.context.once(idle_gaps)
    queued = np.flatnonzero((gaps.call >= 0) & (gaps.launch_end <= gaps.start))
    graph = context.trace.strings.matches(context.calls.name[gaps.call[queued]], GRAPH.search)
    return intervals.intersect(spans, intervals.merge(gaps.start[queued[graph]], gaps.end[queued[graph]]))


def explains(one: Finding) -> bool:
    """Whether it accounts for its time: not where that may be waiting, and overlap removes little of it at best."""
    unsure = any(each.label == WAIT_POSSIBLE for each in one.evidence)
    return not unsure or (one.most or 0) >= EXPLAINED * (one.cost or 0)


def owned(facts: Facts, findings: Sequence[Finding], told: Sequence[Unexplained]) -> tuple[Finding, ...]:
    """The findings, with one of medium severity about each large part that small ones explain together.

    It is the one that explains most of it. Not where the verdict says that a part is not explained, nor of what is done
    once.
    """
    found, named = list(findings), {"idle" if one.part in IDLE_GROUPS else one.part for one in told}
    once = sum(one.cost or 0 for one in found if one.once)
    for part, draws in _CLASSES.items():
        idle = draws == "idle"
        own = [one for one in found if one.draws.startswith(draws) or (idle and one.saving and not one.draws)]
        time = (facts.amount_of(draws) or 0) - idle * once
        small = [one for one in own if one.severity == Severity.LOW and one.worth]
        told_of = sum(one.explains or 0 for one in small)
        if part in named or time < SPLIT * facts.step_time or told_of < EXPLAINED * time or not small:
            continue
        if all((one.severity or 0) < Severity.MEDIUM for one in own):
            largest = max(small, key=lambda one: one.explains or 0)
            found[found.index(largest)] = replace(largest, severity=Severity.MEDIUM)
    return tuple(sorted(found, key=lambda one: one.order))


def _parts(facts: Facts) -> Iterator[tuple[str, Intervals]]:
    """Parts of the windows that need an owner if they are large, as sets; of idle time only those that are.

    Idle time whose causes are not measured is one part.
    """
    work = facts.once(computing)
    if facts.per_step(work.time[occurs(work.group, FUSIBLE)]) >= LARGE * facts.step_time:
        chosen, kept = facts.once(fusible_rows)
        known = "shapes" in facts.context.trace.events.fields
        spans = merged(work.spans(chosen[~kept]))
        yield "fusible" if known else "fusible_shapes", intervals.intersect(spans, facts.windows)
    compute, sent, moved = (facts.busy(each) for each in (DeviceClass.COMPUTE, DeviceClass.COMM, DeviceClass.MEM))
    yield "communication", intervals.intersect(intervals.subtract(sent, compute), facts.windows)
    yield "memory_ops", intervals.intersect(intervals.subtract(moved, intervals.union(compute, sent)), facts.windows)
    idle = facts.analysis.idle
    if not isinstance(idle, IdleCauses) or idle.missing:
        yield "idle", facts.clip(facts.idle())
        return
    for part, causes in IDLE_GROUPS.items():
        if facts.idle_mean(*causes) >= LARGE * facts.step_time:
            yield part, facts.merged(facts.idle(*causes))


def _of_host(facts: Facts) -> Iterator[tuple[str, Intervals]]:
    """The same of a host that computes, whose operators are the program's own work."""
    for part, cause in (
        ("data_loading", Cause.DATA_LOADING),
        ("peer_wait", Cause.PEER_WAIT),
        ("untraced", Cause.UNTRACED),
    ):
        yield part, merged(facts.host(cause))


def _tied(owners: Sequence[Finding]) -> Intervals:
    """The time that findings are tied to."""
    return merged(
        np.concatenate([np.zeros((0, 2), np.int64), *(one.intervals for one in owners if one.intervals is not None)])
    )


def _line(facts: Facts, spans: Intervals) -> str:
    """The line of Python in which the host is for most of some time; empty where there is none."""
    left = intervals_of(*spans)
    left = left[np.argsort(left[:, 0] - left[:, 1], kind="stable")][:LONGEST]
    return next(iter(lines_in(facts.context, facts.context.step_track, left)), "")


def _accounted(facts: Facts, part: str, within: Intervals, owners: Sequence[Finding]) -> int:
    """What findings, which are tied to this time of it, account for of a part, ns a step."""
    named = [one for one in owners if one.draws.startswith(_DRAWS.get(part, ("idle",)))]
    return max(facts.mean(intervals.total(within)), sum(max(one.cost or 0, one.saving or 0) for one in named))
