"""From what rules say to a ranked list: savings made disjoint, capped, graded by their share of the step.

Savings of different findings come from different time, so they never add to more than the step: where two findings are
about the same interval, that of the more particular rule keeps it, then the one of higher confidence, then the one
that saves more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from itertools import chain, repeat
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.columns import occurs
from traceanalyze.model.intervals import EMPTY, Intervals
from traceanalyze.replay.parts import last_part
from traceanalyze.replay.replay import Change, amount, together
from traceanalyze.rules.common.launching import cut_off, excerpt
from traceanalyze.rules.common.replay import launching, saved
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Severity, intervals_of
from traceanalyze.rules.pricing import LEAST_SHARE, SMALL, Price, gaps_of, passing, priced, ranged
from traceanalyze.rules.rule import Rule

HIGH, MEDIUM = 0.20, SMALL
"""Shares of the step from which on a finding is severe."""
LEAST_NS = 100_000
"""What saves less is not worth a row either, unless steps are so short that it is severe."""
LEFT = 0.5
"""A finding most of whose time others have explained is left to them, unless what is left is much."""
PRESENT = 0.25
"""A finding holds in a step where it takes at least this part of its own mean."""


class Pattern(IntEnum):
    """How something comes back from step to step: what does so without a rule may save nothing in later ones."""

    ONCE = 0
    AGAIN = 1
    REGULAR = 2


def ranked(found: Iterable[Finding], facts: Facts, rules: Mapping[str, Rule]) -> tuple[Finding, ...]:
    """Findings worth a row, in their order."""
    ordered = sorted(_merged(found), key=lambda one: _claim(one, rules[one.rule]))
    kept = _disjoint(ordered, facts, rules)
    rules_kept = {one.rule for one in kept}
    kept = [one for one in kept if rules[one.rule].beside in rules_kept or rules[one.rule].beside not in rules]
    kept = [one for one in kept if rules[one.rule].unless not in rules_kept]
    severe = [replace(one, severity=_severity(one, facts)) for one in kept]
    return tuple(sorted(severe, key=attrgetter("order")))


def _claim(one: Finding, rule: Rule) -> tuple[int, int, int, str]:
    """Who comes first to time that several findings are about."""
    return rule.order, -(one.confidence or 0), -(one.saving or one.cost or 0), one.rule


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
        low=_sum(first.least, second.least) if any(map(_has_least, (first, second))) else None,
        at_least=None,
        bound=_sum(first.bound, second.bound),
        change=_both(first, second),
        between=(),
        count=first.count + second.count,
        intervals=np.concatenate(times) if times else None,
    )


def _has_least(one: Finding) -> bool:
    return one.low is not None or one.at_least is not None


def _both(first: Finding, second: Finding) -> Change | None:
    changes = [one.change for one in (first, second) if one.change is not None]
    return together(*changes) if changes else None


def _sum(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else first + second


def _disjoint(ordered: list[Finding], facts: Facts, rules: Mapping[str, Rule]) -> list[Finding]:
    """Findings worth a row, each at its price, without what those before it claim.

    A change that may save nothing claims last: what another one saves for certain is no part of it.
    """
    claims, left, kept = Claims(facts), dict[str, int | None](), list[Finding]()
    last = list[Finding]()
    for each, late in chain(zip(ordered, repeat(False)), zip(last, repeat(True))):
        rule = rules[each.rule]
        if (each.once or each.draws not in {"", "compute"}) and cut_off(facts):
            continue  # The device may have worked where it seems idle, and computed beside what seems alone.
        if each.change is None and not _enough(each, facts, rule):
            continue  # What others leave of it is less still.
        one, part = claims.rest(each)
        shared = part < 1.0 and each.change is not None
        if part < LEFT and (_has_kernels(one, each) or _sums_up(each, kept, facts)):
            part = 1.0
        if one.change is None and (_is_explained(one, part, facts) or not _enough(one, facts, rule)):
            continue
        if one.change is None and one.saving is not None:
            room = left.setdefault(one.draws, facts.amount_of(one.draws))
            if room is not None:
                one = replace(one, saving=min(one.saving, room))
                left[one.draws] = room - (one.saving or 0)
        price = _told(one, part, facts, rule)
        if price is None:
            continue
        if each.change is not None and not late and _may_save_nothing(price.finding, facts):
            last.append(each)
            continue
        claims.take(price)
        kept.append(_at_most_alone(price.finding, each.change, facts) if shared else price.finding)
    return kept


def _has_kernels(left: Finding, whole: Finding) -> bool:
    """Whether others leave most of the device events that a finding is about, whatever they take of the host's time."""
    if left.change is None or whole.change is None or not whole.change.shorter.any():
        return False
    return bool(left.change.shorter.sum() >= LEFT * whole.change.shorter.sum())


