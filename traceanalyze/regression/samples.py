"""The run is the sample: ranks are put together step by step, then the steps of a run become one number a metric."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import RankSummary
from traceanalyze.ranks.summary import summarize
from traceanalyze.regression.explain import Explain
from traceanalyze.regression.measures import BUSY, Values
from traceanalyze.regression.metrics import Metric, metric_of
from traceanalyze.rules.across_ranks import evaluate_run, subtract_waiting
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.finding import Finding, Outcome, Severity

_LINE = regex(r"(?P<file>[^<>()]+\.py)\((?P<line>\d{1,9})\)")


class Place(NamedTuple):
    """A finding with a source line."""

    finding: Finding
    """Without the times behind it."""
    file: str
    line: int
    step: int
    """Mean step of its rank, ns."""
    platform: str

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells places apart: rule, file and line."""
        return self.finding.rule, self.file, self.line


@dataclass(frozen=True)
class Counted:
    """What the rules found, as numbers."""

    by_rule: Mapping[str, int] = field(default_factory=dict)
    severe: int = 0
    places: tuple[Place, ...] = ()
    summary: RankSummary | None = None
    """What the rules about ranks need of this one; None of a run."""
    outcome: Outcome | None = None
    """What the rules say about this one alone, without the times behind it; None of a run."""
    step: int = 0
    """Its mean step, ns."""
    platform: str = ""

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics that count findings."""
        return {"findings.high": float(self.severe), "findings.total": float(sum(self.by_rule.values()))}


def count_findings(trace: Trace, options: Options) -> Counted:
    """Run the rules on one rank."""
    context = Context(trace, options)
    analysis = analyze_context(context)
    facts = Facts(analysis, context)
    outcome = evaluate(facts, plan())
    kept = outcome._replace(findings=tuple(replace(one, intervals=None) for one in outcome.findings))
    own = Counted(summary=summarize(context, analysis), outcome=kept, step=facts.step_time, platform=facts.platform)
    return _counted(kept.findings, own)


def side_by_side(ranks: "Sequence[tuple[int | None, RankSample]]") -> "tuple[list[RankSample], Counted]":
    """The ranks of a run with what is said of each beside the others, and the findings about all of them.

    As in a report: communication that is waiting for a late rank is a finding about ranks, not one of each.
    """
    samples = [sample for _, sample in ranks]
    known = [
        (found.summary.of_rank(rank), found.outcome, found)
        for rank, found in ((rank, sample.findings) for rank, sample in ranks)
        if found is not None and found.summary is not None and found.outcome is not None
    ]
    if len(known) < max(len(samples), 2):
        return samples, Counted()
    wanted = plan()
    cluster = compare_ranks([summary for summary, *_ in known])
    outcomes = subtract_waiting([outcome for _, outcome, _ in known], cluster, wanted)
    beside = [
        with_findings(sample, _counted(one.findings, own))
        for sample, one, (*_, own) in zip(samples, outcomes, known, strict=True)
    ]
    return beside, _counted(evaluate_run(cluster, wanted).findings)


def with_findings(sample: "RankSample", found: Counted) -> "RankSample":
    """The rank with its findings, and the metrics that count them."""
    values = sample.values | {name: np.array([value]) for name, value in found.metrics.items()}
    return replace(sample, values=values, findings=found)


def _counted(found: Sequence[Finding], own: Counted | None = None) -> Counted:
    own = own or Counted()
    return replace(
        own,
        by_rule=dict(sorted(Counter(finding.rule for finding in found).items())),
        severe=sum(1 for finding in found if finding.severity == Severity.HIGH),
        places=distinct(place for finding in found for place in _places(finding, own)),
    )


def _places(finding: Finding, own: Counted) -> Iterator[Place]:
    for text in (*(evidence.line for evidence in finding.evidence), *finding.scope.ops):
        found = _LINE.search(text) if text else None
        if found is not None:
            yield Place(finding, found["file"].strip(), int(found["line"]), own.step, own.platform)


def distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    """Of several findings of one rule at one line that which is worth most."""
    ordered = sorted(places, key=lambda place: -place.finding.worth)
    first = {place.key: place for place in reversed(ordered)}
    return tuple(place for place in ordered if first[place.key] is place)


FEW_STEPS = 3
"""With fewer usable steps in a run its median is worth little."""
EnvironmentValue = str | int | tuple[str, ...] | None
Environment = dict[str, EnvironmentValue]


@dataclass(frozen=True)
class Sample:
    """One metric of one run."""

    value: float
    """Median over the usable steps."""
    per_step: tuple[float, ...] = ()
    """Empty for a metric of the run as a whole."""
    per_rank: Mapping[int, float] = field(default_factory=dict)
    """Median of each rank, where ranks differ."""

    @property
    def low(self) -> float:
        """Smallest value."""
        return min(self.per_step, default=self.value)

    @property
    def high(self) -> float:
        """Largest value."""
        return max(self.per_step, default=self.value)

    @property
    def varies(self) -> bool:
        """Whether the steps differ."""
        return self.low != self.high


@dataclass(frozen=True)
class RankSample:
    """What is kept of one rank's recording."""

    path: str
    steps: tuple[str, ...]
    """Names of the usable steps."""
    values: Values
    environment: Environment
    workload: Mapping[str, float]
    """Operator → runs per step."""
    explain: Explain
    mean_step: float
    digest: str
    """Hash of the recording's content."""
    began: int
    """ns since 1970, where the profile tells absolute time."""
    findings: Counted | None = None
    """None where rules were not run."""
    notes: tuple[str, ...] = ()
    """What of the recording is not in the numbers."""


