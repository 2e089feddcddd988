"""One word, one number: every command says the same about the parts of the step of every sample."""

from __future__ import annotations

import io
import json
import re
import warnings
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import openpyxl
import pytest

import traceanalyze
from tests.report.make import in_workbook
from traceanalyze.analyses.options import Options
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import BUSY_PARTS, DISPATCH, DISPATCH_CALLS, HEADLINE, IDLE_PARTS, Cause
from traceanalyze.regression.explain import explain
from traceanalyze.regression.measures import rank_steps, timings
from traceanalyze.report.json import render as render_json
from traceanalyze.report.xlsx import render as render_workbook

if TYPE_CHECKING:
    from traceanalyze.report.model import CompareReport, RankReport, Report

SAMPLES = Path(__file__).resolve().parents[1] / "sample_traces"
FOLDERS = sorted(
    {path.parent for path in SAMPLES.rglob("*.json.gz") if "_ascend_pt" not in str(path)}
    | {path.parent for path in SAMPLES.rglob("*_ascend_pt")}
)
NAMES = [str(folder.relative_to(SAMPLES)) for folder in FOLDERS]
WITH_DEVICE = [name for name in NAMES if "cpu" not in name]
OTHER = {name: ("gpu_sync" if name != "gpu_sync" else "gpu_healthy") for name in NAMES}
"""What each sample is compared with besides itself."""
ON_THE_HOST = {"sync": "host_sync", "api": "host_api"}
"""Parts of a comparison without a device, as an analysis calls them."""
METRICS = {
    "compute.time": "compute",
    "comm.exposed_time": "communication",
    "memops.exposed_time": "memory_ops",
    "idle.sync_time": "sync",
    "idle.data_time": "data_loading",
}
"""Of the gate, with the part that each is."""
UNLIKE = ("device", "world_size", "profiler_options")
SECONDS = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}


@cache
def report(name: str) -> Report:
    return traceanalyze.analyze(SAMPLES / name)


@cache
def comparison(base: str, candidate: str) -> CompareReport:
    return traceanalyze.compare(SAMPLES / base, SAMPLES / candidate)


def table(rank: RankReport, key: str):
    return next((each for each in rank.tables if each.key == key), None)


def by_step(name: str, rank: int | None = None) -> dict[str, dict[str, object]]:
    """What `analyze` prints of each step: its parts, and the causes of its idle time."""
    every = report(name).ranks
    one = next((each for each in every if each.rank == rank), every[0])
    found = {row.step: row._asdict() for row in table(one, "steps").records()}
    for row in table(one, "step_idle_causes").records() if table(one, "step_idle_causes") else ():
        found[row.step] |= {f"cause {key}": value for key, value in row._asdict().items()}
    return found


def summed(steps, column: str):
    """Over steps; the reason where a part is not measured."""
    values = [step[column] for step in steps]
    return next((value for value in values if isinstance(value, NotMeasured)), None) or sum(values)


def rest(parts: dict[str, int]) -> int:
    """What the headline calls idle, from the parts of a comparison."""
    named = (*(key for key in IDLE_PARTS if key not in HEADLINE), Cause.HOST_OP.key)
    return sum(parts.get(key, 0) for key in named)


def has_device(name: str) -> bool:
    return table(report(name).ranks[0], "step_idle_causes") is not None


def test_samples_of_every_kind_are_asked():
    assert {"gpu_launch_bound", "gpu_two_ranks", "cpu_training", "npu_training", "gpu_npu_pair/npu"} <= set(NAMES)
    assert [name for name in NAMES if has_device(name)] == WITH_DEVICE != NAMES


def test_every_cause_is_in_one_part():
    assert sorted(cause for causes in IDLE_PARTS.values() for cause in causes) == list(Cause)


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_of_an_analysis_agree(name):
    for rank in report(name).ranks:
        split = {row.part: row.sum_ns for row in table(rank, "split").records()}
        steps = [row for row in by_step(name, rank.rank).values() if row["complete"]]
        assert split == {part: summed(steps, f"{part}_ns") for part in split}
        assert sum(time for time in split.values() if isinstance(time, int)) == summed(steps, "time_ns")
        if not has_device(name):
            continue
        causes = {row.cause: row.sum_ns for row in table(rank, "idle_causes").records()}
        assert causes == {cause.key: summed(steps, f"cause {cause.key}_ns") for cause in Cause}
        known = {key: time for key, time in causes.items() if isinstance(time, int)}
        for part in set(split) & set(IDLE_PARTS):
            if isinstance(split[part], int):
                assert split[part] == sum(known.get(cause.key, 0) for cause in IDLE_PARTS[part])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("against", ["itself", "another"])
