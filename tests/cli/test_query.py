"""`traceanalyze query`: answers that are known, recipes of the page, and everything that a question must not reach."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.needs import need
from traceanalyze.cli import query as module

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_traces"
RANKS, LOADER = SAMPLES / "gpu_two_ranks", SAMPLES / "gpu_data_loading"
PAGES = [(ROOT / "docs" / place / "query.md").read_text(encoding="utf-8") for place in ("", "zh")]
RECIPES = re.findall(r'(traceanalyze query \S+ "FROM [^"]*\n[^"]*"|traceanalyze query run/ "FROM gaps[^"]*")', PAGES[0])


@pytest.fixture
def ask(run):
    need("duckdb")

    def asked(path, sql, *more):
        done = run("query", path, sql, "--format", "json", *more)
        assert done.code == 0, done.err
        return json.loads(done.out)

    return asked


def events(rank):
    text = gzip.decompress((RANKS / f"rank{rank}.json.gz").read_bytes())
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]


def test_events_of_all_ranks_are_those_of_the_files(ask):
    counts = Counter((rank, event["cat"]) for rank in (0, 1) for event in events(rank))
    found = ask(RANKS, "FROM events SELECT rank, cat, count(*) AS n, sum(dur_ns) AS ns GROUP BY ALL")
    assert {(row["rank"], row["cat"]): row["n"] for row in found} == counts
    time = round(1000 * sum(event["dur"] for rank in (0, 1) for event in events(rank)))
    assert sum(row["ns"] for row in found) == time


def test_tables_are_those_of_the_report(ask):
    found = ask(LOADER, "FROM split SELECT part, mean_ns WHERE part = 'data_loading'")
    assert found == [{"part": "data_loading", "mean_ns": 18331839}]


def test_all_formats_hold_the_same(run, tmp_path):
    need("duckdb")
    pq = pytest.importorskip("pyarrow.parquet")
    sql = "FROM split SELECT part, mean_ns, share, '=1' AS formula ORDER BY part LIMIT 2"
    for ending in ("csv", "json", "parquet"):
        assert run("query", LOADER, sql, "-o", tmp_path / f"a.{ending}").code == 0
    rows = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert rows == json.loads((tmp_path / "a.json").read_text())
    # A spreadsheet runs no text.
    assert (tmp_path / "a.csv").read_text().splitlines()[
        1
    ] == f"communication,{rows[0]['mean_ns']},{rows[0]['share']},'=1"
    page = run("query", LOADER, sql).out.splitlines()
    assert [line.split()[:2] for line in page[2:]] == [[row["part"], str(row["mean_ns"])] for row in rows]


def test_the_schema_has_units_and_meanings_in_both_languages(run, ask):
    every = ask(RANKS, 'FROM "columns"')
    (length,) = (row for row in every if (row["table"], row["column"]) == ("gaps", "length_ns"))
    assert (length["type"], length["units"]) == ("int64", "ns")
    assert [row for row in every if not row["meaning"] and row["table"] != "findings_in_words"][:3] == []
    said = [run("query", LOADER, "--schema", "--lang", language).out for language in ("en", "zh")]
    assert "category, as in the trace" in said[0]
    assert said[0].count("tool_version") == 1
    assert "category, as in the trace" not in said[1]


def test_what_was_not_measured_is_said(run):
    need("duckdb")
    assert "not measured" not in run("query", LOADER, "FROM split").err
    done = run("query", LOADER, "FROM collectives")
    assert (done.code, done.err) == (0, "collectives: not measured: no communication\n")


@pytest.mark.parametrize(
    ("path", "name", "why"),
    [
        (LOADER, "memory_at_peak", "that needs a snapshot of the device's memory"),
        (LOADER, "ranks", "that needs the recordings of several ranks"),
        (LOADER, "Sends", "that needs the recordings of several ranks"),
        (LOADER, "vendor_steps", "the recording tells nothing of it"),
        (SAMPLES / "memory" / "leak", "split", "that needs a trace of the profiler"),
    ],
)
def test_a_table_that_others_have_is_not_measured(run, path, name, why):
    need("duckdb")
    done = run("query", path, f"FROM {name}", "-q")
    assert (done.code, done.err) == (2, f"error: query: {name}: not measured: {why}\n")


def test_values_of_all_types_are_json(run, ask):
    sql = """SELECT []::INT[] AS list, {a: 1.5::DECIMAL(4, 2), b: 'nan'::DOUBLE} AS struct,
      MAP {1: 'inf'::DOUBLE} AS map, TIMESTAMP '2020-01-02 03:04:05' AS time,
      170141183460469231731687303715884105727 AS huge"""
    assert ask(LOADER, sql) == [
        {
            "list": [],
            "struct": {"a": 1.5, "b": None},
            "map": {"1": None},
            "time": "2020-01-02 03:04:05",
            "huge": 2**127 - 1,
        }
    ]
    assert "outside of the years 1 to 9999" in run("query", LOADER, "SELECT TIMESTAMP 'infinity'").err


def test_memory_has_a_limit(run, ask, monkeypatch):
    (limits,) = ask(LOADER, "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')")
    assert [*limits.values()] == ["3.7 GiB", "14.9 GiB"]
    said = "error: query: this takes more than 4 GB of memory: ask for fewer rows or columns\n"
    done = run("query", LOADER, "SELECT string_agg(repeat('x', 1000000), ',') FROM range(4000)")
    assert (done.code, done.err) == (2, said)
    # What was handed over counts as well; of a page the rows that it does not show are only counted.
    monkeypatch.setattr(module, "_MOST_BYTES", 1_000_000)
    assert run("query", LOADER, "FROM range(300000)", "--format", "json").err == said
    assert "of 300,000 rows" in run("query", LOADER, "FROM range(300000)").out


def test_a_folder_for_scratch_may_have_any_name(ask, tmp_path, monkeypatch):
    (tmp_path / "it's").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "it's"))
    assert ask(LOADER, "SELECT 1 AS a") == [{"a": 1}]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("FROM read_text('/etc/hostname')", "disabled by configuration"),
        ("FROM glob('/etc/*')", "disabled by configuration"),
        ("FROM '/etc/passwd'", "does not exist"),
        ("FROM 'https://example.org/a.csv'", "disabled by configuration"),
        ("FROM module", "does not exist"),
        ("FROM duckdb_secrets()", "disabled by configuration"),
        ("COPY split TO '/tmp/traceanalyze-test-query'", "only one SELECT"),
        ("COPY (PIVOT split ON part USING sum(mean_ns)) TO '/tmp/traceanalyze-test-query'", "only one SELECT"),
        ("ATTACH '/tmp/traceanalyze-test-query'", "only one SELECT"),
        ("INSTALL httpfs", "only one SELECT"),
        ("LOAD httpfs", "only one SELECT"),
        ("SET threads = 1", "only one SELECT"),
        ("PRAGMA version", "only one SELECT"),
        ("CREATE TABLE a (b INT)", "only one SELECT"),
        ("SELECT 1; SELECT 2", "only one SELECT"),
        ("", "only one SELECT"),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("FROM kernel", 'Did you mean "kernels"'),
    ],
)
def test_nothing_else_can_be_reached(run, sql, said):
    need("duckdb")
    done = run("query", LOADER, sql)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not Path("/tmp/traceanalyze-test-query").exists()


def test_wrong_usage(run, tmp_path, monkeypatch):
    need("duckdb")
    assert "give a question in SQL, or --schema" in run("query", LOADER).err
    assert "no such file" in run("query", tmp_path / "none", "SELECT 1").err
    assert "end the name in .csv" in run("query", LOADER, "SELECT 1", "-o", tmp_path / "a.xlsx").err
    assert "give a file name" in run("query", LOADER, "SELECT 1", "--format", "parquet").err
    assert "two columns have one name" in run("query", LOADER, "SELECT 1 AS a, 2 AS a", "--format", "json").err
    (tmp_path / "mine.csv").write_text("mine")
    assert "--overwrite" in run("query", LOADER, "SELECT 1", "-o", tmp_path / "mine.csv").err
    assert "--overwrite" in run("query", LOADER, "SELECT 1", "-o", tmp_path / "mine.csv", "--format", "table").err
    assert (tmp_path / "mine.csv").read_text() == "mine"
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = run("query", LOADER, "SELECT 1")
    assert (done.code, done.err) == (2, "error: query: needs DuckDB: pip install 'traceanalyze[duckdb]'\n")


def test_long_answers_are_counted_on_a_page_and_whole_in_files(run, tmp_path):
    need("duckdb")
    page = run("query", LOADER, "FROM range(1000) SELECT range AS n").out
    assert page.endswith("The first 200 of 1,000 rows; -o FILE has all of them.\n")
    run("query", LOADER, "FROM range(1000) SELECT range AS n", "-o", tmp_path / "a.csv")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1001


def test_a_snapshot_has_tables_too(ask):
    found = ask(SAMPLES / "memory" / "leak", "FROM memory_at_peak SELECT source_line ORDER BY block_bytes DESC LIMIT 1")
    assert found == [{"source_line": "train.py:31 train"}]


def test_a_long_question_is_interrupted_at_once():
    need("duckdb")
    sql = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
    command = [sys.executable, "-m", "traceanalyze", "query", str(LOADER), sql, "-q"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as asked:
        time.sleep(6)
        asked.send_signal(signal.SIGINT)
        assert asked.communicate(timeout=20)[1] == "interrupted\n"
    assert asked.returncode == 130


def test_the_pages_have_the_same_recipes():
    assert len(RECIPES) == 5
    assert all(recipe in PAGES[1] for recipe in RECIPES)


@pytest.mark.parametrize("at", range(5))
def test_recipes(run, tmp_path, at):
    need("duckdb")
    _, _, path, sql = shlex.split(RECIPES[at])
    if path == "store/":
        for name in ("gpu_two_ranks", "gpu_data_loading", "gpu_sync", "cpu_slow_loader"):
            assert run(SAMPLES / name, "-q", "--no-cache", "--record", tmp_path).code == 0
        path = tmp_path
    else:
        path = RANKS
    done = run("query", path, sql, "--format", "json", "-q")
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    if at == 0:
        kernels = Counter()
        for event in (*events(0), *events(1)):
            kernels[event["name"]] += round(1000 * event["dur"]) if event["cat"] == "kernel" else 0
        assert {row["name"]: round(1e6 * row["ms"]) for row in rows} == dict(kernels.most_common(5))
    elif at == 2:
        # Rank 1 of the sample computes longer.
        assert {row["last"] for row in rows} == {1}
    elif at == 4:
        # See the verdicts of the samples.
        assert [row["percent"] for row in rows] == [82.1, 57.8]
    else:
        assert rows


def test_a_store_of_which_texts_are_damaged_is_read_or_said(run, tmp_path):
    need("duckdb")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    run("analyze", LOADER, "-q", "--record", tmp_path)
    (path,) = tmp_path.glob("split/*.parquet")
    about = {b"meaning": b"\xff", b"kind": b"x", b"not_measured": b"unheard_of"}
    text = pa.array([b"\xff"]).view(pa.utf8())
    schema = pa.schema([pa.field("part", pa.utf8(), metadata=about)], metadata=about)
    pq.write_table(pa.Table.from_arrays([text], schema=schema), path)
    assert run("query", tmp_path, "SELECT count(*) FROM split, columns").code == 0
    refused = run("query", tmp_path, "FROM split", "-q")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "a text is damaged" in refused.err
