from __future__ import annotations

import csv
import io
import json

import pytest

from tests.report.make_compare import MS, build_compare, comparison
from traceanalyze.locales import texts
from traceanalyze.report import folder
from traceanalyze.report.json import render_compare


@pytest.fixture(scope="module")
def report():
    return build_compare(comparison(), version="1.2", options={"--base-step": "5"}, notes=[("base", "x is missing")])


def test_the_document(report):
    found = json.loads(render_compare(report, texts()))
    assert found["schema"] == "traceanalyze.compare/1"
    assert found["tool"] == {"name": "traceanalyze", "version": "1.2"}
    assert found["verdict"][0]["key"] == "compare_faster_4"
    assert found["verdict"][0]["values"]["diff_ns"] == 20 * MS
    assert (found["base"]["path"], found["candidate"]["path"]) == ("runs/before.json", "runs/after.json")
    assert (found["base"]["mean_step_ns"], found["candidate"]["steps_compared"]) == (100 * MS, 4)
    assert found["notes"][0]["text"] == "base: x is missing"
    assert found["caveats"][0]["text"] == "The two profiles have different levels."
    assert len(found["quality"]) == 4
    assert [item["values"]["part"] for item in found["advice"]] == ["dispatch", "untraced", "compute"]
    assert found["advice"][0]["values"]["diff_ns"] == 5 * MS


def test_every_table_is_there_with_exact_sums(report):
    tables = json.loads(render_compare(report, texts()))["tables"]
    assert set(tables) == set(report.tables) - {"compare_sides"}
    loading = tables["causes"]["rows"][0]
    assert (loading["contribution"], loading["diff_ns"], loading["base_sum_ns"]) == ("DataLoader", -30 * MS, 60 * MS)
    assert tables["compare_options"]["rows"] == [{"option": "--base-step", "option_value": "5"}]
    wait = tables["communication_compare"]["rows"][0]
    assert (wait["base_wait_ns"], wait["base_wait_ns_reason"]) == (None, "no_communication")


def test_tables_as_files(report):
    files = folder.compare_files(report, texts(), "csv")
    assert {"report.json", "causes.csv", "operator_compare_statistic.csv", "compare_sides.csv"} <= set(files)
    rows = list(csv.DictReader(io.StringIO(files["causes.csv"]().decode("utf-8-sig"))))
    assert [row["diff_ns"] for row in rows] == ["-30000000", "5000000", "3000000", "2000000"]
    calls = list(csv.DictReader(io.StringIO(files["operator_compare.csv"]().decode("utf-8-sig"))))
    assert calls[0]["candidate_op"] == "'=cmd|'/C calc'!A0"
    assert folder.is_index(files["report.json"]()[:200])


def test_tables_as_parquet(report):
    parquet = pytest.importorskip("pyarrow.parquet")
    files = folder.compare_files(report, texts(), "parquet")
    for name, content in files.items():
        if name.endswith(".parquet"):
            assert parquet.read_table(io.BytesIO(content())).num_rows == len(report.tables[name[:-8]].rows)
