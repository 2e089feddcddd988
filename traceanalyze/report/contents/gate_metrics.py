"""What the gate judged, a row a metric: its numbers, why its verdict is what it is; and the runs of a baseline file."""

import math
from collections.abc import Iterator, Mapping

from traceanalyze.errors import Phrase
from traceanalyze.model import units
from traceanalyze.model.table import (
    Column,
    Kind,
    Message,
    NotMeasured,
    Quantity,
    Table,
    Value,
    Word,
    declare,
    sentences,
)
from traceanalyze.regression.baseline import Baseline, level
from traceanalyze.regression.budget import Settings, default
from traceanalyze.regression.evaluate import noise_prior, part_floor
from traceanalyze.regression.metrics import Kind as MetricKind
from traceanalyze.regression.metrics import Level, metric_of
from traceanalyze.regression.results import BAD, GateResult, MetricResult, Statistics, Verdict
from traceanalyze.regression.samples import RunSample
from traceanalyze.regression.verdict import shown

_SAY = sentences(
    gate_reason_over_budget="worse by more than the budget",
    gate_reason_varies_apart="worse by more than the budget; varies from step to step, but the ranges do not meet",
    gate_reason_above_limit="above the absolute limit {limit}",
    gate_reason_below_limit="below the absolute limit {limit}",
    gate_reason_near_limit="too near the absolute limit {limit} to tell",
    gate_reason_within_budget="within the budget",
    gate_reason_within_limit="within the absolute limit",
    gate_reason_below_floor="below {floor} on both sides, the least of the step that counts",
    gate_reason_below_min_effect="the change is below {floor}, the least that counts",
    gate_reason_near_min_effect="worse by more than the budget, but not for certain by {floor}, the least that counts",
    gate_reason_improved="better by more than the budget",
    gate_reason_interval_straddles="the data cannot tell a change within the budget from one beyond it",
    gate_reason_varies="varies from step to step ({before} in the baseline, {after} in the candidate), so whether "
    "it changed cannot be told",
    gate_reason_assumed="{reason} (± assumed)",
    gate_reason_asked_later="the budget named it after the runs of the baseline were recorded; "
    "`traceanalyze baseline update` adds runs that have it",
    gate_reason_missing_baseline="not measured in the baseline: {why}",
    gate_reason_missing_candidate="not measured in the candidate: {why}",
    gate_reason_missing_both="not measured on either side: {why}",
)

BY_FLOOR = frozenset({"below_floor", "below_min_effect", "near_min_effect"})
"""Reasons in which the smallest change that counts has decided."""
SIDES = {"baseline": Phrase("baseline"), "candidate": Phrase("candidate")}
"""As the gate calls them, which other languages do not call as comparisons do."""
_METRIC = Column("metric", Kind.NAME, "name of the metric, as budgets have it", cut_start=True)
CHANGE = Column("shown_change", Kind.QUANTITY, "change, if these runs can tell it from none", heading="change")
_METRICS = declare(
    "gate_metrics",
    "What was judged",
    _METRIC,
    Column("baseline", Kind.QUANTITY, "value of the baseline: of its runs, the median of their steps"),
    Column("candidate", Kind.QUANTITY, "value of the candidate"),
    CHANGE,
    Column("resolution", Kind.QUANTITY, "smallest change that these runs can tell apart", heading="±"),
    Column("budget", Kind.TEXT, "largest change allowed, least change (Δ) that counts, and absolute limits"),
    Column("verdict", Kind.TERM, "answer for this metric"),
    Column("reason", Kind.TEXT, "why the verdict is what it is, as a key", machine=True),
    Column("level", Kind.TEXT, "error fails the gate, warn only warns", machine=True),
    Column("kind", Kind.TEXT, "time, ratio or exact", machine=True),
    Column("unit", Kind.TEXT, "unit of both values", machine=True),
    Column("better", Kind.TEXT, "lower or higher", machine=True),
    Column("difference", Kind.NUMBER, "candidate minus baseline", machine=True),
    Column("relative_change", Kind.NUMBER, "difference over the baseline", machine=True),
    Column("budget_value", Kind.NUMBER, "largest change allowed", machine=True),
    Column("budget_relative", Kind.FLAG, "it is a fraction of the baseline", machine=True),
    Column("min_effect", Kind.NUMBER, "smallest change that counts", machine=True),
    Column("highest_allowed", Kind.NUMBER, "absolute limit from above", machine=True),
    Column("lowest_allowed", Kind.NUMBER, "absolute limit from below", machine=True),
    Column("effect", Kind.NUMBER, "change on the scale of the test, where more is worse", machine=True),
    Column("half_width", Kind.NUMBER, "half of its confidence interval", machine=True),
    Column("p", Kind.NUMBER, "p of the t test", machine=True),
    Column("p_holm", Kind.NUMBER, "the same, corrected for the number of metrics", machine=True),
    Column("threshold", Kind.NUMBER, "budget on the scale of the test", machine=True),
    Column("noise_floor", Kind.NUMBER, "smallest spread that is believed", machine=True),
    Column("df", Kind.NUMBER, "degrees of freedom of the t test", machine=True),
    Column("significant", Kind.FLAG, "the change is told from none", machine=True),
    Column("runs_needed", Kind.COUNT, "runs a side that would resolve half of the budget", machine=True),
    Column("assumed", Kind.FLAG, "the interval is assumed, as no side has two runs", machine=True),
)
_UNMEASURED = declare(
    "gate_not_judged",
    "Metrics that were not judged",
    _METRIC,
    Column("value", Kind.QUANTITY, "not measured, with the reason"),
    detail=True,
)
_SAMPLES = declare(
    "gate_samples",
    "What each run measured",
    _METRIC,
    Column("side", Kind.TERM, "baseline or candidate"),
    Column("run", Kind.NAME, "name of the run"),
    Column("value", Kind.QUANTITY, "of the run"),
    detail=True,
)


