"""Tables as files: CSV, Parquet, and which files a report is made of."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.report.make import MS, analysis
from traceanalyze.locales import texts
from traceanalyze.model.table import Column, Kind, NotMeasured, Quantity, Table, Word
from traceanalyze.report import folder
from traceanalyze.report.contents import build_report
from traceanalyze.report.folder import files, is_index

_COLUMNS = (
    Column("name", Kind.NAME),
    Column("time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("complete", Kind.FLAG),
    Column("causes", Kind.BREAKDOWN),
    Column("count", Kind.COUNT),
)
_TABLE = Table("extra", _COLUMNS).fill(
    name=["=1+1", '中文, "quoted"\nand broken', None],
    time_ns=[1_500_000, -5, NotMeasured("no_api")],
    share=[0.25, float("nan"), None],
    complete=[True, False, None],
    causes=[(("sync", 3), ("host_op", 1)), None, ()],
    count=[2, 2.5, None],
)


def report_of(*analyses):
    return build_report("run", analyses or [analysis()], version="0")


def read(table):
    data = folder.csv(table)
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_csv_has_every_column_and_row_with_names_and_values_as_in_json():
    first, second, third = read(_TABLE)
    assert first == {
        "name": "'=1+1",
        "time_ns": "1500000",
        "share": "0.25",
        "complete": "true",
        "causes": "sync=3; host_op=1",
        "count": "2",
    }
    assert second["name"] == '中文, "quoted"\nand broken'
    assert (second["time_ns"], second["share"], second["complete"], second["count"]) == ("-5", "", "false", "2.5")
    assert set(third.values()) == {""}


@pytest.mark.parametrize("name", ["=a", "+a", "-a", "@a", "\ta", "\ra"])
def test_csv_text_that_a_spreadsheet_would_run_is_marked(name):
    table = Table("extra", _COLUMNS[:1]).fill(name=[name])
    assert read(table)[0]["name"] == "'" + name


def test_csv_holds_lone_surrogates_off():
    assert read(Table("extra", _COLUMNS[:1]).fill(name=["a\ud800b"]))[0]["name"] == "a?b"


def test_a_table_that_was_not_measured_has_its_header():
    assert folder.csv(Table("extra", _COLUMNS[:2]).missing("no_api")).endswith(b"name,time_ns\r\n")


def test_parquet_is_typed():
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(folder.parquet(_TABLE)))
    assert table.column_names == [column.key for column in _COLUMNS]
    kinds = [str(kind).partition("<")[0] for kind in table.schema.types]
    assert kinds == ["string", "int64", "double", "bool", "map", "double"]
    assert table.column("time_ns").to_pylist() == [1_500_000, -5, None]
    assert table.column("causes").to_pylist()[0] == [("sync", 3), ("host_op", 1)]
    missing = Table("extra", _COLUMNS).missing("no_api")
    assert pq.read_table(io.BytesIO(folder.parquet(missing))).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.FLAG, "bool"),
        # A mean of counts is no whole number: the type must not depend on the run.
        (Kind.COUNT, "double"),
        (Kind.DURATION, "int64"),
        (Kind.BYTES, "int64"),
        (Kind.SHARE, "double"),
        (Kind.NUMBER, "double"),
        (Kind.BREAKDOWN, "map<string, int64>"),
        (Kind.TEXT, "string"),
    ],
)
def test_a_column_in_which_nothing_was_measured_keeps_its_type(kind, name):
    pq = pytest.importorskip("pyarrow.parquet")
    table = Table("extra", (Column("one", kind),)).fill(one=[None, NotMeasured("no_api")])
    written = pq.read_table(io.BytesIO(folder.parquet(table)))
    assert str(written.schema.types[0]).replace(" ('one')", "") == name
    assert written.column("one").to_pylist() == [None, None]


def test_numbers_of_several_units_are_plain_and_words_among_them_are_no_numbers():
    table = Table("extra", (Column("value", Kind.QUANTITY),)).fill(
        value=[Quantity(2.5, "ns"), Word("exact"), NotMeasured("no_api"), Quantity(3, "count")]
    )
    assert [row["value"] for row in read(table)] == ["2.5", "", "", "3"]
    pq = pytest.importorskip("pyarrow.parquet")
    written = pq.read_table(io.BytesIO(folder.parquet(table)))
    assert written.column("value").to_pylist() == [2.5, None, None, 3.0]


def test_every_table_is_whole():
    report = report_of(analysis(times=tuple(float(n + 1) for n in range(40))))
    found = files([report], texts(), "csv")
    assert set(found) == {"report.json", *(f"{key}.csv" for key in report.tables)}
    gaps = list(csv.DictReader(io.StringIO(found["gaps.csv"]().decode("utf-8-sig"))))
    assert [int(row["length_ns"]) for row in gaps] == list(report.tables["gaps"].column("length_ns"))
    split = list(csv.DictReader(io.StringIO(found["split.csv"]().decode("utf-8-sig"))))
    assert sum(int(row["sum_ns"]) for row in split) == sum(range(41)) * MS


def test_the_index_is_the_report_and_known_as_such():
    found = files([report_of()], texts(), "csv")
    data = found["report.json"]()
    assert json.loads(data)["schema"] == "traceanalyze.report/2"
    assert is_index(data[:200])
    assert not is_index(b'{"traceEvents": []}')


@pytest.mark.parametrize(
    ("name", "safe"),
    [("a b/c", "a_b_c"), ("._x._", "x"), ("///", "run"), ("", "run"), ("n" * 60, "n" * 60), ("n" * 61, "n" * 60)],
)
def test_names_of_runs_become_short_names_of_files(name, safe):
    reports = [replace(report_of(), name=each) for each in (name, "other")]
    assert {f"1_{safe}_split.csv", "2_other_split.csv"} <= set(files(reports, texts(), "csv"))


def test_ranks_and_runs_come_before_the_name_where_there_are_several():
    report = report_of(analysis(rank=0), analysis(rank=3))
    assert {"ranks.csv", "rank0_split.csv", "rank3_split.csv"} <= set(files([report], texts(), "csv"))
    evil = replace(report_of(), name="../a b/..")
    assert {"1_run_split.csv", "2_a_b_split.csv"} <= set(files([report_of(), evil], texts(), "csv"))


def test_names_are_unique():
    report = report_of(analysis(rank=0), analysis(rank=0))
    assert {"rank0_split.csv", "rank0_split_2.csv"} <= set(files([report], texts(), "csv"))
