"""Findings in the report: a ranked table right after the split, sentences and advice below it, the proof behind."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured, Word
from traceanalyze.model.vocabulary import Detail
from traceanalyze.report import json as json_report
from traceanalyze.report import xlsx
from traceanalyze.report.console import Style, render
from traceanalyze.report.contents.findings import evidence_rows
from traceanalyze.report.contents.words import sentence_of
from traceanalyze.report.format import Formatter
from traceanalyze.report.view import View
from traceanalyze.rules.finding import Evidence, Finding


@pytest.fixture
def report(tmp_path):
    """Four steps of 2 ms; in each the device waits 0.82 ms for a batch made in the loop itself."""
    b = TraceBuilder()
    for number in range(4):
        at = number * 2000
        b.step(number, at, 2000)
        b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 800)
        b.op("aten::mm", at + 820, 20)
        b.launch(at + 825, 10, at + 840, 1150)
    return traceanalyze.analyze(b.write(tmp_path / "trace.json"))


def test_the_findings_stand_right_after_the_split(report):
    assert [table.key for table in report.ranks[0].tables][:2] == ["split", "findings"]


def test_a_row_says_what_it_costs_and_where(report):
    (row,) = report.tables["findings"].to_pandas(words=False).to_dict("records")
    assert row["rule_id"] == "DAT101"
    assert row["severity"] == "severity_high"
    assert row["confidence"] == "confidence_high"
    assert row["saving_ns"] == pytest.approx(795_000, abs=30_000)
    assert row["share"] == pytest.approx(row["saving_ns"] / 2_000_000, abs=0.01)
    assert row["bound_ns"] >= row["saving_ns"]


def test_the_page_explains_it_and_says_what_to_do(report):
    text = render(report, texts(), Style(width=80)).replace("\n", " ")
    assert "DAT101: The device waits for the data loader" in text
    assert "(num_workers=0)" in text
    assert "→ DataLoader(num_workers=4 or more" in text


def test_the_recording_is_judged_only_in_the_long_view(report):
    short, long = (
        render(report, texts(), Style(width=100), View(detail)) for detail in (Detail.NORMAL, Detail.VERBOSE)
    )
    assert "CAP102" not in short
    assert "CAP102: Not recorded, so some findings are impossible" in long
    assert "SYN106" not in short


def test_rules_that_could_not_be_judged_are_listed_with_the_reason(report):
    table = report.tables["rules_not_judged"]
    reasons = dict(zip(table.column("rule_id"), table.column("saving_ns"), strict=True))
    assert reasons["SYN107"] == NotMeasured("no_python")
    assert reasons["DAT107"] == NotMeasured("no_shapes")


def test_json_holds_everything(report):
    (rank,) = json.loads(json_report.render([report], texts()))["reports"][0]["ranks"]
    (row,) = rank["tables"]["findings"]["rows"]
    assert row["rule_id"] == "DAT101"
    assert rank["tables"]["findings"]["notes"][0]["key"] == "finding_DAT101_single"
    proof = {row["evidence"]: row for row in rank["tables"]["finding_evidence"]["rows"] if row["rule_id"] == "DAT101"}
    assert proof["evidence_batches"]["figure"] == 4
    assert proof["evidence_idle"]["duration_ns"] > 700_000
    unjudged = rank["tables"]["rules_not_judged"]["rows"]
    assert {row["saving_ns_reason"] for row in unjudged} >= {"no_python", "no_shapes"}


@pytest.mark.filterwarnings("ignore:.* extension is not supported")
def test_the_workbook_has_a_sheet_of_them(report):
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(xlsx.render([report], texts())))
    cells = [cell for row in book["Findings"].iter_rows(values_only=True) for cell in row]
    assert "DAT101" in cells
    assert any("num_workers" in str(cell) for cell in cells)


def test_programs_get_the_findings_themselves(report):
    first = report.ranks[0].findings[0]
    assert (first.rule, first.slug) == ("DAT101", "loader-wait")
    assert first.intervals.shape[1] == 2


def test_rules_are_chosen(report, tmp_path):
    path = tmp_path / "trace.json"
    for more in ({"ignore": ["DAT101"]}, {"select": ["SYN", "HST"]}):
        assert traceanalyze.analyze(path, **more).tables["findings"].rows == ()
    run = traceanalyze.load(path)
    assert [one.rule for one in traceanalyze.analyze(run, select=["DAT"]).ranks[0].findings] == ["DAT101"]


def test_words_of_the_tool_in_the_evidence_are_translated():
    one = Finding(evidence=(Evidence("phase", "late_compute", "TERM"),), rule="RNK101")
    (row,) = evidence_rows([one])
    (word,) = [value for key, value in row.items() if value is not None and key not in {"rule_id", "evidence"}]
    assert isinstance(word, Word)
    assert texts().terms[word] == "its compute is longer"


@pytest.mark.parametrize(("language", "of_steps", "in_all"), [("en", "a step", "in all"), ("zh", "每步", "全程")])
def test_without_steps_amounts_are_of_the_whole_trace(language, of_steps, in_all):
    one = Finding(
        rule="DAT101", saving=5, evidence=(Evidence("idle", 5_000_000, "DURATION"), Evidence("share", 0.1, "SHARE"))
    )
    words = texts(language)
    assert of_steps in Formatter(words).message(sentence_of(one))
    told = Formatter(words, whole=True).message(sentence_of(one))
    assert in_all in told
    assert of_steps not in told


def test_shares_of_a_run_are_of_the_step_that_is_shown():
    """Of findings about the ranks, too: steps differ by 725 ns, half of which the mean of both would be off."""
    found = traceanalyze.analyze(Path(__file__).resolve().parents[2] / "sample_traces/gpu_two_ranks")
    steps = found.tables["ranks"].array("step_ns")
    assert steps[0] - steps[1] > 700
    shares = {one.rule: (one.saving.ns, one.share) for one in found.findings if one.saving}
    assert {"COM101", "RNK101"} <= set(shares)
    assert all(saving / share == pytest.approx(steps[1], abs=2) for saving, share in shares.values())


@pytest.mark.parametrize(("kernel", "why"), [(2, True), (78, True), (80, False), (95, False)])
def test_it_is_said_why_more_is_saved_than_the_kernels_take(tmp_path, kernel, why):
    """Eight chained operators of 95 µs on the host, seven of which are gone: 700 µs, of kernels of 8 times so many."""
    b = TraceBuilder()
    for number in range(4):
        at = number * 1000
        b.step(number, at, 1000)
        for begin in range(at, at + 800, 100):
            name = "aten::mul" if begin % 200 else "aten::add"
            b.op(name, begin, 95, **{"Input Dims": [[1024, 1024]] * 2, "Input type": ["float"] * 2})
            name = "void at::native::vectorized_elementwise_kernel<4>"
            b.launch(begin + 80, 10, begin + 85, kernel, name=name)
        b.launch(at + 830, 10, at + 885, 100, name="gemm")
    report = traceanalyze.analyze(b.write(tmp_path / "trace.json"))
    (found,) = (each for each in report.findings if each.rule == "KRN106")
    because = "also frees the host, for which the device waits"
    assert (because in found.sentence) is why
    assert (because in render(report, texts(), Style(width=300), View(Detail.VERBOSE))) is why
