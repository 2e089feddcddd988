"""What each place where the host waits for the device costs (definitions §7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulate.schedule import Call, Schedule
    from tests.simulate.truth.causes import Gap, Piece
    from tests.simulate.truth.windows import Window

Place = tuple[str | None, str | None, str, bool]
"""Operator, line of the user's code, calls, and whether nothing is launched after it (then it costs nothing)."""


@dataclass(slots=True)
class Cost:
    """Sync points of one place."""

    count: int = 0
    blocked: int = 0
    idle_caused: int = 0


def sync_places(
    schedule: Schedule, steps: Sequence[Window], explained: Sequence[tuple[Gap, list[Piece]]]
) -> dict[Place, Cost]:
    """Cost of every place with a sync call that touches the steps; calls of one operator run are one point.

    Calls and what they cost count with their part inside the steps (definitions §18).
    """
    calls = [call for call in schedule.calls if call.klass == "sync" and _inside(call, steps)]
    idle = _idle_caused(calls, explained, steps)
    last = max(work.call.start for work in schedule.recorded if work.call)
    points: dict[int, list[Call]] = {}
    for call in calls:
        points.setdefault(id(call.op or call), []).append(call)
    found: dict[Place, Cost] = {}
    for point in points.values():
        names = " + ".join(dict.fromkeys(call.name for call in point))
        frame = point[0].frame if schedule.workload.recording.stacks else None
        terminal = all(call.start >= last for call in point)
        cost = found.setdefault((point[0].op.name if point[0].op else None, frame, names, terminal), Cost())
        cost.count += 1
        cost.blocked += sum(_inside(call, steps) for call in point)
        cost.idle_caused += sum(idle[id(call)] for call in point)
    return found


def _inside(one: Call | Piece, steps: Sequence[Window]) -> int:
    """How much of it is in the steps."""
    return sum(max(0, min(one.end, step.end) - max(one.start, step.start)) for step in steps)


def _idle_caused(
    calls: Sequence[Call], explained: Sequence[tuple[Gap, list[Piece]]], steps: Sequence[Window]
) -> dict[int, int]:
    found = {id(call): 0 for call in calls}
    for gap, parts in explained:
        drained = [call for call in calls if _drains(call, gap)]
        if drained:
            launcher = gap.call.thread if gap.call else None
            chosen = max(drained, key=lambda call: (call.thread == launcher, call.start))
            counted = (part for part in parts if part.cause not in {"data_loading", "peer_wait"})
            found[id(chosen)] += sum(_inside(part, steps) for part in counted)
            continue
        for part in parts:
            if part.cause == "sync" and id(part.call) in found:
                found[id(part.call)] += _inside(part, steps)
    return found


def _drains(call: Call, gap: Gap) -> bool:
    """The device ran dry while the call waited, and what came next was not on its way yet."""
    if gap.next is None or not call.start <= gap.start <= call.end:
        return False
    return gap.call is None or gap.call is call or gap.call.start >= call.end
