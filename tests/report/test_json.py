from __future__ import annotations

import json
from dataclasses import replace

import pytest

import traceanalyze
from tests.report.make import MS, analysis, empty, host_only, whole_trace
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.report.contents import build_report
from traceanalyze.report.json import render
from traceanalyze.report.view import View

RUN_KEYS = {"name", "answer", "verdict", "notes", "sides", "tables", "remarks", "in_detail", "findings", "ranks"}
RANK_KEYS = {"rank", "path", "mode", "resolution_ns", "verdict", "tables", "together", "checks", "to_measure_more"}


def document(*analyses):
    return json.loads(render([build_report("run", analyses, version="1.2.3")], texts()))


@pytest.mark.parametrize("one", [analysis(), whole_trace(), host_only(1.0, 2.0), empty()])
def test_the_document_has_the_documented_shape(one):
    found = document(one)
    assert found["schema"] == "traceanalyze.report/2"
    assert found["tool"] == {"name": "traceanalyze", "version": "1.2.3"}
    (run,) = found["reports"]
    assert set(run) == RUN_KEYS
    assert set(run["ranks"][0]) == RANK_KEYS
    for table in run["ranks"][0]["tables"].values():
        assert table["rows"] is not None or {"reason", "text"} < set(table)


def test_durations_are_exact_integers():
    split = document(analysis())["reports"][0]["ranks"][0]["tables"]["split"]
    assert split["total"] == {"part": "step", "mean_ns": 177_666_667, "share": 1.0, "sum_ns": 533 * MS}
    assert sum(row["sum_ns"] for row in split["rows"]) == 533 * MS


def test_all_rows_are_there():
    tables = document(analysis(times=tuple(float(n + 1) for n in range(40))))["reports"][0]["ranks"][0]["tables"]
    assert len(tables["steps"]["rows"]) == 40
    assert len(tables["gaps"]["rows"]) == 120
    assert len(tables["idle_causes"]["rows"]) == 12


@pytest.mark.parametrize("ranks", [1, 4])
def test_by_default_it_is_short_and_counts_the_rows_left_out(ranks):
    report = build_report("run", [analysis(rank=rank) for rank in range(ranks)], version="0")
    column = Column("name", Kind.TEXT)
    # In bytes, and not in letters: 1000 rows of 312 bytes are too many; 500 fit, with 125 of each of three other ranks.
    long, short = (Table("gaps", (column,)).fill(name=["等" * 100] * count) for count in (1500, 3))
    report = replace(
        report, ranks=tuple(replace(one, tables=(long, replace(short, key="steps"))) for one in report.ranks)
    )
    text = render([report], texts(), View())
    assert len(text.encode()) <= 300_000
    (run,) = json.loads(text)["reports"]
    for place, rank in enumerate(run["ranks"]):
        count = 500 if place in run["in_detail"] else 125
        assert len(rank["tables"]["gaps"]["rows"]) == count
        assert rank["tables"]["gaps"]["rows_left_out"] == 1500 - count
        assert rank["tables"]["steps"] == {"rows": [{"name": "等" * 100}] * 3}
    whole = json.loads(render([report], texts(), View(whole=True)))["reports"][0]["ranks"][0]["tables"]["gaps"]
    assert (len(whole["rows"]), whole.keys()) == (1500, {"rows"})


def test_a_real_trace_fits(shared_traces):
    """450 kB; with every row 1.9 MB."""
    path = shared_traces / "kineto/tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
    text = render([traceanalyze.analyze(path)], texts(), View())
    assert 100_000 < len(text.encode()) <= 300_000
    assert json.loads(text)["reports"][0]["ranks"][0]["tables"]["call_paths"]["rows_left_out"] > 100


def test_what_was_not_measured_is_null_with_a_reason():
    tables = document(analysis())["reports"][0]["ranks"][0]["tables"]
    terminal = tables["sync_points"]["rows"][1]
    assert (terminal["idle_caused_ns"], terminal["idle_caused_ns_reason"]) == (None, "terminal_sync")


def test_messages_have_text_key_and_values():
    (sentence,) = document(analysis())["reports"][0]["verdict"]
    assert sentence["key"] == "step_idle_mostly"
    assert sentence["values"]["time_ns"] == 177_666_667
    assert sentence["text"].startswith("Step 177.7 ms")


def test_checks_have_id_and_level():
    checks = document(analysis())["reports"][0]["ranks"][0]["checks"]
    assert [(check["id"], check["level"], check["key"]) for check in checks] == [
        ("Q03", "warn", "unlinked"),
        ("Q05", "info", "no_python"),
    ]


def test_every_rank_is_there():
    (run,) = document(*(analysis(rank=rank) for rank in range(3)))["reports"]
    assert [rank["rank"] for rank in run["ranks"]] == [0, 1, 2]
    assert len(run["tables"]["ranks"]["rows"]) == 3


def test_gap_causes_are_named():
    gap = document(analysis())["reports"][0]["ranks"][0]["tables"]["gaps"]["rows"][0]
    assert gap["causes"] == {"data_loading": 50 * MS, "host_op": 5 * MS}


def test_parts_are_an_object_and_null_where_nothing_is_known():
    columns = Column("name", Kind.TEXT), Column("causes", Kind.BREAKDOWN)
    table = Table("gaps", columns).fill(
        name=["a", "b", "c", "d"], causes=[(("sync", 3), ("host_op", 1)), (), None, NotMeasured("no_api")]
    )
    report = build_report("run", [analysis()], version="0")
    report = replace(report, ranks=(replace(report.ranks[0], tables=(table,)),))
    (found,) = json.loads(render([report], texts()))["reports"][0]["ranks"][0]["tables"].values()
    assert [row["causes"] for row in found["rows"]] == [{"sync": 3, "host_op": 1}, {}, None, None]
    assert found["rows"][3]["causes_reason"] == "no_api"
