"""The report of the gate: the verdict on every metric, why the step time changed, and remarks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from traceanalyze.model.table import Column, Kind, Layout, Message, Quantity, Table, Value, declare, sentences
from traceanalyze.regression.metrics import Kind as MetricKind
from traceanalyze.regression.metrics import Level
from traceanalyze.regression.results import GateResult, MetricResult, Overall, SideSummary, Verdict
from traceanalyze.regression.statistics import MOST_RUNS
from traceanalyze.regression.verdict import shown
from traceanalyze.report.contents.gate_keys import former_keys
from traceanalyze.report.contents.gate_metrics import BY_FLOOR, SIDES, change, metric_tables, reason, resolution, value
from traceanalyze.report.contents.gate_why import why_tables
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
        former=former_keys(result, headline, [reason(each) for each in result.metrics]),
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
