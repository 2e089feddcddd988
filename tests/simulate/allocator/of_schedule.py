"""The allocator of a simulated rank as `_dump_snapshot` writes it, on the clock of the rank's trace.

The rank's blocks are freed in the reverse order of their allocation, so one expandable segment holds them without a
hole, and its end moves with every call of the device's allocator. Blocks must be larger than 1 MiB: smaller ones would
lie in segments of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.simulate.allocator.programs import engine, frame, user
from tests.simulate.schedule import AUTOGRAD, MAIN
from tests.simulate.writers.kineto import BASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.allocator.pool import Frames
    from tests.simulate.schedule import Call, Memory, Schedule

START = 1 << 40
_LIBRARY = "/usr/lib/python3.12/site-packages"
_NAME = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<name>.+)")
GRANULE = 20 * 2**20
"""What expandable segments of large blocks grow by: `Device.segment` of the schedule."""


def snapshot_of(schedule: Schedule, *, clock: int = BASE, marks: bool = True) -> dict[str, Any]:
    """A snapshot dumped when the recording ended.

    Args:
        schedule: What the rank did; times must be whole microseconds.
        clock: What the snapshot calls the time 0 of the schedule, in ns.
        marks: Write down when each step begins and ends.
    """
    assert schedule.workload.device.segment == GRANULE
    kept, reserved = _before(schedule)
    events, live, reserved = _events(schedule, kept, reserved, clock)
    blocks = [_block(START, kept, user(10)), *(_block(address, size, frames) for address, size, frames in live)]
    used = sum(block["size"] for block in blocks)
    if reserved > used:
        blocks.append({**_block(START + used, reserved - used, []), "state": "inactive"})
    segment = {
        "device": 0,
        "address": START,
        "total_size": reserved,
        "allocated_size": used,
        "active_size": used,
        "requested_size": used,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": True,
        "frames": [],
        "blocks": blocks,
    }
    notes = [
        {"stage": stage, "name": f"ProfilerStep#{step.number}", "device": 0, "time_us": (clock + time) // 1000}
        for step in schedule.steps
        for stage, time in (("START", step.start), ("END", step.end))
    ]
    return {
        "segments": [segment],
        "device_traces": [events],
        "allocator_settings": {"expandable_segments": True},
        "external_annotations": notes if marks else [],
    }


def _before(schedule: Schedule) -> tuple[int, int]:
    """Allocated and reserved bytes when recording began."""
    first = schedule.memory[0]
    kept = first.allocated - first.bytes
    grew = any(call.klass == "alloc" and call.end <= first.time for call in schedule.calls)
    return kept, -(-kept // GRANULE) * GRANULE if grew else first.reserved


def _events(
    schedule: Schedule, kept: int, reserved: int, clock: int
) -> tuple[list[dict[str, Any]], list[tuple[int, int, Frames]], int]:
    """Events, the blocks alive at the end, and what is reserved then."""
    events: list[dict[str, Any]] = []
    live: list[tuple[int, int, Frames]] = []
    allocated, frames = kept, user(10)

    def record(action: str, address: int, size: int, time: int) -> None:
        event = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": (clock + time) // 1000}
        events.append({**event, "frames": frames})

    for time, one in _in_order(schedule):
        if one is None:  # the cache is emptied
            left = -(-allocated // GRANULE) * GRANULE
            frames = _stack(schedule, time - 1)
            if left < reserved:
                record("segment_unmap", START + left, reserved - left, time)
                reserved = left
        elif one.bytes > 0:
            frames = engine("empty_strided") if one.thread == AUTOGRAD else _stack(schedule, time)
            if one.reserved > reserved:
                record("segment_map", START + reserved, one.reserved - reserved, time)
                reserved = one.reserved
            live.append((START + allocated, one.bytes, frames))
            record("alloc", START + allocated, one.bytes, time)
            allocated += one.bytes
        elif one.bytes < 0:
            address, size, _ = live.pop()
            assert size == -one.bytes, "blocks are freed in the reverse order"
            frames = engine("free")
            record("free_requested", address, size, time)
            record("free_completed", address, size, time)
            allocated -= size
    return events, live, reserved


def _stack(schedule: Schedule, time: int) -> Frames:
    """The Python frames of the main thread, as the snapshot writes them."""
    opened = [one for one in schedule.frames if one.thread == MAIN and one.start <= time < one.end]
    return [_frame(one.name) for one in sorted(opened, key=lambda one: one.start, reverse=True)]


def _frame(name: str) -> dict[str, Any]:
    """`model.py(52): forward`, or the call of a module."""
    found = _NAME.fullmatch(name)
    if found is None:
        return frame("_call_impl", f"{_LIBRARY}/torch/nn/modules/module.py", 1750)
    file = found["file"]
    place = _LIBRARY if file.startswith("torch/") else "/home/me"
    return frame(found["name"], f"{place}/{file}", int(found["line"]))


def _in_order(schedule: Schedule) -> Iterator[tuple[int, Memory | None]]:
    """Records of the allocator, and None where the cache is emptied."""

    def frees(call: Call) -> bool:
        return call.klass == "alloc" and call.name == "cudaFree"

    emptied: list[tuple[int, Memory | None]] = [(call.end, None) for call in schedule.calls if frees(call)]
    told: list[tuple[int, Memory | None]] = [(one.time, one) for one in schedule.memory]
    yield from sorted([*told, *emptied], key=lambda item: item[0])


def _block(address: int, size: int, frames: Frames) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames}
