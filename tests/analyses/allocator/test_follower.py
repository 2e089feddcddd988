"""The product's replay agrees with the simulated allocator after every event, whatever the program did."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import KIB, MIB, Allocator, OutOfMemoryError
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.holes import Domain
from traceanalyze.analyses.memory.layout import follow
from traceanalyze.analyses.memory.lifetimes import lifetimes
from traceanalyze.analyses.memory.rounding import rules
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

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


@given(STEPS, st.booleans())
@examples(20)
def test_free_memory_by_domain_is_the_truth(tmp_path_factory: Any, steps: Any, expandable: bool) -> None:
    allocator = run(steps, expandable=expandable)
    if not allocator.events:
        return
    snapshot = read(dump(allocator), tmp_path_factory.mktemp("one"))
    (device,) = snapshot.devices
    count = len(device.history)
    layout = follow(device, lifetimes(device), rules(snapshot), frozenset(range(count)))
    for event, known in enumerate(allocator.holes):
        seen = {(one.domain.stream, one.domain.large): (one.bytes, one.largest) for one in layout.watched[event]}
        assert seen == {key: value for key, value in known.items() if value[0]}, event


@given(STEPS, st.booleans(), st.floats(0, 1))
@examples(20)
def test_a_ring_that_forgot_the_beginning_leaves_an_interval_around_the_truth(
    tmp_path_factory: Any, steps: Any, expandable: bool, share: float
) -> None:
    allocator = run(steps, expandable=expandable)
    keep = int(share * len(allocator.events))
    # A call is recorded whole or not at all: cut before an event that begins one.
    while 0 < keep < len(allocator.events) and allocator.events[-keep]["action"] in {"free_completed", "alloc"}:
        keep -= 1
    if keep == 0:
        return
    snapshot = read(dump(allocator, keep=keep), tmp_path_factory.mktemp("one"))
    device = Device(snapshot, *snapshot.devices, sites(snapshot.stacks))
    truth = allocator.truth[len(allocator.truth) - keep :]
    lives, allocated = device.lives, device.blocks.after
    most = allocated + np.array(
        [int(device.layout.slack[(lives.begin <= event) & (lives.end > event)].sum()) for event in range(keep)]
    )
    assert device.active.after.tolist() == [state.requested for state in truth]
    assert device.reserved.after.tolist() == [state.reserved for state in truth]
    exact = np.array([state.allocated for state in truth])
    assert (allocated <= exact).all()
    assert (exact <= most).all()


def test_domains_are_told_apart() -> None:
    assert Domain(0, 7, large=True) != Domain(0, 7, large=False)
