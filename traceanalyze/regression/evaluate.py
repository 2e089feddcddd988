"""A verdict on one metric: exact ones number against number, times and ratios by the moderated t on run values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from traceanalyze.regression.budget import Rule, Settings, default
from traceanalyze.regression.metrics import METRICS, Kind, Level
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


class _Tested(NamedTuple):
    """A metric with an interval before the correction for the number of tests."""

    result: MetricResult
    estimate: Estimate
    threshold: float
    prior: Prior
    assumed: bool = False


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
        asked = [run for run in baseline if run.asked(name)] if stored else baseline
        old, new = _samples(asked, name), _samples(candidate, name)
        missing = _missing(rule, name, asked, candidate)
        if missing is not None:
            done[name] = missing
        elif baseline and not asked and not limited:
            later = replace(_plain(rule, [], new), verdict=Verdict.NOT_MEASURED, reason="asked_later")
            done[name] = replace(later, notes=(("not_measured", "asked_later"),))
        elif not asked:
            done[name] = _limits_alone(rule, new, settings, part_floor(candidate, settings))
        elif rule.metric.kind == Kind.EXACT:
            done[name] = _exact(rule, old, new, settings)
        else:
            done[name] = _interval(rule, old, new, settings, part_floor(baseline, settings, stored=stored), stored)
    tests = {name: each for name, each in done.items() if isinstance(each, _Tested)}
    p_values = {name: each.estimate.p for name, each in tests.items()}
    counted = [name for name in tests if rules[name].metric.kind != Kind.EXACT]
    p_values |= zip(counted, holm([p_values[name] for name in counted]), strict=True)
    return [_with_verdict(each, p_values[name]) if isinstance(each, _Tested) else each for name, each in done.items()]


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
    lacking = next(run for side in reversed(sides) for run in side)
    reason = lacking.missing.get(name, "not_recorded")
    verdict = Verdict.NOT_MEASURED if everywhere and not rule.named else Verdict.MISSING
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
    if rule.metric.kind == Kind.TIME and min(values) > 0:
        return math.exp(sum(math.log(value) for value in values) / len(values))
    return float(np.mean(values))


def _range(side: Sequence[Sample]) -> tuple[float, float] | None:
    """Over all steps of all runs, where they differ."""
    if not side:
        return None
    low, high = min(sample.low for sample in side), max(sample.high for sample in side)
    return (low, high) if low != high else None


def _exact(rule: Rule, old: Sequence[Sample], new: Sequence[Sample], settings: Settings) -> MetricResult | _Tested:
    found = _plain(rule, old, new)
    base, value = found.baseline or 0.0, found.candidate or 0.0
    old_range, new_range = found.baseline_range or (base, base), found.candidate_range or (value, value)
    # Absolute limits hold for every step.
    limit = _beyond(rule, *new_range)
    if limit is not None:
        return replace(found, verdict=Verdict.REGRESSION, reason=limit)
    found = replace(found, floor=_given(rule, base) or 0.0)
    worse = rule.metric.sign * (value - base)
    allowed = rule.budget.value * base if rule.budget.relative else rule.budget.value
    varies = found.baseline_range is not None or found.candidate_range is not None
    if varies and base == value and found.baseline_range == found.candidate_range:
        # Steps that differ in the same way on both sides are no reason for doubt.
        return found
    if varies and old_range[0] <= new_range[1] and new_range[0] <= old_range[1]:
        # The count varies: an interval on the plain scale, whose noise is half the range.
        noise = max(high - low for low, high in (old_range, new_range)) / 2
        prior = Prior(noise, settings.prior_weight, settings.confidence)
        before, after = ([rule.metric.sign * sample.value for sample in side] for side in (old, new))
        return _Tested(found, estimate(before, after, prior), allowed, prior)
    return found if abs(worse) <= allowed else _counted(found, worse, "varies_apart" if varies else "over_budget")


def _counted(found: MetricResult, worse: float, reason: str) -> MetricResult:
    """A count that changed by more than its budget."""
    if abs(worse) < found.floor:
        return replace(found, reason="below_min_effect")
    if worse < 0:
        return replace(found, verdict=Verdict.IMPROVEMENT, reason="improved")
    return replace(found, verdict=Verdict.REGRESSION, reason=reason)


def _given(rule: Rule, base: float) -> float | None:
    """Smallest change that counts, in the metric's unit, where the budget says it."""
    given = rule.min_effect
    return None if given is None else given.value * abs(base) if given.relative else given.value


def part_floor(runs: Sequence[RunSample], settings: Settings, *, stored: bool = False) -> float:
    """What counts of a part of the step, ns: as much as the step itself may change by chance from run to run."""
    rule = default(METRICS["step.time"])
    steps = _samples(runs, rule.metric.name)
    return noise_prior(rule, steps if stored else [], settings).floor * (_centre(rule, steps) or 0)


def _beyond(rule: Rule, low: float, high: float) -> str | None:
    """Which absolute limit a range of values goes beyond."""
    if rule.highest is not None and high > rule.highest:
        return "above_limit"
    return "below_limit" if rule.lowest is not None and low < rule.lowest else None


def _transformed(rule: Rule, samples: Sequence[Sample], least: float) -> list[float]:
    """On the scale of the test, more is worse; a smaller time is taken for `least`."""
    metric = rule.metric
    if metric.kind == Kind.RATIO:
        return [metric.sign * sample.value for sample in samples]
    return [metric.sign * math.log(max(sample.value, least, _SMALLEST)) for sample in samples]


