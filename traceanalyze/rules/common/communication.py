"""Collectives of the windows, one by one, for the rules about communication."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, shown_sizes, sizes, types
from traceanalyze.analyses.communication.parts import (
    MOVES,
    NETWORK,
    ON_DEVICE,
    SIBLINGS,
    beyond_larger,
    collective_parts,
    outlasting,
    went_over,
)
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.idle import LAUNCH_LATENCY_NS
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import Rows, occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import dataclass, regex
from traceanalyze.model.vocabulary import DeviceClass, Phase
from traceanalyze.replay.device import followers
from traceanalyze.replay.parts import shorter
from traceanalyze.rules.common.computing import largest, names_of, op_text
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.rule import Evidence, Facts, Finding, Scope, intervals_of


class Waits(NamedTuple):
    """Exposed time in which a rank is known to wait for others, from its own recording alone."""

    how: str
    """`tasks`: no collective moves data then (Ascend). `siblings`: what a collective takes beyond the median of those
    of its kind and size, where that is ten times as much. Empty: nothing tells."""
    spans: Intervals
    """Inside the windows."""
    time: NDArray[np.int64]
    """Of each collective, exposed or not."""
    slower: NDArray[np.int64] | None = None
    """Of each collective that takes twice as long as one of its kind and group that sent as much or more: beyond that.
    It waits for other ranks then, or for what these send."""


@dataclass(frozen=True, eq=False)
class Communicating:
    """Communication kernels of the headline device that begin in the windows, by start. Times int64 ns."""

    event: Rows
    """Position in `Context.device`."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    exposed: NDArray[np.int64]
    """Time of each with no compute beside it, no known waiting; an instant with several counts for each."""
    kind: NDArray[np.int64]
    """Position in `model.collectives.TYPES`."""
    size: NDArray[np.int64]
    """Bytes, -1 where not recorded."""
    ranks: NDArray[np.int64]
    """Of the group, -1 where not recorded."""
    track: NDArray[np.int64]
    """Thread that issued it, -1 where unknown."""
    issued: NDArray[np.int64]
    """When; 0 where unknown."""
    free: Intervals
    """Exposed communication in the windows, without what is known to be waiting: no rule saves that here."""
    waits: Waits

    def __len__(self) -> int:
        return len(self.event)

    @property
    def described(self) -> bool:
        """Whether the profile tells the size of any of them."""
        return bool((self.size >= 0).any())

    @property
    def time(self) -> NDArray[np.int64]:
        """Duration of each."""
        return self.end - self.start

    def exposed_spans(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n, 2) exposed time of the chosen ones."""
        return intervals_of(*intervals.intersect(intervals.merge(self.start[chosen], self.end[chosen]), self.free))

    def exposed_mean(self, facts: Facts, chosen: NDArray[np.bool_]) -> int:
        """Exposed time of the chosen ones, ns a step."""
        return facts.length(self.exposed_spans(chosen))

    def of_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Collectives of these types."""
        return occurs(self.kind, [TYPES.index(kind) for kind in kinds])


def communicating(facts: Facts) -> Communicating:
    """The collectives of a rank; use with `Facts.once`."""
    context = facts.context
    device, work = context.device, context.once(device_work)
    event = work.event[(facts.headline(DeviceClass.COMM) & facts.inside(device.start))[work.event]]
    described = description_rows(context, event)
    kind = types(context, event, described)
    start, end = device.start[event], device.end[event]
    size = sizes(context, described, kind)
    known = np.where(size < 0, shown_sizes(context, event, kind), size)
    waits = _waits(facts, event, kind, known, np.maximum(context.trace.events.numbers("group", described), -1))
    free = intervals.subtract(facts.once(exposed_communication), waits.spans)
    linked = context.link[event] >= 0
    call = np.maximum(context.issued_by[event], 0)
    calls = context.calls
    none = np.zeros(len(event), np.int64)
    return Communicating(
        event=event,
        start=start,
        end=end,
        exposed=intervals.coverage(free, start, end),
        kind=kind,
        size=size,
        ranks=np.maximum(context.trace.events.numbers("group_size", described), -1),
        track=np.where(linked, calls.track[call], -1) if len(calls) else none - 1,
        issued=np.where(linked, calls.start[call], 0) if len(calls) else none,
        free=free,
        waits=waits,
    )


