"""How a program asks for memory: growing requests, blocks too large to give away, small blocks that pin segments."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import KIB, MIB, Allocator
from tests.simulate.allocator.programs import Loop, train, user
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.patterns import OversizedBlocks, SmallBlocks, Spike
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.allocator.pool import Frames
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.analyses.memory.patterns import GrowingSizes


def analysed(content: dict[str, Any], folder: Path) -> AllocatorAnalysis:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    (found,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    assert found.reconciled
    return found


def growing(loop: Loop, folder: Path, allocator: Allocator) -> GrowingSizes:
    found = analysed(dump(train(loop, allocator)), folder).growing
    assert not isinstance(found, NotMeasured)
    return found


@pytest.mark.parametrize(
    ("expandable", "line", "steps"), [(False, "model.py:40 forward", 7), (True, "<backward: mm>", 5)]
)
def test_requests_that_grow_are_found_with_their_line_and_bytes(
    tmp_path: Path, expandable: bool, line: str, steps: int
) -> None:
    """An expandable segment has room for the activations, and grows by what the backward pass needs besides."""
    allocator = Allocator(expandable=expandable)
    found = growing(Loop(growing=3 * MIB, activation=30 * MIB), tmp_path, allocator)
    assert found.flagged
    assert (found.line, found.steps) == (line, steps)
    # The first layer of the second step, and of the layers of the last step one of those that needed more memory.
    assert found.smallest == 33 * MIB
    assert 51 * MIB <= found.largest <= 51 * MIB + 5 * 512
    assert found.grown == _grown_by_records(allocator)


def _grown_by_records(allocator: Allocator) -> int:
    """Growth just before requests larger than all before from the same place, after the first step's END mark."""
    first_end = next(note["time_us"] for note in allocator.notes if note["stage"] == "END")
    highest: dict[str, int] = {}
    pending = total = 0
    for event in allocator.events:
        if event["action"] in {"segment_alloc", "segment_map"}:
            pending += event["size"]
        elif event["action"] == "alloc":
            place = str(event["frames"])
            record = event["size"] > highest.get(place, 1 << 60)
            total += pending if record and event["time_us"] > first_end else 0
            highest[place] = max(event["size"], highest.get(place, 0))
            pending = 0
    return total


def test_equal_steps_do_not_grow_even_when_the_cache_is_emptied(tmp_path: Path) -> None:
    found = growing(Loop(activation=30 * MIB, empty_cache=True), tmp_path, Allocator())
    assert (found.flagged, found.steps, found.grown) == (False, 0, 0)


def test_a_leak_is_no_growth_of_requests(tmp_path: Path) -> None:
    assert not growing(Loop(leak=40 * MIB), tmp_path, Allocator()).flagged


def test_growth_at_the_limit_counts_its_retries(tmp_path: Path) -> None:
    allocator = Allocator(capacity=900 * MIB)
    found = growing(Loop(growing=6 * MIB, activation=30 * MIB), tmp_path, allocator)
    assert found.flagged
    assert found.retries > 0


BASE = 1 << 40


def _event(action: str, address: int, size: int, time: int, frames: Frames) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}


def _segment(address: int, size: int, used: int, *, small: bool = False) -> dict[str, Any]:
    blocks = [
        {"address": address, "size": used, "requested_size": used, "state": "active_allocated", "frames": user(7)}
    ]
    if used < size:
        rest = {"address": address + used, "size": size - used, "requested_size": 0, "state": "inactive"}
        blocks = [*blocks, rest] if used else [rest]
    sums = dict.fromkeys(("allocated_size", "active_size", "requested_size"), used)
    kind = "small" if small else "large"
    return {
        "device": 0,
        "address": address,
        "total_size": size,
        "stream": 0,
        "segment_type": kind,
        **sums,
        "blocks": blocks,
    }


def _unsplit(limit: int) -> dict[str, Any]:
    """A block of 100 MiB is free when 60, and later 70 MiB are asked for; blocks from `limit` on are not split."""
    events = []
    places = {100: BASE, 60: BASE + 200 * MIB, 70: BASE + 300 * MIB}
    for time, (size, place) in enumerate(places.items()):
        frames = user(30 + time)
        for part, action in enumerate(("segment_alloc", "alloc", "free_requested", "free_completed")):
            if size != 70 or part < 2:
                events.append(_event(action, place, size * MIB, 9 * time + part, frames))
    segments = [_segment(place, size * MIB, size * MIB if size == 70 else 0) for size, place in places.items()]
    return {"segments": segments, "device_traces": [events], "allocator_settings": {"max_split_size": limit}}


def test_a_free_block_that_is_too_large_to_give_away(tmp_path: Path) -> None:
    found = analysed(_unsplit(50 * MIB), tmp_path).oversized
    assert found == OversizedBlocks("train.py:32 train", 2, 70 * MIB, 100 * MIB, 130 * MIB)


def test_what_splitting_saves_is_not_known_where_the_replay_tells_nothing(tmp_path: Path) -> None:
    """Memory that nobody asked for is taken first, which no replay does: no request may have any of it."""
    snapshot, more = _unsplit(50 * MIB), BASE + 1000 * MIB
    snapshot["device_traces"][0].insert(0, _event("segment_alloc", more, 300 * MIB, 0, user(9)))
    snapshot["segments"].append(_segment(more, 300 * MIB, 0))
    found = analysed(snapshot, tmp_path).oversized
    assert found == OversizedBlocks("train.py:30 train", 3, 100 * MIB, 300 * MIB, NotMeasured("replay_off"))


