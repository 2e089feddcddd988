from __future__ import annotations

import pytest

from traceanalyze.report.view import common_folder, distinct_names


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("a/x.json", "b/y.json", ("x.json", "y.json")),
        ("runs/before/trace.json", "runs/after/trace.json", ("before/trace.json", "after/trace.json")),
        ("a/1/t.json", "b/1/t.json", ("a/1/t.json", "b/1/t.json")),
        ("t.json", "old/t.json", ("t.json", "old/t.json")),
        ("a/t.json", "a/t.json", ("t.json", "t.json")),
        ("-", "-", ("-", "-")),
    ],
)
def test_names_tell_files_apart(first, second, names):
    assert distinct_names(first, second) == names


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (["/a/b/x.json", "/a/b/y.json"], "/a/b/"),
        (["/a/b/x.json", "/a/c/d/y.json"], "/a/"),
        (["/x.json", "/y.json"], "/"),
        (["a/x.json", "b/y.json"], ""),
        # A folder is not its beginning.
        (["run/ab/x", "run/a/x"], "run/"),
        (["/a/run.zip!one/x.json", "/a/run.zip!one/y.json"], "/a/run.zip!one/"),
        (["/a/b/x.json"], ""),
        ([], ""),
    ],
)
def test_the_folder_that_all_files_lie_in(paths, folder):
    assert common_folder(paths) == folder
