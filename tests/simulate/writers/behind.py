"""A schedule as a profiler tells it whose device has a clock of its own."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule


def on_own_clock(schedule: Schedule) -> Schedule:
    """The schedule with everything that the device did so much earlier as its clock is behind."""
    behind = schedule.workload.recording.behind
    if not behind:
        return schedule
    told = deepcopy(schedule)
    for work in told.works:
        work.start, work.end = work.start - behind, work.end - behind
        work.tasks = tuple(replace(task, start=task.start - behind, end=task.end - behind) for task in work.tasks)
    told.controls = [replace(one, start=one.start - behind, end=one.end - behind) for one in told.controls]
    return told
