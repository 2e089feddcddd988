"""Tables: rows in order, also where cells were not measured."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyze.model.table import Column, Kind, NotMeasured, Quantity, declare, known

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


def test_a_data_frame_has_whole_numbers_fractions_and_words() -> None:
    kinds = [(kind.name.lower(), kind) for kind in (Kind.DURATION, Kind.MEMORY, Kind.COUNT, Kind.SHARE, Kind.QUANTITY)]
    table = declare("t", "T", Column("name", Kind.NAME), *(Column(*each) for each in kinds))
    missing = NotMeasured("no_api")
    frame = table.fill(
        name=["a", None],
        duration=[5, missing],
        memory=np.array([1, 2]),
        count=[3, None],
        share=[0.5, missing],
        quantity=[Quantity(1.5, "ms"), missing],
    ).to_pandas()
    assert [str(dtype) for dtype in frame.dtypes] == ["object", "Int64", "Int64", "Int64", "Float64", "Float64"]
    assert frame.iloc[0].tolist() == ["a", 5, 1, 3, 0.5, 1.5]
    assert frame.isna().to_numpy().tolist() == [[False] * 6, [True, True, False, True, True, True]]


def test_numbers_that_are_not_there_have_the_reason() -> None:
    assert known(np.array([1.0, 2.0]), "why").tolist() == [1, 2]
    assert known(np.array([1.0, np.nan]), "why") == [1.0, NotMeasured("why")]


def test_a_table_without_rows_has_none_in_any_form() -> None:
    table = TABLE.missing("no_api", detail=True)
    assert (len(table), table.column("name"), table.known_rows, list(table.records())) == (0, (), (), [])
    assert table.rows == NotMeasured("no_api")
    assert table.array("time_ns").tolist() == []
    assert table.detail
    assert not TABLE.missing("no_api").detail
    assert table.sort("-time_ns") is table


def test_rows_have_totals_levels_and_attributes() -> None:
    table = declare(
        "t", "T", Column("class", Kind.NAME), Column("depth", Kind.COUNT), level="depth", totals={"depth": 7}
    )
    filled = table.fill(**{"class": ["a", "b"], "depth": [0, 1]})
    assert filled.total == (None, 7)
    assert [filled.depth(row) for row in filled.known_rows] == [0, 1]
    assert [(row.class_, row.depth) for row in filled.records()] == [("a", 0), ("b", 1)]
    assert filled.take(np.array([False, True])).rows == (("b", 1),)
    assert filled.take([1, 0]).column("depth") == (1, 0)
    assert filled.drop("depth").keys == ["class"]
    with pytest.raises(KeyError, match=r"t: \['depth', 'deep'\]|t: \['deep', 'depth'\]"):
        table.fill(**{"class": [], "deep": []})
