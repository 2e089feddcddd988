"""How many findings of each rule a rank and a run have: new findings are a regression that needs no clock."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.cluster.compare import compare_ranks
from traceanalyze.cluster.summary import summarize
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Severity
from traceanalyze.rules.of_run import evaluate_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceanalyze.analyses.context import Options
    from traceanalyze.cluster.results import RankSummary
    from traceanalyze.gate.samples import Sample
    from traceanalyze.gate.timings import Values
    from traceanalyze.model.trace import Trace
    from traceanalyze.rules.finding import Finding

HIGH = "findings.high"
TOTAL = "findings.total"
_LINE = re.compile(r"(?P<file>[^<>()]+\.py)\((?P<line>\d+)\)")


@dataclass(frozen=True, slots=True)
class Place:
    """A finding with a source line."""

    rule: str
    slug: str
    severe: bool
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Counted:
    """What the rules found, as numbers."""

    by_rule: Mapping[str, int] = field(default_factory=dict)
    severe: int = 0
    places: tuple[Place, ...] = ()
    summary: RankSummary | None = None
    """What the rules about ranks need of this one; None of a run."""


def count_findings(trace: Trace, options: Options) -> Counted:
    """Run the rules on one rank."""
    context = Context(trace, options)
    analysis = analyze_context(context)
    found = evaluate(Facts(analysis, context), plan()).findings
    return replace(_counted(found), summary=summarize(context, analysis))


def count_run_findings(ranks: Sequence[RankSummary]) -> Counted:
    """Run the rules about ranks on the comparison of the ranks of a run; one rank has no such findings."""
    return _counted(evaluate_run(compare_ranks(ranks), plan()).findings) if len(ranks) > 1 else Counted()


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
