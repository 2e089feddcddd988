"""Every block and segment of a device over its history, for a picture in which one goes from event to event."""

from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.caching import Domain
from traceanalyze.analyses.memory.categories import categories
from traceanalyze.analyses.memory.composition import moments
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.device_calls import release_runs
from traceanalyze.analyses.memory.holes import GROWTH, Range, past_segments
from traceanalyze.analyses.memory.lifetimes import Lifetimes
from traceanalyze.analyses.memory.sites import call_stack, frame_text
from traceanalyze.analyses.memory.steps import step_starts
from traceanalyze.model.columns import distinct
from traceanalyze.model.snapshot import Action
from traceanalyze.model.table import NotMeasured

EXACT = 1 << 53
"""Bytes between addresses that a browser knows apart; no device has as many."""
MOST_TIMES = 16_384
"""Events whose time is told; between them it is interpolated. And steps that are marked (own; so is the next one)."""
MOST_MARKS = 500
"""Of each kind: user's ranges, the longest; runs of releases, those that gave most back."""


class Change(NamedTuple):
    """Memory taken from the device, or given back to it."""

    event: int
    grows: bool
    range: Range


class Mark(NamedTuple):
    """A decisive event."""

    kind: str
    """Term: moment_peak, moment_oom, release_retry, …"""
    event: int
    """The state after it is meant; -1: before the first."""
    bytes: int | None
    """What an OOM asked for, what a run gave back."""


class Span(NamedTuple):
    """A user's range, from one event to just before another."""

    name: str
    begin: int
    end: int


class CallStack(NamedTuple):
    """Where blocks were allocated."""

    line: str
    own: tuple[str, ...]
    """Frames of the user's code, innermost first."""
    whole: tuple[str, ...]


class MemoryHistory(NamedTuple):
    """A block is alive after the events `begin` … `end` - 1; segments are those before the first event, changed."""

    events: int
    lives: Lifetimes
    size: NDArray[np.int64]
    """Block bytes, aligned with `lives`."""
    category: NDArray[np.int64]
    """Index into `terms`."""
    terms: tuple[str, ...]
    stacks: tuple[CallStack, ...]
    """By `Lifetimes.stack`; the last one of blocks without."""
    segments: tuple[Range, ...]
    changes: tuple[Change, ...]
    pools: tuple[tuple[int, int], ...]
    time: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    """Events and their ns since the first one; None where the file has no times."""
    marks: tuple[Mark, ...]
    spans: tuple[Span, ...]
    steps: tuple[tuple[int, str], ...]
    """First event of each, and its name."""
    hidden: int
    """Runs, ranges and steps beyond those kept."""
    lost: str
    """Why the layout is not exact; empty: it is."""


def memory_history(device: Device) -> MemoryHistory | NotMeasured:
    """What the snapshot tells of the device's memory at each event."""
    check, layout, count = device.layout.lost, device.layout, device.events
    past = past_segments(device.device, device.rules)
    address = device.lives.address
    if past.wrong or (len(address) and int(address.max()) - int(address.min()) >= EXACT):
        return NotMeasured("snapshot_contradicts_itself")
    code, terms, _ = device.once(categories)
    stacks, starts = device.snapshot.stacks, device.once(step_starts)
    known = tuple(
        CallStack(
            device.sites[at].line,
            call_stack(stacks, at),
            tuple(frame_text(stacks.frames[frame]) for frame in stack),
        )
        for at, stack in enumerate(stacks.stacks)
    )
    runs = release_runs(device).records()
    released = sorted((Mark(run.release_kind, run.event, run.released_bytes) for run in runs), key=attrgetter("bytes"))
    spans = sorted(_spans(device), key=lambda span: span.begin - span.end)
    time = device.history.time
    chosen = distinct(np.linspace(0, count - 1, min(count, MOST_TIMES)).astype(np.int64))
    return MemoryHistory(
        events=count,
        lives=device.lives,
        size=layout.size,
        category=code,
        terms=terms,
        stacks=(*known, CallStack(device.sites[-1].line, (), ())),
        segments=tuple(past.ranges),
        changes=tuple(_changes(device, past.domain)),
        pools=device.device.pools,
        time=None if time is None or count == 0 else (chosen, time[chosen] - time[0]),
        marks=(*_moments(device), *sorted(released[-MOST_MARKS:], key=attrgetter("event"))),
        spans=tuple(sorted(spans[:MOST_MARKS], key=lambda span: (span.begin, -span.end))),
        steps=tuple(zip(starts.first.tolist(), starts.name, strict=True))[:MOST_TIMES],
        hidden=sum(
            max(len(each) - most, 0)
            for each, most in ((released, MOST_MARKS), (spans, MOST_MARKS), (starts.name, MOST_TIMES))
        ),
        lost="" if check is None else "layout_not_exact",
    )


def _changes(device: Device, domains: dict[int, Domain]) -> Iterator[Change]:
    history = device.history
    for event in sorted(domains):
        start, action = int(history.address[event]), Action(history.action[event])
        mapped = action in (Action.SEGMENT_MAP, Action.SEGMENT_UNMAP)
        whole = Range(start, start + int(history.size[event]), mapped, domains[event])
        yield Change(event, action in GROWTH, whole)


def _moments(device: Device) -> Iterator[Mark]:
    for row in moments(device)[0].records():
        event = -1 if row.event is None else row.event
        failed = row.moment == "moment_oom"
        yield Mark(row.moment, event, int(device.history.size[event]) if failed else None)


def _spans(device: Device) -> Iterator[Span]:
    """User's ranges; one that is open at either end of the history lasts until there."""
    notes, time = device.snapshot.annotations, device.history.clock
    if notes is None or time is None:
        return
    event = np.searchsorted(time, notes.time, "left").tolist()
    open_: dict[str, list[int]] = {}
    for begins, name, at in zip(notes.start.tolist(), notes.name, event, strict=True):
        if begins:
            open_.setdefault(name, []).append(at)
        else:
            yield Span(name, open_[name].pop() if open_.get(name) else 0, at)
    for name, begins in open_.items():
        yield from (Span(name, at, device.events) for at in begins)
