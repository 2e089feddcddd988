"""Runs among many: one row a run, and how its numbers went from run to run, with the runs at which they changed."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from traceanalyze.model.table import Column, Kind, Message, Table, Value, declare, sentences
from traceanalyze.model.vocabulary import Mode
from traceanalyze.regression.statistics import Prior, change_points
from traceanalyze.report.model import RankReport, Report

PARTS = ("compute", "communication", "memory_ops", "data_loading", "sync", "dispatch", "idle")
"""Of a step, as the table `split` has them."""
_SHARES = tuple(f"{part}_share" for part in PARTS)
RUN_SUMMARY = declare(
    "run_summary",
    "The run in one row",
    Column("mode", Kind.TEXT, "what was analysed: steps, whole_trace, host_only or empty"),
    Column("recorded_ranks", Kind.COUNT, "ranks with a recording"),
    Column("world_size", Kind.COUNT, "ranks that the recordings tell of"),
    Column("device_name", Kind.NAME, "of the slowest rank"),
    Column("torch_version", Kind.TEXT, "of the slowest rank"),
    Column("steps", Kind.COUNT, "analysed on the slowest rank"),
    Column("step_ns", Kind.DURATION, "mean step of the slowest rank, which the others wait for"),
    *(Column(f"{part}_share", Kind.SHARE, "of the steps of all ranks") for part in PARTS),
    Column("findings", Kind.COUNT, "of all ranks, and about them"),
    Column("top_rule", Kind.TEXT, "of the finding that saves most"),
    Column("top_saving_ns", Kind.DURATION, "what it saves a step"),
    Column("verdict", Kind.TEXT, "in English"),
)


def run_summary(report: Report) -> Table:
    """The row of a run."""
    steps = [(split, rank) for rank in report.ranks if (split := _split(rank))["step"]]
    split, slowest = max(steps, key=lambda each: each[0]["step"], default=({}, report.ranks[report.focus[0]]))
    analysis = next(one for one in report.analyses if one.trace.origin.path == slowest.path)
    worlds = {one.trace.origin.world_size for one in report.analyses} - {None}
    known = report.findings_in("en")
    # They come with what saves most first.
    best = next(((one.rule, one.saving.ns) for one in known if one.saving is not None), (None, None))
    total = sum(each["step"] for each, _ in steps)
    row: dict[str, Value] = {
        "mode": slowest.mode.name.lower(),
        "recorded_ranks": len(report.ranks),
        "world_size": worlds.pop() if len(worlds) == 1 else None,
        "device_name": analysis.trace.device_name(analysis.device),
        "torch_version": analysis.trace.versions.get("torch"),
        "steps": split.get("count"),
        "step_ns": split.get("step"),
        "findings": len(known),
        "top_rule": best[0],
        "top_saving_ns": best[1],
        "verdict": report.in_language("en").verdict,
    }
    for part, key in zip(PARTS, _SHARES, strict=True):
        told = bool(total) and all(part in each for each, _ in steps)
        row[key] = sum(each[part] for each, _ in steps) / total if told else None
    return RUN_SUMMARY.fill_records([row])


def _split(rank: RankReport) -> dict[str, int]:
    """Mean times of the parts of a rank's step, of the step (0 where there is no split) and how many there were."""
    table = next((one for one in rank.tables if one.key == "split"), None)
    if table is None or table.absent is not None or table.totals is None:
        return {"step": 0}
    found = dict(zip(map(str, table.column("part")), table.numbers("mean_ns"), strict=True))
    step, every = (value if isinstance(value, int) else 0 for value in map(table.totals.get, ("mean_ns", "sum_ns")))
    return {**found, "step": step, "count": round(every / step) if step else 0}


_SAY = sentences(
    history_none="There is no run with steps in {store}.",
    history_few="{count} runs: a change shows from four on.",
    history_steady="The step takes {now} in the last of {count} runs; at no run did it change.",
    history_change=(
        "At run {run} ({name}, {time}) the step went from {before} to {after} ({change}); the largest change is in "
        "{part}, from {part_before} to {part_after} of the step."
    ),
    history_change_alone="At run {run} ({name}, {time}) the step went from {before} to {after} ({change}).",
    history_share="At run {run} ({name}, {time}) {part} went from {before} to {after} of the step.",
    history_others=(
        "{count} runs without steps, on other devices, with other numbers of ranks or kept by an older version are "
        "left out."
    ),
)
HISTORY = declare(
    "history",
    "Runs in the order in which they were recorded",
    Column("since_ns", Kind.DURATION, "since the first run", heading="since the first"),
    Column("run", Kind.COUNT, "number of the run"),
    Column("name", Kind.NAME, "of the run"),
    Column("recorded_at", Kind.TEXT, "when it was recorded; where the recording does not tell, when it was kept"),
    Column("step_ns", Kind.DURATION, "mean step of the slowest rank", heading="step"),
    Column("level_ns", Kind.DURATION, "mean over the runs between two changes", heading="level"),
    Column("changed", Kind.FLAG, "whether the step changed at this run"),
    *(Column(f"{part}_share", Kind.SHARE, "of the steps of all ranks") for part in PARTS),
    Column("top_rule", Kind.TEXT, "of the finding that saves most", heading="first finding"),
    Column("run_id", Kind.TEXT, "what the run is kept under", machine=True),
    plot=("step_ns", "level_ns"),
)
_STEPPED = frozenset({Mode.STEPS.name.lower(), Mode.HOST_ONLY.name.lower(), None})
"""None: what an older version kept."""
_FLOOR, _FLOOR_POINTS = 0.01, 0.01
"""How much a run differs from the next while nothing is known yet: of the step's logarithm, and of shares of it."""