def _waits(
    facts: Facts, event: Rows, kind: NDArray[np.int64], size: NDArray[np.int64], named: NDArray[np.int64]
) -> Waits:
    """By the tasks of the collectives, where all have them; else by what they take beyond their siblings."""
    device, parts, exposed = (
        facts.context.device,
        facts.context.once(collective_parts),
        facts.once(exposed_communication),
    )
    start, end = device.start[event], device.end[event]
    if parts is not None and len(event) and parts.recorded[event].all():
        time = end - start - parts.by_event(parts.end - parts.start)[event]
        return Waits("tasks", intervals.subtract(exposed, intervals.merge(parts.start, parts.end)), time)
    time = outlasting(kind, size, named, end - start)
    slower = np.maximum(time, beyond_larger(kind, size, named, end - start, least=2))
    if not time.any():
        return Waits("", intervals.EMPTY, time, slower)
    # The transfer is what comes last: it begins when all are there.
    return Waits("siblings", intervals.intersect(exposed, intervals.merge(start, start + time)), time, slower)


WAIT_POSSIBLE = "wait_possible"
"""Evidence: exposed communication that may be waiting for ranks beside whose recordings this one was not judged."""


def perhaps_waiting(facts: Facts) -> int:
    """Exposed communication that may be waiting, for all that one rank's recording tells, ns a step.

    For certain moves data only what the shortest of some collectives of one type and size needs, within a step: the
    others have waited before it for whoever is late.
    """
    work = facts.once(communicating)
    if work.waits.how == "tasks" or not len(work):
        return 0
    rows = group(np.searchsorted(facts.edges[0], work.start, "right"), work.kind, work.size, work.ranks)
    shortest = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(shortest, rows.of, work.time)
    judged = (work.size >= 0) & (rows.count()[rows.of] >= SIBLINGS)
    moving = np.where(work.ranks == 1, work.time, np.where(judged, shortest[rows.of], 0))
    certain = work.exposed * (np.minimum(moving, work.time) / np.maximum(work.time, 1))
    return max(0, facts.length(intervals_of(*work.free)) - facts.per_step(np.round(certain).astype(np.int64)))


REPEATED = 4
"""Own: so many collectives a step in the same place of a chain are its layers, not a metric or a last bucket."""
ALONE = 0.9
"""Own: of the time of a collective on a chain; the edges of kernels beside it are no overlap."""
BETWEEN = 0.25
"""Own: compute that follows a collective of a chain, over its time; what scales gradients between reductions takes
less, by the bandwidths of memory and links."""


def chained(facts: Facts) -> NDArray[np.bool_]:
    """Which of `Communicating` lie between kernels that depend on each other, layer after layer; with `Facts.once`.

    Tensor, sequence and expert parallel programs send what one kernel made and the next one needs: the collective has
    the device to itself, and what computes after it waits for it. Parameters are gathered like that only where the
    queue held the collective until compute before it had ended: else it could have begun sooner.
    """
    work, device = facts.once(communicating), facts.context.device
    other = np.flatnonzero(facts.headline(DeviceClass.COMPUTE) | facts.headline(DeviceClass.MEM))
    if not len(work) or not len(other):
        return np.zeros(len(work), np.bool_)
    follows = facts.context.once(followers)
    after = np.searchsorted(device.start[other], work.end)
    known = after < len(other)
    after = other[np.minimum(after, len(other) - 1)]
    held = known & occurs(_pair(work.event, after), _pair(follows.source, follows.event))
    parameters = work.of_kind("all_gather", "reduce_scatter", "broadcast")
    alone = work.exposed + work.waits.time >= ALONE * work.time
    until = np.append(work.start[1:], facts.edges[1][-1:])
    follow = intervals.coverage(facts.busy(DeviceClass.COMPUTE), work.end, np.maximum(until, work.end))
    found: NDArray[np.bool_] = held & alone & (facts.once(_queued) | ~parameters) & (follow >= BETWEEN * work.time)
    places = group(work.kind[found], device.name[after[found]])
    found[found] = (places.count() >= REPEATED * facts.window.count)[places.of]
    return found


