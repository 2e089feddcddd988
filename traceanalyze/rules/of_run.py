"""Rules about the ranks of a run: they need `R` and are given the comparison of the ranks, not one rank's facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traceanalyze.rules.evaluate import Outcome
from traceanalyze.rules.finding import Finding, NotApplicable, Severity
from traceanalyze.rules.ranking import HIGH, LEAST_NS, LEAST_SHARE, MEDIUM, confidence_of
from traceanalyze.rules.registry import every_rule

if TYPE_CHECKING:
    from traceanalyze.cluster.results import Cluster
    from traceanalyze.rules.evaluate import Plan

RANKS = "R"


@dataclass(frozen=True, slots=True)
class RunStep:
    """The mean step of all ranks, which findings about ranks are measured by."""

    time: int

    def share(self, amount: int) -> float:
        """Ns a step as a fraction of it."""
        return amount / self.time if self.time else 0.0


def of_one_rank(outcome: Outcome) -> Outcome:
    """What rules say about one rank of several, without those that are about all of them."""
    ids = {rule.id for rule in every_rule() if RANKS in rule.needs}
    return replace(outcome, not_applicable=tuple(one for one in outcome.not_applicable if one.rule not in ids))


def evaluate_run(cluster: Cluster, wanted: Plan) -> Outcome:
    """Findings about the ranks of a run, most saving first, and the rules that could not be judged.

    Savings of different rules are not made disjoint: a straggler and an imbalance may be one cause seen twice.
    """
    step = RunStep(round(float(cluster.step_time.mean()))) if cluster.steps else RunStep(0)
    found: list[Finding] = []
    unjudged: list[NotApplicable] = []
    for rule, options in wanted.rules:
        if RANKS not in rule.needs:
            continue
        for each in rule.find(cluster, options):
            if isinstance(each, NotApplicable):
                unjudged.append(replace(each, rule=rule.id, slug=rule.slug))
                continue
            if each.saving is not None and rule.threshold and _small(each.saving, step):
                continue
            found.append(
                replace(
                    each,
                    rule=rule.id,
                    slug=rule.slug,
                    confidence=confidence_of(each, rule),
                    advice=each.advice or rule.advice,
                    severity=_severity(each, step) if each.severity is None else each.severity,
                )
            )
    found.sort(key=lambda one: (one.saving is None, -(one.saving or 0), one.rule))
    return Outcome(tuple(found), tuple(unjudged))


def _small(saving: int, step: RunStep) -> bool:
    return saving < LEAST_NS or step.share(saving) < LEAST_SHARE


def _severity(one: Finding, step: RunStep) -> Severity:
    if one.saving is None:
        return Severity.INFO
    share = step.share(one.saving)
    return Severity.HIGH if share >= HIGH else Severity.MEDIUM if share >= MEDIUM else Severity.LOW
