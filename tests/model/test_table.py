"""Tables: rows in order, also where cells were not measured."""

from __future__ import annotations

from traceanalyze.model.table import Column, Kind, NotMeasured, declare

TABLE = declare("times", "Times", Column("name", Kind.NAME), Column("time_ns", Kind.DURATION))


def test_what_was_not_measured_counts_as_nothing_when_rows_are_sorted() -> None:
    missing = NotMeasured("no_api")
    table = TABLE.fill(name=["a", missing, None, "b"], time_ns=[missing, 2, None, 3])
    assert table.sort("-time_ns").column("name") == ("b", missing, "a", None)
    assert table.sort("name", "time_ns").column("name") == (None, missing, "a", "b")


def test_a_column_that_was_not_measured_leaves_the_rows_as_they_are() -> None:
    table = TABLE.fill(name=["b", "a"], time_ns=NotMeasured("no_api"))
    assert table.sort("-time_ns").column("name") == ("b", "a")
    assert table.sort("-time_ns", "name").column("name") == ("a", "b")