def _queued(facts: Facts) -> NDArray[np.bool_]:
    """Which of `Communicating` the queue held until compute or a copy before them had ended."""
    work, device, follows = facts.once(communicating), facts.context.device, facts.context.once(followers)
    other = np.flatnonzero(facts.headline(DeviceClass.COMPUTE) | facts.headline(DeviceClass.MEM))
    before = np.full(len(device), np.iinfo(np.int64).min)
    own = occurs(follows.source, other)
    np.maximum.at(before, follows.event[own], device.end[follows.source[own]])
    late = work.start - before[work.event] <= LAUNCH_LATENCY_NS
    found: NDArray[np.bool_] = (work.issued < before[work.event]) & late
    return found


def needing_compute(facts: Facts) -> NDArray[np.bool_]:
    """Which of `Communicating` may send what compute right before them made, so that none before could hide them.

    Not gradients, which all but the last part of the backward pass hides, nor parameters that did not wait for compute,
    nor what is sent to nobody.
    """
    work = facts.once(communicating)
    found: NDArray[np.bool_] = (work.ranks != 1) & ~(work.of_kind("all_gather", "broadcast") & ~facts.once(_queued))
    reduced = found & work.of_kind("all_reduce", "reduce_scatter") & ~facts.once(chained)
    found[reduced] = ~names_under(facts, facts.context.event_op[work.event[reduced]], BACKWARD)
    return found


def _pair(first: Rows, second: Rows) -> NDArray[np.int64]:
    return (first.astype(np.int64) << 32) | second


def exposed_communication(facts: Facts) -> Intervals:
    """Time in the windows in which the headline device communicates and computes nothing; use with `Facts.once`."""
    alone = intervals.subtract(facts.busy(DeviceClass.COMM), facts.busy(DeviceClass.COMPUTE))
    return intervals.intersect(alone, facts.windows)


def comm_finding(
    facts: Facts,
    chosen: NDArray[np.bool_],
    evidence: tuple[Evidence, ...],
    *,
    saving: int,
    bound: int | None = None,
    about: str = "",
    count: int | None = None,
) -> Finding:
    """Some collectives that nothing hides, `chosen` among those of `communicating`.

    `bound` is all their exposed time by default, `about` their kernels with most exposed time, `count` how many they
    are.
    """
    work = facts.once(communicating)
    spans = work.exposed_spans(chosen)
    names = facts.context.device.name[work.event[chosen]]
    exposed = facts.length(spans)
    bound = exposed if bound is None else bound
    at_best = shorter(
        facts.context, work.event[chosen], (work.exposed / np.maximum(work.time, 1))[chosen] * bound / max(exposed, 1)
    )
    return Finding(
        saving=saving,
        bound=bound,
        between=(at_best,) if bound > saving else (),
        draws="comm_exposed",
        intervals=spans,
        evidence=evidence,
        scope=Scope(ops=(about,) if about else names_of(facts, names, work.exposed[chosen])),
        count=int(chosen.sum()) if count is None else count,
    )


NEEDING = "needs_compute"
"""Evidence: exposed communication that could be hidden unless it needs what compute right before it made."""
AS_FAST = "as_fast"
"""Evidence: what it would take at most, as fast as collectives of as many bytes or more in the same recording."""
BACKWARD = r"^autograd::|Backward\d*$"
BUCKET, FIRST_BUCKET = 25 * 2**20, 2**20
"""Bytes that DistributedDataParallel reduces at once by default (`bucket_cap_mb`), and those of the first bucket."""
WHOLE = 0.01
"""Own: bytes of a gradient's element come out as a whole number, but for buckets that are filled up."""
_ACCUMULATES = regex(r"torch::autograd::AccumulateGrad$")
LAST_BUCKET = "last_bucket"
"""Evidence: what stays exposed when all other gradients are reduced during the backward pass."""


