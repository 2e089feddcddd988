"""From what rules say to a ranked list: savings made disjoint, capped, graded by their share of the step.

Savings of different findings come from different time, so they never add to more than the step: where two findings are
about the same interval, that of the more particular rule keeps it, then the one of higher confidence, then the one
that saves more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.intervals import Intervals, merge
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.common.replay import replay_without
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding, Severity, intervals_of
from traceanalyze.rules.rule import Rule

SHARE, LATE = 0.10, 0.20
"""As HST101: where the host is this late, it decides how long a step takes."""


def with_late_host(facts: Facts, spans: NDArray[np.int64], saving: int) -> int:
    """What is left of a saving of compute time, ns a step, once the launches are replayed.

    Args:
        facts: Of the rank.
        spans: (n, 2) time of the kernels that would be shorter, all by the same part.
        saving: By how much they would be shorter, ns a step.
    """
    if not facts.once(launching).bound(SHARE, LATE):
        return saving
    device = facts.context.device
    compute = (device.device == facts.context.devices[0]) & (device.klass == DeviceClass.COMPUTE)
    event = np.flatnonzero(compute & (device.end > device.start))
    inside = intervals.coverage(facts.clip(spans), device.start[event], device.end[event])
    event, inside = event[inside > 0], inside[inside > 0]
    order = np.argsort(device.start[event], kind="stable")
    part = min(1.0, saving * facts.window.count / max(int(inside.sum()), 1))
    shorter = np.round(inside[order] * part).astype(np.int64)
    return min(saving, replay_without(facts, intervals.EMPTY, (event[order], shorter)).saving)


def shared_compute(facts: Facts) -> Intervals:
    """Time in which two compute kernels or more run on the headline device; use with `Facts.once`."""
    device = facts.context.device
    if not facts.context.devices:
        return merge(device.start[:0], device.end[:0])
    compute = (device.device == facts.context.devices[0]) & (device.klass == DeviceClass.COMPUTE)
    compute &= device.end > device.start
    time = np.concatenate((device.start[compute], device.end[compute]))
    change = np.concatenate((np.ones(int(compute.sum()), np.int64), np.full(int(compute.sum()), -1, np.int64)))
    # At one instant ends come first: kernels that follow each other share nothing.
    order = np.lexsort((change, time))
    running = np.cumsum(change[order])
    at = np.flatnonzero(running[:-1] >= 2) if len(order) else np.zeros(0, np.int64)
    return merge(time[order][at], time[order][at + 1])


LEAST_SHARE = 0.01
"""Of the step: below it a finding is not worth a row."""
LEAST_NS = 100_000
HIGH, MEDIUM = 0.20, 0.05
"""Shares of the step from which on a finding is severe."""
LEFT = 0.5
"""A finding most of whose time others have explained is left to them, unless what is left is much."""
PRESENT = 0.25
"""A finding holds in a step where it takes at least this part of its own mean."""


def ranked(found: Iterable[Finding], facts: Facts, rules: Mapping[str, Rule]) -> tuple[Finding, ...]:
    """Findings worth a row, in their order."""
    ordered = sorted(_merged(found), key=lambda one: _claim(one, rules[one.rule]))
    kept = [one for one in _disjoint(ordered, facts) if _worth(one, facts, rules[one.rule])]
    rules_kept = {one.rule for one in kept}
    kept = [one for one in kept if rules[one.rule].beside in rules_kept or rules[one.rule].beside not in rules]
    kept = [one for one in kept if rules[one.rule].unless not in rules_kept]
    severe = [replace(one, severity=_severity(one, facts)) for one in kept]
    return tuple(sorted(severe, key=attrgetter("order")))


def _claim(one: Finding, rule: Rule) -> tuple[int, int, int, str]:
    """Who comes first to time that several findings are about."""
    return rule.order, -(one.confidence or 0), -(one.saving or 0), one.rule


def _merged(found: Iterable[Finding]) -> list[Finding]:
    """Findings of one rule about one place as one."""
    places: dict[tuple[str, str, tuple[str, ...]], Finding] = {}
    for one in found:
        key = one.rule, one.sentence, one.scope.ops
        places[key] = _joined(places[key], one) if key in places else one
    return list(places.values())


def _joined(first: Finding, second: Finding) -> Finding:
    times = [one.intervals for one in (first, second) if one.intervals is not None]
    return replace(
        first,
        saving=_sum(first.saving, second.saving),
        cost=None if first.cost is second.cost is None else _sum(first.explains, second.explains),
        low=None if first.low is second.low is None else _sum(first.least, second.least),
        bound=_sum(first.bound, second.bound),
        count=first.count + second.count,
        intervals=np.concatenate(times) if times else None,
    )


def _sum(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else first + second


def _disjoint(ordered: list[Finding], facts: Facts) -> list[Finding]:
    """Each finding keeps the time that none before it claimed, and what its class still has to give."""
    claimed, left, kept = intervals.EMPTY, {}, []
    for each in ordered:
        one = _bounded(_alone(each, facts), facts)
        if one.draws == "compute" and one.intervals is not None and facts.share(one.saving or 0) >= LEAST_SHARE:
            one = replace(one, saving=with_late_host(facts, one.intervals, one.saving or 0))
        part, rest = 1.0, one
        amount = one.cost if one.saving is None and not one.once else one.saving
        if one.intervals is not None:
            span = facts.clip(one.intervals)
            free = intervals.subtract(span, claimed)
            part = intervals.total(free) / max(intervals.total(span), 1)
            if part < LEFT and amount and facts.share(round(amount * part)) < MEDIUM:
                continue
            claimed = intervals.union(claimed, free)
            cost = None if one.cost is None else round(one.cost * part)
            rest = replace(one, intervals=intervals_of(free.start, free.end), cost=cost)
        if one.saving is None:
            kept.append(rest)
            continue
        if one.draws not in left:
            left[one.draws] = facts.amount_of(one.draws)
        room = left[one.draws]
        saving = round(one.saving * part) if room is None else min(round(one.saving * part), room)
        bound = None if one.bound is None else max(saving, round(one.bound * part))
        if room is not None:
            left[one.draws] = room - saving
        low = None if one.low is None else min(saving, round(one.low * part))
        kept.append(replace(rest, saving=saving, low=low, bound=bound))
    return kept


def _bounded(one: Finding, facts: Facts) -> Finding:
    """The finding with a bound of no more than all time of its class."""
    whole = facts.amount_of(one.draws)
    return one if one.bound is None or whole is None else replace(one, bound=min(one.bound, whole))


def _alone(one: Finding, facts: Facts) -> Finding:
    """The finding without what other kernels run beside: the step is shorter by time of its own kernels only."""
    if one.draws != "compute" or not one.saving or one.intervals is None:
        return one
    span = facts.clip(one.intervals)
    beside = intervals.total(intervals.intersect(span, facts.once(shared_compute)))
    return replace(one, saving=round(one.saving * (1 - beside / max(intervals.total(span), 1))))


def _worth(one: Finding, facts: Facts, rule: Rule) -> bool:
    """Whether it saves enough, and is a pattern."""
    amount = one.cost if one.saving is None else one.saving
    if amount is None or one.once:
        return True
    if rule.threshold and (amount < LEAST_NS or facts.share(amount) < LEAST_SHARE):
        return False
    if rule.rare or one.intervals is None:
        return True
    by_step = facts.by_step(one.intervals)
    return facts.recurs(by_step, max(1.0, PRESENT * float(by_step.mean())))


def _severity(one: Finding, facts: Facts) -> Severity:
    """As its rule says, else by its share of the step; what is done once is a note."""
    if one.once:
        return Severity.INFO
    if one.severity is not None:
        return one.severity
    if one.saving is None:
        return Severity.INFO
    share = facts.share(one.saving)
    return Severity.HIGH if share >= HIGH else Severity.MEDIUM if share >= MEDIUM else Severity.LOW


def by_its_rule(one: Finding, rule: Rule) -> Finding:
    """The finding with what its rule says of all of them."""
    confidence = rule.confidence if one.confidence is None else one.confidence
    return replace(one, rule=rule.id, slug=rule.slug, confidence=confidence, advice=one.advice or rule.advice)
