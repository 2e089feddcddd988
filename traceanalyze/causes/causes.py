"""Findings of all ranks and recordings as causes: one for each rule, and for each place where one rank has several.

The order is that of what the run gains. A request for memory that failed, or soon will, comes before everything.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.causes.results import Cause, Onset, RankPart, RecordingPart, comparable, decider, in_order, run_gain
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Severity
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.ranking import HIGH, MEDIUM, PRESENT

BEFORE = 2
"""Steps without it that make its first step a beginning, and its last step an end."""


class Spell(NamedTuple):
    """The steps of one recording, in the order of time, and what one thing takes in each of them, ns."""

    recording: int
    steps: tuple[str, ...]
    times: NDArray[np.int64]
    """Of the steps."""
    cost: NDArray[np.int64] | None
    """None: it is there, but is not tied to points in time."""


def onset(spells: Sequence[Spell]) -> Onset:
    """In which steps it is there: it takes 1 % of the step, and a quarter of its mean where it is there at all.

    Of a single step, or a trace without steps, nothing can be said.
    """
    stepped = [one for one in spells if len(one.steps)]
    if sum(len(one.steps) for one in stepped) < 2 or all(one.cost is None for one in stepped):
        return Onset("unknown")
    known = np.concatenate([one.cost for one in stepped if one.cost is not None])
    usual = float(known[known > 0].mean()) if (known > 0).any() else 0.0
    least = [np.maximum(LEAST_SHARE * one.times, max(PRESENT * usual, 1.0)) for one in stepped]
    costs = [limit if one.cost is None else one.cost for one, limit in zip(stepped, least, strict=True)]
    hit = np.concatenate(costs) >= np.concatenate(least)
    places = [(one.recording, step) for one in stepped for step in one.steps]
    count, steps = int(hit.sum()), len(hit)
    if count == 0:
        return Onset("unknown")
    if count == steps:
        return Onset("every", affected=count, steps=steps)
    first, last = int(hit.argmax()), steps - 1 - int(hit[::-1].argmax())
    if first >= BEFORE and count == steps - first:
        return Onset("from", places[first][1], places[first][0], count, steps)
    if steps - 1 - last >= BEFORE and count == last + 1:
        return Onset("until", places[last][1], places[last][0], count, steps)
    return Onset("some", affected=count, steps=steps)


Kind = tuple[str, str]
"""Rule and slug."""
Key = tuple[Kind, str, tuple[str, ...]]
"""Also sentence and places, where one rank has several findings of that kind."""


class Instance(NamedTuple):
    """A finding on one rank, or about all of them (`rank` None)."""

    recording: int
    rank: RankPart | None
    finding: Finding
    cost: NDArray[np.int64] | None


def causes(recordings: Sequence[RecordingPart]) -> tuple[Cause, ...]:
    """All of them, in no order yet."""
    instances: dict[Key, list[Instance]] = {}
    several = _with_places(recordings)
    for one in _all(recordings):
        finding = one.finding
        kind = finding.rule, finding.slug
        key = (kind, finding.key[2], finding.scope.ops) if kind in several else (kind, "", ())
        instances.setdefault(key, []).append(one)
    return tuple(_cause(found, recordings) for found in instances.values())


def _all(recordings: Sequence[RecordingPart]) -> Iterator[Instance]:
    for index, recording in enumerate(recordings):
        costs = recording.about_ranks_costs or (None,) * len(recording.about_ranks)
        for finding, cost in zip(recording.about_ranks, costs, strict=True):
            yield Instance(index, None, finding, cost)
        for rank in recording.ranks:
            costs = rank.costs or (None,) * len(rank.findings)
            for finding, cost in zip(rank.findings, costs, strict=True):
                yield Instance(index, rank, finding, cost)


def _with_places(recordings: Sequence[RecordingPart]) -> set[Kind]:
    """Kinds of findings of which one rank, or one run, has several: sentences and places tell them apart."""
    groups = [findings for one in recordings for findings in (one.about_ranks, *(rank.findings for rank in one.ranks))]
    counts = (Counter((each.rule, each.slug) for each in found) for found in groups)
    return {kind for count in counts for kind, number in count.items() if number > 1}


def _cause(instances: list[Instance], recordings: Sequence[RecordingPart]) -> Cause:
    gains = tuple(_gain(instances, index, recording) for index, recording in enumerate(recordings))
    where = {one.recording for one in instances}
    where = where.intersection(comparable(recordings)) or where
    most = {one.recording: one.finding.worth for one in sorted(instances, key=lambda one: one.finding.worth)}
    worst = max(where, key=lambda index: (gains[index] or 0, most[index], -index))
    here = [one for one in instances if one.recording == worst]
    shown = max(here, key=lambda one: one.finding.of_rank or one.finding.worth)
    gain, part = gains[worst], recordings[worst]
    low, high = (None, None) if gain is None else _range(instances, worst, part, gain)
    cost = shown.finding.worth or None if gain is None else None
    evaluated = [rank for rank in part.ranks if _evaluated(rank, shown.finding.rule)]
    savings = [saving for one in here if (saving := one.finding.of_rank) is not None]
    count = max(len(evaluated), len(here)) if shown.rank is not None else 1
    worth = cost if gain is None else gain
    share = worth / part.step if worth is not None and part.step else None
    return Cause(
        finding=shown.finding,
        severity=_severity(instances, share),
        ranks=in_order(
            label
            for one in instances
            for label in (map(str, one.finding.scope.ranks) if one.rank is None else (one.rank.label,))
        ),
        evaluated=len(evaluated) or len(part.ranks),
        recording=worst,
        rank="" if shown.rank is None else shown.rank.label,
        gain=gain,
        cost=cost,
        largest=max(savings, default=None),
        mean=sum(savings) // count if savings else None,
        low=low,
        bound=max((one.finding.bound for one in here if one.finding.bound), default=None) if gain is None else high,
        total=_total(instances, recordings),
        share=share,
        onset=_onset(instances, recordings),
        gains=gains,
        about_ranks=shown.rank is None,
    )


def _severity(instances: list[Instance], share: float | None) -> Severity:
    """The largest of all ranks, but no more than what the run gains is worth."""
    largest = max(one.finding.severity or Severity.INFO for one in instances)
    if share is None:
        return largest
    return min(largest, Severity.HIGH if share >= HIGH else Severity.MEDIUM if share >= MEDIUM else Severity.LOW)


def _range(instances: list[Instance], index: int, recording: RecordingPart, gain: int) -> tuple[int | None, int]:
    """Least and most of what the run gains in one recording; no least where its findings give none."""
    low = _gain(instances, index, recording, lambda one: one.least)
    high = _gain(instances, index, recording, lambda one: max(one.saving or 0, one.bound or 0))
    ranged = any(one.finding.low is not None for one in instances if one.recording == index)
    return min(low or 0, gain) if ranged else None, max(high or 0, gain)


def _gain(
    instances: list[Instance],
    index: int,
    recording: RecordingPart,
    saved: Callable[[Finding], int | None] = lambda one: one.saving,
) -> int | None:
    """What the run gains in one recording; None where it could not be judged there, or saves nothing that is known."""
    here = [one for one in instances if one.recording == index]
    if not here:
        rule = instances[0].finding.rule
        if instances[0].rank is None:
            known = len(recording.ranks) > 1 and all(one.rule != rule for one in recording.about_ranks_not_evaluated)
        else:
            known = any(_evaluated(rank, rule) for rank in recording.ranks)
        return 0 if known else None
    if all(one.finding.saving is None for one in here):
        return None
    if here[0].rank is None:
        return sum(saved(one.finding) or 0 for one in here)
    if all(one.finding.alone is not None for one in here):
        # Sentences of one rule are changes of their own.
        return sum({one.finding.key[2]: saved(one.finding) or 0 for one in here}.values())
    by_rank = {one.rank.label: saved(one.finding) or 0 for one in here if one.rank is not None}
    return run_gain(recording.ranks, by_rank)


def _evaluated(rank: RankPart, rule: str) -> bool:
    return rank.judged and all(one.rule != rule for one in rank.not_evaluated)


def _total(instances: list[Instance], recordings: Sequence[RecordingPart]) -> int | None:
    """Savings over all windows of the ranks they are on; of one about the run, those of its mean rank."""
    saving = [one for one in instances if one.finding.saving is not None]
    ranks = [recordings[one.recording].ranks if one.rank is None else (one.rank,) for one in saving]
    windows = [max((len(rank.steps) for rank in each), default=0) for each in ranks]
    sums = [(one.finding.of_rank or 0) * count for one, count in zip(saving, windows, strict=True)]
    return sum(sums) if sums else None


def _onset(instances: list[Instance], recordings: Sequence[RecordingPart]) -> Onset:
    """Of the rank with the largest saving in each recording; those where it was not found have it in no step.

    Recordings of other ranks and damaged ones count only where the others do not have it.
    """
    spells = []
    chosen = set(comparable(recordings))
    if chosen.isdisjoint(one.recording for one in instances):
        chosen = {one.recording for one in instances}
    for index, recording in enumerate(recordings):
        if index not in chosen or not recording.marked:
            continue
        here = [one for one in instances if one.recording == index]
        if here:
            most = max(here, key=lambda one: (one.cost is not None, one.finding.saving or 0))
            steps = most.rank or recording.common or recording.ranks[decider(recording.ranks)]
            spells.append(Spell(index, steps.steps, steps.step_times, most.cost))
        elif _gain(instances, index, recording) is not None:
            rank = recording.ranks[decider(recording.ranks)]
            spells.append(Spell(index, rank.steps, rank.step_times, np.zeros(len(rank.steps), np.int64)))
    return onset(spells)


HOST_LOADING = "host_loading"
"""Slug of the finding; no rule has it."""


def host_loading(loading: NDArray[np.int64], times: NDArray[np.int64]) -> Finding | None:
    """That the step thread waits for its data, if it takes 5 % of the step: then batches could be made elsewhere.

    Loading and length of each step in ns (definitions §3, host-only report).
    """
    saving = int(loading.sum()) // max(len(loading), 1)
    share = int(loading.sum()) / max(int(times.sum()), 1)
    if share < MEDIUM:
        return None
    return Finding(
        saving=saving,
        bound=saving,
        evidence=(Evidence("wait", saving, "DURATION"), Evidence("share", share, "SHARE")),
        advice=("set_workers", "cheaper_samples", "local_data"),
        count=len(loading),
        severity=Severity.HIGH if share >= HIGH else Severity.MEDIUM,
        confidence=Confidence.HIGH,
        slug=HOST_LOADING,
    )