def metric_tables(result: GateResult) -> tuple[Table, Table, Table]:
    """Metrics that were judged, those that were not, and what each run measured."""
    judged = [each for each in result.metrics if each.verdict != Verdict.NOT_MEASURED]
    others = [each for each in result.metrics if each.verdict == Verdict.NOT_MEASURED]
    return (
        _METRICS.fill_records(map(_cells, judged)),
        _UNMEASURED.fill_records({"metric": each.name, "value": value(each, None)} for each in others),
        _SAMPLES.fill_records(_samples(result)),
    )


def _cells(each: MetricResult) -> dict[str, Value]:
    rule, found = each.rule, each.statistics
    told = found is None or found.told
    return {
        "metric": each.name,
        "baseline": value(each, each.baseline),
        "candidate": value(each, each.candidate),
        "shown_change": change(each) if told else Word("gate_no_change"),
        "resolution": resolution(each),
        "budget": budget(each),
        "verdict": verdict(each),
        "reason": each.reason,
        "level": str(rule.level),
        "kind": str(rule.metric.kind),
        "unit": rule.metric.unit,
        "better": "lower" if rule.metric.lower_is_better else "higher",
        "difference": each.difference,
        "relative_change": each.change,
        "budget_value": rule.budget.value,
        "budget_relative": rule.budget.relative,
        "min_effect": each.floor,
        "highest_allowed": rule.highest,
        "lowest_allowed": rule.lowest,
        **(dict.fromkeys(Statistics._fields) if found is None else found._asdict()),
    }


def verdict(each: MetricResult) -> str:
    """Term of the verdict, with its level where that is not the strict one."""
    mild = each.rule.level == Level.WARN and each.verdict in BAD
    return f"gate_{each.verdict}_warn" if mild else f"gate_{each.verdict}"


def _unit(each: MetricResult) -> str:
    """Ratios are kept in percent."""
    unit = each.rule.metric.unit
    return "percent" if unit == "points" else unit


def value(each: MetricResult, number: float | None) -> Value:
    """A value of the metric in its unit."""
    if number is None:
        return NotMeasured(_missing(each) or "not_recorded")
    return Quantity(number, _unit(each))


def _missing(each: MetricResult) -> str:
    return next((value for key, value in each.notes if key == "not_measured"), "")


def change(each: MetricResult) -> Quantity | NotMeasured:
    """The change: relative, of ratios in points, of counts as their budget."""
    kind, metric, difference = each.rule.metric.kind, each.rule.metric, each.difference
    if difference is None:
        return NotMeasured(_missing(each) or "not_recorded")
    if kind == MetricKind.RATIO:
        return Quantity(difference, "points", change=True)
    if difference == 0:
        return Quantity(0, "count")
    if kind == MetricKind.EXACT and metric.unit == "count" and not each.rule.budget.relative:
        return Quantity(difference, "count", change=True)
    return Quantity(difference, metric.unit, change=True) if each.change is None else Quantity(each.change, "%", True)


def resolution(each: MetricResult, *, words: bool = True) -> Value:
    """Half-width of the interval; exact metrics have none. In `words` it says where it is assumed."""
    kind = each.rule.metric.kind
    if each.statistics is None:
        exact = kind == MetricKind.EXACT and each.baseline is not None and each.candidate is not None
        return Word("gate_exact") if exact else None
    half, remark = each.statistics.half_width, "gate_assumed" if words and each.statistics.assumed else ""
    if kind == MetricKind.TIME:
        return Quantity(math.expm1(half), "%", remark=remark)
    return Quantity(half, "points" if kind == MetricKind.RATIO else _unit(each), remark=remark)


