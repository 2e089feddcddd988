"""What findings save: the steps without what each of them names, as the one replay answers it.

A rule states what would change (`Finding.change`), or by how much a class of time would be shorter (`saving`, `draws`
and `intervals`): kernels, communication and copies in proportion, or the host's time while the device is idle.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.idle import Gaps, idle_gaps
from traceanalyze.model import intervals
from traceanalyze.model.intervals import EMPTY, Intervals
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.replay.parts import last_part
from traceanalyze.replay.replay import Change, counted_windows, together
from traceanalyze.rules.common.launching import FEW_STEPS, excerpt
from traceanalyze.rules.common.replay import gained, saved
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Confidence, Finding, Severity, intervals_of

WITHIN, WITHIN_STEP = 0.12, 0.004
"""By so much of itself, and at least of the step, a saving may be off where its inputs are certain: caches, clocks and
what else another run of a program does differently."""
OVER = 1.08
"""By so much at most idle time that is gone saves more than itself."""
OF_EXCERPT = 0.2
"""Part of the compute of an excerpt from which on what costs it is no small matter."""
SMALL = 0.05
"""Of the step: what is worth less is a small matter."""
LEAST_SHARE = 0.01
"""Of the step: what saves less is not worth a row."""
MANY = 10
"""What saves more than so many times the idle time that it causes rests on what the replay takes for granted."""
UNRECORDED = "COM120"
"""The rule that finds waiting for ranks of which nothing was recorded."""
LINKED = 0.95
"""Of the device events: where fewer have their launches, a replay does not prove what it says."""
_DEVICE = {"compute": DeviceClass.COMPUTE, "comm_exposed": DeviceClass.COMM, "mem_exposed": DeviceClass.MEM}

_WORK = {"compute", "host", "host.ops"}


class Price(NamedTuple):
    """A finding with its saving and range."""

    finding: Finding
    spans: Intervals
    """Time that it is about, in the windows."""
    gone: NDArray[np.int64]
    """Of each of `idle_gaps`, what would be gone."""
    steps: NDArray[np.int64] | None = None
    """By how much each of the windows would be shorter, ns; None where it was not replayed."""
    stated: Finding | None = None
    """As its rule states it, where the ends of its range are still to be replayed (`ranged`)."""

    def time(self, gaps: Gaps) -> Intervals:
        """Time of which it saves some."""
        here = np.flatnonzero(self.gone)
        end = gaps.end[here]
        return intervals.union(self.spans, Intervals(end - self.gone[here], end))


def gaps_of(facts: Facts) -> Gaps:
    """Idle gaps of the headline device; none where there is no device."""
    none, nowhere = np.zeros(0, np.int64), np.zeros(0, np.int32)
    empty = Gaps(none, none, nowhere, nowhere, none, none)
    return facts.context.once(idle_gaps) if facts.context.devices else empty


def priced(one: Finding, facts: Facts, worth: Callable[[int], bool] = lambda _: True) -> Price:
    """The finding at the price of the replay, without its range; at its own where nothing stated can be replayed.

    Of a saving that is not worth it that is all.
    """
    spans = EMPTY if one.intervals is None else facts.clip(one.intervals)
    gaps = gaps_of(facts)
    none = np.zeros(len(gaps), np.int64)
    change = derived(one, spans, facts) if one.change is None else one.change
    if one.draws == "compute" and one.saving and facts.once(excerpt):
        return Price(_of_excerpt(one, facts), spans, none)
    if one.once or (one.saving is None and change is None):
        return Price(one, spans, none)
    if change is None:
        return Price(_ranged(_with_cost(one, spans, facts), one.saving or 0, (), facts), spans, none)
    gain = gained(facts, change, worth)
    if gain.idle is None:
        return Price(replace(one, change=change, saving=gain.saving), spans, none, gain.steps)
    saving = gain.saving if one.change is not None else min(gain.saving, one.saving or 0)
    if not len(change.events) and facts.context.devices:
        # That kernels of several streams would run beside each other at full speed is not to be expected.
        saving = min(saving, facts.amount_of("idle") or 0)
    gone = none.copy()
    gone[intervals.passed(gaps.end, gain.idle.end) - 1] = intervals.coverage(facts.windows, *gain.idle)
    if not len(spans.start) and 2 * facts.mean(int(gone.sum())) >= saving:
        spans = facts.clip(intervals_of(*gain.idle))
    if one.intervals is not None or len(spans.start):
        one = replace(one, intervals=intervals_of(*spans))
    one = _with_cost(one, spans, facts)
    return Price(replace(one, change=change, saving=saving), spans, gone, gain.steps, one)


def ranged(price: Price, facts: Facts) -> Price:
    """With the ends of the saving's range; what is not worth a row is not asked for them."""
    if price.stated is None:
        return price
    one, change, saving = price.stated, price.finding.change, price.finding.saving or 0
    between = tuple(saved(facts, each) for each in one.between)
    wide = one.draws.startswith("idle") or (one.draws == "comm_exposed" and one.low is not None)
    if one.change is None and wide and (one.bound or 0) > (one.saving or 0):
        whole = derived(replace(one, saving=one.bound), price.spans, facts)
        between += () if whole is None else (min(saved(facts, whole), one.bound or 0),)
    return price._replace(finding=_ranged(replace(one, change=change), saving, between, facts), stated=None)


