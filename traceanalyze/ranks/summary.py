"""One rank as the little that the comparison of ranks needs of it."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, listed_ranks, ranks_label, sizes, types
from traceanalyze.analyses.communication.parts import collective_parts, collective_tasks
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.computes import host_computes
from traceanalyze.analyses.idle.gc_pauses import may_pause, recorded_pauses
from traceanalyze.analyses.idle.host_state import host_split, peers_unknown
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.idle.pauses import constant_pauses
from traceanalyze.analyses.kernels.work import work_times
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.partition import own_start
from traceanalyze.analyses.steps.steps import owners
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import Rows, narrow, narrowed, rows_of, taken
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import IDLE_PARTS, DeviceClass, EventKind, Mode
from traceanalyze.ranks.links import MOST_RANKS, link_traffic, networked_groups
from traceanalyze.ranks.pipeline import stages
from traceanalyze.ranks.results import Group, KernelTimes, RankCollectives, RankSummary, members_of
from traceanalyze.ranks.sends import partners
from traceanalyze.ranks.spread import ran

_OWN = regex(r"RANK|DEVICE|VISIBLE|PORT|PATH|HOME|_IP|IFNAME|SOCKET|LOG_DIR|WORK_DIR|CACHE_DIR|WHITELIST")
"""Variables that differ between ranks by their nature."""


def recording(context: Context) -> dict[str, str]:
    """What was recorded, by the header or by what is there: stacks, shapes, memory; on Ascend the level, too."""
    trace = context.trace
    stated = trace.options
    shown = {
        "with_stack": bool((context.kind == int(EventKind.PYTHON)).any()),
        "record_shapes": "shapes" in trace.events.fields,
        "profile_memory": "bytes" in trace.instants.fields,
    }
    found = {name: "on" if stated.get(name, False) or there else "off" for name, there in shown.items()}
    return found | ({"level": trace.origin.level} if trace.origin.level else {})


LEAST_RUNS = 3
"""Fewer runs of a kernel have no usual time."""
MOST = 64
"""Kernels kept of a rank, longest first: they are sent between processes."""
LEAST_NS = 5_000
"""Shorter kernels take as long as the device needs to start them, at any clock rate."""


def kernel_times(context: Context) -> KernelTimes:
    """Compute kernels of the headline device that run alone: name, shapes and launch configuration tell what is same.

    Kernels beside communication are left out: they share the device with it, and ranks that wait for others have more
    of them. Empty where neither shapes nor launch configurations are recorded, as a name alone does not tell the work.
    """
    fields = context.trace.events.fields
    if not context.devices or not {"shapes", "kernel_shapes", "grid"} & set(fields):
        return KernelTimes()
    device, (event, time, op) = context.device, context.once(work_times)
    busy = context.class_sets(context.devices[0])[DeviceClass.COMM]
    alone = np.zeros(len(device), np.bool_)
    own = device.of(context.devices[0], DeviceClass.COMPUTE)
    alone[own] = intervals.coverage(busy, device.start[own], device.end[own]) == 0
    chosen = np.flatnonzero(taken(alone, event) & (time >= LEAST_NS))
    event, time, op = event[chosen], time[chosen], op[chosen]
    row, names = taken(device.row, event), taken(device.name, event)
    shape = context.trace.events.numbers("shapes", op, -1)
    shape = np.where(shape < 0, context.trace.events.numbers("kernel_shapes", row, -1), shape)
    grid = context.trace.events.numbers("grid", row, -1)
    rows = group(names, shape, grid)
    count, total = rows.count(), rows.sum(time)
    known = (count >= LEAST_RUNS) & ((shape[rows.first] >= 0) | (grid[rows.first] >= 0))
    longest = np.argsort(-np.where(known, total, -1), kind="stable")[:MOST]
    longest = longest[known[longest]]
    first, texts = rows.first[longest], context.trace.strings.texts
    counts, totals = count[longest], total[longest]
    ordered, end = time[np.argsort(narrow(rows.of), kind="stable")], np.cumsum(count)[longest]
    for last, size in zip(end.tolist(), counts.tolist(), strict=True):
        ordered[last - size : last].partition(size // 2)
    # The text of code 0 is empty.
    what = map(" ".join, zip(*(texts(np.maximum(each[first], 0)) for each in (shape, grid)), strict=True))
    medians = ordered[end - counts + counts // 2]
    return KernelTimes(tuple(texts(names[first])), tuple(what), counts, totals, medians)


_IDLE = {"device_gap" if key == "device_side" else key: causes for key, causes in IDLE_PARTS.items()}
"""Parts of the step: those that may make a rank late, and its waiting for other ranks on the host."""


def summarize(context: Context, analysis: RankAnalysis, *, spread: bool = True) -> RankSummary:
    """What the comparison needs of one rank; arrays over its steps and its collectives only."""
    trace, steps = context.trace, analysis.steps
    events = rows_of(context.device.klass, DeviceClass.COMM)
    described = description_rows(context, events)
    groups, of = _groups(context, events, described)
    collectives = _collectives(context, events, described, of)
    return RankSummary(
        rank=trace.origin.rank,
        label="" if trace.origin.rank is None else str(trace.origin.rank),
        world_size=trace.origin.world_size,
        steps=steps.name,
        marked=analysis.mode == Mode.STEPS,
        counted=steps.counted,
        started=0 if steps.starting is None else int((steps.starting & steps.complete).sum()),
        step_time=steps.time,
        parts={key: narrowed(time) for key, time in _parts(context, analysis).items()},
        groups=groups,
        collectives=collectives,
        partners=partners(context, collectives),
        inside=trace.origin.format == "ascend",
        links=link_traffic(context),
        group_names={name: members_of(ranks) for name, ranks in trace.groups.items()},
        host=trace.origin.host,
        device=(trace.device_name(context.devices[0]) if context.devices else None) or "",
        recorded=recording(context),
        environment=None
        if trace.environment is None
        else {name: value for name, value in trace.environment.items() if not _OWN.search(name)},
        kernels=kernel_times(context),
        networked=networked_groups(context, events, groups, of),
        host_computes=context.once(host_computes),
        ran=ran(context)._replace(stages=stages(context, collectives.event)) if spread else None,
    )


def _parts(context: Context, analysis: RankAnalysis) -> dict[str, NDArray[np.int64]]:
    """Parts of every step that the recording tells; without a device how long the host waits for others."""
    if not analysis.partitions:
        return _parts_of_host(context) if context.once(host_computes) else {}
    main = analysis.partitions[0]
    parts = {"compute": main.compute, "communication": main.comm_exposed, "memory_ops": main.mem_exposed}
    parts = {part: times for part, times in parts.items() if part not in context.unmeasured}
    idle = analysis.idle
    if isinstance(idle, IdleCauses):
        parts |= {
            key: idle.by_step[:, list(causes)].sum(axis=1)
            for key, causes in _IDLE.items()
            if not any(cause in idle.missing for cause in causes)
        }
    recorded = context.once(recorded_pauses)
    if recorded is not None or may_pause(context):
        parts["gc"] = np.zeros(len(analysis.steps), np.int64)
        if recorded is not None:
            row = {label: at for at, label in enumerate(step_labels(analysis.steps.name))}
            for pause in recorded.records():
                if pause.step is not None:
                    parts["gc"][row[pause.step]] += pause.idle_ns
    parts["pause"] = intervals.coverage(constant_pauses(context), analysis.steps.start, analysis.steps.end)
    return parts


def _parts_of_host(context: Context) -> dict[str, NDArray[np.int64]]:
    """The same where the host computes: its operators are the compute."""
    host = context.once(host_split)
    if isinstance(host, NotMeasured):
        return {}
    parts = {"compute": host.host_op, "data_loading": host.data_loading, "untraced": host.untraced}
    return parts | ({"peer_wait": host.peer_wait} if context.once(peers_unknown) is None else {})


def _collectives(
    context: Context, events: NDArray[np.int64], described: Rows, of: NDArray[np.int64]
) -> RankCollectives:
    """Collectives in the order of the program, which is the same on all ranks; that of the device need not be."""
    device, base = context.device, context.trace.base_ns
    requested, known = context.ownership
    order = np.lexsort((device.start[events], np.where(known, requested, device.start)[events]))
    exposed = _exposed(context, events)[order]
    events, described, of = events[order], described[order], of[order]
    kind = types(context, events, described)
    parts = context.once(collective_parts)
    moved, waited_for = np.full((2, len(events)), -1, np.int64)
    if parts is not None:
        waited_for = parts.waited_for[events]
        moved = np.where(parts.recorded, parts.by_event(parts.end - parts.start), -1)[events]
    size = sizes(context, described, kind)
    step = requesting_step(context, events) if len(events) else events
    start, end = base + device.start[events], base + device.end[events]
    numbers = of, kind, size, step, exposed, moved, waited_for, events
    of, kind, size, step, *rest = map(narrowed, numbers)
    return RankCollectives(of, kind, size, step, start, end, *rest)


def _exposed(context: Context, events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time of each collective that counts for it alone, with no compute beside it (definitions §4)."""
    device, found = context.device, np.zeros(len(events), np.int64)
    windows = intervals.merge(context.all_steps.start, context.all_steps.end)
    for one in context.devices if len(events) else ():
        own = np.flatnonzero(device.device[events] == one)
        start, end = device.start[events[own]], device.end[events[own]]
        free = intervals.subtract(windows, context.class_sets(one)[DeviceClass.COMPUTE])
        found[own] = intervals.coverage(free, own_start(start, end), end)
    return found


