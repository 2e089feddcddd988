"""How many findings of each rule a rank and a run have: new findings are a regression that needs no clock."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.cluster.compare import compare_ranks
from traceanalyze.cluster.summary import summarize
from traceanalyze.frozen import frozen
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Severity
from traceanalyze.rules.of_run import evaluate_run
from traceanalyze.rules.waiting import without_waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceanalyze.analyses.options import Options
    from traceanalyze.cluster.results import RankSummary
    from traceanalyze.gate.samples import RankSample, Sample
    from traceanalyze.gate.timings import Values
    from traceanalyze.model.trace import Trace
    from traceanalyze.rules.evaluate import Outcome
    from traceanalyze.rules.finding import Finding

HIGH = "findings.high"
TOTAL = "findings.total"
_LINE = re.compile(r"(?P<file>[^<>()]+\.py)\((?P<line>\d+)\)")


@frozen
class Place:
    """A finding with a source line."""

    rule: str
    slug: str
    severe: bool
    file: str
    line: int


@frozen
class Counted:
    """What the rules found, as numbers."""

    by_rule: Mapping[str, int] = field(default_factory=dict)
    severe: int = 0
    places: tuple[Place, ...] = ()
    summary: RankSummary | None = None
    """What the rules about ranks need of this one; None of a run."""
    outcome: Outcome | None = None
    """What the rules say about this one alone, without the times behind it; None of a run."""


def count_findings(trace: Trace, options: Options) -> Counted:
    """Run the rules on one rank."""
    context = Context(trace, options)
    analysis = analyze_context(context)
    outcome = evaluate(Facts(analysis, context), plan())
    kept = replace(outcome, findings=tuple(replace(one, intervals=None) for one in outcome.findings))
    return replace(_counted(outcome.findings), summary=summarize(context, analysis), outcome=kept)


def seen_together(ranks: Sequence[tuple[int | None, RankSample]]) -> tuple[list[RankSample], Counted]:
    """The ranks of a run with what is said of each beside the others, and the findings about all of them.

    As in a report: communication that is waiting for a late rank is a finding about ranks, not one of each.
    """
    samples = [sample for _, sample in ranks]
    told = [
        (sample.summary.of_rank(rank), sample.outcome)
        for rank, sample in ranks
        if sample.summary is not None and sample.outcome is not None
    ]
    if len(told) < max(len(samples), 2):
        return samples, Counted()
    wanted = plan()
    cluster = compare_ranks([summary for summary, _ in told])
    outcomes = without_waiting([outcome for _, outcome in told], cluster, wanted)
    found = [_with(sample, _counted(one.findings)) for sample, one in zip(samples, outcomes, strict=True)]
    return found, _counted(evaluate_run(cluster, wanted).findings)


def _with(sample: RankSample, counted: Counted) -> RankSample:
    values = {**sample.values, **finding_values(counted)}
    return replace(sample, values=values, findings=counted.by_rule, places=counted.places)


def _counted(found: Sequence[Finding]) -> Counted:
    return Counted(
        dict(sorted(Counter(finding.rule for finding in found).items())),
        sum(1 for finding in found if finding.severity == Severity.HIGH),
        tuple(dict.fromkeys(place for finding in found for place in _places(finding))),
    )


def _places(finding: Finding) -> Iterator[Place]:
    texts = [evidence.line for evidence in finding.evidence] + list(finding.scope.ops)
    for text in texts:
        found = _LINE.search(text) if text else None
        if found is not None:
            severe = finding.severity == Severity.HIGH
            yield Place(finding.rule, finding.slug, severe, found["file"].strip(), int(found["line"]))


def finding_values(counted: Counted | None) -> Values:
    """The metrics of a rank's findings; nothing where rules were not run."""
    if counted is None:
        return {}
    return {HIGH: np.array([float(counted.severe)]), TOTAL: np.array([float(sum(counted.by_rule.values()))])}


def with_run_findings(metrics: Mapping[str, Sample], counted: Counted) -> dict[str, Sample]:
    """Metrics of a run: those of its ranks' findings, and as many more as its own findings are."""
    more = {HIGH: counted.severe, TOTAL: sum(counted.by_rule.values())}
    return {name: replace(one, value=one.value + more[name]) if name in more else one for name, one in metrics.items()}