def gradients(facts: Facts) -> NDArray[np.bool_]:
    """Which of `Communicating` reduce gradients: reductions of a known size that the backward pass asks for."""
    work = facts.once(communicating)
    found: NDArray[np.bool_] = work.of_kind("all_reduce", "reduce_scatter") & (work.size > 0)
    found &= ~facts.once(chained)
    found[found] = names_under(facts, facts.context.event_op[work.event[found]], BACKWARD)
    return found


def hideable(facts: Facts, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], int]:
    """Exposed time of reductions of gradients that their own backward pass could hide, by step; and the last bucket.

    In buckets of the default size: the last one is ready when nothing is left to compute, so it stays exposed; and the
    first one is not before its share of the backward pass is over, so that much of the pass, gaps included, hides
    nothing. Passes before it, whose gradients are only added up, hide nothing of it.
    """
    work, device, phase = facts.once(communicating), facts.context.device, facts.context.once(event_phases)
    rows = np.flatnonzero(facts.headline(DeviceClass.COMPUTE) & occurs(phase, (Phase.FORWARD, Phase.BACKWARD)))
    back = phase[rows] == Phase.BACKWARD
    begun = device.start[rows[back & ~np.append(False, back[:-1])]]

    def by_pass(start: NDArray[np.int64], amount: NDArray[np.int64]) -> NDArray[np.float64]:
        every: NDArray[np.float64] = np.zeros(len(begun) + 1)
        np.add.at(every, np.searchsorted(begun, start, "right"), amount)
        return every

    size, time = (by_pass(work.start[chosen], each[chosen]) for each in (work.size, work.time - work.waits.time))
    exposed = work.exposed_spans(chosen)
    every = intervals.merge(work.start[chosen], work.end[chosen])
    # What ran beside their waiting is over when the last rank has come.
    beside = intervals_of(*intervals.intersect(every, facts.busy(DeviceClass.COMPUTE)))
    taken = by_pass(beside[:, 0], beside[:, 1] - beside[:, 0])
    room, shown = np.zeros(len(begun) + 1), by_pass(exposed[:, 0], exposed[:, 1] - exposed[:, 0])
    pass_of = intervals.passed(begun, device.start[rows[back]]) - 1
    np.maximum.at(room[1:], pass_of, device.end[rows[back]].astype(np.float64))
    room[1:] -= begun
    part = np.minimum(1.0, BUCKET / np.maximum(size, 1))
    last = np.minimum(shown, time * part)
    hidden = np.maximum(0, np.minimum(shown - last, room * (1 - part) - taken))
    over = begun + room[1:].astype(np.int64)
    gained, bucket = _by_buckets(facts, chosen, begun, over, size[1:], time[1:])
    # What stands in gaps of the pass itself holds nothing up.
    after = exposed[exposed[:, 0] >= np.append(0, over)[np.searchsorted(begun, exposed[:, 0], "right")]]
    behind = by_pass(after[:, 0], after[:, 1] - after[:, 0])
    hidden[1:] = np.where(bucket < 0, hidden[1:], np.minimum(behind[1:], gained))
    last[1:] = np.where(bucket < 0, last[1:], np.minimum(shown[1:], bucket))
    step = np.maximum(np.searchsorted(facts.edges[0], np.append(begun[:1], begun), "right") - 1, 0)
    found = np.zeros(len(facts.edges[0]), np.int64)
    np.add.at(found, step if len(begun) else [0], np.round(hidden).astype(np.int64))
    return found, facts.mean(round(float(last.sum())))


