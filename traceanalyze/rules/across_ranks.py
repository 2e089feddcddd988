"""Rules about the ranks of a run: they need `R` and are given the comparison of the ranks, not one rank's facts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.results import Cluster, MatchedGroup, RankSummary
from traceanalyze.replay.ranks import Joint, mean_gain, steps_with
from traceanalyze.replay.replay import Change, together
from traceanalyze.rules.common.communication import WAIT_POSSIBLE
from traceanalyze.rules.config import Plan
from traceanalyze.rules.evaluate import LAUNCHES, why
from traceanalyze.rules.finding import Confidence, Finding, FindingKey, NotApplicable, Outcome, Severity
from traceanalyze.rules.pricing import LEAST_SHARE, OVER, below_waits, beside_waits, ends_together, lasting
from traceanalyze.rules.ranking import HIGH, LEFT, MEDIUM, PRESENT, by_its_rule, small
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import Rule
from traceanalyze.rules.waiting import (
    GENERAL,
    durations,
    large,
    last_bucket,
    less_sure,
    less_waiting,
    middles,
    mostly_waits,
    perhaps,
    without_doubt,
)

RANKS = "R"
WAITING = "comm_exposed"
"""What ranks lose by waiting is part of this class."""


class RunStep(NamedTuple):
    """The mean step of the rank that works longest, or of another one, which findings are measured by."""

    time: int

    def share(self, amount: int) -> float:
        """Ns a step as a fraction of it."""
        return amount / self.time if self.time else 0.0

    def small(self, saving: int) -> bool:
        """Whether a saving is not worth a row."""
        return small(saving, self.time)

    def severity(self, saving: int | None, least: int | None = None) -> Severity:
        """By the share of a saving; what may save next to nothing is not high."""
        if saving is None:
            return Severity.INFO
        share = self.share(saving)
        sure = least is None or self.share(least) >= LEAST_SHARE
        return Severity.HIGH if share >= HIGH and sure else Severity.MEDIUM if share >= MEDIUM else Severity.LOW


def drop_rank_rules(outcome: Outcome) -> Outcome:
    """What rules say about one rank of several, without those that are about all of them."""
    ids = {rule.id for rule in every_rule() if RANKS in rule.needs}
    return outcome._replace(not_applicable=tuple(one for one in outcome.not_applicable if one.rule not in ids))


def evaluate_run(cluster: Cluster, wanted: Plan, run: Joint | None = None) -> Outcome:
    """Findings about the ranks of a run in their order, and the rules that could not be applied.

    A straggler and an imbalance may be one cause seen twice: of two findings that save time of one class, the later one
    (by the order of its rule) has only what the other leaves, and is left out where that is less than half, or where
    it is about the same rank. `run`, where it is possible, tells what the run gains where a rank is never the last.
    """
    step = RunStep(cluster.step)
    alone = all(rank.host_computes for rank in cluster.ranks)
    found: list[Finding] = []
    not_applicable: list[NotApplicable] = []
    for rule, options in wanted.rules:
        if RANKS not in rule.needs:
            continue
        for each in rule(cluster, options):
            if isinstance(each, NotApplicable):
                reason = why(each.reason, host_computes=alone)
                not_applicable.append(each._replace(rule=rule.id, slug=rule.slug, reason=reason))
                continue
            found.append(by_its_rule(each, rule))
    slower = {(rank,) for one in found if one.rule == _SLOWER for rank in one.scope.ops}
    found = [one for each in found if (one := _replayed(each, cluster, run, slower)) is not None]
    rules = {rule.id: rule for rule, _ in wanted.rules}
    kept = [
        replace(one, severity=_severity(one, step) if one.severity is None else one.severity)
        for one in _disjoint(found, rules)
        if one.saving is None or not rules[one.rule].threshold or not step.small(one.saving)
    ]
    told: dict[str, int] = {}
    for one in kept:
        told[one.rule] = told.get(one.rule, 0) + (one.explains or 0)
    late = {one.scope.ops for one in kept if one.rule == _ABOUT_RANKS}
    # What another rule tells less than half of is not told.
    kept = [one for one in kept if told.get(rules[one.rule].unless, -1) < LEFT * (one.explains or 0)]
    kept = [one for one in kept if one.rule != _IMBALANCE or one.scope.ops not in late]
    return Outcome(tuple(sorted(kept, key=_ORDER)), tuple(not_applicable))


def _severity(one: Finding, step: RunStep) -> Severity:
    """By what it saves; a large part that it explains has an owner, also where others would be late next."""
    grade = step.severity(one.saving, one.least)
    owns = one.saving is not None and step.share(one.explains or 0) >= HIGH
    return max(grade, Severity.MEDIUM) if owns else grade


def _replayed(one: Finding, cluster: Cluster, run: Joint | None, slower: Collection[tuple[str, ...]]) -> Finding | None:
    """A finding that others wait for one rank, with what the run gains where that one comes when they do.

    None where it gains that in the first step only, which begins on an idle device. `slower` are the ranks on which the
    same kernels take longer. In a replay sends and receives last as long as they did: it cannot tell what is gained by
    who comes earlier to them.
    """
    if run is None:
        return _estimated(one, cluster)
    late = never_last(one, cluster) if cluster.between is None or not cluster.between.by_step.any() else []
    if not (late or one.between):
        return _estimated(one, cluster)
    if one.between:
        return _faster(one, cluster, run)
    steps = steps_with(run, {}, late)
    saving, later = mean_gain(steps, late), np.delete(steps, late, axis=0)[:, 1:]
    if later.size and later.mean() < PRESENT * saving:
        return None
    saving = min(saving, one.saving or 0) if one.rule == _IMBALANCE else saving
    low, saving, high = ends_together((), saving, cluster.step)
    computes = ("phase", "late_compute") in {(each.label, each.value) for each in one.evidence}
    if computes and one.scope.ops not in slower:
        # Where it has more work, all get a share of that: they come when the mean of all does, not the others.
        low = round(low * (1 - 1 / len(cluster.ranks)))
    # Ranks that are not here may be as late.
    low = low if one.low is None else min(low, one.low)
    # Waiting that work hides costs as well, as far as that work comes later for it.
    cost = max(one.explains or 0, min(saving, one.bound or 0))
    return replace(one, saving=saving, cost=cost, low=low, bound=high)


def _estimated(one: Finding, cluster: Cluster) -> Finding:
    """A finding about a late rank with a range: for certain only what all others wait is gained, as one may be next.

    That is, in each step, and in each collective of the group that waits most for it; less where others come last, too.
    """
    late, waits = never_last(one, cluster), cluster.exposed_waits
    if one.rule != _ABOUT_RANKS or isinstance(waits, NotMeasured) or len(late) == len(cluster.ranks):
        return one
    others = np.delete(waits.by_step, late, axis=0)
    # What it waits as long as they do is not for it.
    least = min(one.saving or 0, int(np.clip(others.min(axis=0) - waits.by_step[late].sum(axis=0), 0, None).mean()))
    for each in () if isinstance(cluster.stragglers, NotMeasured) else cluster.stragglers:
        if each.position in late:
            common = (_all_wait(group, late) for group in cluster.groups if group.group == each.group)
            least = round(each.last * min((least, *common)))
    low = ends_together((), least, cluster.step)[0]
    low = low if one.low is None else min(low, one.low)
    # They may wait for it in other groups as well.
    return replace(one, low=low, bound=max(one.bound or 0, int(others.mean(axis=1).min())))


def _all_wait(one: MatchedGroup, late: Sequence[int]) -> int:
    """What all ranks of a group but some wait in its collectives, ns a step."""
    others = ~np.isin(one.members, late)
    waits = [one.exposed_wait(part)[one.synchronising][:, others[part]] for part in one.parts()]
    least = [each.min(axis=1) for each in waits if each.size]
    return int(np.min(least, axis=0).sum()) // len(np.unique(one.step)) if least else 0


def _faster(one: Finding, cluster: Cluster, run: Joint) -> Finding:
    """A finding that collectives could be faster, with what the run gains by that, as later work moves as well.

    Its `between` is the best case, a change for each rank; as much of it is likely as of what its rule says at most.
    """

    def gain(part: float) -> int:
        less = [each._replace(shorter=(each.shorter * part).astype(np.int64)) for each in one.between]
        return mean_gain(steps_with(run, dict(enumerate(less))))

    low, saving, high = ends_together((), gain((one.saving or 0) / max(one.bound or 0, 1)), cluster.step)
    return replace(
        one, saving=saving, low=low, bound=max(high, ends_together((), gain(1.0), cluster.step)[2]), between=()
    )


def never_last(one: Finding, cluster: Cluster) -> list[int]:
    """Positions of ranks that a finding says others wait for, which would come when the others do; else none."""
    if one.saving is None or one.draws != WAITING:
        return []
    if one.rule == _IMBALANCE and not isinstance(cluster.exposed_waits, NotMeasured):
        # Work that is shared more evenly gains no more than if all came with the rank that waits most.
        most = int(np.argmax(cluster.exposed_waits.mean))
        return [at for at in range(len(cluster.ranks)) if at != most]
    late = [at for at, rank in enumerate(cluster.ranks) if rank.rank is not None and rank.rank in one.scope.ranks]
    return late if len(late) == 1 else []


def _disjoint(found: Sequence[Finding], rules: Mapping[str, Rule]) -> Iterator[Finding]:
    """Findings of different rules that draw from one class: the first keeps its saving, the next what it leaves."""
    claimed: dict[str, dict[str, int]] = {}
    for one in sorted(found, key=lambda each: (rules[each.rule].order, -(each.confidence or 0), -(each.saving or 0))):
        if not one.saving:
            yield one
            continue
        before = claimed.setdefault(one.draws, {})
        saving = max(0, one.saving - sum(amount for rule, amount in before.items() if rule != one.rule))
        if saving < LEFT * one.saving:
            continue
        before[one.rule] = before.get(one.rule, 0) + saving
        yield replace(one, saving=saving)


_SLOWER = "KRN118"
"""The rule about ranks on which the same kernels take longer."""
_ABOUT_RANKS, _IMBALANCE = "RNK101", "RNK102"
_BLOCKING = "COM107"
"""The rule about collectives that compute could run beside."""
_ORDER = attrgetter("order")
_OF_ONE = "COM120"
"""What one rank's recording alone tells about waiting: the rules about ranks know better."""