@pytest.mark.parametrize("limit", [-1, 65 * MIB])
def test_requests_below_the_limit_are_not_meant(tmp_path: Path, limit: int) -> None:
    found = analysed(_unsplit(limit), tmp_path).oversized
    assert isinstance(found, OversizedBlocks)
    assert found.growths == (1 if limit > 0 else 0)


def _pinning(count: int, *, filled: bool) -> dict[str, Any]:
    """Small blocks, each in a segment of its own or three in one, while a large block comes and goes."""
    large, per, size = BASE, 3 if filled else 1, 600 * KIB
    segments = [_segment(large, 20 * MIB, 0)]
    for number in range(count // per):
        one = _segment(BASE + (number + 20) * 4 * MIB, 2 * MIB, per * size, small=True)
        block = one["blocks"][0]
        parts = [
            {**block, "address": block["address"] + k * size, "size": size, "requested_size": size} for k in range(per)
        ]
        segments.append({**one, "blocks": [*parts, *one["blocks"][1:]]})
    events = [
        _event(action, large, 20 * MIB, 3 * time + part, user(8))
        for time in range(10)
        for part, action in enumerate(("alloc", "free_requested", "free_completed"))
    ]
    return {"segments": segments, "device_traces": [events]}


def _small(content: dict[str, Any], folder: Path) -> SmallBlocks:
    found = analysed(content, folder).small
    assert not isinstance(found, NotMeasured)
    return found


def test_small_blocks_that_alone_keep_segments(tmp_path: Path) -> None:
    found = _small(_pinning(1200, filled=False), tmp_path)
    assert found.flagged
    assert (found.count, found.segments, found.line) == (1200, 1200, "train.py:7 train")
    assert found.held == 1200 * (2 * MIB - 600 * KIB)
    assert found.share == 1200 / 1201


def test_small_blocks_side_by_side_waste_little_and_few_are_no_finding(tmp_path: Path) -> None:
    side_by_side = _small(_pinning(1200, filled=True), tmp_path)
    assert (side_by_side.count, side_by_side.segments) == (1200, 400)
    assert side_by_side.held == 400 * (2 * MIB - 1800 * KIB)
    assert not _small(_pinning(999, filled=False), tmp_path).flagged


def test_small_blocks_whose_segments_were_given_back(tmp_path: Path) -> None:
    """The snapshot was taken when nothing was reserved any more: nothing is said of segments."""
    small, large = user(7), user(8)
    events = [_event("segment_alloc", BASE, 2 * MIB, 0, small), _event("alloc", BASE, 4 * KIB, 1, small)]
    other = BASE + 100 * MIB
    events.append(_event("segment_alloc", other, 20 * MIB, 2, large))
    for time in range(40):
        for part, action in enumerate(("alloc", "free_requested", "free_completed")):
            events.append(_event(action, other, 20 * MIB, 3 + 3 * time + part, large))
    events += [_event(action, BASE, 4 * KIB, 130, small) for action in ("free_requested", "free_completed")]
    events += [
        _event("segment_free", place, size, 140, user(9)) for place, size in ((BASE, 2 * MIB), (other, 20 * MIB))
    ]
    found = _small({"segments": [], "device_traces": [events]}, tmp_path)
    assert (found.count, found.segments, found.held, found.flagged) == (1, 0, 0, False)


def truncated(content: dict[str, Any], folder: Path) -> tuple[str, int]:
    found = analysed(content, folder)
    return found.truncation, found.active.base


def test_a_history_without_its_beginning(tmp_path: Path) -> None:
    allocator = train(Loop(steps=60, layers=8), Allocator())
    whole, ring = dump(allocator), dump(allocator, keep=10_000)
    base = sum(
        block["requested_size"]
        for segment in whole["segments"]
        for block in segment["blocks"]
        if block["state"] != "inactive"
    ) - sum(
        {"alloc": 1, "free_completed": -1}.get(event["action"], 0) * event["size"] for event in ring["device_traces"][0]
    )
    assert truncated(whole, tmp_path) == ("", 0)
    assert truncated(ring, tmp_path) == ("round", base)
    assert truncated({**ring, "trace_alloc_overflowed": True}, tmp_path) == ("full", base)
    assert truncated({**ring, "trace_alloc_overflowed": False}, tmp_path) == ("", base)
    late = dump(allocator, keep=9_999)
    assert truncated(late, tmp_path)[0] == ""


def test_a_peak_before_the_history_is_told(tmp_path: Path) -> None:
    allocator = Allocator()
    address = allocator.malloc(64 * MIB, user(9))
    allocator.malloc(MIB, user(10))
    allocator.free(address)
    found = analysed(dump(allocator, keep=2), tmp_path)
    assert (found.truncation, found.active.base) == ("late", 65 * MIB)


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_habits_are_looked_for_in_any_history_longer_than_one_event(tmp_path: Path, keep: int) -> None:
    """A recording of states alone has one event, or none; the block is one of its two."""
    allocator = Allocator()
    allocator.malloc(4 * KIB, user(7))
    found = analysed(dump(allocator, keep=keep), tmp_path)
    none = NotMeasured("no_memory_history")
    if keep < 2:
        assert (found.small, found.oversized, found.spike) == (none, none, none)
        return
    # Allocated with the last event, it has no age yet.
    assert found.small == SmallBlocks(0, 0.0, 0, 0, "", flagged=False)
    assert found.oversized == OversizedBlocks("", 0, 0, 0, 0)
    assert found.spike == Spike(0.0, 0, "", flagged=False)