class Step(NamedTuple):
    """A run at which a number changed, and its means before and after."""

    at: int
    before: float
    after: float


def history_report(rows: Sequence[Mapping[str, Any]], store: str, version: str) -> Report:
    """What the rows of a store tell; those of runs like the newest one are compared."""
    stepped = sorted((row for row in rows if row["mode"] in _STEPPED and row["step_ns"]), key=_order)
    alike = [row for row in stepped if _kind(row) == _kind(stepped[-1])]
    left_out = (("count", Kind.COUNT, len(rows) - len(alike)),)
    notes = (Message(_SAY["history_others"], left_out),) if len(alike) < len(rows) else ()
    steps = _changes([math.log(row["step_ns"]) for row in alike], _FLOOR)
    return Report(
        name=store,
        version=version,
        command="history",
        verdict_messages=tuple(_verdict(alike, steps, store)),
        note_messages=notes,
        summary=(_table(alike, steps),),
        answer="changed" if steps else "steady",
    )


def _order(row: Mapping[str, Any]) -> tuple[Any, str]:
    return row["recorded_at"] or row["kept_at"], row["run_id"]


def _kind(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["mode"], row["device_name"], row["world_size"], row["recorded_ranks"]


def _changes(values: Sequence[float], floor: float) -> list[Step]:
    edges = [0, *change_points(values, Prior(floor)), len(values)]
    means = [_mean(values[a:b]) for a, b in pairwise(edges)]
    return [Step(*each) for each in zip(edges[1:-1], means, means[1:], strict=False)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _table(rows: Sequence[Mapping[str, Any]], steps: Sequence[Step]) -> Table:
    times = [_order(row)[0] for row in rows]
    edges = [0, *(each.at for each in steps), len(rows)]
    levels = [round(_mean([row["step_ns"] for row in rows[a:b]])) for a, b in pairwise(edges) for _ in range(a, b)]
    return HISTORY.fill_records(
        {
            "since_ns": round((time - times[0]).total_seconds() * 1e9),
            "run": number,
            "recorded_at": time.isoformat(sep=" ", timespec="seconds"),
            "level_ns": level,
            "changed": number - 1 in edges[1:-1],
            **{key: row[key] for key in ("name", "step_ns", "top_rule", "run_id", *_SHARES)},
        }
        for number, (row, time, level) in enumerate(zip(rows, times, levels, strict=True), 1)
    )


def _verdict(rows: Sequence[Mapping[str, Any]], steps: Sequence[Step], store: str) -> list[Message]:
    if not rows:
        return [Message(_SAY["history_none"], (("store", Kind.NAME, store),))]
    if len(rows) < _LEAST:
        return [Message(_SAY["history_few"], (("count", Kind.COUNT, len(rows)),))]
    shares = {part: [row[f"{part}_share"] for row in rows] for part in PARTS}
    shares = {part: values for part, values in shares.items() if None not in values}
    found = [_of_step(rows, steps, at, shares) for at in reversed(range(len(steps)))]
    if not found:
        now = ("now", Kind.DURATION, rows[-1]["step_ns"]), ("count", Kind.COUNT, len(rows))
        found = [Message(_SAY["history_steady"], now)]
    for part, values in shares.items():
        for each in _changes(values, _FLOOR_POINTS):
            if each.at not in {one.at for one in steps}:
                levels = ("before", Kind.SHARE, each.before), ("after", Kind.SHARE, each.after)
                found.append(Message(_SAY["history_share"], (*_run(rows, each.at), _part(part), *levels)))
    return found


_LEAST = 4


def _of_step(
    rows: Sequence[Mapping[str, Any]], steps: Sequence[Step], at: int, shares: Mapping[str, Sequence[float]]
) -> Message:
    """What happened at a change, and which part of the step moved most between the runs around it."""
    one = steps[at]
    start = steps[at - 1].at if at else 0
    end = steps[at + 1].at if at + 1 < len(steps) else len(rows)
    step = [_mean([row["step_ns"] for row in part]) for part in (rows[start : one.at], rows[one.at : end])]
    means = {part: (_mean(values[start : one.at]), _mean(values[one.at : end])) for part, values in shares.items()}
    values: tuple[tuple[str, Kind, Value], ...] = (
        *_run(rows, one.at),
        ("before", Kind.DURATION, round(step[0])),
        ("after", Kind.DURATION, round(step[1])),
        ("change", Kind.TEXT, f"{step[1] / step[0] - 1:+.1%}"),
    )
    if not means:
        return Message(_SAY["history_change_alone"], values)
    moved = max(means, key=lambda part: abs(means[part][1] * step[1] - means[part][0] * step[0]))
    parts = (("part_before", Kind.SHARE, means[moved][0]), ("part_after", Kind.SHARE, means[moved][1]))
    return Message(_SAY["history_change"], (*values, _part(moved), *parts))


def _part(part: str) -> tuple[str, Kind, Value]:
    return "part", Kind.TERM, part


def _run(rows: Sequence[Mapping[str, Any]], at: int) -> tuple[tuple[str, Kind, Value], ...]:
    time = _order(rows[at])[0].isoformat(sep=" ", timespec="minutes")
    return ("run", Kind.COUNT, at + 1), ("name", Kind.NAME, rows[at]["name"]), ("time", Kind.TEXT, time)
