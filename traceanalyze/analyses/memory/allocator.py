"""All analyses of an allocator snapshot, one device after another: their curves must never be summed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.memory.composition import Curve, active_curve, categories, holders, reserved_curve
from traceanalyze.analyses.memory.device_calls import device_calls
from traceanalyze.analyses.memory.fragmentation import fragmentation
from traceanalyze.analyses.memory.holes import past_segments
from traceanalyze.analyses.memory.layout import follow
from traceanalyze.analyses.memory.lifetimes import BEFORE, lifetimes
from traceanalyze.analyses.memory.out_of_memory import churn, oom_events, out_of_memory, release_runs
from traceanalyze.analyses.memory.patterns import (
    groups,
    growing_sizes,
    held_gradients,
    leaks,
    settings_remarks,
    spike,
    step_floors,
)
from traceanalyze.analyses.memory.results import AllocatorAnalysis, Moment, SelfCheck, StepMemory
from traceanalyze.analyses.memory.results_patterns import Truncation
from traceanalyze.analyses.memory.rounding import rules
from traceanalyze.analyses.memory.sites import Site, sites
from traceanalyze.analyses.memory.steps import step_marks, step_starts
from traceanalyze.analyses.memory.waste import oversized_blocks, small_blocks
from traceanalyze.model.snapshot import Action, State
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.layout import Layout
    from traceanalyze.analyses.memory.lifetimes import Lifetimes
    from traceanalyze.analyses.memory.steps import StepStarts
    from traceanalyze.model.snapshot import Snapshot, SnapshotDevice

ROUND = 10_000
"""Rings are asked for in such numbers; a history of just so many events has most likely forgotten older ones (own)."""


def truncation(overflowed: bool | None, events: int, active: Curve) -> Truncation:
    """What the file says, else what its number of events and its peak suggest.

    Args:
        overflowed: The flag of torch ≥ 2.12; None where there is none.
        events: Of the history.
        active: Requested bytes.
    """
    kind = ""
    if overflowed:
        kind = "full"
    elif overflowed is None and active.base > 0 and events >= ROUND and events % ROUND == 0:
        kind = "round"
    elif events > 1 and active.peak[1] < 0:
        kind = "late"
    return Truncation(kind, active.base)


NEAR_LIMIT = 0.95
"""Of the capacity (memory-snapshot specification, D8)."""


def analyze_snapshot(snapshot: Snapshot, capacity: int | None = None) -> tuple[AllocatorAnalysis, ...]:
    """What every device's allocator did.

    Args:
        snapshot: As a reader returns it.
        capacity: Bytes of device memory, if the user or a profile tells.
    """
    known = sites(snapshot.stacks)
    return tuple(_device(snapshot, device, known, capacity) for device in snapshot.devices)


def _device(
    snapshot: Snapshot, device: SnapshotDevice, known: Sequence[Site], capacity: int | None
) -> AllocatorAnalysis:
    history, count = device.history, len(device.history)
    how = rules(snapshot)
    lives = lifetimes(device)
    active, reserved = active_curve(device), reserved_curve(device)
    failed = oom_events(history)
    peaks = {active.peak[1], reserved.peak[1]}
    layout = follow(device, lives, how, frozenset({*failed, *(event + 1 for event in peaks)}))
    starts = step_starts(snapshot, history, known)
    runs = release_runs(snapshot, history, known)
    calls = device_calls(history, runs)
    ooms = out_of_memory(history, layout, reserved, known, capacity)
    blocks = _block_curve(lives, layout, count)
    category = categories(lives, history, known)
    moments = _moments(snapshot, device, lives, layout, (active, blocks, reserved), starts, known, failed, category)
    check = _self_check(device, lives, layout, active)
    usable = check.reconciled
    return AllocatorAnalysis(
        device=device.id,
        events=count,
        live_blocks=int((device.blocks.state != State.INACTIVE).sum()),
        segments=len(device.segments),
        requested=active.after,
        allocated=blocks.after,
        reserved=reserved.after,
        time=history.time,
        base=(active.base, blocks.base, reserved.base),
        check=check,
        moments=moments,
        steps=_steps(starts, active, reserved, history.action, count),
        step_source=starts.source,
        runs=runs,
        calls=calls,
        marks=step_marks(snapshot),
        churn=churn(runs, history, reserved.peak[0]),
        fragmentation=fragmentation(
            device,
            lives,
            layout,
            how,
            reserved,
            known,
            capacity=capacity,
            pressed=bool(failed) or any(run.kind in {"retry", "failed_retry"} for run in runs),
        )
        if usable
        else NotMeasured("snapshot_contradicts_itself"),
        ooms=ooms,
        leaks=leaks(lives, starts, known, active, count) if usable else NotMeasured("snapshot_contradicts_itself"),
        spike=spike(lives, history, active, known),
        gradients=held_gradients(lives, starts, active, known, count),
        rounding_waste=_waste(device),
        capacity=capacity,
        near_limit=None if capacity is None else reserved.peak[0] >= NEAR_LIMIT * capacity,
        settings=settings_remarks(snapshot, events=count, stacks=len(snapshot.stacks.stacks) > 0),
        growing=growing_sizes(history, calls, starts, known),
        oversized=oversized_blocks(snapshot, history, calls, layout, known),
        small=small_blocks(device, lives, layout, (active, reserved), known),
        truncation=truncation(snapshot.overflowed, count, active),
        groups=groups(lives, layout, category, known, snapshot.stacks, (active, blocks, reserved)),
    )


def _block_curve(lives: Lifetimes, layout: Layout, count: int) -> Curve:
    """Block bytes after each event."""
    change = np.zeros(count + 1, np.int64)
    begun, ended = lives.begin != BEFORE, lives.end < count
    change[lives.begin[begun]] = layout.size[begun]
    change[lives.end[ended]] -= layout.size[ended]
    base = int(layout.size[~begun].sum())
    return Curve(base, base + np.cumsum(change[:count]))


def _moments(
    snapshot: Snapshot,
    device: SnapshotDevice,
    lives: Lifetimes,
    layout: Layout,
    curves: tuple[Curve, Curve, Curve],
    starts: StepStarts,
    known: Sequence[Site],
    failed: Sequence[int],
    category: NDArray[np.uint8],
) -> tuple[Moment, ...]:
    """Peak, largest reserve, failed requests and the dump; equal moments are shown once."""
    history, count = device.history, len(device.history)
    active, blocks, reserved = curves
    wanted: dict[int, str] = {count - 1: "dump"}
    wanted[reserved.peak[1]] = "reserved_peak"
    wanted[active.peak[1]] = "peak"
    wanted |= dict.fromkeys(failed, "oom")

    def moment(event: int, kind: str) -> Moment:
        held = holders(lives, layout, category, known, event)
        slack = int(layout.slack[(lives.begin <= event) & (lives.end > event)].sum())
        step = int(np.searchsorted(starts.first, event, "right")) - 1
        time = None if history.time is None or event < 0 else int(history.time[event])
        free = layout.watched.get(event if kind == "oom" else event + 1)
        return Moment(
            kind=kind,
            event=event,
            time=time,
            step=starts.name[step] if step >= 0 else None,
            ranges=_ranges_at(snapshot, time),
            requested=active.at(event),
            allocated=blocks.at(event),
            allocated_most=blocks.at(event) + slack,
            reserved=reserved.at(event),
            free=layout.final if free is None else free,
            holders=held,
        )

    order = {"peak": 0, "reserved_peak": 1, "oom": 2, "dump": 3}
    found = [moment(event, kind) for event, kind in wanted.items()]
    return tuple(sorted(found, key=lambda one: (order[one.kind], one.event)))


def _ranges_at(snapshot: Snapshot, time: int | None) -> tuple[str, ...]:
    """User annotations open at a time, outermost first; marks need not balance."""
    notes = snapshot.annotations
    if notes is None or time is None:
        return ()
    stack: list[str] = []
    for row in np.flatnonzero(notes.time <= time).tolist():
        if notes.start[row]:
            stack.append(notes.name[row])
        elif notes.name[row] in stack:
            stack.reverse()
            stack.remove(notes.name[row])
            stack.reverse()
    return tuple(stack)


def _steps(
    starts: StepStarts, active: Curve, reserved: Curve, action: NDArray[np.uint8], count: int
) -> tuple[StepMemory, ...] | NotMeasured:
    if len(starts.first) == 0:
        return NotMeasured("no_memory_steps")
    bounds = [*starts.first.tolist(), count]
    floors = step_floors(starts, active, count).tolist()
    return tuple(
        StepMemory(
            name,
            first,
            int(active.after[first:until].max()) if until > first else active.at(first - 1),
            floor,
            int(reserved.after[first:until].max()) if until > first else reserved.at(first - 1),
            int((action[first:until] == Action.ALLOC).sum()),
        )
        for name, first, until, floor in zip(starts.name, bounds[:-1], bounds[1:], floors, strict=True)
    )


def _self_check(device: SnapshotDevice, lives: Lifetimes, layout: Layout, active: Curve) -> SelfCheck:
    return SelfCheck(
        blocks_tile=_tiles(device),
        sums_agree=_sums_agree(device),
        segments_follow=past_segments(device).inconsistent == 0,
        layout_exact=layout.exact,
        baseline=active.base >= 0 and int(lives.requested[lives.begin == BEFORE].sum()) == active.base,
        disorder=lives.disorder,
        mismatched=lives.mismatched,
        unplaced=layout.unplaced,
        unknown_events=sum(device.history.unknown.values()),
    )


def _tiles(device: SnapshotDevice) -> bool:
    """Do the blocks of each segment follow each other from its begin to its end?"""
    blocks, segments = device.blocks, device.segments
    if len(segments) == 0:
        return len(blocks) == 0
    end = blocks.address + blocks.size
    first = (
        np.concatenate(([True], blocks.segment[1:] != blocks.segment[:-1])) if len(blocks) else np.zeros(0, np.bool_)
    )
    last = np.concatenate((first[1:], [True])) if len(blocks) else first
    if len(np.unique(blocks.segment)) != len(segments):
        return False
    begins = (blocks.address[first] == segments.address[blocks.segment[first]]).all()
    ends = (end[last] == (segments.address + segments.size)[blocks.segment[last]]).all()
    inner = (blocks.address[1:] == end[:-1]) | first[1:]
    return bool(begins and ends and inner.all())


def _sums_agree(device: SnapshotDevice) -> bool:
    """Are the sizes that the segments state those of their blocks? Sizes that are not stated agree with anything."""
    blocks, segments = device.blocks, device.segments
    for stated, member, size in (
        (segments.allocated, blocks.state == State.ACTIVE, blocks.size),
        (segments.active, blocks.state != State.INACTIVE, blocks.size),
        (segments.requested, blocks.state != State.INACTIVE, blocks.requested),
    ):
        sums = np.bincount(blocks.segment[member], size[member], len(segments)).astype(np.int64)
        if not ((stated == -1) | (stated == sums)).all():
            return False
    return True


def _waste(device: SnapshotDevice) -> float:
    blocks = device.blocks
    live = blocks.state != State.INACTIVE
    asked = int(blocks.requested[live].sum())
    return (int(blocks.size[live].sum()) - asked) / asked if asked else 0.0
