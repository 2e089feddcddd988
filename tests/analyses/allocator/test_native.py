"""The native follower and the native replay do what their specifications in Python do, on whatever there is."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyses.allocator.test_follower import read
from tests.examples import examples
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.histories import recorded as simulate
from tests.simulate.allocator.pool import MIB
from traceanalyze.analyses.memory import layout, replay
from traceanalyze.analyses.memory.caching import Rules, rounded
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.holes import past_segments
from traceanalyze.analyses.memory.layout import Layout, follow
from traceanalyze.analyses.memory.lifetimes import lifetimes
from traceanalyze.analyses.memory.replay import Supposed
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.analyses.memory.whatif import as_recorded
from traceanalyze.model import native
from traceanalyze.model.snapshot import Action, Blocks, History, Segments, SnapshotDevice
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from traceanalyze.model.snapshot import Snapshot

pytestmark = pytest.mark.skipif(native.library() is None, reason="the native library was not built")


def devices(snapshot: Snapshot) -> Iterator[Device]:
    known = sites(snapshot.stacks)
    return (Device(snapshot, each, known) for each in snapshot.devices)


def simulated(folder: Path, seed: int) -> Device:
    one = simulate(seed)
    snapshot = read(dump(one.allocator, keep=one.keep, vendor=one.vendor, pool_ids=one.pool_ids), folder)
    return next(devices(snapshot))


def agree(one: Device, monkeypatch: pytest.MonkeyPatch, every: int = 1) -> Layout:
    """Follow both ways, with what is free at many events."""
    watch = frozenset(range(-1, one.events + 1, every))
    found = follow(one.device, one.lives, one.rules, watch)
    with monkeypatch.context() as without:
        without.setattr(layout, "_library", lambda: None)
        expected = follow(one.device, one.lives, one.rules, watch)
    for name, value in found._asdict().items():
        wanted = getattr(expected, name)
        assert np.array_equal(value, wanted) if isinstance(value, np.ndarray) else value == wanted, name
    assert (found.size.dtype, found.pool.dtype) == (expected.size.dtype, expected.pool.dtype)
    return found


def suppositions(one: Device) -> Iterator[Supposed]:
    """Other settings, on devices of any size."""
    base, peak = as_recorded(one), one.reserved.peak[0]
    for changed in (
        {},
        {"expandable": not base.rules.expandable},
        {"max_split": 21 * MIB, "oversize": 22 * MIB},
        {"divisions": (0, 2, 4, 8)},
        {"collect": 0.4},
    ):
        for limit in (None, base.limit, peak, peak * 4 // 5, peak // 3):
            for empties in (True, False):
                yield Supposed(base.rules._replace(**changed), limit, empties)


def replays_agree(one: Device, monkeypatch: pytest.MonkeyPatch) -> int:
    done = 0
    for supposed in suppositions(one):
        found = replay.replay(one, supposed)
        with monkeypatch.context() as without:
            without.setattr(replay, "_library", lambda: None)
            expected = replay.replay(one, supposed)
        assert found.event.tolist() == expected.event.tolist()
        assert found.reserved.tolist() == expected.reserved.tolist()
        assert found[:1] + found[3:] == expected[:1] + expected[3:]
        done += 1
    return done


@pytest.mark.parametrize("seed", range(100, 130))
def test_random_programs(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = simulated(tmp_path, seed)
    assert agree(one, monkeypatch).lost is None
    assert replays_agree(one, monkeypatch) == 50


@pytest.mark.parametrize("seed", [100, 111, 114, 130])
def test_addresses_of_the_upper_half_change_nothing(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Intel's GPUs have them; of an expandable segment they are no sign that it is none."""
    one = simulate(seed)
    content = dump(one.allocator, keep=one.keep, vendor=one.vendor, pool_ids=one.pool_ids)
    low = next(devices(read(content, tmp_path)))
    segments = content["segments"]
    for row in (*segments, *(block for segment in segments for block in segment["blocks"])):
        row["address"] += (1 << 64) - (1 << 56)
    for event in (event for trace in content["device_traces"] for event in trace if event["action"] != "oom"):
        event["addr"] += (1 << 64) - (1 << 56)
    high = next(devices(read(content, tmp_path)))
    assert agree(high, monkeypatch).lost is None
    assert replays_agree(high, monkeypatch) == 50
    for supposed in suppositions(low):
        below, above = replay.replay(low, supposed), replay.replay(high, supposed)
        assert below.reserved.tolist() == above.reserved.tolist()
        assert below[:1] + below[3:] == above[:1] + above[3:]


