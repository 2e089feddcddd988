"""Why the step time of the candidate differs: parts of the step, the work inside them, kernels."""

from collections.abc import Iterator
from dataclasses import replace

from traceanalyze.comparison.pairs import cancelling, of_change
from traceanalyze.model.table import Column, Kind, Message, Table, Value, Word, declare
from traceanalyze.regression.explain import Why, WhyRow, top
from traceanalyze.regression.metrics import Kind as MetricKind
from traceanalyze.regression.results import GateResult
from traceanalyze.report.contents.gate_metrics import SIDES

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