def _at_most_alone(one: Finding, change: Change | None, facts: Facts) -> Finding:
    """A finding others share a change with: mended alone it saves what they claim of it, too."""
    if change is None or one.bound is None:
        return one
    return replace(one, bound=max(one.bound, saved(facts, change)))


def _told(one: Finding, part: float, facts: Facts, rule: Rule) -> Price | None:
    """A finding at its price, None where it is not worth a row; what comes again without a rule may save nothing."""
    price = priced(one, facts, lambda saving: _enough(replace(one, saving=saving), facts, rule))
    if not rule.rare and passing(price, facts):
        return None
    if _is_explained(price.finding, part, facts) or not _enough(price.finding, facts, rule):
        return None
    pattern = _recurs(price, facts, rule)
    if not pattern:
        return None
    price = ranged(price, facts)
    if pattern == Pattern.REGULAR:
        return price
    low = None if price.finding.saving is None else 0
    return price._replace(finding=replace(price.finding, low=low, confidence=Confidence.LOW))


def _may_save_nothing(one: Finding, facts: Facts) -> bool:
    return one.confidence == Confidence.LOW and facts.share(one.least or 0) < LEAST_SHARE


def _is_explained(one: Finding, part: float, facts: Facts) -> bool:
    """Whether others explain most of a finding, of which this part is left, unless what is left is much."""
    amount = one.cost if one.saving is None and not one.once else one.saving
    return part < LEFT and bool(amount) and facts.share(amount or 0) < MEDIUM


def _sums_up(one: Finding, kept: Iterable[Finding], facts: Facts) -> bool:
    """Whether a finding of medium severity would go to others each of which is small: what they leave is kept."""
    if one.saving is None or one.intervals is None or facts.share(one.saving) < MEDIUM:
        return False
    about = facts.clip(one.intervals)
    return not any(
        (each.once or facts.share(each.worth) >= MEDIUM)
        and len(intervals.intersect(about, facts.clip(each.intervals)).start)
        for each in kept
        if each.intervals is not None
    )


def _enough(one: Finding, facts: Facts, rule: Rule) -> bool:
    """Whether it is worth a row by what it saves or costs."""
    amount = one.cost if one.saving is None else one.saving
    if amount is None or one.once or not rule.threshold:
        return True
    if one.draws == "compute" and facts.once(excerpt):
        return amount > 0 and facts.share(amount) >= LEAST_SHARE  # Of a few kernels none takes long.
    return not small(amount, facts.step_time)


def small(amount: int, whole: int) -> bool:
    """Whether a saving or cost is not worth a row beside the whole step."""
    return amount < max(1, LEAST_SHARE * whole, min(LEAST_NS, MEDIUM * whole))


def _recurs(price: Price, facts: Facts, rule: Rule) -> Pattern:
    """Whether it is a pattern."""
    one = price.finding
    if (one.saving is None and one.cost is None) or one.once or rule.rare or one.intervals is None:
        return Pattern.REGULAR
    by_step = intervals.coverage(price.time(gaps_of(facts)), *facts.edges)
    if price.steps is not None and price.steps.any() and not by_step.any():
        by_step = price.steps  # What it delays is no idle time.
    found = Pattern.REGULAR
    for each in (by_step, price.steps):
        if each is not None and not facts.recurs(each, least := max(1.0, PRESENT * float(each.mean()))):
            found = min(found, Pattern.AGAIN if int((each >= least).sum()) > 1 else Pattern.ONCE)
    return found


def _severity(one: Finding, facts: Facts) -> Severity:
    """As its rule says, else by its share of the step; what is done once is a note.

    What may save less than is worth a row is not high.
    """
    if one.once:
        return Severity.INFO
    if one.severity is not None:
        return one.severity
    if one.saving is None:
        return Severity.INFO
    share = facts.share(one.saving)
    if one.draws == "idle.sync" and one.confidence == Confidence.LOW:
        share = min(share, MEDIUM)  # What may save nothing is no more.
    if share >= HIGH and facts.share(one.least or 0) >= LEAST_SHARE:
        return Severity.HIGH
    return Severity.MEDIUM if share >= MEDIUM else Severity.LOW