def budget(each: MetricResult) -> str:
    """The largest change allowed, the least that counts where that is set or has decided, and absolute limits."""
    rule, allowed = each.rule, each.rule.budget
    unit = rule.metric.unit
    if allowed.relative:
        text = f"{100 * allowed.value:g} %"
    elif unit == "points" or not allowed.value:
        text = f"{allowed.value:g} points" if unit == "points" else "0"
    else:
        text = units.quantity(allowed.value, unit)
    floor = each.floor if rule.min_effect is not None or each.reason in BY_FLOOR else None
    limits = (("Δ ≥", floor), ("≤", rule.highest), ("≥", rule.lowest))
    shown = (f"{mark} {units.quantity(limit, _unit(each))}" for mark, limit in limits if limit is not None)
    return ", ".join([text, *shown])


def reason(each: MetricResult) -> Message:
    """Why the verdict is what it is."""
    limit = each.rule.highest if each.reason.startswith(("above", "near")) else each.rule.lowest
    if each.reason == "near_limit" and limit is None:
        limit = each.rule.lowest
    value: Value = None if limit is None else Quantity(limit, _unit(each))
    why = ("why", Kind.TERM, f"reason_{_missing(each)}")
    before, after = (
        ("-".join(f"{end:,.6g}" for end in found) if found else "" if middle is None else f"{middle:,.6g}")
        for found, middle in ((each.baseline_range, each.baseline), (each.candidate_range, each.candidate))
    )
    ranges = ("before", Kind.TEXT, before), ("after", Kind.TEXT, after)
    floor = ("floor", Kind.QUANTITY, Quantity(each.floor, _unit(each)))
    told = Message(_SAY[f"gate_reason_{each.reason}"], (("limit", Kind.QUANTITY, value), floor, why, *ranges))
    return Message(_SAY["gate_reason_assumed"], (("reason", Kind.LIST, (told,)),)) if each.assumed else told


def _samples(result: GateResult) -> Iterator[Mapping[str, Value]]:
    for each in result.metrics:
        for key, side, values in (
            ("baseline", result.baseline, each.baseline_runs),
            ("candidate", result.candidate, each.candidate_runs),
        ):
            for run, value in zip(side.runs, values, strict=False):
                yield {"metric": each.name, "side": SIDES[key], "run": run.name, "value": Quantity(value, _unit(each))}


_COMMIT = 10
"""Letters of a commit that people see."""
_RUNS = declare(
    "baseline_runs",
    "Runs of the baseline",
    Column("run", Kind.NAME, "name of the run"),
    Column("recorded_at", Kind.TEXT, "when it was recorded", heading="recorded"),
    Column("label", Kind.TEXT, "label that it was added with"),
    Column("commit", Kind.TEXT, "commit that was recorded"),
    Column("usable_steps", Kind.COUNT, "steps that were used", heading="steps"),
    Column("step_time_ns", Kind.DURATION, "median of its steps", heading="step.time"),
    Column("environment_device", Kind.TEXT, "name of its device", heading="device"),
    Column("accepted", Kind.TEXT, "a star where it improved, or regressed and was accepted: a new level begins"),
)
_FLOORS = declare(
    "baseline_floors",
    "Noise floor per metric (spread of the runs, once there are five)",
    Column("metric", Kind.NAME, "name of the metric, as budgets have it"),
    Column("runs", Kind.COUNT, "runs that have measured it"),
    Column("noise_floor", Kind.QUANTITY, "smallest spread that is believed"),
)


def baseline_tables(baseline: Baseline) -> tuple[Table, Table]:
    """Of a baseline that has runs."""
    return _RUNS.fill_records(map(_run, baseline.runs)), _FLOORS.fill_records(_floors(baseline))


def _run(run: RunSample) -> dict[str, Value]:
    step = run.metrics.get("step.time")
    return {
        "run": run.name,
        "recorded_at": run.time[:16].replace("T", " "),
        "label": run.label,
        "commit": run.commit[:_COMMIT],
        "usable_steps": run.usable_steps,
        "step_time_ns": None if step is None else round(step.value),
        "environment_device": shown(run.environment.get("device")),
        "accepted": "*" if run.accepted else "",
    }


def _floors(baseline: Baseline) -> Iterator[dict[str, Value]]:
    """Of times and ratios."""
    runs = level(baseline.runs)
    least = part_floor(runs, Settings(), stored=True)
    for name in dict.fromkeys(name for run in runs for name in run.metrics):
        metric = metric_of(name)
        if metric is None or metric.kind == MetricKind.EXACT:
            continue
        samples = [run.metrics[name] for run in runs if name in run.metrics]
        floor = noise_prior(default(metric), samples, Settings(), least if metric.part_of_step else 0).floor
        kept = Quantity(floor, "points" if metric.kind == MetricKind.RATIO else "%")
        yield {"metric": name, "runs": len(samples), "noise_floor": kept}
