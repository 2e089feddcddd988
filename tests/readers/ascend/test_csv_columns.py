"""The fast reader of CSV columns gives what the standard reader gives."""

from __future__ import annotations

import csv
import io
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.readers.ascend.tables import cell_text, read_table


def _cells(table, name):
    cells, code = table.columns[name]
    assert len(set(cells)) == len(cells)
    return [cell_text(cells[one]) for one in code.tolist()]


CELL = st.text(st.sampled_from('ab1.;, "\n'), max_size=6)


@given(
    st.lists(st.lists(CELL, min_size=3, max_size=3), max_size=12), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40)
)
def test_it_agrees_with_the_standard_reader(tmp_path_factory, rows, line_end, block):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=line_end).writerows([["x", "y", "z"], *rows])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    found = read_table(
        path, {"last": ("nowhere", "z"), "first": ("x",), "absent": ("w",)}, (notes := []), block, optional=("absent",)
    )
    assert list(found.columns) == ["last", "first"]
    assert _cells(found, "last") == [row[2].strip() for row in rows]
    assert _cells(found, "first") == [row[0].strip() for row in rows]
    assert (found.rows, notes) == (len(rows), [])


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("cut", ["4", "4,5\r6,7,8"])
def test_a_row_that_is_cut_off_or_two_in_one_are_counted_and_left_out(tmp_path, end, cut):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfx,y\r\n1,2\n\n"a\nb",3\r\n' + cut.encode() + end.encode())
    found = read_table(path, {"x": ("x",), "y": ("y",)}, (notes := []))
    assert [_cells(found, name) for name in ("x", "y")] == [["1", "a\nb"], ["2", "3"]]
    assert (found.rows, notes) == (2, ["t.csv: 1 row(s) with too few or too many cells left out"])


def test_an_empty_file_has_no_columns(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"")
    assert read_table(tmp_path / "t.csv", {"x": ("x",)}, []) is None


@pytest.mark.parametrize("where", [1, 3_000, 5_999])
@pytest.mark.parametrize("mark", [b'na"me', b'"name', b'name"'])
def test_a_stray_quote_costs_neither_a_row_nor_time(tmp_path, where, mark):
    """Every other row has a quoted cell, so that quotes that are not in order would pair up over all that follows."""
    rows = [
        b'%d,name,"""4096,1,2048;4096,1,1024"""' % number if number % 2 else b"%d,name,x" % number
        for number in range(6_000)
    ]

    def read():
        (tmp_path / "t.csv").write_bytes(b"\n".join([b"id,Name,Shapes", *rows, b""]))
        begin = process_time()
        found = read_table(tmp_path / "t.csv", {"id": ("id",), "name": ("Name",), "shapes": ("Shapes",)}, notes)
        return found, process_time() - begin

    notes: list[str] = []
    clean, usual = min((read() for _ in range(3)), key=lambda one: one[1])
    rows[where] = rows[where].replace(b"name", mark)
    found, time = min((read() for _ in range(3)), key=lambda one: one[1])
    assert (found.rows, notes) == (6_000, [])
    assert found.texts("shapes") == clean.texts("shapes")
    assert [row for row, name in enumerate(found.texts("name")) if name != "name"] == [where]
    assert time < 3 * usual + 0.02


def test_numbers_that_cannot_be_read_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2.5\n,N/A\nx,1e400\n")
    table = read_table(tmp_path / "t.csv", {"a": ("a",), "b": ("b",)}, (notes := []))
    for _ in range(2):
        table.integers("a")
        table.durations("b")
    said = "t.csv: 1 number(s) cannot be read (was it saved by a spreadsheet?)"
    assert notes == [f"{said}: a", f"{said}: b"]


def test_columns_that_a_damaged_header_lacks_are_told(tmp_path):
    path = tmp_path / "step_trace_time.csv"
    path.write_bytes(b"Device_id,Step,Comp\ruting,Communication(Not Overlapped)\n0,1,5,6\n")
    notes: list[str] = []
    assert read_table(path, {"computing": ("Computing",), "device": ("Device_id",)}, notes) is not None
    assert notes == ["step_trace_time.csv: its header lacks computing"]
