"""The report of the gate: the verdict on every metric, why the step time changed, and remarks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from traceanalyze.comparison.pairs import cancelling, of_change
from traceanalyze.model.table import Column, Kind, Layout, Message, Quantity, Table, Value, Word, declare, sentences
from traceanalyze.regression.explain import Why, WhyRow, top
from traceanalyze.regression.metrics import Kind as MetricKind
from traceanalyze.regression.metrics import Level
from traceanalyze.regression.results import GateResult, MetricResult, Overall, SideSummary, Verdict
from traceanalyze.regression.statistics import MOST_RUNS
from traceanalyze.regression.verdict import shown
from traceanalyze.report.contents.gate_metrics import BY_FLOOR, SIDES, change, metric_tables, reason, resolution, value
from traceanalyze.report.model import GateReport, Side

_SAY = sentences(
    gate_name="{name}",
    gate_name_verdict="{name} {verdict}",
    gate_name_change="{name} {change}",
    gate_name_change_assumed="{name} {change} (± assumed)",
    gate_fail="FAIL: {names}.",
    gate_pass="PASS: nothing is worse than its budget allows.",  # noqa: S106
    gate_pass_warn="PASS, with warnings: {names}.",  # noqa: S106
    gate_inconclusive="INCONCLUSIVE: the data cannot tell whether {names} is within its budget.",
    gate_more="{names} and {count} more",
    gate_side_runs="{runs} runs of {steps} steps",
    gate_side_run="1 run of {steps} steps",
    gate_side_no_steps="{runs} runs",
    gate_side_no_steps_run="1 run",
    gate_legend="~ no significant change; ± smallest change these runs can tell apart",
    gate_legend_assumed="1 run: one run a side shows no noise, so ± is assumed to be that of a usual machine "
    "({names}); record three runs a side",
    gate_runs_needed="{metric}: {runs} runs a side would tell a change of half the budget.",
    gate_runs_many="{metric}: not even {most} runs a side would tell a change of half the budget; steady the node.",
    gate_not_measured="Not measured on either side, so not judged: {names}.",
    gate_counts="Changed counts: {names}.",
    gate_count="{name} {baseline} → {candidate}",
    gate_findings="Findings that appeared or went away: {names}.",
    gate_difference="{key}: {baseline} / {candidate}",
    gate_waived="{key} was waived by --no-match",
    gate_similarity="The workloads are {similarity} alike (1 is the same operators as often).",
    gate_note_few_steps="{run}: only {steps} usable steps; its median is worth little",
    gate_note_input="{run}: {text}",
    gate_note_plugin="{text}",
    gate_note_workload="the workloads are only {similarity} alike: are both sides the same program?",
    gate_note_stale="the baseline is {days} days older than the candidate: refresh it",
    gate_note_accepted="the baseline's level was changed {count} times by accepted regressions: look at the sum",
    gate_note_missing="{metric} is missing",
    gate_note_mann_whitney="{metric}: p of pooled steps {value} (Mann-Whitney; not used: steps are no samples)",
    gate_note_two_populations="{metric}: two kinds of steps in a run of the {value}; a median may jump between them",
    gate_note_drift="{metric}: drifts inside a run of the {value}",
    gate_note_baseline_drift="{metric}: the runs of the baseline drift; noise is how far a run is from the next; "
    "`traceanalyze baseline prune` removes old ones",
    gate_note_outlier="{metric}: run {value} is far from the others (not removed)",
    gate_note_budget_below_noise="{metric}: the budget is below twice the noise floor; three times it is sound",
    gate_note_not_measured="{metric}: {value}",
)

_NAMED = 3
_RUNS = declare(
    "gate_runs",
    "Runs",
    Column("side", Kind.TERM, "baseline or candidate"),
    Column("run", Kind.NAME, "name of the run"),
    Column("usable_steps", Kind.COUNT, "steps that were used", heading="steps"),
    Column("ranks", Kind.TEXT, "ranks of the run"),
    Column("recorded_at", Kind.TEXT, "when it was recorded", heading="recorded"),
    Column("commit", Kind.TEXT, "commit that was recorded"),
    Column("environment", Kind.NAME, "device, versions and settings, as the profile tells them", minor=True),
    Column("id", Kind.TEXT, "id of the run in a baseline file", machine=True),
    detail=True,
)
_RESULT = declare(
    "gate_result",
    "The answer",
    Column("answer", Kind.TERM, "pass, fail or inconclusive"),
    Column("exit_code", Kind.COUNT, "exit status of the command", heading="exit status"),
    Column("budget_file", Kind.NAME, "file that the budget is from; none where it is built in"),
    Column("workload_similarity", Kind.NUMBER, "how alike the workloads are; 1 is the same operators as often"),
    layout=Layout.RECORD,
    detail=True,
)


def build_gate(result: GateResult) -> GateReport:
    """The report of what the gate found."""
    sides = tuple(map(_side, ("baseline", "candidate"), (result.baseline, result.candidate)))
    headline = _headline(result)
    return GateReport(
        name=" → ".join(side.name or side.key for side in sides if side.about),
        version=result.tool_version,
        verdict_messages=(headline,),
        note_messages=(),
        summary=tuple(_tables(result)),
        command="gate",
        sides=tuple(side for side in sides if side.about),
        remarks={"gate_environment": tuple(_environment(result)), "gate_notes": (*_changes(result), *_notes(result))},
        answer=str(result.overall),
        result=result,
        former=_former_keys(result, headline, [reason(each) for each in result.metrics]),
    )


def _headline(result: GateResult) -> Message:
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
    if key == "gate_pass":
        return Message(_SAY[key])
    names = tuple(map(_named, found[:_NAMED]))
    if len(found) > _NAMED:
        more = ("count", Kind.COUNT, len(found) - _NAMED)
        names = (Message(_SAY["gate_more"], (("names", Kind.LIST, names), more)),)
    return Message(_SAY[key], (("names", Kind.LIST, names),))


def _named(each: MetricResult) -> Message:
    """A metric with its change."""
    name = ("name", Kind.NAME, each.name)
    match each.verdict:
        case Verdict.INCONCLUSIVE:
            return _names([each.name])[0]
        case Verdict.MISSING:
            return Message(_SAY["gate_name_verdict"], (name, ("verdict", Kind.TERM, f"gate_{each.verdict}")))
    key = "gate_name_change_assumed" if each.assumed else "gate_name_change"
    return Message(_SAY[key], (name, ("change", Kind.QUANTITY, change(each))))


def _names(names: Iterable[str]) -> tuple[Message, ...]:
    return tuple(Message(_SAY["gate_name"], (("name", Kind.NAME, name),)) for name in names)


def _side(key: str, summary: SideSummary) -> Side:
    """What a side consists of; as the user calls it, if they do."""
    runs = summary.runs
    if not runs:
        return Side(key, "", "", "", ())
    counts = sorted({run.usable_steps for run in runs})
    steps = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    many, one = (
        ("gate_side_no_steps", "gate_side_no_steps_run") if counts == [0] else ("gate_side_runs", "gate_side_run")
    )
    about = Message(
        _SAY[one if len(runs) == 1 else many], (("runs", Kind.COUNT, len(runs)), ("steps", Kind.TEXT, steps))
    )
    devices = dict.fromkeys(shown(run.environment.get("device")) for run in runs if run.environment.get("device"))
    name = "" if summary.label == key else summary.label
    return Side(key, f"gate_{key}", ", ".join(run.name for run in runs), name, (about, *_names(devices)))


def _tables(result: GateResult) -> Iterator[Table]:
    others = [each for each in result.metrics if each.verdict == Verdict.NOT_MEASURED]
    told = [each for each in result.metrics if each.statistics is not None]
    notes = [Message(_SAY["gate_legend"])] if told else []
    assumed = tuple(
        Message(_SAY["gate_name_change"], (("name", Kind.NAME, each.name), ("change", Kind.QUANTITY, half)))
        for each in told
        if each.assumed and isinstance(half := resolution(each, words=False), Quantity)
    )
    if assumed:
        notes.append(Message(_SAY["gate_legend_assumed"], (("names", Kind.LIST, assumed[:_NAMED]),)))
    if any(each.reason != "asked_later" for each in others):
        names = ("names", Kind.LIST, _names(each.name for each in others if each.reason != "asked_later"))
        notes.append(Message(_SAY["gate_not_measured"], (names,)))
    judged, unmeasured, samples = metric_tables(result)
    yield replace(judged, notes=tuple(notes))
    yield from why_tables(result)
    yield from (table for table in (unmeasured, samples) if len(table))
    yield _RUNS.fill_records(_runs(result))
    answer: dict[str, Value] = {
        "answer": f"gate_answer_{result.overall}",
        "exit_code": result.exit_code,
        "budget_file": result.budget.source or None,
        "workload_similarity": result.similarity,
    }
    yield _RESULT.fill_records([answer])


def _runs(result: GateResult) -> Iterator[Mapping[str, Value]]:
    for key, side in (("baseline", result.baseline), ("candidate", result.candidate)):
        for run in side.runs:
            yield {
                "side": SIDES[key],
                "run": run.name,
                "usable_steps": run.usable_steps,
                "ranks": ", ".join("?" if rank is None else str(rank) for rank in run.ranks),
                "recorded_at": run.time or None,
                "commit": run.commit or None,
                "environment": ", ".join(f"{name} {shown(value)}" for name, value in run.environment.items()),
                "id": run.id,
            }


def _environment(result: GateResult) -> Iterator[Message]:
    """Differences, waived keys and the likeness of the workloads."""
    for each in result.differences:
        old, new = (_names(map(shown, values)) for values in (each.baseline, each.candidate))
        key = ("key", Kind.TEXT, each.key)
        yield Message(_SAY["gate_difference"], (key, ("baseline", Kind.LIST, old), ("candidate", Kind.LIST, new)))
    yield from (Message(_SAY["gate_waived"], (("key", Kind.TEXT, key),)) for key in result.waived)
    if result.similarity is not None:
        yield Message(_SAY["gate_similarity"], (("similarity", Kind.TEXT, f"{result.similarity:.2f}"),))


def _notes(result: GateResult) -> Iterator[Message]:
    """Remarks on the input and the samples."""
    for key, values in result.notes:
        said = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
        yield Message(_SAY[f"gate_note_{key}"], tuple((name, Kind.TEXT, text) for name, text in said.items()))
    for each in result.metrics:
        metric, statistics = ("metric", Kind.NAME, each.name), each.statistics
        if each.verdict == Verdict.INCONCLUSIVE and statistics is not None:
            if statistics.runs_needed is not None:
                yield Message(_SAY["gate_runs_needed"], (metric, ("runs", Kind.COUNT, statistics.runs_needed)))
            elif statistics.threshold > 0:
                yield Message(_SAY["gate_runs_many"], (metric, ("most", Kind.COUNT, MOST_RUNS)))
        if each.verdict == Verdict.MISSING or each.reason in {"varies", "asked_later", *BY_FLOOR}:
            yield Message("said_of", (("title", Kind.NAME, each.name), ("text", Kind.LIST, (reason(each),))))
    # What decides nothing stands last.
    for each in result.metrics:
        for key, text in each.notes:
            if key != "not_measured":
                told = ("metric", Kind.NAME, each.name), ("value", Kind.TEXT, SIDES.get(text, text))
                yield Message(_SAY[f"gate_note_{key}"], told)


def _changes(result: GateResult) -> Iterator[Message]:
    """Exact metrics that differ, and rules whose findings changed in number."""
    counts = tuple(
        Message(
            _SAY["gate_count"],
            (
                ("name", Kind.NAME, each.name),
                ("baseline", Kind.QUANTITY, value(each, each.baseline)),
                ("candidate", Kind.QUANTITY, value(each, each.candidate)),
            ),
        )
        for each in result.metrics
        if each.rule.metric.kind == MetricKind.EXACT and each.difference
    )
    findings = tuple(
        Message(
            _SAY["gate_count"],
            (("name", Kind.TEXT, rule), ("baseline", Kind.COUNT, old), ("candidate", Kind.COUNT, new)),
        )
        for rule, (old, new) in result.findings.items()
    )
    for key, names in (("gate_counts", counts), ("gate_findings", findings)):
        if names:
            yield Message(_SAY[key], (("names", Kind.LIST, names),))


_TIMES = (
    Column("baseline_ns", Kind.DURATION, "time per step of the baseline", heading="baseline"),
    Column("candidate_ns", Kind.DURATION, "time per step of the candidate", heading="candidate"),
    Column("diff_ns", Kind.CHANGE, "candidate minus baseline", heading="diff"),
)
_SHARE = Column("step_change_share", Kind.SHARE, "part of the change of the step time", heading="of change")
_NUMBERS = (
    Column("baseline_number", Kind.NUMBER, "how often per step", heading="baseline number", minor=True),
    Column("candidate_number", Kind.NUMBER, "how often per step", heading="candidate number", minor=True),
)
_ONLY = Column("only", Kind.TERM, "side that alone has it", heading="only in", minor=True)
_PARTS = declare(
    "gate_parts",
    "Why the step takes {candidate} instead of {baseline} (means over usable steps)",
    Column("part", Kind.TERM, "exclusive part of the step"),
    *_TIMES,
    _SHARE,
)
_REASONS = declare(
    "gate_reasons",
    "Most changed work and waiting (per step)",
    Column(
        "changed_work",
        Kind.PLACE,
        "operator, collective, copy; of idle time what the host did, or else the operator whose work ended it",
        heading="work",
    ),
    Column("part", Kind.TERM, "part of the step that it belongs to"),
    *_TIMES,
    _SHARE,
    _ONLY,
    Column("what", Kind.TERM, "what the row stands for", heading="kind", minor=True),
    *_NUMBERS,
    ranked=True,
)
_KERNELS = declare(
    "gate_kernels",
    "Most changed kernels (device time per step)",
    Column("kernel", Kind.KERNEL, "name of the kernel"),
    *_TIMES,
    _ONLY,
    *_NUMBERS,
    ranked=True,
)


def why_tables(result: GateResult) -> Iterator[Table]:
    """Parts of the step that sum to its change, then the most changed work and kernels; none within noise."""
    why = result.why
    intervals = [each.statistics for each in result.metrics if each.rule.metric.kind != MetricKind.EXACT]
    if why is None or not why.change or not any(each is not None and each.told for each in intervals):
        return
    step = next((each for each in result.metrics if each.name == "step.time"), None)
    whole = step.difference if step is not None and step.difference else why.change
    yield _parts(why, whole)
    changed = (top(rows, len(rows)) for rows in (why.reasons, why.kernels))
    for table, rows, cells in zip((_REASONS, _KERNELS), changed, (_reason_cells, _kernel_cells), strict=True):
        if rows:
            yield table.fill_records(cells(row, whole, _cancel(why, whole)) for row in rows)


def _parts(why: Why, whole: float) -> Table:
    cancel = _cancel(why, whole)
    parts = [row for row in sorted(why.parts, key=lambda row: -abs(row.change)) if row.baseline or row.candidate]
    table = _PARTS.fill_records(
        {"part": _part(row.name), **_times(row), "step_change_share": of_change(row.change, whole, cancel=cancel)}
        for row in parts
    )
    rest, total = whole - why.change, WhyRow("", "", "gate_sum", why.baseline, why.candidate)
    left = (("rest", Kind.CHANGE, round(rest)), ("share", Kind.SHARE, rest / whole if whole else None))
    values = [("baseline", Kind.DURATION, round(why.baseline)), ("candidate", Kind.DURATION, round(why.candidate))]
    return replace(
        table,
        totals={"part": total.name, **_times(total), "step_change_share": of_change(why.change, whole, cancel=cancel)},
        title_values=tuple(values),
        notes=(Message("gate_rest", left),) if round(rest) else (),
    )


def _part(key: str) -> str:
    """Idle time as one part is all of it."""
    return {"idle": "idle_sum", "api": "host_api"}.get(key, key)


def _times(row: WhyRow) -> dict[str, Value]:
    return {"baseline_ns": round(row.baseline), "candidate_ns": round(row.candidate), "diff_ns": round(row.change)}


def _cancel(why: Why, whole: float) -> bool:
    return cancelling((row.change for row in why.parts), whole)


def _reason_cells(row: WhyRow, whole: float, cancel: bool) -> dict[str, Value]:
    words = {"rest": "rest", "data_loading": row.name, "copy": f"copy_{row.name}", "kernels": f"work_{row.name}"}
    return {
        "changed_work": Word(words[row.what]) if row.what in words else row.name,
        "part": _part(row.part),
        "what": row.what,
        "only": None if row.what in {"rest", "in_op", "next_op", "data_loading"} else _only(row),
        "step_change_share": of_change(row.change, whole, cancel=cancel),
        **_times(row),
        **_numbers(row),
    }


def _kernel_cells(row: WhyRow, _: float, __: bool) -> dict[str, Value]:
    return {"kernel": row.name, "only": _only(row), **_times(row), **_numbers(row)}


def _only(row: WhyRow) -> Value:
    return SIDES["candidate"] if not row.baseline_count else None if row.candidate_count else SIDES["baseline"]


def _numbers(row: WhyRow) -> dict[str, Value]:
    return {"baseline_number": row.baseline_count, "candidate_number": row.candidate_count}


_FORMER_SCHEMA = 1


def _former_keys(result: GateResult, headline: Message, reasons: Sequence[Message]) -> dict[str, Any]:
    """What the JSON had at its top before it had tables: kept for one release, then all below goes.

    Plain values, and messages for texts. Times are in ns, `_ratio` and `change` are fractions of 1.
    """
    why = result.why
    return {
        "schema_version": _FORMER_SCHEMA,
        "verdict": str(result.overall),
        "exit_code": result.exit_code,
        "text": headline,
        "budget": result.budget.source or None,
        "baseline": _former_side(result.baseline),
        "candidate": _former_side(result.candidate),
        "metrics": [_former_metric(each, text) for each, text in zip(result.metrics, reasons, strict=True)],
        "why": None
        if why is None
        else {
            "baseline_ns": why.baseline,
            "candidate_ns": why.candidate,
            "parts": list(map(_former_row, why.parts)),
            "reasons": list(map(_former_row, why.reasons)),
            "kernels": list(map(_former_row, why.kernels)),
        },
        "findings": {rule: {"baseline": old, "candidate": new} for rule, (old, new) in result.findings.items()},
        "environment_differences": [
            {"key": each.key, "baseline": list(each.baseline), "candidate": list(each.candidate)}
            for each in result.differences
        ],
        "waived": list(result.waived),
        "workload_similarity": result.similarity,
        "notes": [{"key": key, "values": dict(values)} for key, values in result.notes],
    }


def _former_side(side: SideSummary) -> dict[str, Any]:
    return {
        "label": side.label,
        "runs": [
            {
                "id": run.id,
                "name": run.name,
                "time": run.time or None,
                "commit": run.commit or None,
                "ranks": list(run.ranks),
                "usable_steps": run.usable_steps,
                "environment": dict(run.environment),
            }
            for run in side.runs
        ],
    }


def _former_metric(each: MetricResult, reason: Message) -> dict[str, Any]:
    rule, found = each.rule, each.statistics
    return {
        "metric": each.name,
        "kind": str(rule.metric.kind),
        "unit": rule.metric.unit,
        "better": "lower" if rule.metric.lower_is_better else "higher",
        "level": str(rule.level),
        "verdict": str(each.verdict),
        "reason": each.reason,
        "text": reason,
        "baseline": each.baseline,
        "candidate": each.candidate,
        "difference": each.difference,
        "change": each.change,
        "baseline_samples": list(each.baseline_runs),
        "candidate_samples": list(each.candidate_runs),
        "baseline_range": None if each.baseline_range is None else list(each.baseline_range),
        "candidate_range": None if each.candidate_range is None else list(each.candidate_range),
        "budget": {"value": rule.budget.value, "relative": rule.budget.relative},
        "min_effect": each.floor,
        "max": rule.highest,
        "min": rule.lowest,
        "statistics": None
        if found is None
        else {
            "e": found.effect,
            "h": found.half_width,
            "p": found.p,
            "p_holm": found.p_holm,
            "T": found.threshold,
            "df": found.df,
            "noise_floor": found.noise_floor,
            "significant": found.significant,
            "runs_needed": found.runs_needed,
            "assumed": found.assumed,
        },
        "notes": [{"key": key, "value": value} for key, value in each.notes],
    }


def _former_row(row: WhyRow) -> dict[str, Any]:
    return {
        "part": row.part or None,
        "what": row.what or None,
        "name": row.name,
        "baseline_ns": row.baseline,
        "candidate_ns": row.candidate,
        "diff_ns": row.change,
        "baseline_count": row.baseline_count,
        "candidate_count": row.candidate_count,
    }
