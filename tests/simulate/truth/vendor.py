"""The step windows of the vendor of NPUs, by which the kernel table says what step a kernel belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.simulate.schedule import Schedule


class VendorStep(NamedTuple):
    """One step, `[start, end)` on the device."""

    number: int
    host_start: int
    start: int
    end: int


def vendor_steps(schedule: Schedule, *, copies: bool = False) -> list[VendorStep]:
    """From the first kernel of a step (or copy, if these count), to the last or the end of the marker."""
    found = []
    for step in schedule.steps:
        mine = [
            work
            for work in schedule.recorded
            if (copies or work.kind != "memcpy") and work.op is not None and step.start <= work.op.start < step.end
        ]
        start = min((work.start for work in mine), default=step.start)
        end = max([step.end, *(work.end for work in mine)])
        found.append(VendorStep(step.number, step.start, start, end))
    return found


def step_of(steps: list[VendorStep], time: int) -> VendorStep | None:
    """The first step whose window has an instant."""
    return next((step for step in steps if step.start <= time < step.end), None)
