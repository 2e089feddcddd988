from __future__ import annotations

import pytest

from traceanalyze.report.paths import told_apart


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
    assert told_apart(first, second) == names
