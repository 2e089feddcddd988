"""The model of the allocator does what the simulated one does, as recorded and under other settings."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.analyses.allocator.test_follower import read
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.histories import recorded
from tests.simulate.allocator.pool import DEFAULT, KIB, MIB, Allocator, OutOfMemoryError
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.findings import memory_findings
from traceanalyze.analyses.memory.replay import Outcome, Supposed, replay
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.analyses.memory.whatif import EXACT, Asked, answers, as_recorded, expandable_saving, unknown
from traceanalyze.model.table import NotMeasured
from traceanalyze.pipeline.memory import alloc_conf
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.snapshot import Snapshot

EMPTIES = [{"name": "empty_cache", "filename": "site-packages/torch/cuda/memory.py", "line": 170}]


def device_of(snapshot: Snapshot) -> Device:
    (device,) = snapshot.devices
    return Device(snapshot, device, sites(snapshot.stacks))


@pytest.mark.parametrize("seed", range(60))
def test_the_recorded_settings_give_the_recorded_reserve(tmp_path: Path, seed: int) -> None:
    """Whatever the ring forgot; with it goes what tells apart the pools of graphs that are gone."""
    one = recorded(seed)
    device = device_of(read(dump(one.allocator, keep=one.keep, vendor=one.vendor, pool_ids=one.pool_ids), tmp_path))
    if not one.pool_ids and any(event["pool_id"] != DEFAULT for event in one.allocator.events):
        return
    found, (peak, _) = replay(device, as_recorded(device)), device.reserved.peak
    assert found.start == device.reserved.base
    assert abs(found.peak - peak) <= EXACT * peak
    # A retry is one step of the replay, and several events of a history.
    differs = found.reserved != device.reserved.after[found.event]
    assert differs.sum() <= 1 + len(found.event) // 20


def test_nothing_is_claimed_where_graphs_were_forgotten_and_the_replay_goes_another_way(tmp_path: Path) -> None:
    """Whether the peak comes out right or not; before torch 2.12 no event names its pool."""
    told = Counter[bool]()
    for seed in range(140):
        one = recorded(seed)
        if any(event["pool_id"] != DEFAULT for event in one.allocator.events):
            device = device_of(read(dump(one.allocator, keep=one.keep, vendor=one.vendor), tmp_path))
            found = replay(device, as_recorded(device))
            off = np.abs(found.reserved - device.reserved.after[found.event]) > EXACT * device.reserved.peak[0]
            told[bool(off.sum() > 2 + len(off) // 10)] += unknown(device) is None
    assert told[True] == 0
    assert told[False] > 0


def program(seed: int, *, empties: bool = True, phases: int = 4, **options: Any) -> tuple[Allocator, int | None]:
    """The same requests for the same seed, and how many succeeded before the first that did not."""
    chance, allocator = random.Random(seed), Allocator(**options)
    live: list[int] = []
    for number in range(phases * 60):
        if number % 60 == 0:
            kinds = [(chance.randrange(1, 40) * 100 * KIB, chance.randrange(1, 60) * MIB) for _ in range(5)]
            sizes = [chance.choice(kind) for kind in kinds]
            for _ in range(len(live) * 3 // 4):
                allocator.free(live.pop(chance.randrange(len(live))))
            if chance.random() < 0.6 and empties:
                allocator.empty_cache(EMPTIES)
        size, pick, stream = chance.choice(sizes), chance.random(), chance.choice((0, 0, 7))
        if pick < 0.55 or not live:
            try:
                live.append(allocator.malloc(size, [{"name": "f", "filename": "train.py", "line": 3}], stream))
            except OutOfMemoryError:
                return allocator, sum(event["action"] == "alloc" for event in allocator.events)
        else:
            allocator.free(live.pop(int(pick * 100) % len(live)))
    return allocator, None


def peak(allocator: Allocator) -> int:
    return max(state.reserved for state in allocator.truth)


def supposed(tmp_path: Path, seed: int, change: dict[str, Any], **options: Any) -> tuple[Device, Outcome]:
    device = device_of(read(dump(program(seed, **options)[0]), tmp_path))
    base = as_recorded(device)
    return device, replay(device, base._replace(**{"rules": base.rules._replace(**change.pop("rules", {})), **change}))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("expandable", [False, True])
def test_the_other_kind_of_segments(tmp_path: Path, seed: int, expandable: bool) -> None:
    change = {"rules": {"expandable": expandable}}
    _, found = supposed(tmp_path, seed, change, expandable=not expandable)
    assert found.peak == peak(program(seed, expandable=expandable)[0])


@pytest.mark.parametrize("seed", range(12))
def test_another_split_size(tmp_path: Path, seed: int) -> None:
    _, found = supposed(tmp_path, seed, {"rules": {"max_split": 25 * MIB}})
    assert found.peak == peak(program(seed, max_split=25 * MIB)[0])


@pytest.mark.parametrize("seed", range(12))
def test_without_empty_cache(tmp_path: Path, seed: int) -> None:
    _, found = supposed(tmp_path, seed, {"empties": False})
    assert found.peak == peak(program(seed, empties=False)[0])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("share", [0.98, 0.8, 0.6])
def test_a_smaller_device(tmp_path: Path, seed: int, expandable: bool, share: float) -> None:
    """The same request fails first, or none, and the peak before it is the same."""
    limit = int(peak(program(seed, expandable=expandable)[0]) * share)
    allocator, succeeded = program(seed, expandable=expandable, capacity=limit)
    device, found = supposed(tmp_path, seed, {"limit": limit}, expandable=expandable)
    if succeeded is None:
        assert (found.failed, found.peak) == (None, peak(allocator))
        return
    assert found.failed is not None
    assert found.missing > 0
    allocations = np.flatnonzero(device.history.action == 0)
    assert int(np.searchsorted(allocations, found.failed)) == succeeded


def test_a_failed_request_fits_where_segments_expand(tmp_path: Path) -> None:
    """9 + 2 MiB and 9 MiB side by side are free in two segments, so that 16 MiB fail; in one segment they join."""
    allocator = Allocator(capacity=64 * MIB)
    kept = [allocator.malloc(9 * MIB) for _ in range(6)]
    allocator.free(kept[1])
    allocator.free(kept[2])
    with suppress(OutOfMemoryError):
        allocator.malloc(16 * MIB)
    device = device_of(read(dump(allocator), tmp_path))
    base = as_recorded(device)
    assert (base.limit, replay(device, base).failed) == (64 * MIB, device.failures[0])
    assert replay(device, Supposed(base.rules._replace(expandable=True), base.limit)).failed is None


REAL = (
    *("cuda-2.10-training", "cuda-small", "cuda-forward-bf16", "cuda-forward-fp32", "cuda-transformer-128-training"),
    *("cuda-transformer-256-inference", "npu-expandable", "npu-empty-cache"),
)


@pytest.mark.parametrize("name", REAL)
def test_real_histories_give_their_reserve_after_every_event(shared_snapshots: Path, name: str) -> None:
    path = shared_snapshots / f"{name}.pickle"
    device = device_of(read_snapshot(Source(str(path), size=path.stat().st_size)))
    found = replay(device, as_recorded(device))
    assert found.reserved.tolist() == device.reserved.after[found.event].tolist()
    assert found.peak == device.reserved.peak[0]


def test_each_of_two_real_runs_predicts_the_other_one(shared_snapshots: Path) -> None:
    """One program on an NPU, with expandable segments and without."""
    peaks = {}
    for name in ("npu-expandable", "npu-empty-cache"):
        path = shared_snapshots / f"{name}.pickle"
        device = device_of(read_snapshot(Source(str(path), size=path.stat().st_size)))
        base = as_recorded(device)
        other = base._replace(rules=base.rules._replace(expandable=not base.rules.expandable))
        peaks[name] = device.reserved.peak[0], replay(device, other).peak
    (one, other_one), (two, other_two) = peaks.values()
    assert abs(other_one - two) <= 0.03 * two
    assert abs(other_two - one) <= 0.03 * one


@pytest.mark.parametrize("side_by_side", [True, False])
def test_expandable_segments_are_advised_where_the_request_then_succeeds(tmp_path: Path, side_by_side: bool) -> None:
    allocator = Allocator(capacity=64 * MIB)
    kept = [allocator.malloc(9 * MIB) for _ in range(6)]
    for address in (kept[1], kept[2] if side_by_side else kept[3]):
        allocator.free(address)
    with suppress(OutOfMemoryError):
        allocator.malloc(16 * MIB)
    (found,) = analyze_snapshot(read(dump(allocator), tmp_path))
    (oom,) = found.ooms
    assert (oom.kind, oom.expandable) == ("fragmentation", side_by_side)
    (worst, *_) = memory_findings(found)
    assert (worst.key, worst.advice.key) == (
        "oom_fragmentation",
        "advice_oom_fragmentation" if side_by_side else "advice_oom_pieces",
    )


def test_savings_of_real_files_are_what_the_replay_confirms(shared_snapshots: Path) -> None:
    """Every finding whose amount is a saving, and the levers that change the allocator alone."""
    confirmed = []
    for path in sorted(shared_snapshots.glob("*.pickle")):
        snapshot = read_snapshot(Source(str(path), size=path.stat().st_size))
        (found,), device = analyze_snapshot(snapshot), device_of(snapshot)
        most = device.reserved.peak[0] - device.blocks.peak[0]
        for one in memory_findings(found):
            if one.key == "fragmentation":
                assert one.amount == expandable_saving(device) <= most
                confirmed.append((path.stem, one.key, one.amount))
            elif one.key in {"empty_cache", "churn"}:
                now, then = (replay(device, as_recorded(device)._replace(empties=each)) for each in (True, False))
                avoided = {name: value for name, _, value in one.advice.values}["avoided"]
                assert 0 < avoided == now.growths - then.growths
                confirmed.append((path.stem, one.key, avoided))
            else:
                assert one.key not in {"growing_sizes", "oversized_blocks", "small_blocks"}
        for lever in found.levers.records():
            assert lever.saved_bytes <= device.blocks.peak[0]
            if lever.lever == "lever_expandable_segments":
                assert lever.saved_bytes == expandable_saving(device) <= most
    assert confirmed == [("npu-empty-cache", "empty_cache", 34), ("npu-empty-cache", "fragmentation", 18874368)]


def test_garbage_is_collected_where_a_fraction_is_set(tmp_path: Path) -> None:
    """Of 100 MiB 80 are the threshold: 30 MiB that are free go back before 20 more are taken, the older first."""
    allocator = Allocator()
    old, new = allocator.malloc(30 * MIB), allocator.malloc(30 * MIB, stream=7)
    allocator.malloc(22 * MIB)
    allocator.free(old)
    allocator.malloc(40 * MIB, stream=7)
    device = device_of(read(dump(allocator), tmp_path))
    base = as_recorded(device)
    assert replay(device, base._replace(limit=122 * MIB)).peak == 122 * MIB
    collects = Supposed(base.rules._replace(collect=0.6), 122 * MIB)
    assert replay(device, collects).reserved.tolist() == [30 * MIB, 60 * MIB, 82 * MIB, 82 * MIB, 92 * MIB]
    assert new in allocator.live


def test_rounding_to_parts_of_powers_of_two(tmp_path: Path) -> None:
    """Requests of 1100 MiB become 1280 of 1024 in four parts; unset sizes stay as they are."""
    allocator = Allocator()
    allocator.malloc(1100 * MIB)
    device = device_of(read(dump(allocator), tmp_path))
    base = as_recorded(device)
    divided = base._replace(rules=base.rules._replace(**alloc_conf("roundup_power2_divisions:[256:1,1024:4,>:8]")))
    assert replay(device, divided).peak == 1280 * MIB
    assert divided.rules.divisions == (1,) * 9 + (0, 4) + (8,) * 5


def test_what_rounding_takes_is_saved_without_it(tmp_path: Path) -> None:
    """Requests of 65 MiB have 96 by parts of 32; the table and what is saved agree."""
    allocator = Allocator()
    for _ in range(4):
        allocator.malloc(96 * MIB)
    content = dump(allocator, settings={"roundup_power2_divisions": dict.fromkeys(map(str, range(16)), 2)})
    for one in (*(one for one in content["device_traces"][0] if one["action"] == "alloc"), *content["segments"]):
        one["size" if "size" in one else "requested_size"] = 65 * MIB
        for block in one.get("blocks", ()):
            block["requested_size"] = 65 * MIB
    device = device_of(read(content, tmp_path))
    found = answers(device, Asked((("", alloc_conf("roundup_power2_divisions:0"), 1.0),)))
    assert not isinstance(found, NotMeasured)
    _, row = found.records()
    assert (row.then_reserved_bytes, row.reserved_change_bytes) == (4 * 66 * MIB, -4 * 30 * MIB)
