"""Tables of who holds the memory over the history."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING

import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import LEAK_LINE, TRAIN, Loop, train
from traceanalyze.locales import texts
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.memory import memory
from traceanalyze.report import console
from traceanalyze.report.console.style import Style
from traceanalyze.report.folder import csv as as_csv
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.report.model import Report


@pytest.fixture
def leaking(tmp_path: Path) -> Report:
    path = tmp_path / "leak.pickle"
    path.write_bytes(pickle.dumps(dump(train(Loop(leak=40 * MIB), Allocator()))))
    return memory(path)


def test_the_columns_of_the_groups_sum_to_the_curve(leaking: Report) -> None:
    curve, groups = leaking.tables["allocator_curve"], leaking.tables["allocator_group_curve"]
    assert groups.column("event") == curve.column("event")
    assert groups.column("since_start_ns") == curve.column("since_start_ns")
    sums = [sum(row) for row in zip(*(groups.column(key) for key in groups.stack), strict=True)]  # type: ignore[arg-type]
    assert sums == list(curve.column("block_bytes"))


def test_each_group_is_described_at_its_highest(leaking: Report) -> None:
    curve, groups = leaking.tables["allocator_group_curve"], leaking.tables["allocator_groups"]
    assert len(groups.column("group")) == len(curve.stack)
    for number, highest, event, blocks in zip(
        *(groups.column(key) for key in ("group", "highest_bytes", "event", "blocks")), strict=True
    ):
        name = f"group_{number or 'rest'}"
        values = curve.column(f"{name}_bytes")
        at = values.index(highest)
        assert highest == max(values)  # type: ignore[type-var]
        assert event == curve.column("event")[at]
        assert blocks == curve.column(f"{name}_blocks")[at]
    rows = dict(zip(groups.column("source_line"), groups.column("call_stack"), strict=True))
    assert str(rows[f"train.py:{LEAK_LINE} train"]).split("\n")[0] == f"{TRAIN}:{LEAK_LINE} train"
    assert rows["other_groups"] is None


def test_the_console_names_the_groups_and_does_not_draw_them(leaking: Report) -> None:
    page = console.render(leaking, texts(), Style(width=120), View(Detail.VERBOSE))
    assert "Those who hold most" in page
    assert "all others" in page
    assert leaking.tables["allocator_group_curve"].title not in page


def test_files_have_the_whole_curve(leaking: Report) -> None:
    table = leaking.tables["allocator_group_curve"]
    lines = io.StringIO(as_csv(table).decode("utf-8-sig")).readlines()
    assert len(lines) == len(table.column("event")) + 1
    assert lines[0].startswith("event,since_start_ns,group_1_bytes,")


def test_a_snapshot_without_history_says_so(tmp_path: Path) -> None:
    path = tmp_path / "state.pickle"
    path.write_bytes(pickle.dumps(dump(train(Loop(), Allocator()), keep=0)))
    tables = memory(path).tables
    assert tables["allocator_groups"].rows == tables["allocator_group_curve"].rows == NotMeasured("no_memory_history")
