"""The fast reader of CSV columns gives what the standard reader gives."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.readers.ascend.tables import cell_text, read_table

CELL = st.text(st.sampled_from('ab1.;, "\n'), max_size=6)


@given(
    st.lists(st.lists(CELL, min_size=3, max_size=3), max_size=12), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40)
)
def test_it_agrees_with_the_standard_reader(tmp_path_factory, rows, line_end, block):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=line_end).writerows([["x", "y", "z"], *rows])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    found = read_table(path, {"last": ("nowhere", "z"), "first": ("x",), "absent": ("w",)}, block)
    assert list(found.columns) == ["last", "first"]
    assert [cell_text(cell) for cell in found.columns["last"]] == [row[2].strip() for row in rows]
    assert [cell_text(cell) for cell in found.columns["first"]] == [row[0].strip() for row in rows]
    assert (found.rows, found.short) == (len(rows), 0)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_row_that_is_cut_off_is_counted_and_left_out(tmp_path, end):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfx,y\r\n1,2\n\n"a\nb",3\r\n4' + end.encode())
    found = read_table(path, {"x": ("x",), "y": ("y",)})
    assert [[cell_text(cell) for cell in column] for column in found.columns.values()] == [["1", "a\nb"], ["2", "3"]]
    assert (found.rows, found.short) == (2, 1)


def test_an_empty_file_has_no_columns(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"")
    assert read_table(tmp_path / "t.csv", {"x": ("x",)}) is None