def test_a_comparison_tells_the_parts_of_an_analysis(name, against):
    found = comparison(name, name if against == "itself" else OTHER[name])
    assert_sides(found, name, "base")
    if against == "itself":
        assert_sides(found, name, "candidate")


def assert_sides(found: CompareReport, name: str, side: str) -> None:
    told = next(row for row in found.tables["compare_sides"].records() if row.side == f"side_{side}")
    every = by_step(name, told.rank)
    steps = [every[label] for label in told.step_labels.split(", ")]
    parts = {row.part: getattr(row, f"{side}_sum_ns") for row in found.tables["step_difference"].records()}
    if set(parts) == {"step"}:
        assert parts["step"] == summed(steps, "time_ns")
        return
    assert sum(parts.values()) == summed(steps, "time_ns")
    if not has_device(name):
        assert parts == {key: summed(steps, f"{ON_THE_HOST.get(key, key)}_ns") for key in parts}
        return
    for part in HEADLINE[:-1]:
        wanted = summed(steps, f"{part}_ns")
        if part in parts or wanted:
            assert parts.get(part) == wanted, part
    assert rest(parts) == summed(steps, "idle_ns")
    for part, causes in IDLE_PARTS.items():
        if part in parts:
            assert parts[part] == sum(summed(steps, f"cause {cause.key}_ns") for cause in causes)
    assert_levels(found, side)


def assert_levels(found: CompareReport, side: str) -> None:
    """Rows of the overall table sum to the row above them, and those of the first level to the step."""
    rows = list(found.tables["overall_metrics"].records())
    amounts = [getattr(row, f"{side}_sum_ns") for row in rows]
    for place, row in enumerate(rows):
        below = []
        for next_row, amount in zip(rows[place + 1 :], amounts[place + 1 :], strict=True):
            if next_row.level <= row.level:
                break
            if next_row.level == row.level + 1 and isinstance(amount, int):
                below.append(amount)
        if below:
            assert sum(below) == amounts[place], row.index
    first = [amount for row, amount in zip(rows, amounts, strict=True) if row.level == 0]
    assert sum(first) == found.tables["overall_metrics"].totals[f"{side}_sum_ns"]
    parts = {row.part: getattr(row, f"{side}_sum_ns") for row in found.tables["step_difference"].records()}
    for row, amount in zip(rows, amounts, strict=True):
        assert parts.get(row.index, amount) == amount


@pytest.mark.parametrize("name", NAMES)
def test_the_gate_tells_the_parts_of_an_analysis(name):
    for trace in traceanalyze.load(SAMPLES / name).traces:
        rank = rank_steps(trace, Options(), warmup=0)
        every = by_step(name, trace.origin.rank)
        steps = [step for step in every.values() if step["complete"]]
        values = timings(rank)
        assert values["step.time"].tolist() == [step["time_ns"] for step in steps]
        parts = explain(rank).parts
        assert sum(parts.values()) == summed(steps, "time_ns")
        if not has_device(name):
            assert parts == {key: summed(steps, f"{ON_THE_HOST.get(key, key)}_ns") for key in parts}
            continue
        for metric, part in METRICS.items():
            if not isinstance(values[metric], NotMeasured):
                assert values[metric].tolist() == [step[f"{part}_ns"] for step in steps], metric
        dispatch = values["idle.dispatch_time"], values["idle.host_op_time"]
        if not any(isinstance(each, NotMeasured) for each in dispatch):
            assert sum(dispatch).tolist() == [step["dispatch_ns"] for step in steps]
        assert {key: parts[key] for key in BUSY_PARTS} == {key: summed(steps, f"{key}_ns") for key in BUSY_PARTS}
        if not isinstance(summed(steps, "dispatch_ns"), NotMeasured):
            assert sum(parts[cause.key] for cause in DISPATCH) == summed(steps, "dispatch_ns")