def requesting_step(context: Context, events: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
    """Row of the analysed step that asked for each device event, else of the one it begins in; -1 for none.

    Without markers the whole trace is the only step.
    """
    steps, start = context.steps, context.device.start[events]
    if context.markers is None:
        return np.zeros(len(start), np.int64)
    every = context.all_steps
    at = np.minimum(intervals.passed(every.end, start), len(every) - 1)
    inside = (start >= every.start[at]) & (start < every.end[at])
    requested, known = context.ownership
    requested, known = requested[events], known[events]
    owner = np.where(known, owners(context.markers, start, requested, known), np.where(inside, at, -1))
    chosen = np.searchsorted(steps.host_start, every.host_start)
    row = np.minimum(chosen, max(len(steps) - 1, 0))
    row = np.where(steps.host_start[row] == every.host_start, row, -1) if len(steps) else np.full(len(every), -1)
    return np.where(owner >= 0, row[owner], -1)


def _groups(
    context: Context, events: NDArray[np.int64], described: Rows
) -> tuple[tuple[Group, ...], NDArray[np.int64]]:
    """Groups by their ranks, else their name; and the group of each collective."""
    ranks, name, size = (
        np.maximum(context.trace.events.numbers(field, described), -1)
        for field in ("group_ranks", "group", "group_size")
    )
    rows = group(np.where(ranks >= 0, ranks, name))
    peers, linked = _peers(context, events), _linked(context.trace)
    text = context.trace.strings.text
    labels: dict[str, int] = {}
    found: list[Group] = []
    place = []
    for index, first in enumerate(rows.first.tolist()):
        code = int(ranks[first] if ranks[first] >= 0 else name[first])
        written = text(code) if code >= 0 else ""
        label = ranks_label(written)
        listed = tuple(listed_ranks(written)) if ranks[first] >= 0 else ()
        of_header = () if listed else context.trace.groups.get(written, ())
        own, count = rows.of == index, max(len(listed), len(of_header))
        ranks_known = max(int(size[own].max()), int(peers[own].max()) + 1, count, linked.get(written, 0))
        if label not in labels:
            labels[label] = len(found)
            # Of a header a part of them would pass for all.
            listed = listed or (of_header if count == ranks_known else ())
            found.append(Group(label, members_of(listed), ranks_known))
        place.append(labels[label])
    return tuple(found), np.array(place, np.int64)[rows.of]


def _linked(trace: Trace) -> dict[str, int]:
    """By group, how many ranks the profile's own table of links names at least."""
    found: dict[str, int] = {}
    for link in () if trace.vendor_collectives is None else trace.vendor_collectives.links:
        found[link.group] = max(found.get(link.group, 0), link.source + 1, link.target + 1)
    return found


def _peers(context: Context, events: NDArray[np.int64]) -> NDArray[np.int64]:
    """Highest rank that the tasks of each collective name, -1 for none: so many ranks there are at least."""
    highest = np.full(len(context.device), -1, np.int64)
    row, event = collective_tasks(context)
    for field in ("src_rank", "dst_rank"):
        rank = context.trace.events.numbers(field, row)
        sane = (rank >= 0) & (rank < MOST_RANKS)
        np.maximum.at(highest, event[sane], rank[sane])
    return highest[events]
