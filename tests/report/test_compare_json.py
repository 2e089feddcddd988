from __future__ import annotations

import csv
import io
import json

import pytest

from tests.report.make_compare import MS, build_compare, comparison
from traceanalyze.locales import texts
from traceanalyze.report import folder
from traceanalyze.report.json import render


@pytest.fixture(scope="module")
def report():
    return build_compare(comparison(), version="1.2", options={"--base-step": "5"}, notes=[("base", "x is missing")])


def test_the_document(report):
    document = json.loads(render([report], texts()))
    assert (document["schema"], document["command"]) == ("traceanalyze.report/2", "compare")
    assert document["tool"] == {"name": "traceanalyze", "version": "1.2"}
    (found,) = document["reports"]
    base, candidate = found["tables"]["compare_sides"]["rows"]
    assert found["verdict"][0]["key"] == "compare_faster_4"
    assert found["verdict"][0]["values"]["diff_ns"] == 20 * MS
    assert (base["path"], candidate["path"]) == ("runs/before.json", "runs/after.json")
    assert [(side["side"], side["path"]) for side in found["sides"]] == [
        ("base", "runs/before.json"),
        ("candidate", "runs/after.json"),
    ]
    assert (base["mean_step_ns"], candidate["steps_compared"]) == (100 * MS, 4)
    assert found["notes"][0]["text"] == "base: x is missing"
    assert found["remarks"]["caveats"][0]["text"] == "The two profiles have different levels."
    assert len(found["remarks"]["quality"]) == 4
    assert [item["values"]["part"] for item in found["remarks"]["advice"]] == ["dispatch", "untraced", "compute"]
    assert found["remarks"]["advice"][0]["values"]["diff_ns"] == 5 * MS


def test_every_table_is_there_with_exact_sums(report):
    tables = json.loads(render([report], texts()))["reports"][0]["tables"]
    assert set(tables) == set(report.tables)
    loading = tables["causes"]["rows"][0]
    assert (loading["contribution"], loading["diff_ns"], loading["base_sum_ns"]) == ("DataLoader", -30 * MS, 60 * MS)
    assert tables["compare_options"]["rows"] == [{"option": "--base-step", "option_value": "5"}]
    wait = tables["communication_compare"]["rows"][0]
    assert (wait["base_wait_ns"], wait["base_wait_ns_reason"]) == (None, "no_communication")


def test_tables_as_files(report):
    files = folder.files([report], texts(), "csv")
    assert {"report.json", "causes.csv", "operator_compare_statistic.csv", "compare_sides.csv"} <= set(files)
    rows = list(csv.DictReader(io.StringIO(files["causes.csv"]().decode("utf-8-sig"))))
    assert [row["diff_ns"] for row in rows] == ["-30000000", "5000000", "3000000", "2000000"]
    calls = list(csv.DictReader(io.StringIO(files["operator_compare.csv"]().decode("utf-8-sig"))))
    assert calls[0]["candidate_op"] == "'=cmd|'/C calc'!A0"
    assert folder.is_index(files["report.json"]()[:200])


def test_tables_as_parquet(report):
    parquet = pytest.importorskip("pyarrow.parquet")
    files = folder.files([report], texts(), "parquet")
    for name, content in files.items():
        if name.endswith(".parquet"):
            assert parquet.read_table(io.BytesIO(content())).num_rows == len(report.tables[name[:-8]].rows)
