"""The postmortem command: exit codes, formats, languages, and what a user sees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.causes.make import write_run
from tests.incidents.incidents import BUILDERS

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture
def slow(tmp_path):
    """Two ranks that wait 40 of 65 ms for their loader."""
    write_run(tmp_path / "slow", [[40] * 4] * 2)
    return tmp_path / "slow"


def test_the_verdict_comes_first_and_fits_the_terminal(run, slow):
    result = run("postmortem", slow)
    assert result.code == 0
    assert result.out.startswith("What limited this run most, on each of the 2 ranks: waiting for the data loader.")
    assert max(map(len, result.out.splitlines())) <= 80
    assert "\nWhat to do, by what it saves" in result.out
    whole = run("postmortem", slow, "--all").out
    for title in ("What limited the run", "What to do first", "What could not be judged, and what would show it"):
        assert f"\n{title}\n" in whole


def test_quiet_is_the_verdict_only(run, slow):
    whole, short = run("postmortem", slow, "--all"), run("postmortem", slow, "-q")
    assert short.out.count("\n") == 1
    assert " ".join(whole.out.split()).startswith(short.out.strip())


def test_verbose_lists_every_file(run, slow):
    shown = run("postmortem", slow, "-v").out
    assert "\nFiles\n" in shown
    assert shown.count("rank0.json") >= 1


def test_in_chinese(run, slow):
    assert run("postmortem", slow, "--lang", "zh").out.startswith(
        "限制本次运行的首要因素：等待数据加载，涉及全部 2 个 Rank"
    )


@pytest.mark.parametrize(("limit", "code"), [("high", 1), ("medium", 1)])
def test_fail_on_names_the_cause_in_one_line(run, slow, limit, code):
    result = run("postmortem", slow, "--fail-on", limit)
    assert result.code == code
    assert result.err == "traceanalyze postmortem: finding of severity high: waiting for the data loader\n"
    assert result.out.startswith("What limited this run most")


def test_fail_on_high_lets_a_finding_of_medium_severity_pass(run, tmp_path):
    write_run(tmp_path / "run", [[3] * 4])
    only = ("--select", "DAT")
    assert run("postmortem", tmp_path / "run", *only, "--fail-on", "high").code == 0
    assert run("postmortem", tmp_path / "run", *only, "--fail-on", "medium").code == 1


def test_a_healthy_run_passes(run, tmp_path):
    write_run(tmp_path / "run", [[0] * 4])
    result = run("postmortem", tmp_path / "run", "--select", "DAT", "--fail-on", "medium")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("No problem was found")


@pytest.mark.parametrize("arguments", [["nowhere"], ["--fail-on", "low", "."], ["--lang", "fr", "."]])
def test_wrong_usage_and_input_that_cannot_be_read_is_2(run, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    assert run("postmortem", *arguments).code == 2


def test_a_folder_without_anything_is_one_line(run, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    result = run("postmortem", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1


def test_json_has_every_table_and_exact_times(run, slow):
    (found,) = json.loads(run("postmortem", slow, "--format", "json").out)["reports"]
    assert {"run_causes", "actions", "recordings", "not_judged", "cause_evidence", "run_files"} <= set(found["tables"])
    first = found["tables"]["run_causes"]["rows"][0]
    assert (first["rule_id"], first["on_ranks"], first["since"]) == ("DAT101", "0-1", "since_every")
    assert isinstance(first["gain_ns"], int)
    assert found["tables"]["actions"]["rows"][0]["advice"] == "do_more_workers.cuda"


@pytest.mark.parametrize("name", ["report.html", "report.md", "report.txt", "report.xlsx", "report.json"])
def test_every_format_is_written(run, slow, tmp_path, name):
    result = run("postmortem", slow, "-o", tmp_path / name)
    assert (result.code, result.err) == (0, f"Wrote {tmp_path / name}\n")
    content = (tmp_path / name).read_bytes()
    if name.endswith(".xlsx"):
        with ZipFile(tmp_path / name) as book:
            assert b"Run causes" in book.read("xl/workbook.xml")
    else:
        assert b"waiting for the data loader" in content


def test_what_to_do_is_told_in_sentences_on_pages_of_text(run, slow, tmp_path):
    run("postmortem", slow, "-o", tmp_path / "report.md")
    markdown = (
        (tmp_path / "report.md").read_text(encoding="utf-8").partition("## What to do first")[2].partition("##")[0]
    )
    console = run("postmortem", slow, "-v").out.partition("What to do first")[2].partition("\nThe recordings")[0]
    for page in (markdown, console):
        assert "1. waiting for the data loader: 35–40 ms a step." in page.replace("\\", "")
        assert "→ More workers" in page
        assert "|" not in page
        assert "at most" not in page


def test_tables_as_files(run, slow, tmp_path):
    assert run("postmortem", slow, "-o", f"{tmp_path}/tables/").code == 0
    assert (tmp_path / "tables" / "run_causes.csv").read_text(encoding="utf-8-sig").startswith("position,finding,")


def test_a_mixed_folder_with_damage(run, slow):
    shutil.copy(SAMPLES / "memory" / "leak" / "snapshot.pickle.gz", slow / "rank0_snapshot.pickle.gz")
    (slow / "rank7.json").write_text('{"traceEvents": [')
    result = run("postmortem", slow, "-v")
    assert result.code == 0
    assert "left out" in result.out
    assert "leak" in result.out


def test_snapshots_only(run):
    result = run("postmortem", SAMPLES / "memory" / "out_of_memory")
    assert result.code == 0
    assert result.out.startswith("The run ran out of memory.")


def test_several_jobs_are_a_report_each(run, tmp_path):
    write_run(tmp_path / "all" / "two", [[0] * 4] * 2)
    write_run(tmp_path / "all" / "three", [[40] * 4] * 3)
    found = json.loads(run("postmortem", tmp_path / "all", "--format", "json").out)["reports"]
    assert [len(each["ranks"]) for each in found] == [3, 2]


def test_fail_on_counts_what_happened(run, tmp_path):
    BUILDERS["desync"](tmp_path / "run", 1)
    BUILDERS["healthy"](tmp_path / "well", 1)
    broken = run("postmortem", tmp_path / "run", "--fail-on", "high")
    assert broken.code == 1
    assert broken.err == "traceanalyze postmortem: finding of severity high: desynchronised collectives\n"
    assert run("postmortem", tmp_path / "well", "--fail-on", "medium").code == 0