def lasting(gains: NDArray[np.int64], step: int, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """By how much the windows (last axis) are shorter, ns, as in a long run: without the first if nothing else is.

    The first recorded one, if it is `counted`, begins on an idle device; what it alone gains the others lose again.
    """
    if gains.shape[-1] < FEW_STEPS or not counted[0]:
        return gains
    later = gains[..., 1:]
    return later if later.mean() < LEAST_SHARE * step <= gains.mean() else gains


def passing(price: Price, facts: Facts) -> bool:
    """Whether next to nothing is gained but in the first step (`lasting`)."""
    steps, counted = price.steps, facts.context.once(counted_windows)
    return steps is not None and len(lasting(steps, facts.step_time, counted)) < len(steps)


def _with_cost(one: Finding, spans: Intervals, facts: Facts) -> Finding:
    """With the time that it is about as its cost, where its rule states none and it is not work that must be done."""
    known = one.cost is not None or one.draws in _WORK or not len(spans.start)
    return one if known else replace(one, cost=facts.mean(intervals.total(spans)))


def _of_excerpt(one: Finding, facts: Facts) -> Finding:
    """Device time that is too long by the rule: an excerpt shows what kernels take, but not what waits for them."""
    cost, busy = one.saving or 0, max((facts.amount_of("compute") or 0), 1)
    large = cost >= OF_EXCERPT * busy and facts.share(cost) >= SMALL
    severity = Severity.MEDIUM if large else Severity.LOW
    confidence = min(one.confidence or Confidence.LOW, Confidence.MEDIUM)
    one = replace(one, saving=None, low=None, bound=None, change=None, between=())
    return replace(one, cost=cost, severity=severity, confidence=confidence)


def derived(one: Finding, spans: Intervals, facts: Facts) -> Change | None:
    """What would change by what a rule says of a class of time; None where that cannot be replayed."""
    if not one.saving or one.intervals is None or facts.host_computes or not facts.context.devices:
        return None
    saving = one.saving * facts.window.count
    if one.draws in _DEVICE:
        device = facts.context.device
        event = np.flatnonzero(facts.headline(_DEVICE[one.draws]) & (device.end > device.start))
        inside = intervals.coverage(spans, device.start[event], device.end[event])
        event, inside = event[inside > 0], inside[inside > 0]
        part = min(1.0, saving / max(int(inside.sum()), 1))
        return Change(events=event, shorter=np.round(inside * part).astype(np.int64)) if len(event) else None
    if one.draws.startswith("idle") and one.draws != "idle.device_side":
        idle = intervals.intersect(spans, facts.idle_time)
        return Change(last_part(idle, saving / max(intervals.total(idle), 1)))
    return None


def _ranged(one: Finding, saving: int, between: tuple[int, ...], facts: Facts) -> Finding:
    """The finding with a saving in ns a step, the ends of its range, and no more confidence than these allow.

    `one.bound` is what it can save at most by its rule, if that is more than the rule claims; `between` what it may be
    in the worst and in the best case, where its inputs are uncertain.
    """
    if one.at_least is not None:
        one = replace(one, low=one.at_least(), at_least=None)
    room = room_of(saving, facts.step_time)
    busy, device = one.change is not None and len(one.change.events) > 0, facts.context.device
    most = facts.step_time if busy else facts.amount_of(one.draws)
    if one.change is None and one.bound is not None and one.bound > (one.saving or 0):
        most = min(one.bound, one.bound if most is None else most)
    if one.change is not None and not busy and one.draws.startswith("idle") and one.intervals is not None:
        # Idle time that is gone saves hardly more than itself, or than the replay gains of gaps after it: no more where
        # its rule says so of what the host does meanwhile.
        over = 1.0 if one.draws == "idle.untraced" and one.bound == one.cost else OVER
        most = min(facts.step_time if most is None else most, round(over * max(facts.length(one.intervals), saving)))
    if busy and one.change is not None and one.draws == "compute":
        # Kernels save no more than they take and, where they are gone, the gaps after them; unless they make room for
        # late launches.
        known = (one.bound, facts.amount_of("compute"))
        limit = min(facts.step_time, *(each for each in known if each is not None))
        most = max(saving, limit) if saving <= OVER * limit else facts.step_time
        length = device.end - device.start
        gone = len(one.change.host.start) or (one.change.shorter > length[one.change.events]).any()
        grown = (float(each.shorter.sum()) / max(int(length[each.events].sum()), 1) for each in one.between)
        limits = (most * max(OVER, each) if gone else most for each in grown)
        between = tuple(min(each, round(end)) for each, end in zip(between, limits, strict=True))
    elif busy and one.draws in _DEVICE and one.intervals is not None:
        most = min(facts.step_time, max(facts.length(one.intervals), saving))
    high = min(saving + room, facts.step_time if most is None else most)
    low = saving - room if one.low is None else min(one.low, saving - room)
    low, high = max(0, min(low, *between, saving)), max(high, *between, saving)
    unsure = not facts.once(proven) or high - low > 2 * room
    confidence = Confidence.MEDIUM if unsure and one.confidence == Confidence.HIGH else one.confidence
    if one.draws == "idle.sync" and between and (facts.share(low) < LEAST_SHARE or saving > MANY * (one.cost or 0)):
        confidence = Confidence.LOW
    return replace(one, saving=saving, low=low, bound=high, confidence=confidence)


def proven(facts: Facts) -> bool:
    """Whether the recording has nearly all launches, and clocks that agree; use with `Facts.once`."""
    if facts.host_computes or not facts.context.devices:
        return True
    device = facts.context.device
    linked = facts.context.link[facts.inside(device.start) & (device.klass != DeviceClass.COMM)] >= 0
    return facts.context.doubt is None and bool(len(linked)) and float(linked.mean()) >= LINKED


def beside_waits(found: Sequence[Finding], waits: int) -> list[Finding]:
    """The findings of a rank; what it saves before it meets those that it `waits` for may turn into longer waiting.

    It is saved for certain only as far as it is more than the waiting, and wholly where the others save as much, which
    their recordings would show. What is less than the waiting is low, or medium where a large part of the step would
    have no owner else.
    """
    return [_unsure(one, waits) if waits and not one.rule.startswith("COM") and one.saving else one for one in found]


def _unsure(one: Finding, waits: int) -> Finding:
    low, within = max(0, (one.least or 0) - waits), waits >= max(one.saving or 0, one.bound or 0)
    severity = one.severity
    if within and severity is not None and severity > Severity.LOW:
        severity = Severity(severity - 1)
    sure = min(one.confidence or Confidence.LOW, Confidence.LOW if within else Confidence.MEDIUM)
    return replace(one, low=low, severity=severity, confidence=sure)


def below_waits(ends: tuple[int, int, int], found: Iterable[Finding], waits: int) -> tuple[int, int, int]:
    """What findings save together, less at its low end by waiting that it may turn into, unless they cut messages."""
    low, saving, high = ends
    return (low if all(one.rule.startswith("COM") for one in found) else max(0, low - waits), saving, high)


def all_together(found: Iterable[Finding], facts: Facts) -> tuple[int, int, int] | None:
    """Low, saving and high of one replay without the causes of all findings that save something, ns a step."""
    known = [one for one in found if one.saving]
    if not known:
        return None
    changes = [one.change for one in known if one.change is not None]
    saving = sum(one.saving or 0 for one in known if one.change is None)
    return ranged_together(known, saving + (saved(facts, together(*changes)) if changes else 0), facts)


def ranged_together(found: Sequence[Finding], saving: int, facts: Facts) -> tuple[int, int, int]:
    """Low, saving and high of several findings on one rank; no more than it is idle, if none shortens device events."""
    idle = facts.amount_of("idle") if facts.context.devices else None
    hosts = idle is not None and all(one.change is not None and not len(one.change.events) for one in found)
    return ends_together(found, saving, facts.step_time, most=idle if hosts else None)


def ends_together(found: Iterable[Finding], saving: int, step: int, most: int | None = None) -> tuple[int, int, int]:
    """Low, saving and high of what several findings save in one replay: as far apart as their own are, in proportion.

    Of what has no range of its own `found` is empty: it is off by what any saving is. `most` is what it can be, if
    less.
    """
    most = step if most is None else min(step, most)
    saving, known = min(saving, most), [one for one in found if one.saving]
    every = sum(one.saving or 0 for one in known)
    least, highest = sum(one.least or 0 for one in known), sum(one.most or 0 for one in known)
    if len(known) == 1 and every == saving:
        return least, saving, highest
    room = round(WITHIN_STEP * step) if every else room_of(saving, step)
    part = saving / every if every else 1.0
    low, high = (round(end * part) if every else saving for end in (least, highest))
    if 0 < saving <= every:
        # They hide behind each other, and so save no more than one by one.
        most = min(most, highest)
    return max(0, min(low, saving - room)), saving, max(saving, min(max(high, saving + room), most))


def room_of(saving: int, step: int) -> int:
    """By how much any saving may be off, ns a step."""
    return max(round(WITHIN * saving), round(WITHIN_STEP * step))
