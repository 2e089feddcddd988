"""Numbers and verdicts of the gate as people read them; every format says the same."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traceanalyze.locales import Texts
from traceanalyze.model import units
from traceanalyze.regression.metrics import Kind, Level
from traceanalyze.regression.results import BAD, GateResult, MetricResult, Overall, SideSummary, Verdict
from traceanalyze.regression.statistics import MOST_RUNS
from traceanalyze.regression.verdict import shown

_NAMED = 3


COLUMNS = ("metric", "baseline", "candidate", "change", "resolution", "budget", "verdict")


def headline(result: GateResult, texts: Texts) -> str:
    """The answer in one sentence."""
    errors = [each for each in result.metrics if each.rule.level == Level.ERROR]
    broken = [each for each in result.metrics if each.verdict in {Verdict.REGRESSION, Verdict.MISSING}]
    if result.overall == Overall.INCONCLUSIVE:
        key, found = "gate_inconclusive", [each for each in errors if each.verdict == Verdict.INCONCLUSIVE]
    elif result.overall == Overall.FAIL:
        worst = [
            each
            for each in broken
            if each.rule.level == Level.ERROR or (result.strict and each.verdict == Verdict.REGRESSION)
        ]
        key, found = "gate_fail", worst or [each for each in errors if each.verdict == Verdict.IMPROVEMENT]
    else:
        key, found = "gate_pass_warn" if broken else "gate_pass", broken
    say = texts.messages
    names = [_with_change(each, texts) for each in found[:_NAMED]]
    listed = say["list_mark"].join(names)
    if len(found) > _NAMED:
        listed = say["gate_more"].format(names=listed, count=len(found) - _NAMED)
    return say[key].format(names=listed)


def _with_change(each: MetricResult, texts: Texts) -> str:
    if each.verdict == Verdict.INCONCLUSIVE:
        return each.name
    text = texts.messages[f"gate_verdict_{each.verdict}"] if each.verdict == Verdict.MISSING else change(each)
    return f"{each.name} {text}"


def sides(result: GateResult, texts: Texts) -> list[tuple[str, str]]:
    """What each side is called (as the user calls it, else a word of the language), and what it consists of."""
    say = texts.messages
    return [
        (say[f"gate_column_{one.label}"] if one.label in {"baseline", "candidate"} else one.label, _side(one, texts))
        for one in (result.baseline, result.candidate)
        if one.runs
    ]


def _side(summary: SideSummary, texts: Texts) -> str:
    runs = summary.runs
    counts = sorted({run.usable_steps for run in runs})
    steps = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    many, one = (
        ("gate_side_no_steps", "gate_side_no_steps_run") if counts == [0] else ("gate_side_runs", "gate_side_run")
    )
    key = one if len(runs) == 1 else many
    devices = dict.fromkeys(shown(run.environment.get("device")) for run in runs if run.environment.get("device"))
    return " · ".join([texts.messages[key].format(runs=len(runs), steps=steps), *devices])


def metrics(result: GateResult, texts: Texts) -> tuple[list[str], list[tuple[str, ...]]]:
    """Headings and rows of the table of all measured metrics."""
    rows = [cells(each, texts) for each in result.metrics if each.verdict != Verdict.NOT_MEASURED]
    return [texts.messages[f"gate_column_{name}"] for name in COLUMNS], rows


def unmeasured(result: GateResult, texts: Texts, mark: str) -> str:
    """Names of the other metrics in a sentence; empty where there is none."""
    names = [each.name for each in result.metrics if each.verdict == Verdict.NOT_MEASURED]
    return texts.messages["gate_not_measured"].format(names=mark.join(names)) if names else ""


def cells(each: MetricResult, texts: Texts) -> tuple[str, ...]:
    """One metric in words, in the order of `COLUMNS`."""
    changed = each.statistics is None or each.statistics.significant or each.verdict == Verdict.IMPROVEMENT
    return (
        each.name,
        value(each, each.baseline),
        value(each, each.candidate),
        change(each) if changed else texts.messages["gate_no_change"],
        resolution(each, texts),
        budget(each),
        verdict(each, texts),
    )


def verdict(each: MetricResult, texts: Texts) -> str:
    """The verdict, with its level where that is not the strict one."""
    word = texts.messages[f"gate_verdict_{each.verdict}"]
    mild = each.rule.level == Level.WARN and each.verdict in BAD
    return texts.messages["gate_level_warn"].format(verdict=word) if mild else word


def value(each: MetricResult, number: float | None) -> str:
    """A value in the metric's unit."""
    if number is None:
        return "n/m"
    unit = each.rule.metric.unit
    if unit == "ns":
        return units.duration(round(number))
    if unit == "B":
        return units.memory(round(number))
    if unit == "points":
        return f"{number:.1f} %"
    if unit == "count":
        return units.count(number)
    return f"{number:,.4g} {unit}"


