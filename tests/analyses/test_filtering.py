"""Part of a recording by stream, name or time: what is left out counts as not recorded, and is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Filter, Options
from traceanalyze.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.report.model import Report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A step of 100 µs: kernels `a` on stream 7 (20 µs), `b` on stream 9 (30 µs), both launched."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::a", 0, 8)
    b.launch(1, 2, 10, 20, name="a", stream=7)
    b.op("aten::b", 40, 8)
    b.launch(41, 2, 50, 30, name="b", stream=9)
    return b.write(tmp_path / "trace.json")


def analysed(path: Path, **chosen: str) -> Report:
    from traceanalyze.pipeline import Choices, reports

    return reports([str(path)], Choices(**chosen))[0]


def compute(report: Report) -> int:
    parts = report.tables["split"]
    return dict(zip(parts.column("part"), parts.column("mean_ns"), strict=True))["compute"]


@pytest.mark.parametrize(
    ("chosen", "length"),
    [
        ({}, 50_000),
        ({"streams": "7"}, 20_000),
        ({"streams": "8:"}, 30_000),
        ({"name_regex": "^b$"}, 30_000),
        ({"streams": "7", "name_regex": "b"}, None),
        ({"time": "40us-"}, 30_000),
        ({"time": "-35us"}, 20_000),
        ({"time": "0ms-0.06ms"}, 50_000),
    ],
)
def test_only_what_is_chosen_counts(path: Path, chosen: dict[str, str], length: int | None) -> None:
    report = analysed(path, **chosen)
    if length is None:
        assert report.analyses[0].partitions == ()
    else:
        assert compute(report) == length


def test_what_is_left_out_is_counted(path: Path) -> None:
    said = [check.message.values for check in analysed(path, streams="7").ranks[0].checks]
    assert any("filtered: 1 of 7 events" in str(value) for values in said for _, _, value in values)


@pytest.mark.parametrize(
    "chosen", [{"streams": "3"}, {"time": "5"}, {"time": "2ms-1ms"}, {"time": "-"}, {"name_regex": "("}]
)
def test_choices_that_choose_nothing_are_errors(path: Path, chosen: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        analysed(path, **chosen)


def test_a_time_after_the_end_is_an_error_that_tells_the_end(path: Path) -> None:
    assert analysed(path, time="0.00009s-").analyses
    with pytest.raises(UsageError, match=r"time: .* is \S+ s long; nothing of it is left from 100 s on"):
        analysed(path, time="100s-")


def test_links_and_operators_of_what_is_left_stay_right(path: Path) -> None:
    table = analysed(path, streams="9").tables["operators"]
    times = dict(zip(table.column("op"), table.column("device_self_ns"), strict=True))
    assert times["aten::b"] == 30_000
    assert times["aten::a"] == 0
    assert "analyze" in traceanalyze.__all__


def test_records_of_the_allocator_count_from_the_begin_of_the_chosen_time_and_before_its_end() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(1, 2, 10, 80)
    for at in (5, 19.999, 20, 59.999, 60, 90):
        b.memory(at, 8, allocated=8, reserved=16)
    (row,) = b.rows("memory", Options(keep=Filter(time=(20_000, 60_000))))
    assert row.records == 2
