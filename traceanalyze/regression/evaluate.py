"""A verdict on one metric: exact ones number against number, times and ratios by the moderated t on run values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.regression.budget import Rule, Settings
from traceanalyze.regression.metrics import Kind, Level
from traceanalyze.regression.results import MetricResult, Statistics, Verdict
from traceanalyze.regression.samples import RunSample, Sample
from traceanalyze.regression.statistics import (
    Estimate,
    Prior,
    estimate,
    half_width_alone,
    holm,
    learned_floor,
    runs_needed,
)

_LEAST_POINTS = 0.3
"""A learned noise floor of a ratio is at least this many points."""
_SMALLEST = 1e-300


@frozen
class _Tested:
    """A metric with an interval before the correction for the number of tests."""

    result: MetricResult
    estimate: Estimate
    threshold: float
    prior: Prior


def evaluate(
    rules: Mapping[str, Rule],
    baseline: Sequence[RunSample],
    candidate: Sequence[RunSample],
    settings: Settings,
    *,
    stored: bool = False,
) -> list[MetricResult]:
    """Verdicts on every metric that is not off, in the order of the rules; without a baseline only absolute limits.

    With a `stored` baseline, whose runs are a history, the noise floor is learned from it once it has five runs.
    """
    done: dict[str, MetricResult | _Tested] = {}
    for name, rule in rules.items():
        limited = rule.highest is not None or rule.lowest is not None
        if rule.level == Level.OFF or (not baseline and not limited):
            continue
        old, new = _samples(baseline, name), _samples(candidate, name)
        missing = _missing(rule, name, baseline, candidate)
        if missing is not None:
            done[name] = missing
        elif not baseline:
            done[name] = _limits_alone(rule, new, settings)
        elif rule.metric.kind == Kind.EXACT:
            done[name] = _exact(rule, old, new, settings)
        else:
            done[name] = _interval(rule, old, new, settings, stored=stored)
    tested = [
        name for name, each in done.items() if isinstance(each, _Tested) and rules[name].metric.kind != Kind.EXACT
    ]
    corrected = dict(zip(tested, holm([_p(done[name]) for name in tested]), strict=True))
    return [
        _with_verdict(each, corrected.get(name, each.estimate.p)) if isinstance(each, _Tested) else each
        for name, each in done.items()
    ]


def _p(each: MetricResult | _Tested) -> float:
    return each.estimate.p if isinstance(each, _Tested) else 1.0


def _samples(runs: Sequence[RunSample], name: str) -> list[Sample]:
    return [run.metrics[name] for run in runs if name in run.metrics]


def _missing(
    rule: Rule, name: str, baseline: Sequence[RunSample], candidate: Sequence[RunSample]
) -> MetricResult | None:
    """A metric that some run does not have; None where all have it."""
    sides = [[run for run in side if name not in run.metrics] for side in (baseline, candidate)]
    if not any(sides):
        return None
    everywhere = len(sides[0]) == len(baseline) and len(sides[1]) == len(candidate)
    without = next(run for side in reversed(sides) for run in side)
    reason = without.missing.get(name, "not_recorded")
    verdict = Verdict.NOT_MEASURED if everywhere and not rule.asked else Verdict.MISSING
    old, new = (_middle(_samples(side, name)) for side in (baseline, candidate))
    where = "both" if everywhere else "candidate" if sides[1] else "baseline"
    return MetricResult(rule, verdict, f"missing_{where}", old, new, notes=(("not_measured", reason),))


def _middle(samples: Sequence[Sample]) -> float | None:
    return float(np.median([sample.value for sample in samples])) if samples else None


def _plain(rule: Rule, old: Sequence[Sample], new: Sequence[Sample]) -> MetricResult:
    """Both sides, without a verdict yet; times are shown as the geometric means that are compared."""
    return MetricResult(
        rule=rule,
        verdict=Verdict.PASS,
        reason="within_budget",
        baseline=_centre(rule, old),
        candidate=_centre(rule, new),
        baseline_runs=tuple(sample.value for sample in old),
        candidate_runs=tuple(sample.value for sample in new),
        baseline_range=_range(old),
        candidate_range=_range(new),
    )


def _centre(rule: Rule, samples: Sequence[Sample]) -> float | None:
    values = [sample.value for sample in samples]
    if not values or rule.metric.kind == Kind.EXACT:
        return _middle(samples)
    return _geometric(values) if rule.metric.kind == Kind.TIME else float(np.mean(values))


def _geometric(values: Sequence[float]) -> float:
    return (
        math.exp(sum(math.log(value) for value in values) / len(values)) if min(values) > 0 else float(np.mean(values))
    )


def _range(side: Sequence[Sample]) -> tuple[float, float] | None:
    """Over all steps of all runs, where they differ."""
    if not side:
        return None
    low, high = min(sample.low for sample in side), max(sample.high for sample in side)
    return (low, high) if low != high else None


def _exact(rule: Rule, old: Sequence[Sample], new: Sequence[Sample], settings: Settings) -> MetricResult | _Tested:
    found = _plain(rule, old, new)
    base, value = found.baseline or 0.0, found.candidate or 0.0
    if _limit_broken(rule, found):
        return replace(
            found,
            verdict=Verdict.REGRESSION,
            reason="above_limit"
            if rule.highest is not None and max(sample.high for sample in new) > rule.highest
            else "below_limit",
        )
    sign = 1 if rule.metric.lower_is_better else -1
    worse = sign * (value - base)
    allowed = rule.budget.value * base if rule.budget.relative else rule.budget.value
    varies = found.baseline_range is not None or found.candidate_range is not None
    if varies and base == value and found.baseline_range == found.candidate_range:
        # Steps that differ in the same way on both sides are no reason for doubt.
        return found
    if varies and _overlap(found, base, value):
        return _spread(found, rule, old, new, allowed, settings)
    if worse > allowed and worse >= rule.min_effect:
        return replace(found, verdict=Verdict.REGRESSION, reason="varies_apart" if varies else "over_budget")
    if worse < 0 and -worse > allowed and -worse >= rule.min_effect:
        return replace(found, verdict=Verdict.IMPROVEMENT, reason="improved")
    return found


def _overlap(found: MetricResult, base: float, value: float) -> bool:
    """Whether the ranges of the sides have a value in common; a constant side is a range of one value."""
    old, new = found.baseline_range or (base, base), found.candidate_range or (value, value)
    return old[0] <= new[1] and new[0] <= old[1]


def _spread(
    found: MetricResult, rule: Rule, old: Sequence[Sample], new: Sequence[Sample], allowed: float, settings: Settings
) -> _Tested:
    """A count that varies: as an interval on the plain scale, whose noise is half the range."""
    widths = [high - low for low, high in (r for r in (found.baseline_range, found.candidate_range) if r is not None)]
    sign = 1 if rule.metric.lower_is_better else -1
    prior = Prior(max(widths) / 2, settings.prior_weight, settings.confidence)
    got = estimate([sign * sample.value for sample in old], [sign * sample.value for sample in new], prior)
    return _Tested(found, got, allowed, prior)


def _limit_broken(rule: Rule, found: MetricResult) -> bool:
    """Absolute limits of an exact metric: its largest (smallest) step counts."""
    low, high = found.candidate_range or (found.candidate or 0.0, found.candidate or 0.0)
    return (rule.highest is not None and high > rule.highest) or (rule.lowest is not None and low < rule.lowest)


def _transformed(rule: Rule, samples: Sequence[Sample]) -> list[float]:
    """On the scale of the test, more is worse."""
    metric = rule.metric
    sign = 1 if metric.lower_is_better else -1
    if metric.kind == Kind.RATIO:
        return [sign * sample.value for sample in samples]
    least = _SMALLEST if metric.name == "step.time" else max(rule.min_effect, _SMALLEST)
    return [sign * math.log(max(sample.value, least)) for sample in samples]


def threshold_of(rule: Rule) -> float:
    """The budget on the scale of the test."""
    if rule.metric.kind == Kind.RATIO:
        return rule.budget.value
    return math.log1p(rule.budget.value) if rule.metric.lower_is_better else -math.log1p(-rule.budget.value)


def noise_prior(rule: Rule, history: Sequence[Sample], settings: Settings) -> Prior:
    """What is known of the noise: learned from earlier runs once there are enough."""
    ratio = rule.metric.kind == Kind.RATIO
    given = settings.noise_floor_points if ratio else settings.noise_floor
    known = _transformed(rule, history)
    floor = learned_floor(known, given, least=_LEAST_POINTS) if ratio else learned_floor(known, given)
    return Prior(floor, settings.prior_weight, settings.confidence)


def _interval(
    rule: Rule, old: Sequence[Sample], new: Sequence[Sample], settings: Settings, *, stored: bool
) -> MetricResult | _Tested:
    found = _plain(rule, old, new)
    limited = rule.highest is not None or rule.lowest is not None
    component = rule.metric.kind == Kind.TIME and rule.metric.name != "step.time" and not limited
    if component and max(sample.value for sample in (*old, *new)) < rule.min_effect:
        return replace(found, reason="below_floor")
    prior = noise_prior(rule, old if stored else [], settings)
    return _Tested(found, estimate(_transformed(rule, old), _transformed(rule, new), prior), threshold_of(rule), prior)


def _with_verdict(tested: _Tested, p_holm: float) -> MetricResult:
    rule, got, threshold, prior = tested.result.rule, tested.estimate, tested.threshold, tested.prior
    found, e, h = tested.result, got.effect, got.half_width
    significant = p_holm <= prior.alpha
    effect = abs(found.difference or 0.0)
    verdict, reason = Verdict.INCONCLUSIVE, "interval_straddles"
    if significant and e >= threshold and e > 0 and effect >= rule.min_effect:
        verdict, reason = Verdict.REGRESSION, "over_budget"
    elif e + h < 0 and e <= -threshold and effect >= rule.min_effect:
        verdict, reason = Verdict.IMPROVEMENT, "improved"
    elif e + h < threshold or (threshold == 0 and e <= 0):
        verdict, reason = Verdict.PASS, "within_budget"
    elif _largest_effect(tested) < rule.min_effect:
        verdict, reason = Verdict.PASS, "below_min_effect"
    limit = _limit_verdict(tested)
    order = (Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.IMPROVEMENT, Verdict.PASS)
    if limit is not None and order.index(limit[0]) < order.index(verdict):
        verdict, reason = limit
    needed = runs_needed(got, threshold, prior) if verdict == Verdict.INCONCLUSIVE and threshold > 0 else None
    statistics = Statistics(e, h, got.p, p_holm, threshold, prior.floor, got.df, significant, needed)
    return replace(found, verdict=verdict, reason=reason, statistics=statistics)


def _largest_effect(tested: _Tested) -> float:
    """Largest absolute change that the interval allows, in the metric's unit."""
    rule, got, base = tested.result.rule, tested.estimate, tested.result.baseline or 0.0
    edges = (got.effect - got.half_width, got.effect + got.half_width)
    if rule.metric.kind == Kind.TIME:
        return max(abs(base * math.expm1(edge)) for edge in edges)
    return max(map(abs, edges))