def test_shared_snapshots(shared_snapshots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = 0
    for path in sorted(shared_snapshots.glob("*.pickle")):
        for one in devices(read_snapshot(Source(str(path), size=path.stat().st_size))):
            if one.events <= 1:
                continue
            assert agree(one, monkeypatch, every=101).lost is None
            base = as_recorded(one)
            wider = base._replace(rules=base.rules._replace(expandable=not base.rules.expandable))
            monkeypatch.setattr(f"{__name__}.suppositions", lambda _, both=(base, wider): iter(both))
            assert replays_agree(one, monkeypatch) == 2
            followed += 1
    assert followed == 8


def mutated(device: SnapshotDevice, chance: random.Random) -> SnapshotDevice:
    """A few events do something else, elsewhere, with another size, or not at all."""
    history, count = device.history, len(device.history)
    action, address, size, call = (
        column.copy() for column in (history.action, history.address, history.size, history.call)
    )
    for _ in range(chance.randint(1, 6) if count else 0):
        row, other = chance.randrange(count), chance.randrange(count)
        kind = chance.randrange(5)
        if kind == 0:
            action[row] = chance.choice([int(each) for each in Action])
        elif kind == 1:
            address[row] = address[other] + chance.choice([0, 512, -512, MIB])
        elif kind == 2:
            size[row] = max(int(size[row]) + chance.choice([1, -1, 512, -512, MIB, 20 * MIB]), 0)
        elif kind == 3:
            call[row] = call[other]
        else:
            for column in (action, address, size, call):
                column[[row, other]] = column[[other, row]]
    changed = replace(history, action=action, address=address, size=size, call=call)
    blocks = device.blocks
    if chance.random() < 0.2 and len(blocks):
        sizes = blocks.size.copy()
        sizes[chance.randrange(len(blocks))] = chance.choice([0, 512, 3 * MIB])
        blocks = replace(blocks, size=sizes)
    return device._replace(history=changed, blocks=blocks)


@given(st.integers(0, 400), st.integers(0, 10**9))
@examples(100)
def test_histories_that_contradict_themselves(tmp_path_factory: Any, program: int, seed: int) -> None:
    chance, monkeypatch = random.Random(seed), pytest.MonkeyPatch()
    whole = simulated(tmp_path_factory.mktemp("one"), program)
    one = Device(whole.snapshot, mutated(whole.device, chance), whole.sites)
    if agree(one, monkeypatch).lost is None:
        supposed = chance.choice(list(suppositions(one)))
        with monkeypatch.context() as only:
            only.setattr(f"{__name__}.suppositions", lambda _: iter((supposed,)))
            replays_agree(one, monkeypatch)


def test_every_way_to_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, seen = random.Random(3), Counter[str]()
    for program in range(40):
        whole = simulated(tmp_path, program)
        for _ in range(4):
            one = Device(whole.snapshot, mutated(whole.device, chance), whole.sites)
            lost = agree(one, monkeypatch, every=50).lost
            seen[lost.key if lost else ""] += 1
    assert seen.keys() == {"", "segments", "before", "place", "release", "sizes"}, seen


@given(
    st.lists(st.integers(0, 1 << 40), min_size=1), st.lists(st.integers(-5, 1 << 50), max_size=6), st.integers(0, 32)
)
@examples(100)
def test_sizes_are_rounded_alike(requests: list[int], divisions: list[int], pad: int) -> None:
    """By requests that are put into one large hole, one behind the other."""
    rules = Rules(pad, None, tuple(divisions), expandable=True)
    size, count = np.array(requests, np.int64), len(requests)
    needed = rounded(rules, size)
    assert needed.tolist() == [rules.rounded(each) for each in requests]
    none, zeros, flags = np.zeros(0, np.int64), np.zeros(1, np.int64), np.ones(1, np.bool_)
    start = np.cumsum(needed) - needed
    device = SnapshotDevice(
        0,
        Segments(zeros, zeros + (1 << 60), zeros, zeros, zeros, zeros, zeros.astype(np.int32), flags, flags),
        Blocks(none.astype(np.int32), none, none, none, none.astype(np.uint8), none.astype(np.int32)),
        History(
            *(np.zeros(count, np.uint8), start, size, np.zeros(count, np.int64), None),
            *(np.zeros(count, np.int32), np.zeros(count, np.int32)),
        ),
    )
    lives = lifetimes(device)
    early = layout._Early(device, lives, rules, past_segments(device, rules))
    assert layout._walk(device, lives, rules, early, frozenset())[0].tolist() == needed.tolist()
