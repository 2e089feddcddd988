"""Who held the memory over time: sums to the curve at every point, and says what a count block by block says."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import LEAK_LINE, TRAIN, Loop, train, user
from traceanalyze.analyses.memory import patterns as module
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.composition import CATEGORIES, categories
from traceanalyze.analyses.memory.layout import follow
from traceanalyze.analyses.memory.lifetimes import lifetimes
from traceanalyze.analyses.memory.rounding import rules
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.snapshot import Snapshot


def read(path: Path) -> Snapshot:
    return read_snapshot(Source(str(path), size=path.stat().st_size))


def snapshot(folder: Path, allocator: Allocator, **how: int) -> Snapshot:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(dump(allocator, **how)))
    return read(path)


def counted(found: Snapshot, events: list[int]) -> list[tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]]:
    """Bytes and number of live blocks of every category and line after each event, block by block."""
    (device,) = found.devices
    lives, known = lifetimes(device), sites(found.stacks)
    size = follow(device, lives, rules(found)).size.tolist()
    names = [CATEGORIES[code] for code in categories(lives, device.history, known).tolist()]
    rows = list(zip(lives.begin.tolist(), lives.end.tolist(), size, names, lives.stack.tolist(), strict=True))
    out = []
    for event in events:
        amount: Counter[tuple[str, str]] = Counter()
        blocks: Counter[tuple[str, str]] = Counter()
        for begin, end, each, category, stack in rows:
            if begin <= event < end:
                amount[category, known[stack].line] += each
                blocks[category, known[stack].line] += 1
        out.append((amount, blocks))
    return out


@pytest.mark.parametrize("keep", [None, 100])
def test_every_group_is_what_a_count_block_by_block_gives(tmp_path: Path, keep: int | None) -> None:
    how = {} if keep is None else {"keep": keep}
    found = snapshot(tmp_path, train(Loop(leak=40 * MIB, spike=16 * MIB), Allocator()), **how)
    (analysis,) = analyze_snapshot(found)
    groups = analysis.groups
    assert not isinstance(groups, NotMeasured)
    truth = counted(found, groups.event.tolist())
    everything = {key for amount, _ in truth for key, size in amount.items() if size}
    assert {(one.category, one.line) for one in groups.group} == everything
    for row, one in enumerate(groups.group):
        assert groups.bytes[row].tolist() == [amount[one.category, one.line] for amount, _ in truth]
        assert groups.blocks[row].tolist() == [blocks[one.category, one.line] for _, blocks in truth]
    assert not groups.bytes[-1].any()


def test_what_is_not_among_the_largest_is_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = snapshot(tmp_path, train(Loop(leak=40 * MIB), Allocator()))
    monkeypatch.setattr(module, "MOST", 2)
    (analysis,) = analyze_snapshot(found)
    groups = analysis.groups
    assert not isinstance(groups, NotMeasured)
    truth = counted(found, groups.event.tolist())
    highest: Counter[tuple[str, str]] = Counter()
    for amount, _ in truth:
        highest |= amount
    assert {(one.category, one.line) for one in groups.group} == {key for key, _ in highest.most_common(2)}
    assert (groups.bytes.sum(axis=0) == analysis.allocated[groups.event]).all()
    assert groups.blocks.sum(axis=0).tolist() == [sum(blocks.values()) for _, blocks in truth]
    assert groups.bytes[-1].any()


def test_a_spike_between_two_points_is_not_a_group_and_one_at_a_point_is(tmp_path: Path) -> None:
    (analysis,) = analyze_snapshot(snapshot(tmp_path, train(Loop(steps=40, spike=64 * MIB), Allocator())))
    groups = analysis.groups
    assert not isinstance(groups, NotMeasured)
    assert len(groups.event) < analysis.events
    spike = [row for row, one in enumerate(groups.group) if one.line == "train.py:24 train"]
    assert [int(groups.bytes[row].max()) for row in spike] == [64 * MIB]
    assert (groups.bytes.sum(axis=0) == analysis.allocated[groups.event]).all()


def test_points_hold_the_peaks_of_all_curves(tmp_path: Path) -> None:
    (analysis,) = analyze_snapshot(snapshot(tmp_path, train(Loop(steps=40, growing=MIB), Allocator())))
    groups = analysis.groups
    assert not isinstance(groups, NotMeasured)
    assert {0, analysis.events - 1} <= set(groups.event.tolist())
    for curve in (analysis.requested, analysis.allocated, analysis.reserved):
        assert curve[groups.event].max() == curve.max()
    assert (np.diff(groups.event) > 0).all()


def test_the_stack_is_that_of_the_largest_block(tmp_path: Path) -> None:
    allocator = train(Loop(leak=40 * MIB), Allocator())
    other = user(LEAK_LINE, {"name": "helper", "filename": "/usr/lib/python3.12/site-packages/torch/x.py", "line": 5})
    allocator.malloc(64 * MIB, [*other[:-1], {"name": "run", "filename": "/home/me/main.py", "line": 7}])
    (analysis,) = analyze_snapshot(snapshot(tmp_path, allocator))
    groups = analysis.groups
    assert not isinstance(groups, NotMeasured)
    leak = next(one for one in groups.group if one.line == f"train.py:{LEAK_LINE} train")
    assert leak.stack == (f"{TRAIN}:{LEAK_LINE} train", "/home/me/main.py:7 run")
    backward = next(one for one in groups.group if one.category == "gradients")
    assert backward.stack[0] == "at::_ops::empty_strided::call"


def test_without_a_history_there_is_no_curve(tmp_path: Path) -> None:
    (analysis,) = analyze_snapshot(snapshot(tmp_path, train(Loop(), Allocator()), keep=0))
    assert analysis.groups == NotMeasured("no_memory_history")


def test_groups_of_real_snapshots_sum_to_the_curve(shared_snapshots: Path) -> None:
    seen = 0
    for path in sorted(shared_snapshots.glob("*.pickle")):
        for analysis in analyze_snapshot(read(path)):
            if not isinstance(analysis.groups, NotMeasured):
                groups = analysis.groups
                assert (groups.bytes.sum(axis=0) == analysis.allocated[groups.event]).all(), path
                assert groups.bytes.min() >= 0
                assert groups.blocks.min() >= 0
                assert len(groups.group) <= module.MOST
                seen += 1
    assert seen >= 8
