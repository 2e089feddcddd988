"""Where to look for a finding: its worst instance with cause and effect around it, and what is seen there."""

from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.excerpt.excerpt import Excerpt, LaneKind, excerpt
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.model.vocabulary import Cause

_NEIGHBOURS = 4
"""Device events shown before and after the instance, at least, where there is room for them."""
_FARTHEST = 2
"""Times the length of the instance that is shown on each side at most."""


class Place(NamedTuple):
    """The surroundings of one instance of a finding. Times int64 ns; `start`, `end` since the excerpt begins."""

    excerpt: Excerpt
    start: int
    end: int
    """The instance, cut to the excerpt."""
    length: int
    """Of the whole instance."""
    step: int
    """Row in the analysed steps that it begins in, else the one before; -1 before the first."""
    since_step: int
    """From the beginning of that step to the beginning of the instance."""
    since_first: int
    """From the first event of the trace to the beginning of the instance."""
    idle: int
    """Time of the instance in which the headline device runs nothing."""
    cause: str | None
    """Term of the cause of most of this idle time."""
    doing: str | None
    """What the step thread is in for most of the instance: a wait for data or other processes, else an event that lies
    in no other."""


def place(context: Context, start: int, end: int) -> Place:
    """The surroundings of the instance `[start, end)` ns.

    On each side a quarter of its length and at least four device events, but no more than twice its length; in all no
    more than one step, so that of a longer instance the beginning is shown.
    """
    window = _window(context, start, end)
    found = excerpt(context, *window, until=end)
    step = int(np.searchsorted(context.steps.start, start, "right")) - 1
    begins = int(context.steps.start[step]) if step >= 0 else start
    idle, cause = _idle(context, start, end)
    return Place(
        excerpt=found,
        start=start - window[0],
        end=min(end, window[1]) - window[0],
        length=end - start,
        step=step,
        since_step=start - begins,
        since_first=start - context.begin,
        idle=idle,
        cause=cause,
        doing=_doing(found, start - window[0], min(end, window[1]) - window[0]),
    )


def _window(context: Context, start: int, end: int) -> tuple[int, int]:
    most, length = _longest_step(context, start), end - start
    low, high = start - length // 4, end + length // 4
    device = context.device
    if len(device):
        own = device.device == context.devices[0]
        begins, ends = device.start[own], np.sort(device.end[own], kind="stable")
        before = int(np.searchsorted(ends, start, "right"))
        after = int(np.searchsorted(begins, end, "left"))
        if before:
            low = min(low, int(begins[max(before - _NEIGHBOURS, 0)]))
        if after < len(begins):
            high = max(high, int(ends[min(after + _NEIGHBOURS, len(ends)) - 1]))
    events = context.trace.events
    low = max(low, start - _FARTHEST * length, min(context.begin, start))
    high = min(high, end + _FARTHEST * length, max(int((events.ts + events.dur).max()), end))
    # What does not fit is left out on both sides alike; the beginning of the instance is always seen.
    spare = max(most - length, most // 4)
    low = start - min(start - low, max(spare // 2, spare - (high - end)))
    return low, max(min(high, low + most), low + 1)


def _longest_step(context: Context, at: int) -> int:
    """Length of the step around an instant, of the longest step where it lies in none."""
    steps = context.steps
    length = steps.end - steps.start
    step = int(np.searchsorted(steps.start, at, "right")) - 1
    return max(int(length[step]) if step >= 0 else int(length.max()), 1)


def _idle(context: Context, start: int, end: int) -> tuple[int, str | None]:
    """Idle time in an interval, and what causes most of it."""
    if not len(context.device):
        return 0, None
    pieces = context.once(idle_pieces)
    near = slice(int(np.searchsorted(pieces.end, start, "right")), int(np.searchsorted(pieces.start, end, "left")))
    length = np.minimum(pieces.end[near], end) - np.maximum(pieces.start[near], start)
    time = np.bincount(pieces.cause[near], weights=length, minlength=len(Cause))
    total = int(length.sum())
    return total, Cause(int(time.argmax())).key if total else None


def _doing(found: Excerpt, start: int, end: int) -> str | None:
    """What covers most of the instance on the first thread: a wait, else the outermost event."""
    lanes = [lane for lane in found.lanes if lane.kind == LaneKind.OPS]
    boxes = [box for lane in lanes if lane.track == lanes[0].track for box in lane.boxes if box.count == 1]
    covering = [box for box in boxes if 2 * (min(box.end, end) - max(box.start, start)) > end - start]
    waits = [box.name for box in covering if box.kind in {"data_loading", "peer_wait"}]
    return next(iter([*waits, *(box.name for box in covering)]), None)