def _limit_verdict(tested: _Tested) -> tuple[Verdict, str] | None:
    """Absolute limits against the interval of the candidate alone; None where they are kept."""
    rule, found = tested.result.rule, tested.result
    if found.candidate is None or (rule.highest is None and rule.lowest is None):
        return None
    half = half_width_alone(tested.estimate, len(found.candidate_runs), tested.prior)
    scale = math.exp(half) if rule.metric.kind == Kind.TIME else None
    low = found.candidate / scale if scale else found.candidate - half
    high = found.candidate * scale if scale else found.candidate + half
    if (rule.highest is not None and low > rule.highest) or (rule.lowest is not None and high < rule.lowest):
        return Verdict.REGRESSION, "above_limit" if rule.highest is not None and low > rule.highest else "below_limit"
    if (rule.highest is not None and high > rule.highest) or (rule.lowest is not None and low < rule.lowest):
        return Verdict.INCONCLUSIVE, "near_limit"
    return None


def _limits_alone(rule: Rule, new: Sequence[Sample], settings: Settings) -> MetricResult:
    """Absolute limits without a baseline."""
    found = replace(_plain(rule, [], new), reason="within_limit")
    if rule.metric.kind == Kind.EXACT:
        if not _limit_broken(rule, found):
            return found
        _, high = found.candidate_range or (0.0, found.candidate or 0.0)
        broken = rule.highest is not None and high > rule.highest
        return replace(found, verdict=Verdict.REGRESSION, reason="above_limit" if broken else "below_limit")
    values = _transformed(rule, new)
    prior = noise_prior(rule, [], settings)
    # The same moderated variance with one side: the prior's weight and the spread of the candidate.
    df = prior.weight + len(values) - 1
    squares = sum((value - float(np.mean(values))) ** 2 for value in values)
    spread = math.sqrt((prior.weight * prior.floor**2 + squares) / df)
    limit = _limit_verdict(_Tested(found, Estimate(0, 0, spread, df, 1), 0, prior))
    return found if limit is None else replace(found, verdict=limit[0], reason=limit[1])
