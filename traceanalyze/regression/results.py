"""What the gate says: a verdict on every metric, on the whole, and why."""

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import NamedTuple

from traceanalyze.model.patterns import by_identity, dataclass
from traceanalyze.regression.budget import Budget, Rule
from traceanalyze.regression.environment import Difference
from traceanalyze.regression.explain import Why
from traceanalyze.regression.samples import RunSample


class Verdict(StrEnum):
    """Answer for one metric; worst first."""

    REGRESSION = "regression"
    MISSING = "missing"
    INCONCLUSIVE = "inconclusive"
    IMPROVEMENT = "improvement"
    PASS = "pass"  # noqa: S105 - no password
    NOT_MEASURED = "not_measured"


BAD = frozenset({Verdict.REGRESSION, Verdict.MISSING, Verdict.INCONCLUSIVE})
"""Verdicts that may fail the gate, and that annotations name."""


class Overall(StrEnum):
    """Answer of the gate."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    PASS = "pass"  # noqa: S105 - no password


class Statistics(NamedTuple):
    """How a metric with an interval was evaluated; `effect` and the like on the transformed scale (more is worse)."""

    effect: float
    half_width: float
    p: float
    p_holm: float
    threshold: float
    noise_floor: float
    df: float
    significant: bool
    runs_needed: int | None = None
    assumed: bool = False
    """No side tells a spread, nor does a history: the interval is that of the budget's noise floor."""

    @property
    def told(self) -> bool:
        """Whether the change is told from none, for better or worse."""
        return self.significant or self.effect + self.half_width < 0


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """One metric of both sides, in the metric's unit."""

    rule: Rule
    verdict: Verdict
    reason: str
    """Key of `gate_reason_…`, why the verdict is what it is."""
    baseline: float | None
    candidate: float | None
    baseline_runs: tuple[float, ...] = ()
    candidate_runs: tuple[float, ...] = ()
    baseline_range: tuple[float, float] | None = None
    """Smallest and largest step, where they differ."""
    candidate_range: tuple[float, float] | None = None
    statistics: Statistics | None = None
    floor: float = 0
    """Smallest change that counts, in the metric's unit."""
    notes: tuple[tuple[str, str], ...] = ()
    """Remarks that decide nothing: key and value."""

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.rule.metric.name

    @property
    def assumed(self) -> bool:
        """Whether the interval that decided is assumed."""
        return self.statistics is not None and self.statistics.assumed

    @property
    def difference(self) -> float | None:
        """Candidate minus baseline."""
        return None if self.baseline is None or self.candidate is None else self.candidate - self.baseline

    @property
    def change(self) -> float | None:
        """Relative change; None where there is nothing to relate to."""
        if self.difference is None or not self.baseline:
            return 0.0 if self.difference == 0 else None
        return self.difference / self.baseline


@by_identity
class SideSummary(NamedTuple):
    """What the report says of a side."""

    label: str
    runs: tuple[RunSample, ...]
    stored: bool = False
    """Runs are the history that a baseline file keeps."""

    def __repr__(self) -> str:
        """Short, however many runs there are."""
        return f"<{self.label[:1000]}: {len(self.runs)} runs>"


@dataclass(frozen=True, eq=False)
class GateResult:
    """Everything the gate says."""

    overall: Overall
    exit_code: int
    reason: str
    """Why the exit code is not 0, one line; else empty."""
    baseline: SideSummary
    candidate: SideSummary
    budget: Budget
    metrics: tuple[MetricResult, ...]
    """Evaluated ones, worst first."""
    why: Why | None
    differences: tuple[Difference, ...]
    similarity: float | None
    waived: tuple[str, ...] = ()
    notes: tuple[tuple[str, Mapping[str, object]], ...] = ()
    """Remarks on the input: key of `gate_note_…` and its values."""
    findings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Findings whose number changed: rule → number on either side."""
    strict: bool = False
    tool_version: str = ""

    def __repr__(self) -> str:
        """The answer."""
        return f"<gate: {self.overall}, {len(self.metrics)} metrics>"