def subtract_waiting(outcomes: Sequence[Outcome], cluster: Cluster, wanted: Plan) -> list[Outcome]:
    """What is said about each rank, without savings of communication that are waiting for other ranks.

    No overlap and no larger message removes the wait for a late rank: the findings about ranks say what it costs, so
    that their rules must be among those that were run. Where ranks are missing nothing tells how much is waiting, and
    so nothing what these would save, or only at most. What is left below the limit of its rule goes.
    """
    named = any(rule.id == _ABOUT_RANKS for rule, _ in wanted.rules)
    waits = cluster.waits
    if not named or waits is None:
        return list(outcomes)
    unsure = waits.bound and not waits.by_tasks
    return [
        _cut(outcome, rank, wait, wanted, unsure=unsure)
        for outcome, rank, wait in zip(outcomes, cluster.ranks, waits.mean.tolist(), strict=True)
    ]


def _cut(outcome: Outcome, rank: RankSummary, wait: int, wanted: Plan, *, unsure: bool) -> Outcome:
    outcome = outcome._replace(findings=tuple(one for one in outcome.findings if one.rule != _OF_ONE))
    told = map(perhaps if unsure else without_doubt, outcome.findings)
    outcome = outcome._replace(findings=tuple(told))
    if "communication" not in rank.parts:
        # Its device was not recorded: nothing is said about its communication.
        return outcome
    steps = max(int(rank.counted.sum()), 1)
    exposed = int(rank.part("communication")[rank.counted].sum()) // steps
    if not unsure:
        why = "moving" if 2 * wait < exposed else "waiting"
        parts = (each._replace(why=why) if each.why == "communication" else each for each in outcome.unexplained)
        outcome = outcome._replace(unexplained=tuple(parts))
    if not wait:
        return outcome
    if not unsure:
        outcome = outcome._replace(findings=tuple(less_waiting(one, wait) for one in outcome.findings))
    limit = next((options.number("share") for rule, options in wanted.rules if rule.id == GENERAL), 0.0)
    step, room = RunStep(int(rank.step_time[rank.counted].sum()) // steps), max(0, exposed - wait)
    kept: list[Finding] = []
    for one in outcome.findings:
        if one.draws != "comm_exposed" or one.saving is None:
            kept.append(one)
            continue
        if one.rule == GENERAL and step.share(room) < limit:
            continue
        left, room = min(one.saving, max(0, room - last_bucket(one, wait))), max(0, room - one.saving)
        if left == one.saving:
            kept.append(one)
        elif not step.small(left):
            quiet = one.severity == Severity.INFO
            low, bound = (None if end is None else round(end * left / one.saving) for end in (one.low, one.bound))
            severity = one.severity if quiet else step.severity(left)
            kept.append(replace(one, saving=left, low=low, bound=bound, severity=severity))
    kept.sort(key=_ORDER)
    return outcome._replace(findings=tuple(kept), together=_left(outcome, kept))


def _left(outcome: Outcome, kept: Sequence[Finding]) -> tuple[int, int, int] | None:
    """What is saved together, without what is not saved any more."""
    before, after = (sum(one.saving or 0 for one in each) for each in (outcome.findings, kept))
    if outcome.together is None or before == after:
        return outcome.together
    low, saving, high = (max(0, each - (before - after)) for each in outcome.together)
    return (low, saving, high) if after else None


def with_run_gains(
    outcomes: Sequence[Outcome], cluster: Cluster, run: Joint, wanted: Plan, across: Outcome
) -> list[Outcome]:
    """What is said about each rank, with what the run gains: others may be late where this one is faster.

    A finding that several ranks have is taken away from all of them at once, and what there is of its cause on ranks
    that it costs too little to be told: they run one program. What the run gains too little by goes. It gains beside
    what is said `across` the ranks.
    """
    about = [one for one in across.findings if never_last(one, cluster)]
    late = tuple(dict.fromkeys(at for one in about for at in never_last(one, cluster)))
    late = late if len(late) < len(outcomes) else ()
    several = {
        kind
        for each in outcomes
        for kind, count in Counter(one.key[:3] for one in each.findings if one.saving).items()
        if count > 1
    }
    kinds: dict[FindingKey, list[tuple[int, Finding]]] = {}
    for rank, outcome in enumerate(outcomes):
        for one in outcome.findings:
            if one.saving:
                kinds.setdefault(_kind(one, several), []).append((rank, one))
    step = RunStep(cluster.step)
    known: dict[tuple[frozenset[FindingKey], Sequence[int]], tuple[int, int, int]] = {}

    def gain(found: Iterable[Finding], like_others: Sequence[int] = ()) -> tuple[int, int, int]:
        key = frozenset(_kind(one, several) for one in found)
        if (key, like_others) not in known:
            pieces = [each for kind in kinds if kind in key for each in kinds[kind]]
            less = faint_beside(pieces, outcomes)
            steps = np.delete(steps_with(run, changes_of([*pieces, *less]), like_others), like_others, axis=0)
            saving = mean_gain(lasting(steps, step.time, run.programs[0].counted)) + stated(pieces, len(outcomes))
            # A rank that hides how regular the cause is, as it waits for others, makes no other one unsure.
            least = {kind: min(Confidence.MEDIUM, max(one.confidence or 0 for _, one in kinds[kind])) for kind in key}
            sure = [one for kind in key for _, one in kinds[kind] if (one.confidence or 0) >= least[kind]]
            every = [*sure, *about * len(outcomes) * bool(like_others)]
            known[key, like_others] = ends_of_run(every, saving, step.time)
        return known[key, like_others]

    def elsewhere(one: Finding) -> list[Finding]:
        """What costs ranks without this cause time of its class, and gains as little alone: it may be one cause."""
        own = {rank for rank, _ in kinds[_kind(one, several)]}
        whole = one.draws.partition(".")[0]
        alike = [found for found in kinds.values() if found[0][1].draws.partition(".")[0] == whole]
        others = (each for found in alike if own.isdisjoint(rank for rank, _ in found) for _, each in found)
        return [each for each in others if step.small(gain([each])[1])]

    def worth(one: Finding) -> tuple[int, int, int]:
        """Where it gains nothing, as other ranks lose as much at the same time, what all of that does, at most."""
        found = gain([one])
        if not step.small(found[1]) or not one.draws or not (others := elsewhere(one)):
            return found
        saving = min(gain([one, *others])[1], one.saving or 0)
        return found if step.small(saving) else (found[0], saving, round(OVER * saving))

    thresholds = {rule.id for rule, _ in wanted.rules if rule.threshold}
    found = [_of_run(outcome, worth, gain, step, thresholds) for outcome in outcomes]
    saved = [[one for one in each.findings if one.saving] for each in found]
    return [
        each._replace(with_ranks=gain(own, late)) if own and late else each
        for each, own in zip(found, saved, strict=True)
    ]


def _kind(one: Finding, several: Collection[tuple[str, str, str]]) -> FindingKey:
    """What ranks share of a finding: its rule and sentence, and its place where one rank has several of them."""
    return (*one.key[:3], one.scope.ops if one.key[:3] in several else ())


def faint_beside(pieces: Iterable[tuple[int, Finding]], outcomes: Sequence[Outcome]) -> list[tuple[int, Finding]]:
    """What there is of the causes of findings on ranks, by positions, that it costs too little to be told.

    What most ranks launch too slowly is the program's, also while they wait for each other; else a rank that tells a
    cause says all that it is about.
    """
    told = {(at, one.rule) for at, one in pieces}
    rules, whole = {rule for _, rule in told}, 2 * sum(rule == LAUNCHES for _, rule in told) >= len(outcomes)
    return [
        (at, one)
        for at, outcome in enumerate(outcomes)
        for one in outcome.faint
        if one.rule in rules and ((at, one.rule) not in told or (whole and one.rule == LAUNCHES))
    ]


def ends_of_run(found: Sequence[Finding], saving: int, step: int) -> tuple[int, int, int]:
    """As `ends_together`, of ranks in one replay: what is launched sooner meets others sooner, too."""
    low, saving, high = ends_together(found, saving, step)
    if any(one.rule == LAUNCHES for one in found):
        high = max(high, min(step, round(OVER * saving)))
    return low, saving, high


def changes_of(pieces: Iterable[tuple[int, Finding]]) -> dict[int, Change]:
    """What would be different on each rank without findings, which come with the positions of their ranks."""
    changes: dict[int, list[Change]] = {}
    for rank, one in pieces:
        if one.change is not None:
            changes.setdefault(rank, []).append(one.change)
    return {rank: together(*each) for rank, each in changes.items()}


def stated(pieces: Iterable[tuple[int, Finding]], ranks: int) -> int:
    """What the mean rank saves by those of which rules state the saving, as no replay is possible."""
    return sum(one.saving or 0 for _, one in pieces if one.change is None) // ranks


def beside_absent(outcomes: Sequence[Outcome], cluster: Cluster) -> list[Outcome]:
    """What is said about each rank, as sure as the waiting for ranks that were not recorded lets it be."""
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.stragglers import absent_waits

    most, certain = absent_waits(cluster)
    return [_beside(one, most, certain) for one in outcomes] if most else list(outcomes)


def _beside(one: Outcome, most: int, certain: int) -> Outcome:
    saved = [each for each in one.findings if each.saving]
    both, run = (ends and below_waits(ends, saved, most) for ends in (one.together, one.with_ranks))
    found = sorted(less_sure(beside_waits(one.findings, certain), most - certain), key=_ORDER)
    return middles(one._replace(findings=tuple(found), together=both, with_ranks=run))


def _of_run(
    outcome: Outcome,
    worth: Callable[[Finding], tuple[int, int, int]],
    gain: Callable[[Iterable[Finding]], tuple[int, int, int]],
    step: RunStep,
    thresholds: Collection[str],
) -> Outcome:
    kept = []
    for one in outcome.findings:
        if not one.saving or one.change is None:
            kept.append(one)
            continue
        low, saving, high = worth(one)
        # What compute hides may wait for other ranks as well.
        high = max(high, one.most or 0) if one.rule == _BLOCKING else high
        if one.rule in thresholds and step.small(saving):
            continue
        grade = one.severity if one.severity == Severity.INFO else step.severity(saving, low)
        if one.rule == GENERAL and large(one):
            grade = max(grade or Severity.INFO, Severity.MEDIUM)
        if WAIT_POSSIBLE in durations(one):
            grade = min(grade or Severity.INFO, Severity.LOW if mostly_waits(one) else Severity.MEDIUM)
        kept.append(replace(one, saving=saving, alone=one.saving, low=low, bound=high, severity=grade))
    kept.sort(key=_ORDER)
    saved = [one for one in kept if one.saving]
    return outcome._replace(findings=tuple(kept), together=gain(saved) if saved else None)
