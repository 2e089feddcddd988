"""The whatif command: exit codes, what it says, formats and languages."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import openpyxl
import pytest

from tests.builder import TraceBuilder
from tests.causes.make import write_run

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture
def slow(tmp_path):
    """Two ranks that wait 40 of 65 ms for their loader."""
    write_run(tmp_path / "slow", [[40] * 4] * 2)
    return tmp_path / "slow"


def test_it_says_the_step_now_and_then_and_what_limits_it(run, slow):
    result = run("whatif", slow, "--without", "data_loading")
    assert (result.code, result.err) == (0, "")
    first = " ".join(result.out.split())
    assert first.startswith('A step takes 65.00 ms now, the mean of 2 ranks. Without "data loading" it would be 20')
    assert "What limits it then is" in first
    assert max(map(len, result.out.splitlines())) <= 80
    for title in ("What would change", "The step now and then (mean step)"):
        assert f"\n{title}\n" in result.out


def test_quiet_is_the_verdict_only(run, slow):
    whole, short = (run("whatif", slow, "--without", "data_loading", *more) for more in ((), ("-q",)))
    assert short.out.count("\n") == 1
    assert " ".join(whole.out.split()).startswith(short.out.strip())


def test_each_and_all_together(run, slow):
    arguments = ("--without", "data_loading,sync", "--faster", "compute=2", "--faster", "kernel=1.5")
    (report,) = json.loads(run("whatif", slow, *arguments, "--format", "json").out)["reports"]
    rows = report["tables"]["whatif"]["rows"]
    assert [row["supposed"] for row in rows] == [
        *["whatif_without"] * 2,
        *["whatif_faster"] * 2,
        "whatif_together",
    ]
    assert [row["subject"] for row in rows] == ["data_loading", "sync", "compute", "kernel", None]
    assert rows[-1]["gain_ns"] >= max(row["gain_ns"] for row in rows)
    assert set(report["tables"]) == {"whatif", "whatif_split", "whatif_path"}


def test_in_chinese(run, slow):
    found = run("whatif", slow, "--without", "data_loading", "--lang", "zh").out
    assert found.startswith("现在每步 65.00 ms（2 个 Rank 的平均）。去掉“数据加载”后为")
    assert not [line for line in found.splitlines() if "limit" in line or "step" in line]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say what would be different: --without, --faster, --overlap or --rank"),
        (
            ("--without", "nonsense"),
            "--without nonsense: no part of the step and no rule is called so; parts are ",
        ),
        (("--faster", "compute=abc"), "--faster compute=abc: abc is no number; write it as communication=1.5"),
        (("--faster", "compute"), "--faster compute: write it as communication=1.5"),
        (("--faster", "compute=1"), "--faster compute=1: write a factor above 1"),
        (("--faster", "compute=nan"), "--faster compute=nan: write a factor above 1"),
        (("--faster", "sync=2"), "--faster sync: waiting cannot be faster, only gone: --without sync"),
        (("--faster", "((=2"), "--faster ((: not a regular expression: "),
        (
            ("--faster", "nowhere=2"),
            "--faster nowhere: no part of the step and no device work is called so; ",
        ),
        (("--overlap", "compute"), "--overlap compute: only communication can be overlapped"),
        (("--rank", "1"), "--rank 1: write it as 3=median"),
        (("--rank", "1=0"), "--rank 1=0: write 1=median"),
        (("--rank", "5=median"), "--rank 5: there is no rank 5; there are 0, 1"),
    ],
)
def test_wrong_usage_is_one_line_that_names_what_there_is(run, slow, arguments, said):
    result = run("whatif", slow, *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {said}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", ["DAT101", "loader-wait", "dat101"])
def test_findings_go_by_id_and_by_slug(run, slow, name):
    (report,) = json.loads(run("whatif", slow, "--without", name, "--format", "json").out)["reports"]
    (row,) = report["tables"]["whatif"]["rows"]
    assert (row["rule_id"], row["subject"]) == ("DAT101", "rule_DAT101")
    assert row["gain_ns"] == pytest.approx(40e6, rel=0.02)


def test_a_finding_that_there_is_not_is_said(run, slow):
    result = run("whatif", slow, "--without", "SYN101")
    assert result.code == 0
    assert "not measured: this profile has no such finding." in " ".join(result.out.split())
    assert "n/m" in result.out


@pytest.mark.parametrize("name", ["memory", "memory-ops", "Memory_Ops"])
def test_parts_go_by_what_people_call_them(run, slow, name):
    (report,) = json.loads(run("whatif", slow, "--without", name, "--format", "json").out)["reports"]
    assert report["tables"]["whatif"]["rows"][0]["subject"] == "memory_ops"


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.txt", "report.xlsx", "report.json"])
def test_every_format_is_written(run, slow, tmp_path, name):
    result = run("whatif", slow, "--without", "data_loading", "-o", tmp_path / name)
    assert (result.code, result.err) == (0, f"Wrote {tmp_path / name}\n")
    content = (tmp_path / name).read_bytes()
    if name.endswith(".xlsx"):
        with ZipFile(tmp_path / name) as book:
            assert b"Whatif" in book.read("xl/workbook.xml")
    else:
        assert b"What limits it then is" in b" ".join(content.split())


def test_tables_as_files(run, slow, tmp_path):
    assert run("whatif", slow, "--without", "data_loading", "-o", f"{tmp_path}/tables/").code == 0
    first = (tmp_path / "tables" / "whatif.csv").read_text(encoding="utf-8-sig").splitlines()
    assert first[0].startswith("supposed,subject,")
    assert first[1].startswith("whatif_without,data_loading,")


@pytest.mark.parametrize("name", ["gpu_sync", "gpu_data_loading", "gpu_launch_bound", "npu_training"])
def test_the_numbers_are_those_of_the_findings(run, name):
    (report,) = json.loads(run(SAMPLES / name, "--format", "json").out)["reports"]
    found = [one for one in report["findings"] if one["saving"] is not None]
    alone = [one for one in found if [each["rule"] for each in found].count(one["rule"]) == 1]
    assert alone
    asked = [each for one in alone for each in ("--without", one["rule"])]
    (report,) = json.loads(run("whatif", SAMPLES / name, *asked, "--format", "json").out)["reports"]
    rows = report["tables"]["whatif"]["rows"]
    for one, row in zip(alone, rows, strict=False):
        assert row["rule_id"] == one["rule"]
        assert row["gain_ns"] == one["saving"]["ns"]
        assert row["low_ns"] == pytest.approx(one["saving"]["low_ns"], abs=1)
        assert row["high_ns"] == pytest.approx(one["saving"]["high_ns"], abs=1)


def test_nothing_is_said_of_a_file_with_no_time_and_units_stand_over_numbers_only(run, tmp_path):
    b = TraceBuilder()
    b.op("aten::mm", 0, 0)
    result = run("whatif", b.write(tmp_path / "trace.json"), "--without", "compute")
    assert result.out.startswith("There is nothing to analyse")
    heads = result.out.partition("What would change\n")[2].splitlines()[:2]
    assert "n/m" in result.out
    assert "ns" not in " ".join(heads).split()


@pytest.mark.filterwarnings("ignore:.* extension is not supported")
def test_the_workbook_has_both_ends_of_a_gain(run, slow, tmp_path):
    run("whatif", slow, "--without", "data_loading", "-o", tmp_path / "report.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "report.xlsx")["Whatif"].iter_rows(values_only=True))
    heads, row = next((heads, row) for heads, row in pairwise(rows) if heads[0] == "supposed")
    low, gain, high = (row[heads.index(name)] for name in ("at least (ms)", "gain (ms)", "at most (ms)"))
    assert 0 < low < gain <= high


FRAGMENTED = SAMPLES / "memory" / "fragmentation"


def test_of_a_snapshot_it_says_what_its_allocator_would_do(run):
    """Expandable segments never reserve more than blocks need and a granule for each domain (662 of 852 MiB)."""
    arguments = ("--alloc-conf", "expandable_segments:True", "--alloc-conf", "max_split_size_mb:64")
    result = run("whatif", FRAGMENTED, *arguments)
    assert (result.code, result.err) == (0, "")
    first = " ".join(result.out.split())
    assert first.startswith(
        "At most 852 MiB were reserved, 633 MiB were in blocks. With expandable_segments:True at most 662 MiB would be "
        "reserved: 190 MiB less. With max_split_size_mb:64 as much would be reserved."
    )
    (report,) = json.loads(run("whatif", FRAGMENTED, *arguments, "--format", "json").out)["reports"]
    recorded, *then = report["ranks"][0]["tables"]["memory_whatif"]["rows"]
    assert recorded["settings"] is None
    assert [row["settings"] for row in then] == ["expandable_segments:True", "max_split_size_mb:64"]
    for row in then:
        assert row["then_reserved_bytes"] == recorded["then_reserved_bytes"] + row["reserved_change_bytes"]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("700MiB", "In 700 MiB every request succeeds."),
        ("660MiB", "In 660 MiB every request succeeds; 1 of them find the device full at first."),
        ("600MiB", "In 600 MiB a request of 10.0 MiB fails at train.py:52 train:"),
    ],
)
def test_whether_it_would_fit(run, size, said):
    result = run("whatif", FRAGMENTED, "--alloc-conf", "expandable_segments:True", "--capacity", size, "-q")
    assert said in " ".join(result.out.split())


def test_each_question_has_its_own_fraction(run):
    half, threshold = "per_process_memory_fraction:0.5", "garbage_collection_threshold:0.8"
    arguments = ("--capacity", "2GiB", "--alloc-conf", half, "--alloc-conf", threshold)
    result = run("whatif", FRAGMENTED, *arguments, "--format", "json")
    (report,) = json.loads(result.out)["reports"]
    rows = report["ranks"][0]["tables"]["memory_whatif"]["rows"]
    assert [row["limit_bytes"] for row in rows] == [None, 1 << 30, 2 << 30]
    assert "has no effect without per_process_memory_fraction" in json.dumps(report["notes"])


def test_a_snapshot_without_empty_cache(run):
    found = run("whatif", SAMPLES / "memory" / "churn", "--without", "empty_cache").out
    assert "With no empty_cache at most 332 MiB would be reserved" in " ".join(found.split())


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((FRAGMENTED,), "of a snapshot --alloc-conf or --capacity"),
        ((FRAGMENTED, "--capacity", "2GiB", "--steps", "3"), "of a snapshot ask --alloc-conf, --capacity or"),
        ((FRAGMENTED, "--alloc-conf", "max_split_size_mb:20"), "this setting has no such value"),
        ((FRAGMENTED, "--alloc-conf", "roundup_power2_divisions:[256:1,>:3]"), "this setting has no such value"),
        ((FRAGMENTED, "--alloc-conf", "garbage_collection_threshold:nan"), "this setting has no such value"),
        ((FRAGMENTED, "--alloc-conf", "per_process_memory_fraction:inf"), "this setting has no such value"),
        ((FRAGMENTED, "--without", "sync"), "of a snapshot ask --alloc-conf, --capacity or --without empty_cache"),
        ((FRAGMENTED, "--alloc-conf", "expandable"), "write it as PYTORCH_ALLOC_CONF"),
        ((FRAGMENTED, "--alloc-conf", "max_split_size_mb:x"), "this setting has no such value"),
        ((FRAGMENTED, "--alloc-conf", "backend:native"), "the settings that can be replayed are"),
        ((FRAGMENTED, "--alloc-conf", "per_process_memory_fraction:0.5"), "say --capacity, too"),
        ((SAMPLES / "gpu_sync", "--capacity", "40GiB"), "ask about allocator snapshots"),
    ],
)
def test_what_cannot_be_asked_of_a_snapshot(run, arguments, error):
    result = run("whatif", *arguments)
    assert result.code == 2
    assert error in " ".join(result.err.split())
