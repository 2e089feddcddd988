"""What a user demands of each metric: level, budget, smallest change that counts, absolute limits."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.gate.definitions import METRICS, Level, Metric
from traceanalyze.gate.environment import DEFAULT_MATCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceanalyze.gate.quantities import Amount


@frozen
class Rule:
    """How one metric is judged."""

    metric: Metric
    level: Level
    budget: Amount
    """Largest change for the worse."""
    min_effect: float
    """In the metric's unit."""
    highest: float | None = None
    """Absolute limit, in the metric's unit."""
    lowest: float | None = None
    asked: bool = False
    """The user's budget names it."""


@frozen
class Settings:
    """Everything that a budget file may say beside the metrics."""

    confidence: float = 0.95
    noise_floor: float = 0.01
    noise_floor_points: float = 1.0
    prior_weight: float = 4
    warmup_steps: int = 1
    on_inconclusive: str = "warn"
    on_improvement: str = "note"
    on_missing: str = "fail"
    match: tuple[str, ...] = DEFAULT_MATCH
    min_workload_similarity: float = 0.0
    tokens_per_step: float | None = None
    samples_per_step: float | None = None


@frozen
class Budget:
    """A budget for one environment."""

    settings: Settings = field(default_factory=Settings)
    rules: Mapping[str, Rule] = field(
        default_factory=lambda: {name: default(metric) for name, metric in METRICS.items()}
    )
    source: str = ""
    """File it is from; empty for the defaults."""

    @property
    def selectors(self) -> tuple[str, ...]:
        """Metrics that are selected by patterns of names."""
        return tuple(name for name in self.rules if name not in METRICS)


def default(metric: Metric) -> Rule:
    """How a metric is judged when nobody says anything."""
    return Rule(metric, metric.level, metric.budget, metric.min_effect)
