"""What the report says about the ranks of a run; truth of the sample is its `case.toml`."""

from __future__ import annotations

import json
import tomllib
import warnings
from pathlib import Path

import openpyxl
import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.ranks.simulated import summaries, workload
from tests.ranks.test_compare import late
from tests.report.make import in_workbook
from traceanalyze.locales import texts
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.pipeline import Choices, reports
from traceanalyze.pipeline.results import Work
from traceanalyze.ranks.compare import cluster_tables, compare_ranks
from traceanalyze.ranks.results import Group
from traceanalyze.ranks.stragglers import straggler_sentences
from traceanalyze.report.console import Style, render
from traceanalyze.report.json import render as as_json

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "gpu_two_ranks"
TABLES = ("rank_findings", "rank_waits", "collective_waits", "rank_imbalance", "rank_steps", "clock_offsets", "links")


@pytest.fixture(scope="module")
def report():
    return traceanalyze.analyze(SAMPLE)


def test_the_opening_names_the_rank_that_makes_the_others_wait(report):
    case = tomllib.loads((SAMPLE / "case.toml").read_text())
    fast, slow = (one["parts"]["comm_exposed"] for one in case["trace"])
    said = " ".join(render(report, texts(), Style(width=80)).split())
    wait = (fast - slow) / 6 / 1e6
    assert f"Rank 1 makes the others wait {wait:.3f} ms a step (6.1 %), because its compute is longer." in said


def test_waits_of_the_sample_are_the_difference_of_its_communication(report):
    case = tomllib.loads((SAMPLE / "case.toml").read_text())
    fast, slow = (one["parts"]["comm_exposed"] for one in case["trace"])
    table = report.tables["collective_waits"].to_pandas(words=False)
    assert list(table["wait_ns"]) == [fast - slow, 0]
    assert list(table["transfer_ns"]) == [slow, slow]
    assert list(report.tables["rank_waits"].column("straggler")) == [False, True]


def test_every_rank_has_a_row_in_every_step(report):
    table = report.tables["rank_steps"].to_pandas(words=False)
    case = tomllib.loads((SAMPLE / "case.toml").read_text())
    for one in case["trace"]:
        mine = table[table["rank"] == str(one["rank"])]
        assert list(mine["time_ns"]) == one["steps"]
        assert (mine["longest_part"] == "communication").all()


def test_every_table_term_and_note_has_a_text():
    words = texts()
    bounded = compare_ranks([late(0, 300, world=4), late(1, 0, world=4)])
    for cluster in (bounded, compare_ranks(summaries(workload(ranks=3)))):
        for table in cluster_tables(cluster):
            assert words.title(table)
            rows = () if isinstance(table.rows, NotMeasured) else table.rows
            for index, column in enumerate(table.columns):
                assert words.meaning(table, column), (table.key, column.key)
                values = {row[index] for row in rows if column.kind == Kind.TERM} - {None}
                assert [one for one in values if not isinstance(one, NotMeasured) and one not in words.terms] == []
            assert all(words.messages[note.key] for note in table.notes)


def test_with_ranks_missing_the_tables_say_that_numbers_are_bounds():
    group = Group("0-3", (0, 1, 2, 3), 4)
    cluster = compare_ranks([late(n, 300 * (1 - n), world=4, group=group) for n in (0, 1)])
    waits, collectives, *_ = cluster_tables(cluster)
    assert [(note.key, note.values[0][2]) for note in waits.notes] == [("waits_bounded", "2–3")]
    assert all(collectives.column("is_bound"))
    assert set(waits.column("straggler")) == {NotMeasured("ranks_missing")}


def test_without_a_size_of_the_group_the_tables_say_that_they_cannot_know():
    group = Group("g", (), 0)
    cluster = compare_ranks([late(n, 300 * (1 - n), world=None, group=group) for n in (0, 1)])
    assert [note.key for note in cluster_tables(cluster)[0].notes] == ["waits_perhaps_bounded"]


