from __future__ import annotations

import json
import os

import pytest

from traceanalyze.cli import output
from traceanalyze.cli.output import write_whole
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
    monkeypatch.setattr(output.os, step, full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_whole(target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "old"


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(output.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "report.txt", "new")
    assert list(tmp_path.iterdir()) == []