def noise_prior(rule: Rule, history: Sequence[Sample], settings: Settings, least: float = 0) -> Prior:
    """What is known of the noise: learned from earlier runs once there are enough; `least` as of parts of the step."""
    ratio = rule.metric.kind == Kind.RATIO
    given = settings.noise_floor_points if ratio else settings.noise_floor
    known = _transformed(rule, history, least)
    floor = learned_floor(known, given, least=_LEAST_POINTS) if ratio else learned_floor(known, given)
    return Prior(floor, settings.prior_weight, settings.confidence)


def _interval(
    rule: Rule, old: Sequence[Sample], new: Sequence[Sample], settings: Settings, of_part: float, stored: bool
) -> MetricResult | _Tested:
    """`of_part` is what counts of a part of the step where the budget does not say it."""
    found = _plain(rule, old, new)
    ratio, part, base = rule.metric.kind == Kind.RATIO, rule.metric.part_of_step, found.baseline or 0.0
    floor = _given(rule, base)
    if part:
        floor = of_part if floor is None else floor
        limited = rule.highest is not None or rule.lowest is not None
        if not limited and max(sample.value for sample in (*old, *new)) < floor:
            return replace(found, reason="below_floor", floor=floor)
    least = floor or 0.0 if part else 0.0
    prior, sign = noise_prior(rule, old if stored else [], settings, least), rule.metric.sign
    if floor is None:
        floor = prior.floor * (1 if ratio else base)
    threshold = rule.budget.value if ratio else sign * math.log1p(sign * rule.budget.value)
    got = estimate(_transformed(rule, old, least), _transformed(rule, new, least), prior, history=stored)
    assumed = len(old) == len(new) == 1
    return _Tested(replace(found, floor=floor), got, threshold, prior, assumed)


def _with_verdict(tested: _Tested, p_holm: float) -> MetricResult:
    rule, got, threshold, prior = tested.result.rule, tested.estimate, tested.threshold, tested.prior
    found, e, h = tested.result, got.effect, got.half_width
    significant = p_holm <= prior.alpha
    counts = abs(found.difference or 0.0) >= found.floor
    verdict, reason = Verdict.INCONCLUSIVE, "interval_straddles"
    if significant and e >= threshold and e > 0 and counts:
        verdict, reason = Verdict.REGRESSION, "over_budget"
    elif e + h < 0 and e <= -threshold and counts:
        verdict, reason = Verdict.IMPROVEMENT, "improved"
    elif e + h < threshold or (threshold == 0 and e <= 0):
        verdict, reason = Verdict.PASS, "within_budget"
    else:
        # The largest absolute change that the interval allows, in the metric's unit.
        edges, base = (e - h, e + h), found.baseline or 0.0
        time = rule.metric.kind == Kind.TIME
        if max(abs(base * math.expm1(edge)) if time else abs(edge) for edge in edges) < found.floor:
            verdict, reason = Verdict.PASS, "below_min_effect"
        elif significant and e >= threshold and not counts:
            reason = "near_min_effect"
        elif rule.metric.kind == Kind.EXACT:
            reason = "varies"
    limit = _limit_verdict(tested)
    order = (Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.IMPROVEMENT, Verdict.PASS)
    if limit is not None and order.index(limit[0]) < order.index(verdict):
        verdict, reason = limit
    needed = runs_needed(got, threshold, prior) if verdict == Verdict.INCONCLUSIVE and threshold > 0 else None
    statistics = Statistics(e, h, got.p, p_holm, threshold, prior.floor, got.df, significant, needed, tested.assumed)
    return replace(found, verdict=verdict, reason=reason, statistics=statistics)


def _limit_verdict(tested: _Tested) -> tuple[Verdict, str] | None:
    """Absolute limits against the interval of the candidate alone; None where they are kept."""
    rule, found = tested.result.rule, tested.result
    if found.candidate is None or (rule.highest is None and rule.lowest is None):
        return None
    half = half_width_alone(tested.estimate, len(found.candidate_runs), tested.prior)
    scale = math.exp(half) if rule.metric.kind == Kind.TIME else None
    low = found.candidate / scale if scale else found.candidate - half
    high = found.candidate * scale if scale else found.candidate + half
    # Beyond a limit for certain is where the near end of the interval is.
    limit = _beyond(rule, low=high, high=low)
    if limit is not None:
        return Verdict.REGRESSION, limit
    return None if _beyond(rule, low, high) is None else (Verdict.INCONCLUSIVE, "near_limit")


def _limits_alone(rule: Rule, new: Sequence[Sample], settings: Settings, of_part: float) -> MetricResult:
    """Absolute limits without a baseline; `of_part` as of an interval."""
    found = replace(_plain(rule, [], new), reason="within_limit")
    if rule.metric.kind == Kind.EXACT:
        beyond = _beyond(rule, *(found.candidate_range or (found.candidate or 0.0,) * 2))
        return found if beyond is None else replace(found, verdict=Verdict.REGRESSION, reason=beyond)
    values = _transformed(rule, new, of_part if rule.metric.part_of_step else 0)
    prior = noise_prior(rule, [], settings)
    # The same moderated variance with one side: the prior's weight and the spread of the candidate.
    df = prior.weight + len(values) - 1
    squares = sum((value - float(np.mean(values))) ** 2 for value in values)
    spread = math.sqrt((prior.weight * prior.floor**2 + squares) / df)
    limit = _limit_verdict(_Tested(found, Estimate(0, 0, spread, df, 1), 0, prior))
    return found if limit is None else replace(found, verdict=limit[0], reason=limit[1])
