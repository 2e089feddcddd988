"""Who held the memory over time: sums to the curve at every point, and says what a count block by block says."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import MIB, Allocator
from tests.simulate.allocator.programs import LEAK_LINE, TRAIN, Loop, train, user
from traceanalyze.analyses.memory import groups as module
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.categories import categories
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.model.table import NotMeasured, Table
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.model.snapshot import Snapshot


def read(path: Path) -> Snapshot:
    return read_snapshot(Source(str(path), size=path.stat().st_size))


def snapshot(folder: Path, allocator: Allocator, **how: int) -> Snapshot:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(dump(allocator, **how)))
    return read(path)


def device_of(found: Snapshot) -> Device:
    return Device(found, *found.devices, sites(found.stacks))


def counted(found: Snapshot, events: list[int]) -> list[tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]]:
    """Bytes and number of live blocks of every category and line after each event, block by block."""
    device = device_of(found)
    known, lives, size = device.sites, device.lives, device.layout.size.tolist()
    found_codes, terms, _ = categories(device)
    names = [terms[code].removeprefix("category_") for code in found_codes.tolist()]
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


class Groups(NamedTuple):
    """The tables of an analysis, by group."""

    event: np.ndarray
    named: list[tuple[str, str]]
    """Category and line; without the rest."""
    bytes: np.ndarray
    blocks: np.ndarray
    """Groups × points; the last row is all others."""


def over_time(analysis: AllocatorAnalysis) -> tuple[Table, Table, Table]:
    """Curves, their parts by group, and the groups."""
    keys = "allocator_curve", "allocator_group_curve", "allocator_groups"
    curve, parts, groups = (table for table in analysis.held if table.key in keys)
    return curve, parts, groups


def groups_of(analysis: AllocatorAnalysis) -> Groups:
    _, curve, groups = over_time(analysis)
    rows = list(groups.records())
    keys = [one.group or "rest" for one in rows]
    return Groups(
        curve.array("event"),
        [(one.memory_category.removeprefix("category_"), one.source_line) for one in rows[:-1]],
        np.array([curve.array(f"group_{key}_bytes") for key in keys]),
        np.array([curve.array(f"group_{key}_blocks") for key in keys]),
    )


@pytest.mark.parametrize("keep", [None, 100])
def test_every_group_is_what_a_count_block_by_block_gives(tmp_path: Path, keep: int | None) -> None:
    how = {} if keep is None else {"keep": keep}
    found = snapshot(tmp_path, train(Loop(leak=40 * MIB, spike=16 * MIB), Allocator()), **how)
    (analysis,) = analyze_snapshot(found)
    groups = groups_of(analysis)
    truth = counted(found, groups.event.tolist())
    everything = {key for amount, _ in truth for key, size in amount.items() if size}
    assert set(groups.named) == everything
    for row, key in enumerate(groups.named):
        assert groups.bytes[row].tolist() == [amount[key] for amount, _ in truth]
        assert groups.blocks[row].tolist() == [blocks[key] for _, blocks in truth]
    assert not groups.bytes[-1].any()


def test_what_is_not_among_the_largest_is_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = snapshot(tmp_path, train(Loop(leak=40 * MIB), Allocator()))
    monkeypatch.setattr(module, "MOST", 2)
    (analysis,) = analyze_snapshot(found)
    groups = groups_of(analysis)
    truth = counted(found, groups.event.tolist())
    highest: Counter[tuple[str, str]] = Counter()
    for amount, _ in truth:
        highest |= amount
    assert set(groups.named) == {key for key, _ in highest.most_common(2)}
    assert (groups.bytes.sum(axis=0) == over_time(analysis)[0].array("block_bytes")).all()
    assert groups.blocks.sum(axis=0).tolist() == [sum(blocks.values()) for _, blocks in truth]
    assert groups.bytes[-1].any()


def test_a_spike_between_two_points_is_not_a_group_and_one_at_a_point_is(tmp_path: Path) -> None:
    (analysis,) = analyze_snapshot(snapshot(tmp_path, train(Loop(steps=40, spike=64 * MIB), Allocator())))
    groups = groups_of(analysis)
    assert len(groups.event) < analysis.events
    spike = [row for row, (_, line) in enumerate(groups.named) if line == "train.py:24 train"]
    assert [int(groups.bytes[row].max()) for row in spike] == [64 * MIB]
    assert (groups.bytes.sum(axis=0) == over_time(analysis)[0].array("block_bytes")).all()


def test_points_hold_the_peaks_of_all_curves(tmp_path: Path) -> None:
    found = snapshot(tmp_path, train(Loop(steps=40, growing=MIB), Allocator()))
    (analysis,) = analyze_snapshot(found)
    groups = groups_of(analysis)
    assert {0, analysis.events - 1} <= set(groups.event.tolist())
    device = device_of(found)
    for curve in (device.active, device.blocks, device.reserved):
        assert curve.after[groups.event].max() == curve.after.max()
    assert (np.diff(groups.event) > 0).all()


def test_the_stack_is_that_of_the_largest_block(tmp_path: Path) -> None:
    allocator = train(Loop(leak=40 * MIB), Allocator())
    other = user(LEAK_LINE, {"name": "helper", "filename": "/usr/lib/python3.12/site-packages/torch/x.py", "line": 5})
    allocator.malloc(64 * MIB, [*other[:-1], {"name": "run", "filename": "/home/me/main.py", "line": 7}])
    (analysis,) = analyze_snapshot(snapshot(tmp_path, allocator))
    rows = list(over_time(analysis)[2].records())
    leak = next(one for one in rows if one.source_line == f"train.py:{LEAK_LINE} train")
    assert leak.call_stack.split("\n") == [f"{TRAIN}:{LEAK_LINE} train", "/home/me/main.py:7 run"]
    backward = next(one for one in rows if one.memory_category == "category_gradients")
    assert backward.call_stack.split("\n")[0] == "at::_ops::empty_strided::call"


@pytest.mark.parametrize("keep", [0, 1])
def test_without_a_history_there_is_no_curve(tmp_path: Path, keep: int) -> None:
    allocator = Allocator()
    allocator.malloc(MIB)
    (analysis,) = analyze_snapshot(snapshot(tmp_path, allocator, keep=keep))
    assert {table.absent for table in over_time(analysis)} == {NotMeasured("no_memory_history")}


@pytest.mark.parametrize("events", [2, 1000, 1001])
def test_up_to_a_thousand_events_all_are_points_of_the_curve(tmp_path: Path, events: int) -> None:
    """A block of the same size comes and goes: a piece of the longer history has few lowest and highest values."""
    allocator = Allocator()
    for _ in range(334):
        allocator.free(allocator.malloc(MIB))
    (analysis,) = analyze_snapshot(snapshot(tmp_path, allocator, keep=events))
    shown = over_time(analysis)[0].column("event")
    assert (shown == tuple(range(events))) is (events <= 1000)
    assert (shown[0], shown[-1]) == (0, events - 1)


def test_groups_of_real_snapshots_sum_to_the_curve(shared_snapshots: Path) -> None:
    seen = 0
    for path in sorted(shared_snapshots.glob("*.pickle")):
        for analysis in analyze_snapshot(read(path)):
            if over_time(analysis)[2].absent is None:
                groups = groups_of(analysis)
                assert (groups.bytes.sum(axis=0) == over_time(analysis)[0].array("block_bytes")).all(), path
                assert groups.bytes.min() >= 0
                assert groups.blocks.min() >= 0
                assert len(groups.named) <= module.MOST
                seen += 1
    assert seen >= 8
