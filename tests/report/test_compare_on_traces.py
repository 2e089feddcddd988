"""Comparisons of real pairs as users see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import traceanalyze
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report.console import Style, render
from traceanalyze.report.format import Formatter
from traceanalyze.report.json import render as render_json
from traceanalyze.report.view import View
from traceanalyze.report.xlsx import render as workbook

RN = "kineto/kineto_tb/samples/resnet50_num_workers_"
PAIRS = {
    "data loader": (f"{RN}0/worker0.1623143089861.pt.trace.json.gz", f"{RN}4/worker0.1623212756351.pt.trace.json.gz"),
    "missing launches": ("kineto/hta/trace_diff/control/control.json.gz", "kineto/hta/trace_diff/test/test.json.gz"),
    "two vendors": (
        "kineto/tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "kineto/tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    ),
}
OTHER_MODELS = (
    f"{RN}0/worker0.1623143089861.pt.trace.json.gz",
    "ascend/msinsight_2rank_torch/text/level1/rank0_ascend_pt",
)


@pytest.fixture
def compared(shared_traces):
    def report(name, *, swapped=False, **choices):
        base, candidate = (shared_traces / path for path in PAIRS.get(name, OTHER_MODELS))
        if not (base.exists() and candidate.exists()):
            pytest.skip(f"the pair {name} is not here")
        return traceanalyze.compare(*((candidate, base) if swapped else (base, candidate)), **choices)

    return report


SAMPLES = Path(__file__).parents[2] / "sample_traces"
SAMPLE_PAIRS = (
    ("gpu_npu_pair/gpu", "gpu_npu_pair/npu"),
    ("gpu_healthy", "npu_training"),
    ("gpu_data_loading", "gpu_sync"),
    ("gpu_two_ranks", "gpu_launch_bound"),
    ("cpu_training", "gpu_healthy"),
)


@pytest.mark.parametrize("pair", [*PAIRS, *SAMPLE_PAIRS], ids=str)
def test_no_number_depends_on_how_much_is_shown(compared, pair):
    """The screen matches no single calls (`details`), the workbook does; sections leave out tables only."""

    def report(**choices):
        if isinstance(pair, str):
            return compared(pair, **choices)
        return traceanalyze.compare(*(SAMPLES / each for each in pair), **choices)

    whole, less = report(), report(details=False)
    assert (less.verdict, less.caveats, less.advice) == (whole.verdict, whole.caveats, whole.advice)
    changed = {"compare_options", "unmatched"}
    assert less.tables.keys() <= whole.tables.keys()
    for key in less.tables.keys() - changed:
        assert less.tables[key].known_rows == whole.tables[key].known_rows, key
    if "unmatched" in whole.tables:
        alone = [list(found.tables["unmatched"].records()) for found in (whole, less)]
        assert [row for row in alone[0] if row.section != "section_calls"] == alone[1]
    part = report(sections="memory", modules=False)
    assert (part.verdict, part.caveats) == (whole.verdict, whole.caveats)


def test_the_data_loader_is_the_top_finding(compared):
    report = compared("data loader", swapped=True)
    words = Formatter(texts(), report.resolution_ns)
    assert words.message(report.verdict_messages[0]).startswith("The candidate is 36.52 ms (26 %) slower per step, ")
    # What may be chance comes after what is none.
    assert "data loading +57.55 ms, untraced -3.529 ms, dispatch -9.588 ms, sync -6.087 ms." in words.message(
        report.verdict_messages[0]
    )
    first = report.tables["causes"].to_pandas(words=False).iloc[0]
    assert (first["contribution"], first["diff_ns"]) == ("DataLoader", 57_550_000)


def test_resnet_on_a_gpu_and_alexnet_on_an_npu_are_not_the_same_work(compared):
    """53 convolutions a step and 5, of three and one linear layers; no names of modules in the one."""
    report = compared("other models")
    assert report.verdict.startswith("Not the same work: what takes 80 % of the time runs 828 times a step in the base")
    assert report.tables["causes"].why_not


def test_parts_are_those_of_the_definitions(compared):
    frame = compared("data loader").tables["step_difference"].to_pandas(words=False).set_index("part")
    found = {part: round(ns / 1e6, 2) for part, ns in frame["diff_ns"].items() if ns}
    assert found == {
        "data_loading": -57.55,
        "sync": 6.09,
        "untraced": 3.53,
        "dispatch": 9.59,
        "memory_ops": 1.25,
        "compute": 0.56,
        "device_side": 0.01,
    }


@pytest.mark.parametrize("name", PAIRS)
def test_everything_has_a_text_and_fits(compared, name):
    report = compared(name)
    words = texts()
    for table in report.summary:
        for index, column in enumerate(table.columns):
            if column.kind == Kind.TERM and isinstance(table.rows, tuple) and column.key != "index":
                assert {row[index] for row in table.rows} <= set(words.terms), (table.key, column.key)
    named, above = {row[0] for table in report.summary if table.key == "memory_peak" for row in table.rows}, ""
    for row in report.tables["overall_metrics"].records():
        above = row.index if row.level == 0 else above
        # Rows in communication may be groups, which the profile names.
        if row.level == 0 or above != "communication" or row.index.startswith("comm_"):
            named.add(row.index)
    assert named <= set(words.terms)
    for width in (80, 160):
        page = render(report, words, Style(width=width), View(Detail.VERBOSE, 10))
        assert max(map(len, page.splitlines())) <= width
    assert json.loads(render_json([report], words))["reports"][0]["tables"]["causes"]["rows"]
    assert workbook([report], words)[:2] == b"PK"


@pytest.mark.parametrize("name", PAIRS)
def test_causes_sum_to_the_difference(compared, name):
    report = compared(name)
    comparison = report.comparison
    counts = comparison.base.count, comparison.candidate.count
    step = comparison.candidate.step_time * counts[0] - comparison.base.step_time * counts[1]
    causes = report.tables["causes"]
    pairs = zip(causes.column("base_sum_ns"), causes.column("candidate_sum_ns"), strict=True)
    assert sum(candidate * counts[0] - base * counts[1] for base, candidate in pairs) == step