def by_its_rule(one: Finding, rule: Rule) -> Finding:
    """The finding with what its rule says of all of them."""
    confidence = rule.confidence if one.confidence is None else one.confidence
    return replace(one, rule=rule.id, slug=rule.slug, confidence=confidence, advice=one.advice or rule.advice)


class Claims:
    """What the findings so far take."""

    def __init__(self, facts: Facts) -> None:
        self._facts, self._gaps = facts, gaps_of(facts)
        self._idle = facts.idle_time if facts.context.devices else EMPTY
        self._left = np.zeros(len(self._gaps), np.int64)
        if facts.context.devices:
            np.add.at(self._left, facts.pieces.gap, facts.pieces.end - facts.pieces.start)
        self._time, self._change = EMPTY, Change()

    def rest(self, one: Finding) -> tuple[Finding, float]:
        """What they leave of another finding, and which part of it that is; a cost alone is told as it is left."""
        if one.change is not None:
            change, part = _without(one.change, self._change, len(self._facts.context.device))
            return replace(one, change=change, bound=None if one.bound is None else round(one.bound * part)), part
        if one.intervals is None:
            return one, 1.0
        span = self._facts.clip(one.intervals)
        free = intervals.subtract(span, self._time)
        free = intervals.union(*self._split(free, self._left))
        part = intervals.total(free) / max(intervals.total(span), 1)
        numbers = {name: getattr(one, name) for name in ("saving", "cost", "low", "bound")}
        cut = {name: round(value * part) for name, value in numbers.items() if value is not None}
        if one.saving is None and one.cost is not None:
            one = replace(one, evidence=tuple(_restated(each, one.cost, cut["cost"]) for each in one.evidence))
        if (least := one.at_least) is not None:
            one = replace(one, at_least=lambda: round(least() * part))
        return replace(one, intervals=intervals_of(*free), **cut), part

    def take(self, price: Price) -> None:
        """Keep from all that follow what this one changes, and of its idle time as much as would be gone."""
        one = price.finding
        if one.change is not None:
            # What it leaves of the work of launching these is no part of other findings. One about kernels alone names
            # what launches them, as far as it goes.
            both = one.draws != "compute" and len(one.change.host.start) and len(one.change.events)
            host = launching(self._facts, one.change.events) if both else EMPTY
            self._change = together(self._change, one.change, Change(host))
        # What no event ends would not be gone of anything.
        gone = np.where(self._gaps.event >= 0, price.gone, self._left) if one.change is not None else self._left
        self._time = intervals.union(self._time, *self._split(price.spans, gone))
        if price.gone.any():
            self._left = np.maximum(self._left - price.gone, 0)

    def _split(self, spans: Intervals, most: NDArray[np.int64]) -> tuple[Intervals, Intervals]:
        """What of a set is no idle time, and its idle time, shortened to so much of each gap."""
        own = intervals.intersect(spans, self._idle)
        if not len(own.start):
            return spans, own
        # Nearly all findings about idle time are about nothing else.
        whole = intervals.total(own) == intervals.total(spans)
        other = EMPTY if whole else intervals.subtract(spans, self._idle)
        at = np.maximum(intervals.passed(self._gaps.start, own.start) - 1, 0)
        held = np.zeros(len(self._gaps), np.int64)
        np.add.at(held, at, own.end - own.start)
        if (held <= most).all():
            return other, own
        return other, last_part(own, (most / np.maximum(held, 1))[at])


def _restated(one: Evidence, cost: int, left: int) -> Evidence:
    """Evidence that states the cost, with what is left of it."""
    return one._replace(value=left) if one.kind == "DURATION" and one.value == cost else one


def _without(change: Change, other: Change, events: int) -> tuple[Change, float]:
    """A change less what another one has done, and the part of it that this is."""
    left = change.shorter
    if len(left) and len(other.events):
        taken = np.zeros(events, np.bool_)
        taken[other.events[other.shorter > 0]] = True
        left = np.where(taken[change.events], 0, left)
    host = intervals.subtract(change.host, other.host)
    rest = change._replace(
        host=host,
        threads={
            track: intervals.subtract(span, intervals.union(other.host, other.threads.get(track, EMPTY)))
            for track, span in change.threads.items()
        },
        calls=change.calls[~occurs(change.calls, other.calls)],
        shorter=left,
        batches=max(0.0, change.batches - other.batches),
    )
    whole = amount(change)
    return rest, amount(rest) / whole if whole else 1.0
