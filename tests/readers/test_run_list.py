"""`run.json` as `traceanalyze record` writes it, and files that are only called so."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from traceanalyze.errors import InputError
from traceanalyze.readers.runs import read_run_list


def written(folder, content):
    path = folder / "run.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_rank_and_files_are_told(tmp_path):
    path = written(tmp_path, {"schema": "traceanalyze.run/1", "rank": 3, "files": ["a.json", 5]})
    assert read_run_list(path) == (3, ("a.json",))


@pytest.mark.parametrize("content", [[], {}, {"schema": "other/1", "files": []}, '"text"'])
def test_the_file_of_another_program_is_none(content, tmp_path):
    assert read_run_list(written(tmp_path, content)) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"schema": "traceanalyze.run/1", "fi', "damaged or cut short"),
        ("[" * 100_000, "damaged or cut short"),
        ({"schema": "traceanalyze.run/1"}, "lists no files"),
    ],
)
def test_a_damaged_one_says_so(content, why, tmp_path):
    with pytest.raises(InputError, match=why):
        read_run_list(written(tmp_path, content))


def test_a_pipe_is_not_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    os.mkfifo(path)
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_options: pytest.fail("opened"))
    assert read_run_list(path) is None