def _by_buckets(
    facts: Facts,
    chosen: NDArray[np.bool_],
    begun: NDArray[np.int64],
    over: NDArray[np.int64],
    size: NDArray[np.float64],
    time: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much sooner the gradients of each backward pass are reduced in DistributedDataParallel's own buckets.

    Sooner than now, if nobody waited. And how long the last bucket takes; negative where the recording lacks the shapes
    of what is accumulated. `begun`, `over`: of the passes on the device; `size`, `time`: of their reductions, `chosen`.
    """
    context, work = facts.context, facts.once(communicating)
    launched = np.flatnonzero(facts.headline(DeviceClass.COMPUTE) & (context.issued_by >= 0))
    issued = context.calls.start[context.issued_by[launched]]
    order = np.argsort(issued, kind="stable")
    done = np.append(0, np.maximum.accumulate(context.device.end[launched[order]]))

    def in_turn(asked: NDArray[np.int64], amount: NDArray[np.int64]) -> tuple[list[int], list[int], list[int]]:
        """When what was asked for before is done; amounts in that order; and where in it each pass begins and ends."""
        ready = np.maximum(asked, done[np.searchsorted(issued[order], asked)])
        turn = np.argsort(ready, kind="stable")
        bounds = np.append(np.searchsorted(ready[turn], begun), len(turn))
        return ready[turn].tolist(), amount[turn].tolist(), bounds.tolist()

    place = np.flatnonzero(context.trace.strings.matches(context.op_names, _ACCUMULATES.match))
    elements = op_text(facts, "shapes", context.op_nest.rows(place), largest, 0)
    ready, counts, bounds = in_turn(context.op_nest.start[place], elements)
    since, lengths, sent = in_turn(work.issued[chosen], (work.time - work.waits.time)[chosen])
    gained, last = [0.0] * len(begun), [-1.0] * len(begun)
    passes = zip(pairwise(bounds), pairwise(sent), size.tolist(), time.tolist(), over.tolist(), strict=True)
    for one, ((low, high), reduced, whole, length, pass_over) in enumerate(passes):
        each = whole / max(sum(counts[low:high]), 1)
        if low == high or abs(each - round(each)) > WHOLE * each or round(each) not in {1, 2, 4, 8}:
            continue
        end, filled, room = 0.0, 0.0, FIRST_BUCKET
        for at, count in enumerate(counts[low:high], low):
            filled += count * each
            if filled >= room or at + 1 == high:
                last[one] = length * filled / whole
                end, filled, room = max(end, ready[at]) + last[one], 0.0, BUCKET
        before = 0
        for at in range(*reduced):
            before = max(before, since[at]) + lengths[at]
        gained[one] = max(0.0, before - max(end, pass_over))
    return np.array(gained, np.float64), np.array(last, np.float64)


@dataclass(frozen=True, eq=False)
class Transfers:
    """One row a task; times int64 ns."""

    start: NDArray[np.int64]
    time: NDArray[np.int64]
    size: NDArray[np.int64]
    """Bytes; negative where not recorded."""
    network: NDArray[np.bool_]
    """Over a network (RDMA, RoCE)."""
    inside: NDArray[np.bool_]
    """On the device itself, not to another one."""

    def __len__(self) -> int:
        return len(self.start)

    def longest(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        """Start and end of the longest of some tasks, of which there must be one."""
        at = int(np.argmax(np.where(chosen, self.time, -1)))
        return int(self.start[at]), int(self.start[at] + self.time[at])

    def spans(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n, 2) intervals of some tasks."""
        return intervals_of(self.start[chosen], (self.start + self.time)[chosen])


def transfers(facts: Facts) -> Transfers | None:
    """The tasks of a rank, None where none are recorded; use with `Facts.once`."""
    trace = facts.context.trace
    column = trace.events.fields.get("part_of")
    if column is None or not len(column.row):
        return None
    row = column.row.astype(np.int64)
    names = trace.strings.lookup(trace.events.name[row], lambda text: MOVES.match(text) is not None)
    row = row[names.astype(np.bool_) & facts.inside(trace.events.ts[row])]
    source, target = (facts.context.trace.events.numbers(name, row) for name in ("src_rank", "dst_rank"))
    return Transfers(
        start=trace.events.ts[row],
        time=trace.events.dur[row],
        size=facts.context.trace.events.numbers("bytes", row),
        network=went_over(facts.context, row, NETWORK),
        inside=went_over(facts.context, row, ON_DEVICE) | ((source == target) & (source >= 0)),
    )
