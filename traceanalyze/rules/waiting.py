"""What ranks save by communicating less, when much of their communication is waiting for late ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.rules.common.gradients import LAST_BUCKET
from traceanalyze.rules.finding import Severity
from traceanalyze.rules.of_run import RunStep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.cluster.results import Cluster, RankSummary
    from traceanalyze.rules.evaluate import Outcome, Plan
    from traceanalyze.rules.finding import Finding

_GENERAL = "COM101"
"""It has a limit of its own, the share of the step in exposed communication."""
_ABOUT_RANKS = "RNK101"


def without_waiting(outcomes: Sequence[Outcome], cluster: Cluster, wanted: Plan) -> list[Outcome]:
    """What is said about each rank, without savings of communication that are waiting for other ranks.

    No overlap and no larger message removes the wait for a late rank: the findings about ranks say what it costs.
    Where ranks are missing only as much is taken off as is known to be waiting. What is left below the limit of its
    rule goes.

    Args:
        outcomes: of the ranks, in the order of `cluster.ranks`.
        cluster: the ranks side by side.
        wanted: the rules that were run; those about ranks must be among them, or the wait would be told nowhere.
    """
    named = any(rule.id == _ABOUT_RANKS for rule, _ in wanted.rules)
    if not named or isinstance(cluster.exposed_waits, NotMeasured):
        return list(outcomes)
    return [
        _cut(outcome, rank, wait, wanted)
        for outcome, rank, wait in zip(outcomes, cluster.ranks, cluster.exposed_waits.mean.tolist(), strict=True)
    ]


def _cut(outcome: Outcome, rank: RankSummary, wait: int, wanted: Plan) -> Outcome:
    if not wait:
        return outcome
    limit = next((options.number("share") for rule, options in wanted.rules if rule.id == _GENERAL), 0.0)
    steps = max(int(rank.complete.sum()), 1)
    step = RunStep(int(rank.step_time[rank.complete].sum()) // steps)
    room = max(0, int(rank.parts["communication"][rank.complete].sum()) // steps - wait)
    kept: list[Finding] = []
    for one in outcome.findings:
        if one.draws != "comm_exposed" or one.saving is None:
            kept.append(one)
            continue
        if one.rule == _GENERAL and step.share(room) < limit:
            continue
        left, room = min(one.saving, max(0, room - _last_bucket(one, wait))), max(0, room - one.saving)
        if left == one.saving:
            kept.append(one)
        elif not step.small(left):
            quiet = one.severity == Severity.INFO
            kept.append(replace(one, saving=left, severity=one.severity if quiet else step.severity(left)))
    kept.sort(key=lambda one: (one.saving is None, -(one.saving or 0)))
    return replace(outcome, findings=tuple(kept))


def _last_bucket(one: Finding, wait: int) -> int:
    """What stays exposed of gradients in any case, without the part of it that is waiting."""
    last = next((int(each.value) for each in one.evidence if each.label == LAST_BUCKET), 0)
    return round(last * max(0.0, 1 - wait / one.bound)) if one.bound else last
