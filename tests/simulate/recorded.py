"""What a recording keeps of a schedule: device times on the device's own clock, and nothing of before it began."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulate.schedule import Call, Control, Schedule, Work


def as_recorded(schedule: Schedule) -> Schedule:
    """The schedule as its files tell it; the one that is given stays as it is."""
    recording = schedule.workload.recording
    found = schedule
    if recording.cut:
        found = _excerpt(found, found.begin + recording.cut)
    if recording.unmarked:
        found = _unmarked(found, recording.unmarked)
    if recording.behind or recording.drift:
        found = _on_device_clock(found)
    return found


def _on_device_clock(schedule: Schedule) -> Schedule:
    recording, begin = schedule.workload.recording, schedule.begin

    def at(time: int) -> int:
        moved = recording.behind + recording.drift * (time - begin)
        tick = schedule.workload.tick
        return time - round(moved / tick) * tick

    def work(each: Work) -> Work:
        tasks = tuple(replace(task, start=at(task.start), end=at(task.end)) for task in each.tasks)
        return replace(each, start=at(each.start), end=at(each.end), tasks=tasks)

    controls = [replace(each, start=at(each.start), end=at(each.end)) for each in schedule.controls]
    return replace(schedule, works=[work(each) for each in schedule.works], controls=controls)


def _unmarked(schedule: Schedule, count: int) -> Schedule:
    """The first steps without their markers."""
    names = {f"ProfilerStep#{step.number}" for step in schedule.steps[:count]}
    return replace(
        schedule,
        annotations=[each for each in schedule.annotations if each.name not in names],
        steps=schedule.steps[count:],
    )


def _excerpt(schedule: Schedule, begin: int) -> Schedule:
    """Host events that begin at `begin` or later, and the device's work from then on, launched by them or not."""
    ops = {id(op): copy.copy(op) for op in schedule.ops if op.start >= begin}
    for op in ops.values():
        op.parent = ops.get(id(op.parent))
        op.forward_of = ops.get(id(op.forward_of))
    calls: dict[int, Call] = {}
    for call in schedule.calls:
        queued = call.outermost.queued
        around = call.parent is None or id(call.parent) in calls
        if call.start >= begin and around and (queued is None or id(queued) in calls):
            calls[id(call)] = kept = copy.copy(call)
            kept.op, kept.parent = ops.get(id(call.op)), calls.get(id(call.parent))
            kept.queued = calls.get(id(call.queued))
    works = []
    for work in schedule.works:
        if work.start >= begin:
            call, op = calls.get(id(work.call)), ops.get(id(work.op))
            works.append(replace(work, call=call, op=op, linked=work.linked and call is not None))
    controls: list[Control] = [
        replace(each, call=calls[id(each.call)]) for each in schedule.controls if id(each.call) in calls
    ]
    return replace(
        schedule,
        begin=begin,
        ops=list(ops.values()),
        calls=list(calls.values()),
        works=works,
        controls=controls,
        annotations=[each for each in schedule.annotations if each.start >= begin],
        frames=[each for each in schedule.frames if each.start >= begin],
        memory=[each for each in schedule.memory if each.time >= begin],
        steps=[each for each in schedule.steps if each.start >= begin],
    )
