"""A store of runs: long tables with stable types, a history whose changes are known, the recipes of docs/fleet.md."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import traceanalyze
from tests.needs import need
from tests.pipeline.test_shards import ranks_of
from traceanalyze.cli.app import app
from traceanalyze.errors import InputError, UsageError
from traceanalyze.pipeline import Choices, reports
from traceanalyze.pipeline.gather import write_events
from traceanalyze.regression.statistics import Prior, change_points
from traceanalyze.report import folder
from traceanalyze.report.contents.fleet import PARTS, history_report
from traceanalyze.report.formats import FORMATS, TABLES, names

pq = pytest.importorskip("pyarrow.parquet")
ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_traces"
NAMES = ("gpu_two_ranks", "gpu_data_loading", "gpu_sync", "gpu_2021_layout", "cpu_slow_loader", "npu_training")
RECIPES = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "fleet.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("fleet") / "store")
    for name in NAMES:
        folder.record(reports([str(SAMPLES / name)], Choices()), place)
    return place


def rows(store, table):
    return [row for path in sorted(Path(store, table).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_a_run_is_a_row(store):
    found = {row["run_id"]: row for row in rows(store, "run_summary")}
    assert len(found) == len(NAMES)
    (two,) = (row for row in found.values() if row["run"] == "gpu_two_ranks")
    report = traceanalyze.analyze(SAMPLES / "gpu_two_ranks")
    splits = [next(table for table in rank.tables if table.key == "split") for rank in report.ranks]
    steps = [split.totals["mean_ns"] for split in splits]
    assert (two["step_ns"], two["recorded_ranks"], two["world_size"], two["steps"]) == (max(steps), 2, 2, 6)
    for part in ("compute", "communication", "data_loading", "idle"):
        own = [dict(zip(split.column("part"), split.column("mean_ns"), strict=True))[part] for split in splits]
        assert two[f"{part}_share"] == sum(own) / sum(steps)
    assert two["verdict"] == report.verdict
    assert two["rank"] is None


def test_recorded_at_is_the_begin_of_the_first_event(store):
    content = json.loads(traceanalyze_text(SAMPLES / "gpu_data_loading" / "trace.json.gz"))
    first = min(event["ts"] for event in content["traceEvents"] if event["ph"] == "X")
    began = content["baseTimeNanoseconds"] // 1000 + int(first)
    (row,) = (one for one in rows(store, "run_summary") if one["top_rule"] == "DAT101" and one["step_ns"] == 31714175)
    assert row["recorded_at"] == datetime.fromtimestamp(began / 1e6, UTC)


def test_a_run_of_instants_was_recorded_at_the_first(tmp_path):
    events = [{"ph": "i", "name": "x", "pid": 1, "tid": 1, "ts": 5.0, "s": "t"}]
    (tmp_path / "run.json").write_text(json.dumps({"baseTimeNanoseconds": 17 * 10**17, "traceEvents": events}))
    folder.record(reports([str(tmp_path / "run.json")], Choices()), str(tmp_path / "store"))
    (row,) = rows(tmp_path / "store", "run_summary")
    assert row["recorded_at"] == datetime.fromtimestamp(1_700_000_000.000005, UTC)


def traceanalyze_text(path):
    import gzip

    return gzip.decompress(path.read_bytes())


def test_long_tables_have_all_ranks_and_the_same_types_in_every_run(store):
    types = defaultdict(set)
    for path in Path(store).glob("*/*.parquet"):
        schema = pq.read_schema(path)
        assert schema.names[: len(folder.Label._fields)] == list(folder.Label._fields)
        assert json.loads(f'"{schema.metadata[b"table"].decode()}"') == path.parent.name
        for field in schema:
            types[path.parent.name, field.name].add(str(field.type))
    assert {key: found for key, found in types.items() if len(found) > 1} == {}
    assert {found for (_, name), each in types.items() if name == "rank" for found in each} == {"int64"}
    split = [(row["rank"], row["part"]) for row in rows(store, "split") if row["run"] == "gpu_two_ranks"]
    assert len(split) == len(set(split)) == 14
    assert {(row["rank"], row["rank_text"]) for row in rows(store, "ranks")} == {(0, "0"), (1, "1")}
    assert pq.read_schema(next(Path(store, "split").iterdir())).field("mean_ns").metadata[b"kind"] == b"duration_ns"


def test_the_same_run_is_kept_once_from_wherever_it_is_read(store, tmp_path):
    shutil.copytree(SAMPLES / "gpu_sync", tmp_path / "elsewhere")
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    folder.record(reports([str(tmp_path / "elsewhere")], Choices()), str(copy))
    assert len(rows(copy, "run_summary")) == len(NAMES)


def test_a_run_that_is_kept_again_has_only_the_tables_that_it_has_now(store, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    shutil.copytree(copy / "run_summary", copy / "former")
    before = {path.parent.name for path in copy.rglob("*.parquet")}
    folder.record(reports([str(SAMPLES / "gpu_sync")], Choices()), str(copy))
    assert {path.parent.name for path in copy.rglob("*.parquet")} == before
    assert len([*(copy / "former").iterdir()]) == len(NAMES) - 1


def test_many_writers(tmp_path):
    report = reports([str(SAMPLES / "gpu_sync")], Choices())
    others = [reports([str(ranks_of(tmp_path / f"run{count}", count))], Choices()) for count in (1, 2, 3)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: folder.record(one, str(tmp_path / "store")), [report, *others] * 4))
    assert len(rows(tmp_path / "store", "run_summary")) == 4
    assert not [path for path in (tmp_path / "store").rglob("*") if path.name.startswith(".")]


def test_what_is_no_run_is_not_kept(tmp_path):
    with pytest.raises(UsageError, match="is no run of recordings"):
        folder.record([traceanalyze.memory(SAMPLES / "memory" / "leak")], str(tmp_path))
    with pytest.raises(InputError, match="no runs"):
        folder.kept(str(tmp_path / "none"))


def test_what_an_older_version_kept_is_read_as_far_as_it_goes(store, tmp_path):
    files = sorted(Path(store, "run_summary").iterdir())
    (tmp_path / "run_summary").mkdir()
    for path in files[:2]:
        old = pq.read_table(path).drop(["run_id", "run", "mode", "data_loading_share", "top_rule", "recorded_ranks"])
        pq.write_table(old, tmp_path / "run_summary" / path.name)
    rows = folder.kept(str(tmp_path))
    assert [row["name"] for row in rows] == [path.stem for path in files[:2]]
    done = CliRunner().invoke(app, ["history", str(tmp_path)])
    assert (done.exit_code, done.stderr) == (0, "")
    # Beside one of this version they are unlike it, and told.
    shutil.copy(files[2], tmp_path / "run_summary")
    done = CliRunner().invoke(app, ["history", str(tmp_path), "-q"])
    assert (done.exit_code, done.stdout) == (0, "1 runs: a change shows from four on.\n")
    assert "2 runs" in history_report(folder.kept(str(tmp_path)), "store", "0").notes[0]


def test_two_programs_that_keep_the_same_run_at_the_same_time(tmp_path):
    command = [sys.executable, "-m", "traceanalyze", str(SAMPLES / "gpu_sync"), "-q", "--no-cache", "--record", "store"]
    running = [
        subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert len(rows(tmp_path / "store", "run_summary")) == 1
    assert not [path for path in (tmp_path / "store").rglob("*") if path.name.startswith(".")]


def test_a_damaged_file_is_named(store, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    damaged = next((copy / "run_summary").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(InputError, match=f"{damaged.name}: damaged"):
        folder.kept(str(copy))


def series(*levels, noise=0.01, seed=1):
    at_random = random.Random(seed)
    return [level * math.exp(at_random.gauss(0, noise)) for level, count in levels for _ in range(count)]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([(100, 12)], []),
        ([(100, 8), (110, 8)], [8]),
        ([(100, 8), (110, 6), (95, 7)], [8, 14]),
        ([(100, 2), (130, 2)], [2]),
        ([(100, 3)], []),
        ([(100, 10), (130, 1)], []),
    ],
)
def test_change_points(levels, expected):
    assert change_points([math.log(value) for value in series(*levels)], Prior(0.01)) == expected


def test_change_points_seldom_see_what_is_not_there():
    found = [change_points([math.log(x) for x in series((100, 20), seed=seed)], Prior(0.01)) for seed in range(300)]
    # 1 % at most, and three standard deviations of the count.
    assert sum(map(bool, found)) <= 3 + 3 * math.sqrt(3)


def history(levels, **more):
    return history_report(kept_rows(levels, **more), "store", "0")


def kept_rows(levels, **more):
    values = series(*levels)
    parts = ("compute", "communication", "memory_ops", "data_loading", "sync", "dispatch", "idle")
    return [
        {
            **{f"{part}_share": 0.0 for part in parts},
            "mode": "steps",
            "run_id": str(at),
            "name": f"run{at}",
            "recorded_at": datetime.fromtimestamp(1_700_000_000 + 3600 * at, UTC),
            "kept_at": datetime.fromtimestamp(0, UTC),
            "step_ns": round(1e6 * value),
            "device_name": "GPU",
            "world_size": 8,
            "recorded_ranks": 8,
            "top_rule": None,
            "compute_share": 90 / value,
            "data_loading_share": 1 - 90 / value,
            **more,
        }
        for at, value in enumerate(values)
    ]


def test_the_history_says_when_it_got_slower_and_what_did():
    found = history([(100, 8), (120, 8)])
    assert found.verdict.startswith("At run 9 (run8, 2023-11-15 06:13+00:00) the step went from 99.82 ms to 119.8 ms")
    assert "data loading" in found.verdict
    assert found.tables["history"].column("changed") == tuple(at == 8 for at in range(16))
    assert "at no run did it change" in history([(100, 8)]).verdict
    assert history([(100, 3)]).verdict == "3 runs: a change shows from four on."


def test_runs_that_are_unlike_the_newest_are_counted():
    rows = kept_rows([(100, 5)])
    others = ({"mode": "whole_trace"}, {"mode": "empty", "step_ns": None}, {"step_ns": None}, {"device_name": "B"})
    rows[:4] = [{**row, **other} for row, other in zip(rows, others, strict=False)]
    found = history_report(rows, "store", "0")
    assert found.notes == (
        "4 runs without steps, on other devices, with other numbers of ranks or kept by an older version are left out.",
    )
    assert len(found.tables["history"]) == 1
    assert not history([(100, 5)]).notes


def test_a_change_without_measured_parts_names_none():
    said = history([(100, 8), (120, 8)], **{f"{part}_share": None for part in PARTS}).verdict
    assert "At run 9" in said
    assert "largest change" not in said
    assert "idle" not in said


def test_the_history_is_a_picture_in_the_page(tmp_path):
    history([(100, 8), (120, 8)]).write(tmp_path / "history.html")
    page = (tmp_path / "history.html").read_text()
    assert '<figure class="curve"' in page
    assert "At run 9" in page


@pytest.mark.parametrize("format_", names("history"))
def test_every_format_that_is_offered_shows_the_history(format_, store, tmp_path):
    target = tmp_path / f"history{FORMATS[format_].ending}"
    place = f"{tmp_path}/" if format_ in TABLES else str(target)
    done = CliRunner().invoke(app, ["history", store, "--format", format_, "-o", place])
    assert (done.exit_code, "Wrote" in done.stderr) == (0, True), done.output
    if format_ in {"markdown", "brief", "console"}:
        assert "1 runs: a change shows from four on." in target.read_text()


def test_a_run_that_is_kept_again_has_no_rows_of_before(tmp_path):
    made = reports([str(SAMPLES / "gpu_sync")], Choices())
    folder.record(made, str(tmp_path))
    (summary,) = (tmp_path / "run_summary").iterdir()
    before = {path.parent.name for path in tmp_path.glob("*/*.parquet")}
    for name in (summary.name, "other.parquet"):
        (tmp_path / "gone").mkdir(exist_ok=True)
        (tmp_path / "gone" / name).write_bytes(summary.read_bytes())
    folder.record(made, str(tmp_path))
    assert {path.parent.name for path in tmp_path.glob(f"*/{summary.name}")} == before
    assert (tmp_path / "gone" / "other.parquet").exists()


def test_commands(tmp_path):
    run = CliRunner().invoke
    path, store = str(SAMPLES / "gpu_two_ranks"), str(tmp_path / "store")
    done = run(app, ["analyze", path, "-q", "--no-cache", "--record", store])
    assert done.exit_code == 0, done.output
    assert "Kept 1 run(s)" in done.stderr
    done = run(app, ["history", store])
    assert "a change shows from four on" in done.stdout
    done = run(app, ["analyze", path, "-q", "--format", "parquet", "-o", f"{tmp_path}/tables/"])
    assert done.exit_code == 0, done.output
    assert pq.read_table(tmp_path / "tables" / "split.parquet").num_rows == 14
    done = run(app, ["convert", path])
    assert done.exit_code == 2


def test_events(tmp_path):
    write_events([str(SAMPLES / "gpu_two_ranks")], str(tmp_path / "events.parquet"))
    found = pq.read_table(tmp_path / "events.parquet").to_pylist()
    for rank in (0, 1):
        text = traceanalyze_text(SAMPLES / "gpu_two_ranks" / f"rank{rank}.json.gz")
        events = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
        own = [row for row in found if row["rank"] == rank]
        assert len(own) == len(events)
        assert sorted(row["name"] for row in own) == sorted(event["name"] for event in events)
        assert sum(row["dur_ns"] for row in own) == round(sum(event["dur"] for event in events) * 1000)
        streams = [event["args"]["stream"] for event in events if "stream" in event.get("args", {})]
        assert sorted(row["stream"] for row in own if row["stream"] is not None) == sorted(streams)
    (tmp_path / "other.parquet").write_bytes(b"mine")
    with pytest.raises(UsageError, match="is there and is no report"):
        write_events([str(SAMPLES / "gpu_sync")], str(tmp_path / "other.parquet"))


def test_events_of_recordings_that_cannot_be_read_are_told(tmp_path):
    path = ranks_of(tmp_path / "run", 2)
    (path / "rank1.json").write_text('{"traceEvents": [')
    (note,) = write_events([str(path)], str(tmp_path / "events.parquet"))
    assert note.startswith(f"left out: {path / 'rank1.json'}: ")
    ran = CliRunner().invoke(app, ["convert", str(path), "--parquet", str(tmp_path / "events.parquet"), "--lang", "zh"])
    assert str(path / "rank1.json") in ran.stderr
    assert note not in ran.stderr
    assert {row["rank"] for row in pq.read_table(tmp_path / "events.parquet").to_pylist()} == {0}


@pytest.mark.parametrize("recipe", RECIPES, ids=[str(at) for at in range(len(RECIPES))])
def test_recipes(store, tmp_path, monkeypatch, recipe):
    need("duckdb")
    import duckdb

    monkeypatch.chdir(Path(store).parent)
    write_events([str(SAMPLES / "gpu_two_ranks")], "events.parquet", overwrite=True)
    assert duckdb.sql(recipe.rstrip().rstrip(";")).fetchall() or "before_ns" in recipe


def test_which_jobs_are_loader_bound(store, monkeypatch):
    need("duckdb")
    import duckdb

    monkeypatch.chdir(Path(store).parent)
    found = duckdb.sql(RECIPES[0].rstrip().rstrip(";")).fetchall()
    # Of 24.58 ms, of 31.92 ms and of 31.71 ms: see the verdicts of the samples.
    assert [row[2] for row in found] == [82.1, 69.2, 57.8]


def test_when_it_got_slower(tmp_path, monkeypatch):
    need("duckdb")
    import duckdb
    import pyarrow as pa

    (tmp_path / "store" / "run_summary").mkdir(parents=True)
    times = [100, 101, 99, 100, 130, 131]
    for at, time in enumerate(times):
        when = datetime.fromtimestamp(1_700_000_000 + at, UTC)
        table = pa.table({"run": [f"run{at}"], "recorded_at": [when], "step_ns": [time * 10**6]})
        pq.write_table(table, tmp_path / "store" / "run_summary" / f"{at}.parquet")
    monkeypatch.chdir(tmp_path)
    found = duckdb.sql(RECIPES[1].rstrip().rstrip(";")).fetchall()
    assert [(row[0], row[2]) for row in found] == [("run4", 30.0), ("run5", 31.0)]
