"""The product's replay agrees with the simulated allocator after every event, whatever the program did."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.histories import recorded
from tests.simulate.allocator.pool import DEFAULT, KIB, MIB, Allocator, Free, OutOfMemoryError
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.caching import Domain, rules
from traceanalyze.analyses.memory.composition import live_at
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.dump import self_check
from traceanalyze.analyses.memory.layout import follow
from traceanalyze.analyses.memory.lifetimes import lifetimes
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from tests.simulate.allocator.pool import Pool
    from traceanalyze.model.snapshot import Snapshot

SIZES = st.one_of(
    st.integers(1, 4 * KIB),
    st.integers(1, 2 * MIB),
    st.sampled_from([512, 513, MIB, MIB + 1, 10 * MIB, 20 * MIB, 21 * MIB + 5, 70 * MIB]),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["malloc", "malloc", "malloc", "free", "free", "empty"]), SIZES, st.integers(0, 50)),
    min_size=1,
    max_size=60,
)


def run(steps: list[tuple[str, int, int]], **options: Any) -> Allocator:
    """Do what the steps say on a device of 200 MB."""
    allocator = Allocator(capacity=200 * MIB, **options)
    for what, size, pick in steps:
        frames = [{"name": what, "filename": "train.py", "line": pick}]
        if what == "malloc":
            try:
                allocator.malloc(size, frames, stream=7 * (pick % 2))
            except OutOfMemoryError:
                continue
        elif what == "free" and allocator.live:
            allocator.free(list(allocator.live)[pick % len(allocator.live)], frames)
        elif what == "empty" and pick < 10:
            allocator.empty_cache(frames)
    return allocator


def read(content: dict[str, Any], folder: Path) -> Snapshot:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(content))
    return read_snapshot(Source(str(path), size=path.stat().st_size))


@given(STEPS, st.booleans(), st.sampled_from([0, 32]))
@examples(20)
def test_every_curve_is_the_truth(tmp_path_factory: Any, steps: Any, expandable: bool, pad: int) -> None:
    allocator = run(steps, expandable=expandable, pad=pad)
    if not allocator.events:
        return
    snapshot = read(dump(allocator, vendor="npu" if pad else "cuda"), tmp_path_factory.mktemp("one"))
    if len(snapshot.devices[0].blocks) == 0 and pad:
        return  # without a live block nothing tells the padding
    (found,) = analyze_snapshot(snapshot)
    if rules(snapshot).pad != pad:
        return  # no live block tells the paddings apart
    assert found.reconciled
    device = Device(snapshot, *snapshot.devices, sites(snapshot.stacks))
    assert (device.active.base, device.blocks.base, device.reserved.base) == (0, 0, 0)
    assert device.active.after.tolist() == [state.requested for state in allocator.truth]
    assert device.blocks.after.tolist() == [state.allocated for state in allocator.truth]
    assert device.reserved.after.tolist() == [state.reserved for state in allocator.truth]


def by_domain(free: Iterable[tuple[Pool, int, bool, Free]], *, pools: bool) -> dict[tuple[Any, ...], Free]:
    """What is free, by pool where events tell it: else memory given back may be of any."""
    found: dict[tuple[Any, ...], Free] = {}
    for pool, stream, large, one in free:
        key = (pool if pools else None, stream, large)
        so_far = found.get(key, Free(0, 0, 0))
        found[key] = Free(so_far.bytes + one.bytes, so_far.holes + one.holes, max(so_far.largest, one.largest))
    return {key: one for key, one in found.items() if one.bytes}


@pytest.mark.parametrize("seed", range(60))
def test_the_layout_is_the_truth_after_every_event(tmp_path: Path, seed: int) -> None:
    """Whatever the ring forgot: but for what blocks from before it may have owned, which then is an interval."""
    one = recorded(seed)
    allocator, first = one.allocator, len(one.allocator.events) - one.keep
    snapshot = read(dump(allocator, keep=one.keep, vendor=one.vendor, pool_ids=one.pool_ids), tmp_path)
    (device,) = snapshot.devices
    assert rules(snapshot).pad == allocator.pad
    found = Device(snapshot, device, sites(snapshot.stacks))
    assert self_check(found).column("reconciled")[0]
    lives, count = found.lives, len(device.history)
    layout = follow(device, lives, rules(snapshot), frozenset(range(count)))
    assert layout.lost is None
    truth = allocator.truth[first:]
    assert found.active.after.tolist() == [state.requested for state in truth]
    assert found.reserved.after.tolist() == [state.reserved for state in truth]
    slack = [int(layout.slack[live_at(lives, event)].sum()) for event in range(-1, count)]
    least = found.blocks.after.tolist()
    for event, (state, known) in enumerate(zip(truth, allocator.holes[first:], strict=True)):
        assert least[event] <= state.allocated <= least[event] + slack[event + 1], event
        if slack[event] == 0:
            seen = (
                (device.pools[each.domain.pool], *each.domain[1:], Free(*each[1:])) for each in layout.watched[event]
            )
            wanted = ((*key, each) for key, each in known.items())
            assert by_domain(seen, pools=one.pool_ids) == by_domain(wanted, pools=one.pool_ids), event


def test_random_programs_hold_all_that_makes_following_hard() -> None:
    """Segments re-taken by other sizes, holes within expandable segments, graphs, rings, requests that fail."""
    seen: Counter[str] = Counter()
    for one in map(recorded, range(80)):
        events = one.allocator.events[-one.keep :]
        seen.update({event["action"] for event in events})
        seen["ring"] += one.keep < len(one.allocator.events)
        seen["graph"] += any(event["pool_id"] != DEFAULT for event in events)
        seen["late free"] += bool(one.allocator.pending)
        seen["within"] += any([b.state for b in s.blocks].count("unmapped") > 1 for s in one.allocator.segments)
        gone: list[range] = []
        for event in events:
            if event["action"] == "segment_free":
                gone.append(range(event["addr"], event["addr"] + event["size"]))
            elif event["action"] == "segment_alloc":
                new = range(event["addr"], event["addr"] + event["size"])
                seen["other size"] += any(old != new and old[0] <= new[-1] and new[0] <= old[-1] for old in gone)
    kinds = ("segment_free", "segment_unmap", "oom", "ring", "graph", "late free", "within", "other size")
    assert min(seen[kind] for kind in kinds) >= 5


def test_domains_are_told_apart() -> None:
    assert Domain(0, 7, large=True) != Domain(0, 7, large=False)


def test_what_was_freed_beyond_all_segments_is_said_to_be_lost(tmp_path: Path) -> None:
    """Addresses from 2^63 on are kept as negative numbers."""
    freed = {"action": "free_completed", "addr": 2**64 - 4096, "size": 600, "stream": 0, "frames": []}
    for allocator in (Allocator(), run([("malloc", 3 * MIB, 0)])):
        content = dump(allocator)
        content["device_traces"] = [[*(content["device_traces"] or [[]])[0], freed]]
        snapshot = read(content, tmp_path)
        lost = Device(snapshot, *snapshot.devices, sites(snapshot.stacks)).layout.lost
        assert lost is not None
        assert (lost.key, lost.number) == ("before", 1)


@pytest.mark.parametrize("skipped", ["free_requested", "free_completed"])
@pytest.mark.parametrize("seed", range(3))
def test_a_history_without_one_kind_of_free_has_the_same_blocks(seed: int, skipped: str, tmp_path: Path) -> None:
    """`skip_actions` of torch: either of the two tells that a block is given back."""
    one = recorded(seed)
    whole = dump(one.allocator, keep=one.keep, vendor=one.vendor, pool_ids=one.pool_ids)
    thin = copy.deepcopy(whole)
    thin["device_traces"] = [[each for each in events if each["action"] != skipped] for events in thin["device_traces"]]
    assert len(thin["device_traces"][0]) < len(whole["device_traces"][0])
    found = []
    for content in (whole, thin):
        (device, *_) = read(content, tmp_path).devices
        lives = lifetimes(device)
        # Of those from before it one may have been asked for before the history, and given back inside.
        own, alive = lives.begin >= 0, lives.end == len(device.history)
        rows = zip(lives.address[own].tolist(), lives.requested[own].tolist(), alive[own].tolist(), strict=True)
        found.append(sorted(rows))
        assert lives.disorder == 0
    assert found[0] == found[1]