def change(each: MetricResult) -> str:
    """The change with its sign: relative, of ratios in points, of counts as their budget."""
    if each.difference is None:
        return "n/m"
    kind = each.rule.metric.kind
    if kind == Kind.RATIO:
        return f"{each.difference:+.1f} points"
    if each.difference == 0:
        return "0"
    if kind == Kind.EXACT and each.rule.metric.unit == "count" and not each.rule.budget.relative:
        return f"{each.difference:+,.6g}"
    return f"+{value(each, each.difference)}" if each.change is None else _percent(each.change)


def _percent(share: float, sign: str = "+") -> str:
    return f"{100 * share:{sign}.1f} %"


def resolution(each: MetricResult, texts: Texts) -> str:
    """Half-width of the interval; exact metrics have none."""
    if each.statistics is None:
        exact = each.rule.metric.kind == Kind.EXACT and each.baseline is not None and each.candidate is not None
        return texts.messages["gate_exact"] if exact else ""
    half = each.statistics.half_width
    kind = each.rule.metric.kind
    if kind == Kind.TIME:
        return _percent(math.expm1(half), "")
    return f"{half:.1f} points" if kind == Kind.RATIO else value(each, half)


def budget(each: MetricResult) -> str:
    """The largest change allowed, and absolute limits."""
    rule = each.rule
    allowed = rule.budget
    text = f"{100 * allowed.value:g} %" if allowed.relative else _plain(each, allowed.value)
    limits = [
        f"{mark} {value(each, limit)}" for mark, limit in (("≤", rule.highest), ("≥", rule.lowest)) if limit is not None
    ]
    return ", ".join([text, *limits])


def _plain(each: MetricResult, number: float) -> str:
    if each.rule.metric.unit == "points":
        return f"{number:g} points"
    return "0" if number == 0 else value(each, number)


def reason(each: MetricResult, texts: Texts) -> str:
    """Why the verdict is what it is."""
    limit = each.rule.highest if each.reason.startswith(("above", "near")) else each.rule.lowest
    if each.reason == "near_limit" and limit is None:
        limit = each.rule.lowest
    missing = next((value for key, value in each.notes if key == "not_measured"), "")
    why = texts.reasons.get(missing, missing)
    return texts.messages[f"gate_reason_{each.reason}"].format(limit=value(each, limit), why=why)


def environment(result: GateResult, texts: Texts) -> Iterator[str]:
    """Differences, waived keys and the likeness of the workloads."""
    say = texts.messages
    for each in result.differences:
        old, new = (say["or_mark"].join(map(shown, values)) for values in (each.baseline, each.candidate))
        yield say["gate_difference"].format(key=each.key, baseline=old, candidate=new)
    yield from (say["gate_waived"].format(key=key) for key in result.waived)
    if result.similarity is not None:
        yield say["gate_similarity"].format(similarity=f"{result.similarity:.2f}")


def notes(result: GateResult, texts: Texts) -> Iterator[str]:
    """Remarks on the input and the samples."""
    say = texts.messages
    yield from (say[f"gate_note_{key}"].format(**values) for key, values in result.notes)
    for each in result.metrics:
        statistics = each.statistics
        if each.verdict == Verdict.INCONCLUSIVE and statistics is not None:
            if statistics.runs_needed is not None:
                yield say["gate_runs_needed"].format(metric=each.name, runs=statistics.runs_needed)
            elif statistics.threshold > 0:
                yield say["gate_runs_many"].format(metric=each.name, most=MOST_RUNS)
        if each.verdict == Verdict.MISSING:
            yield say["said_of"].format(title=each.name, text=reason(each, texts))
        for key, text in each.notes:
            if key != "not_measured":
                value = say.get(f"gate_column_{text}", text)
                yield say[f"gate_note_{key}"].format(metric=each.name, value=value)


def changes(result: GateResult, texts: Texts, mark: str) -> Iterator[str]:
    """Exact metrics that differ, and rules whose findings changed in number."""
    say = texts.messages
    counts = [
        say["gate_count"].format(
            name=each.name, baseline=value(each, each.baseline), candidate=value(each, each.candidate)
        )
        for each in result.metrics
        if each.rule.metric.kind == Kind.EXACT and each.difference
    ]
    findings = [f"{rule} {old} → {new}" for rule, (old, new) in result.findings.items()]
    for key, names in (("gate_counts", counts), ("gate_findings", findings)):
        if names:
            yield say[key].format(names=mark.join(names))
