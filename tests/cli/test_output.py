from __future__ import annotations

import csv
import json
import os
import zipfile

import pytest

from traceanalyze.cli import files
from traceanalyze.cli.files import write_whole
from traceanalyze.errors import UsageError


def test_the_suffix_chooses_the_format(run, sample):
    folder = sample.parent
    result = run(sample, "-o", folder / "report.json")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"Wrote {folder / 'report.json'}\n"
    assert json.loads((folder / "report.json").read_text())["schema"] == "traceanalyze.report/1"
    run(sample, "-o", folder / "report.txt")
    assert (folder / "report.txt").read_text().startswith("Step 100 µs")


def test_format_wins_over_the_suffix(run, sample):
    run(sample, "-o", sample.parent / "report.txt", "--format", "json")
    assert json.loads((sample.parent / "report.txt").read_text())


def test_a_workbook(run, sample):
    target = sample.parent / "report.xlsx"
    for arguments in ([], ["--format", "xlsx"]):
        result = run(sample, "-o", target, *arguments)
        assert (result.code, result.out, result.err) == (0, "", f"Wrote {target}\n")
        assert "xl/workbook.xml" in zipfile.ZipFile(target).namelist()


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_gets_every_table(run, sample, made):
    folder = sample.parent / "tables"
    if made:
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    result = run(sample, "-o", folder if made else f"{folder}/")
    assert (result.code, result.out) == (0, "")
    found = {path.name for path in folder.iterdir()}
    assert {"report.json", "split.csv", "steps.csv", "gaps.csv", "files.csv"} <= found
    assert result.err == f"Wrote {len(found) - made} files to {folder}\n"
    with (folder / "steps.csv").open(encoding="utf-8-sig") as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["5", "6", "7"]
    assert not made or (folder / "notes.txt").read_text() == "mine"
    assert run(sample, "-o", folder).code == 0


def test_parquet_tables(run, sample):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = sample.parent / "tables"
    assert run(sample, "-o", folder, "--format", "parquet").code == 0
    assert parquet.read_table(folder / "steps.parquet").num_rows == 3
    assert (folder / "report.json").is_file()


@pytest.mark.parametrize("name", ["report.json", "steps.csv"])
def test_files_of_others_in_the_folder_are_not_replaced(run, sample, name):
    folder = sample.parent / "tables"
    folder.mkdir()
    (folder / name).write_text("mine")
    result = run(sample, "-o", folder)
    assert result.code == 2
    assert f"{name} is there and is not from an older report" in result.err
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "mine"


def test_parquet_needs_pyarrow(run, sample, monkeypatch):
    monkeypatch.setattr("traceanalyze.cli.output.find_spec", lambda _: None)
    result = run(sample, "-o", sample.parent / "tables", "--format", "parquet")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "needs pyarrow" in result.err


def test_a_dash_is_stdout(run, sample):
    assert run(sample, "-o", "-").out.startswith("Step 100 µs")


def test_an_input_found_in_a_folder_is_not_replaced(run, sample):
    before = sample.read_text()
    result = run(sample.parent, "-o", sample)
    assert result.code == 2
    assert "this is an input" in result.err
    assert sample.read_text() == before


def test_a_report_replaces_an_older_one_and_is_readable_by_all(run, sample):
    target = sample.parent / "report.txt"
    target.write_text("old")
    run(sample, "-o", target)
    assert target.read_text() != "old"
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("step", ["replace", "chmod"])
def test_a_failing_write_leaves_nothing(tmp_path, monkeypatch, step):
    def full(*_args):
        raise OSError(28, "No space left on device")

    target = tmp_path / "report.txt"
    target.write_text("old")
    monkeypatch.setattr(files.os, step, full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_whole(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "old"


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report.txt", b"new")
    assert list(tmp_path.iterdir()) == []