def test_a_small_wait_is_not_worth_a_sentence():
    assert straggler_sentences(compare_ranks([late(0, 5), late(1, 0)])) == ()
    known = compare_ranks([late(0, 50), late(1, 0)])
    assert [one.key for one in straggler_sentences(known)] == ["straggler"]
    # All of the waiting, and what of it compute does not hide, are two numbers.
    part = known._replace(stragglers=tuple(one._replace(exposed=one.wait // 2) for one in known.stragglers))
    (said,) = straggler_sentences(part)
    numbers = {name: value for name, _, value in said.values}
    assert (said.key, numbers["wait"]) == ("straggler_part", 2 * numbers["exposed"])
    hidden = known._replace(stragglers=tuple(one._replace(exposed=0) for one in known.stragglers))
    assert straggler_sentences(hidden) == ()


def test_json_and_workbook_hold_them(report, tmp_path):
    from traceanalyze.report.xlsx import render as workbook

    found = json.loads(as_json((report,), texts()))["reports"][0]["tables"]
    assert set(TABLES) <= set(found)
    (tmp_path / "out.xlsx").write_bytes(workbook((report,), texts()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    sheet, _ = in_workbook(book, "Rank steps")
    # The heat map: shades over all rows of one column.
    scales = [rule.type for ranges in sheet.conditional_formatting for rule in ranges.rules]
    assert "colorScale" in scales


def test_one_rank_has_no_such_tables():
    assert set(TABLES).isdisjoint(traceanalyze.analyze(SAMPLE / "rank0.json.gz").tables)


def test_processes_of_their_own_change_nothing(report, monkeypatch):
    monkeypatch.setattr("traceanalyze.pipeline.results.LARGE", 2)
    (other,) = reports([str(SAMPLE)], Choices(), work=Work(workers=None))
    assert as_json((other,), texts()) == as_json((report,), texts())


def test_a_column_that_no_row_tells_is_named_with_the_reason_and_no_cell_is_explained_that_is_not_there(tmp_path):
    """Two steps are too few to call a rank a straggler."""
    for rank, compute in enumerate((3_000, 5_000)):
        made = TraceBuilder()
        made.header = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
        for step in range(2):
            at = 1_000 + 10_000 * step
            made.step(step, at, 9_000)
            made.launch(at, 5, at + 10, compute)
            made.launch(at + 10, 5, at + 20 + compute, 6_000 - compute, name="ncclKernel_AllReduce", stream=20)
        made.write(tmp_path / f"rank{rank}.json")
    report = traceanalyze.analyze(tmp_path)
    said = render(report, texts(), Style(width=100))
    (table,) = [part for part in said.split("\n\n") if part.startswith("Who waits for whom")]
    assert "straggler: not measured (needs at least 3 steps that all ranks recorded completely)" in table
    assert "慢 Rank：未测得（需要" in render(report, texts("zh"), Style(width=100))
    assert "n/m" not in table


def test_ranks_without_collectives_have_no_waits_and_not_zero(tmp_path):
    for rank in (0, 1):
        made = TraceBuilder()
        made.header = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
        made.launch(0, 5, 10, 20 + rank)
        made.write(tmp_path / f"rank{rank}.json")
    found = traceanalyze.analyze(tmp_path).tables
    missing = NotMeasured("no_matched_collectives")
    for key in ("wait_ns", "times_last", "straggler"):
        assert found["rank_waits"].column(key) == (missing, missing)
    assert found["rank_findings"].rows == ()


def test_a_step_of_a_rank_without_timed_events_is_not_measured_and_not_zero(tmp_path):
    for rank, timed in ((0, True), (2, True), (1, False)):
        made = TraceBuilder()
        made.header = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}}
        if timed:
            made.launch(0, 5, 10, 20)
        made.memory(1, 512)
        made.write(tmp_path / f"rank{rank}.json")
    missing = NotMeasured("no_events")
    assert traceanalyze.analyze(tmp_path).tables["ranks"].column("step_ns") == (20_000, missing, 20_000)
    for rank in (0, 2):
        (tmp_path / f"rank{rank}.json").unlink()
    made.header["distributedInfo"]["rank"] = 0
    made.write(tmp_path / "rank0.json")
    found = traceanalyze.analyze(tmp_path).tables
    assert found["ranks"].column("step_ns") == found["rank_waits"].column("step_ns") == (missing, missing)