@dataclass(frozen=True)
class RunSample:
    """One run of a side, as a baseline keeps it."""

    id: str
    name: str
    time: str
    """When it was recorded, ISO 8601; empty where the profile does not tell."""
    ranks: tuple[int | None, ...]
    environment: Environment
    workload: Mapping[str, float]
    metrics: Mapping[str, Sample]
    missing: Mapping[str, str]
    """Metric → key of the reason why it was not measured."""
    explain: Explain
    usable_steps: int
    label: str = ""
    commit: str = ""
    accepted: str = ""
    """Of runs that improved, or regressed and were accepted, together: the id of their first; it begins a new level."""
    findings: Mapping[str, int] | None = None
    """Rule → findings; None where rules were not run."""
    notes: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    """Findings with a source line; a baseline file does not keep them."""

    def asked(self, metric: str) -> bool:
        """Whether anybody asked for it: what a budget named only later a stored run can neither tell nor lack."""
        return metric in self.metrics or metric in self.missing


def combined(ranks: Sequence[tuple[int | None, RankSample]]) -> tuple[dict[str, Sample], dict[str, str], int]:
    """Metrics of a run from those of its ranks: samples, reasons of what is missing, and the number of usable steps."""
    rows = _common_steps([sample for _, sample in ranks])
    samples: dict[str, Sample] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(name for _, sample in ranks for name in sample.values):
        metric = metric_of(name)
        if metric is None:
            continue
        columns = [sample.values.get(name, NotMeasured("not_recorded")) for _, sample in ranks]
        unknown = next((column for column in columns if isinstance(column, NotMeasured)), None)
        if unknown is not None:
            missing[name] = unknown.reason
            continue
        known = [column for column in columns if not isinstance(column, NotMeasured)]
        samples[name] = _sample(metric, known, rows, [rank for rank, _ in ranks])
    skew = _skew([sample.values.get(BUSY) for _, sample in ranks], rows)
    if isinstance(skew, Sample):
        samples["rank.skew"] = skew
    else:
        missing["rank.skew"] = skew.reason
    return samples, missing, len(rows[0])


def _common_steps(ranks: Sequence[RankSample]) -> list[list[int]]:
    """Rows of the steps that all ranks have: by name, else by position."""
    counts = Counter(name for sample in ranks for name in set(sample.steps))
    shared = [name for name in ranks[0].steps if counts[name] == len(ranks)]
    if shared and len(set(ranks[0].steps)) == len(ranks[0].steps):
        return [[sample.steps.index(name) for name in shared] for sample in ranks]
    fewest = min(len(sample.steps) for sample in ranks)
    return [list(range(fewest)) for _ in ranks]


def _sample(
    metric: Metric, columns: Sequence[NDArray[np.float64]], rows: Sequence[Sequence[int]], ranks: Sequence[int | None]
) -> Sample:
    chosen = [column if metric.per_run else column[list(row)] for column, row in zip(columns, rows, strict=True)]
    table = np.stack(chosen)
    over_ranks = {"max": table.max(axis=0), "sum": table.sum(axis=0), "median": np.median(table, axis=0)}[metric.ranks]
    own = [float(np.median(column)) for column in chosen]
    labels = [at if rank is None else rank for at, rank in enumerate(ranks)]
    return Sample(
        value=float(np.median(over_ranks)),
        per_step=() if metric.per_run else tuple(over_ranks.tolist()),
        per_rank=dict(zip(labels, own, strict=True)) if len(set(own)) > 1 else {},
    )


def _skew(
    columns: Sequence[NDArray[np.float64] | NotMeasured | None], rows: Sequence[Sequence[int]]
) -> Sample | NotMeasured:
    """How far the busiest rank is above the median one, in points of the median."""
    known = [column for column in columns if column is not None and not isinstance(column, NotMeasured)]
    if len(known) < 2 or len(known) != len(columns):
        return NotMeasured("one_rank" if len(columns) < 2 else "no_device_events")
    table = np.stack([column[list(row)] for column, row in zip(known, rows, strict=True)])
    middle = np.median(table, axis=0)
    if not (middle > 0).all():
        return NotMeasured("no_device_events")
    skew = 100 * (table.max(axis=0) - middle) / middle
    return Sample(float(np.median(skew)), tuple(skew.tolist()))
