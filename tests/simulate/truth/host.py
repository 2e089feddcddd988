"""Operators, phases and modules of a schedule (definitions §§9, 10, 11)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulate.truth.tables import inside
from tests.simulate.truth.windows import parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulate.schedule import OpCall, Range, Schedule, Work
    from tests.simulate.truth.windows import Window


@dataclass(slots=True)
class OpRow:
    """All runs of one operator that begin in the steps."""

    calls: int = 0
    host_total: int = 0
    """Of runs that are not inside another run of the same name; so is `device_total`."""
    host_self: int = 0
    api_time: int = 0
    device_self: int = 0
    device_total: int = 0
    launched: int = 0


def operators(schedule: Schedule, steps: Sequence[Window]) -> dict[str, OpRow]:
    """Operators by name. Device time counts inside the steps; without launch record it belongs to no operator."""
    rows: dict[str, OpRow] = defaultdict(OpRow)
    children: dict[int, int] = defaultdict(int)
    for op in schedule.ops:
        if op.parent is not None:
            children[id(op.parent)] += op.end - op.start
    for op in schedule.ops:
        row = rows[op.name]
        if _begins_inside(op.start, steps):
            row.calls += 1
            row.host_self += op.end - op.start - children[id(op)]
            row.host_total += 0 if op.name in names_around(op) else op.end - op.start
    for call in schedule.calls:
        if call.op is not None and call.parent is None and _begins_inside(call.start, steps):
            rows[call.op.name].api_time += call.end - call.start
    for work, time in inside(schedule.recorded, steps):
        if work.op is not None:
            rows[work.op.name].device_self += time
            rows[work.op.name].launched += 1
            # Each name around the launch once, however often it is nested.
            for name in {work.op.name, *names_around(work.op)}:
                rows[name].device_total += time
    return {name: row for name, row in rows.items() if row.calls or row.device_total}


def _begins_inside(time: int, steps: Sequence[Window]) -> bool:
    return any(step.start <= time < step.end for step in steps)


def names_around(op: OpCall) -> list[str]:
    """Names of the operators that an operator runs in."""
    found = []
    while op.parent is not None:
        op = op.parent
        found.append(op.name)
    return found


def phases(schedule: Schedule, steps: Sequence[Window]) -> tuple[dict[str, int], ...]:
    """Device time of each step by phase: as long as any work of the phase ran."""
    by_phase: dict[str, list[Work]] = defaultdict(list)
    for work in schedule.works:
        by_phase[work.phase if work.linked else "unknown"].append(work)
    rows = []
    for step in steps:
        times = {phase: step.time - parts(works, step.start, step.end)["idle"] for phase, works in by_phase.items()}
        rows.append({phase: time for phase, time in times.items() if time})
    return tuple(rows)


@dataclass(slots=True)
class ModuleRow:
    """One module, modules inside included except in `host_self`."""

    calls: int = 0
    host_total: int = 0
    host_self: int = 0
    forward: int = 0
    backward: int = 0


def modules(schedule: Schedule, steps: Sequence[Window]) -> tuple[dict[tuple[str, ...], ModuleRow], int]:
    """Modules by path, and backward device time without a forward operator (reducing gradients)."""
    found: dict[tuple[str, ...], ModuleRow] = defaultdict(ModuleRow)
    unknown = 0
    for work, time in inside(schedule.recorded, steps):
        op = work.op
        if work.phase == "backward" and (op is None or op.sequence is None):
            unknown += time
        elif op is not None and work.phase in {"forward", "backward"}:
            for depth in range(len(op.module)):
                row = found[op.module[: depth + 1]]
                row.forward += time if work.phase == "forward" else 0
                row.backward += time if work.phase == "backward" else 0
    for path, call, outer in _module_calls(schedule):
        length = call.end - call.start
        if _begins_inside(call.start, steps):
            found[path].calls += 1
            found[path].host_total += length
            found[path].host_self += length
        if outer is not None and _begins_inside(outer.start, steps):
            found[path[:-1]].host_self -= length
    return dict(found), unknown


def _module_calls(schedule: Schedule) -> Iterator[tuple[tuple[str, ...], Range, Range | None]]:
    """Calls of modules with their paths and the calls around them; frames are listed in the order they began."""
    around: list[Range] = []
    for frame in schedule.frames:
        if frame.name.startswith("nn.Module: "):
            around = [each for each in around if each.end > frame.start]
            yield (*(each.name for each in around), frame.name), frame, around[-1] if around else None
            around.append(frame)


def host_split(schedule: Schedule) -> tuple[dict[str, int], ...]:
    """What the main thread did in each step, for a recording without the device: operators and annotations only."""
    found = []
    for step in schedule.steps:
        sums: dict[str, int] = defaultdict(int)
        for state in schedule.states["main"]:
            length = min(state.end, step.end) - max(state.start, step.start)
            if length > 0:
                word = "data_loading" if state.loading else "peer_wait" if state.peer else "host_op"
                sums[word if state.loading or state.peer or state.op else "untraced"] += length
        sums["untraced"] += step.end - step.start - sum(sums.values())
        found.append({word: length for word, length in sums.items() if length})
    return tuple(found)
