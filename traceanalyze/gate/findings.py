"""How many findings of each rule a rank has: new findings are a regression that needs no clock."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traceanalyze.analyses.context import Options
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


def count_findings(trace: Trace, options: Options) -> Counted:
    """Run the rules on one rank."""
    context = Context(trace, options)
    found = evaluate(Facts(analyze_context(context), context), plan()).findings
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
