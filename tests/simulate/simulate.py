"""Run all ranks of a workload: they go on side by side and meet in their collectives."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tests.simulate.faults import with_faults
from tests.simulate.meeting import Met
from tests.simulate.training import Training

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.simulate.meeting import Meeting
    from tests.simulate.schedule import Schedule
    from tests.simulate.workload import Workload


@lru_cache(maxsize=64)
def simulate(workload: Workload) -> tuple[Schedule, ...]:
    """The schedule of every rank, to be read only: what is asked again soon is kept.

    Time is the same for all ranks; what they meet for ends at one time for all of them.
    """
    faulty = with_faults(workload)
    ranks = [Training(faulty, rank) for rank in range(faulty.ranks.count)]
    programs = [rank.run() for rank in ranks]
    meetings = [_next(program, None) for program in programs]
    while any(meetings):
        here = [meeting for meeting in meetings if meeting is not None]
        if len(here) != len(programs):
            raise AssertionError("the ranks do not ask for the same collectives")
        arrived = [each.arrived for each in here]
        met = Met(max(arrived) + here[0].transfer, max(arrived), arrived.index(max(arrived)))
        meetings = [_next(program, met) for program in programs]
    return tuple(rank.host.schedule for rank in ranks)


def _next(program: Generator[Meeting, Met, None], met: Met | None) -> Meeting | None:
    try:
        return next(program) if met is None else program.send(met)
    except StopIteration:
        return None
