"""What faults cost: the simulation with them against the simulation without. All times in ns a step."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tests.simulate.faults import with_faults, without
from tests.simulate.recorded import as_recorded
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time
from tests.simulate.truth.windows import windows
from tests.simulate.workload import Fault

if TYPE_CHECKING:
    from tests.simulate.workload import Workload


@cache
def step_of(workload: Workload, rank: int = 0) -> int:
    """The mean step of one rank."""
    return step_time(workload, rank) // with_faults(workload).steps


@cache
def times_of(workload: Workload) -> dict[int, int]:
    """Times of the first rank's steps by number."""
    return {step.number: step.time for step in windows(simulate(workload)[0])}


@cache
def marked_steps(workload: Workload) -> tuple[int, ...]:
    """Numbers of the first rank's steps that have a marker in the recording."""
    return tuple(step.number for step in as_recorded(simulate(workload)[0]).steps)


def lost(workload: Workload, name: str = "", rank: int = 0) -> int:
    """By how much the steps would be shorter without one of the faults, all else equal; by default without any."""
    plain = without(workload, name) if name else replace(workload, faults=())
    return step_of(workload, rank) - step_of(plain, rank)


def share(workload: Workload, name: str = "", rank: int = 0) -> float:
    """The same as a part of the step."""
    return lost(workload, name, rank) / step_of(workload, rank)


def faulty(workload: Workload, *faults: tuple[str, float]) -> Workload:
    """The workload with these faults and their sizes."""
    return replace(workload, faults=tuple(Fault(name, size) for name, size in faults))


def with_free_host(workload: Workload) -> Workload:
    """The same work for the device (faults and all), from a host that needs next to no time to launch it."""
    plain = replace(with_faults(workload), faults=())
    host = replace(plain.host, op=1, python=1, launch=1, copy=1, other=1)
    return replace(plain, host=host, queue=replace(plain.queue, on=False, call=1))


def with_slower_link(workload: Workload, size: float) -> Workload:
    """Collectives over a link `size` times as slow: what stays of `exposed_comm` when gradients are reduced in time."""
    return replace(workload, ranks=replace(workload.ranks, bandwidth=workload.ranks.bandwidth / size))
