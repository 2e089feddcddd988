"""Several faults at once: each is told at what the simulation without it alone gains.

Faults hide each other: a slow loader costs nothing while a slow host needs longer than it. So what is gained without
each of them need not add up to what is gained without all of them. That a loader is slow does not show where its
batches are there in time, and nothing tells then how much sooner they could be.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.simulate.cost import faulty, lost, step_of, with_slower_link
from tests.simulate.healthy import A100, TWO, on_npu
from tests.simulate.judge import judge

if TYPE_CHECKING:
    from tests.simulate.workload import Workload

    Faults = tuple[tuple[str, float], ...]

RULES = {
    "slow_loader": ("DAT101",),
    "item_sync": ("SYN101",),
    "pageable_copy": ("SYN105",),
    "gc_pause": ("HST113", "HST107"),
    "empty_cache": ("MEM102",),
    "host_slow": ("HST101",),
    "fp32": ("KRN101",),
    "straggler": ("RNK101",),
    "exposed_comm": ("COM101",),
}
SIZES: dict[str, tuple[float, ...]] = {
    "slow_loader": (15, 20, 30, 60),
    "item_sync": (6, 20),
    "pageable_copy": (2, 1, 0.5, 0.2),
    "gc_pause": (20, 30, 60),
    "empty_cache": (0.1, 0.3, 1),
    "host_slow": (6, 12),
    "fp32": (2, 3),
}
LIMIT = {"slow_loader": 0.05, "gc_pause": 0.10, "host_slow": 0.10, "fp32": 0.10}
"""Share of the step below which the sources of the rules do not speak of a fault; 2 % where they say nothing."""


def drawn(seed: int) -> Faults:
    """Two or three faults with their sizes."""
    choice = Random(seed)
    names = choice.sample(sorted(SIZES), choice.choice((2, 2, 3)))
    return tuple((name, choice.choice(SIZES[name])) for name in names)


def hides_a_loader(workload: Workload, faults: Faults) -> bool:
    """Whether batches come late only where another fault is mended."""
    return any(name == "slow_loader" for name, _ in faults) and lost(workload, "slow_loader") < 0.01 * step_of(workload)


MIXES = [drawn(seed) for seed in (*range(8), 11, 14, 15, 18, 21, 28, 34, 42, 44, 54, 56)]

OF_TWO_RANKS: list[tuple[Faults, str]] = [
    ((("straggler", 1.5), ("item_sync", 20)), "nvidia"),
    ((("exposed_comm", 1), ("empty_cache", 0.3)), "nvidia"),
    ((("straggler", 1.5), ("exposed_comm", 1), ("item_sync", 20)), "nvidia"),
    ((("straggler", 1.5), ("exposed_comm", 1), ("item_sync", 20)), "ascend"),
]


@pytest.mark.parametrize("faults", MIXES, ids=lambda faults: "+".join(f"{name}-{size}" for name, size in faults))
def test_faults_that_are_mixed_are_told_apart(faults: Faults) -> None:
    workload = faulty(A100, *faults)
    found = judge(workload).ranks[0]
    # Nothing is named but what was put in.
    expected = {rule for name, _ in faults for rule in RULES[name]}
    assert {one.rule for one in found if (one.saving or 0) > 0.02 * step_of(workload)} <= expected
    if hides_a_loader(workload, faults):
        return
    assert all((one.saving or 0) <= 1.1 * lost(workload) for one in found)
    for name, _ in faults:
        mine, cost = [one for one in found if one.rule in RULES[name]], lost(workload, name)
        saving = sum(one.saving or 0 for one in mine)
        if cost >= LIMIT.get(name, 0.02) * step_of(workload):
            # Of products only what all of them gain is promised.
            most = sum(one.bound or 0 for one in mine) if name == "fp32" else saving / 0.8
            assert saving / 1.2 <= cost <= most


def test_every_fault_is_judged_in_several_mixes() -> None:
    """The test above would pass on mixes in which everything hides everything."""
    clear = [faults for faults in MIXES if not hides_a_loader(faulty(A100, *faults), faults)]
    told = [
        name
        for faults in clear
        for name, _ in faults
        if lost(faulty(A100, *faults), name) >= LIMIT.get(name, 0.02) * step_of(faulty(A100, *faults))
    ]
    assert min(told.count(name) for name in set(SIZES)) >= 1
    assert len(told) >= len(MIXES)


@pytest.mark.parametrize(("faults", "vendor"), OF_TWO_RANKS)
def test_faults_of_ranks_and_of_programs_are_told_apart(faults: Faults, vendor: str) -> None:
    """On the rank that is not late: what it waits for is the run's finding, all else its own."""
    slow = with_slower_link(TWO, 4)
    workload = faulty(on_npu(slow) if vendor == "ascend" else slow, *faults)
    verdict = judge(workload)
    found = [*verdict.run, *verdict.ranks[0]]
    assert sum(one.saving or 0 for one in found) <= 1.15 * lost(workload)
    for name, _ in faults:
        saving = sum(one.saving or 0 for one in found if one.rule in RULES[name])
        assert saving == pytest.approx(lost(workload, name), rel=0.2)
    # The link is slow in any case, and leaves some communication exposed.
    expected = {"COM101", *(rule for name, _ in faults for rule in RULES[name])}
    assert {one.rule for one in found if (one.saving or 0) > 0.02 * step_of(workload)} <= expected


@pytest.mark.parametrize("pauses", [20, 60])
def test_a_pause_after_a_read_is_the_pause(pauses: float) -> None:
    """The read drained the device, but what it waits for then is something else."""
    workload = faulty(A100, ("item_sync", 20), ("gc_pause", pauses))
    found = {one.rule: one.saving for one in judge(workload).ranks[0] if one.saving}
    # Whether the pause would come sooner without the read, no recording tells.
    assert sum(found.values()) - found["HST113"] <= 1.2 * lost(workload, "item_sync")
    assert found["HST113"] == pytest.approx(lost(workload, "gc_pause"), rel=0.1)


def test_a_fault_that_another_one_hides_is_not_told() -> None:
    """Batches of 15 ms cost nothing while the host needs 30 ms a step."""
    workload = faulty(A100, ("slow_loader", 15), ("host_slow", 12))
    assert abs(lost(workload, "slow_loader")) < 0.001 * step_of(workload)
    assert "DAT101" not in {one.rule for one in judge(workload).ranks[0]}


def test_a_batch_does_not_come_earlier_because_a_read_is_left_out() -> None:
    """The workers need as long as they do: without the reads the loop would wait for them instead."""
    workload = faulty(A100, ("item_sync", 20), ("slow_loader", 15))
    assert lost(workload, "item_sync") < 0.001 * step_of(workload)
    found = {one.rule: one.saving for one in judge(workload).ranks[0] if one.saving}
    assert found["DAT101"] == pytest.approx(lost(workload, "slow_loader"), rel=0.2)
    assert sum(found.values()) <= 1.1 * lost(workload)