@pytest.mark.parametrize("name", WITH_DEVICE)
def test_why_a_gate_fails_is_told_in_the_parts_of_an_analysis(name):
    ranks = {rank.rank for rank in report(name).ranks} != {None}
    why = traceanalyze.gate(SAMPLES / name, SAMPLES / (name if ranks else OTHER[name]), warmup=0, no_match=UNLIKE).why
    assert why is not None
    parts = {row.name: row.candidate for row in why.parts}
    usable = [[step for step in by_step(name, rank.rank).values() if step["complete"]] for rank in report(name).ranks]
    means = [summed(steps, "time_ns") / len(steps) for steps in usable]
    steps = usable[means.index(max(means))]
    for part in BUSY_PARTS:
        assert parts[part] == pytest.approx(summed(steps, f"{part}_ns") / len(steps))
    told = [parts[cause.key] for cause in DISPATCH if cause.key in parts]
    if len(told) == len(DISPATCH) and not isinstance(summed(steps, "dispatch_ns"), NotMeasured):
        assert sum(told) == pytest.approx(summed(steps, "dispatch_ns") / len(steps))


@pytest.mark.parametrize("name", NAMES)
def test_a_postmortem_prints_the_split_of_an_analysis(name):
    shown = [rank for rank in traceanalyze.postmortem(SAMPLES / name).ranks if table(rank, "split")]
    assert shown
    for rank in shown:
        same = next(each for each in report(name).ranks if each.rank == rank.rank)
        assert table(rank, "split").rows == table(same, "split").rows


@pytest.mark.parametrize("name", NAMES)
def test_json_and_workbook_hold_the_split_of_an_analysis(name):
    found = report(name)
    (written,) = json.loads(render_json([found], texts()))["reports"]
    for rank, document in zip(found.ranks, written["ranks"], strict=True):
        rows = document["tables"]["split"]["rows"]
        for row, wanted in zip(rows, table(rank, "split").records(), strict=True):
            assert row["part"] == wanted.part
            same = row["sum_ns"] == wanted.sum_ns and row["mean_ns"] == wanted.mean_ns
            assert same or isinstance(wanted.sum_ns, NotMeasured)
    split = found.tables["split"].records()
    wanted = {texts().terms[row.part]: row.mean_ns for row in split if isinstance(row.mean_ns, int)}
    shown = times_of_sheet(render_workbook([found], texts()), "Split")
    assert {key: time for key, time in shown.items() if key in wanted} == pytest.approx(wanted, abs=1)


def times_of_sheet(content: bytes, name: str) -> dict[str, float]:
    """The first column of times, in ns, by the words beside it."""
    with warnings.catch_warnings():
        # openpyxl does not know the solid bars of Excel 2010 and says so.
        warnings.simplefilter("ignore")
        sheet, header = in_workbook(openpyxl.load_workbook(io.BytesIO(content)), name)
    unit = re.fullmatch(r".* \((s|ms|µs|ns)\)", str(sheet.cell(header, 2).value))[1]
    rows = takewhile(lambda row: row[0] is not None, sheet.iter_rows(min_row=header + 1, values_only=True))
    return {row[0]: row[1] * SECONDS[unit] for row in rows if isinstance(row[1], int | float)}


@pytest.mark.parametrize("name", ["gpu_launch_bound", "gpu_two_ranks", "npu_training"])
def test_json_of_a_comparison_holds_its_parts(name):
    found = comparison(name, name)
    document = json.loads(render_json([found], texts()))["reports"][0]
    dispatch = [row for row in document["tables"]["step_difference"]["rows"] if row["part"] == "dispatch"]
    wanted = [row for row in found.tables["step_difference"].records() if row.part == "dispatch"]
    assert [row["base_sum_ns"] for row in dispatch] == [row.base_sum_ns for row in wanted]


def test_dispatch_of_a_comparison_is_that_of_an_analysis():
    (row,) = [
        row
        for row in comparison("gpu_healthy", "gpu_launch_bound").tables["step_difference"].records()
        if row.part == "dispatch"
    ]
    assert row.candidate_time_ns == 2_670_572
    assert set(DISPATCH) - set(DISPATCH_CALLS) == {Cause.HOST_OP}
