"""The longest idle gaps, each with its causes and what ended it (definitions §5, gap table)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.idle.idle import idle_gaps, idle_pieces
from traceanalyze.analyses.results import Gap
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import Intervals, overlaps
from traceanalyze.model.vocabulary import Cause

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


def gap_table(context: Context, drained: NDArray[np.bool_]) -> tuple[tuple[Gap, ...], int]:
    """Gaps split at window borders, longest first, at most `options.max_gaps`, and how many there are in all.

    `drained` marks gaps that a sync caused.
    """
    gaps, steps = context.once(idle_gaps), context.steps
    window = np.flatnonzero(steps.end > steps.start)
    parts = overlaps(Intervals(gaps.start, gaps.end), Intervals(steps.start[window], steps.end[window]))
    length = parts.end - parts.start
    # The parts are in time order: equally long ones stay so.
    top = np.argsort(-length, kind="stable")[: context.options.max_gaps]
    # Back in time order, so that pieces can be matched by the interval algebra.
    top = np.sort(top)
    causes = _causes(context, parts.start[top], parts.end[top])
    gap = parts.first[top]
    op, frame = gap_places(context, gap)
    strings = context.trace.strings
    table = [
        Gap(
            start=int(parts.start[i]),
            length=int(length[i]),
            step=int(window[parts.second[i]]),
            causes=causes[k],
            next_event=strings.text(int(context.device.name[gaps.event[gap[k]]])) if gaps.event[gap[k]] >= 0 else None,
            next_op=op[k],
            frame=frame[k],
            trigger=_trigger(context, int(gap[k]), bool(drained[gap[k]])),
        )
        for k, i in enumerate(top.tolist())
    ]
    return tuple(sorted(table, key=lambda g: (-g.length, g.start))), len(length)


def _causes(context: Context, start: NDArray[np.int64], end: NDArray[np.int64]) -> list[tuple[tuple[Cause, int], ...]]:
    pieces = context.once(idle_pieces)
    hit = overlaps(Intervals(pieces.start, pieces.end), Intervals(start, end))
    matrix = np.zeros((len(start), len(Cause)), np.int64)
    np.add.at(matrix, (hit.second, pieces.cause[hit.first]), hit.end - hit.start)
    gap, cause = np.nonzero(matrix)
    time = matrix[gap, cause]
    order = np.lexsort((cause, -time, gap))
    told = list(zip(map(list(Cause).__getitem__, cause[order].tolist()), time[order].tolist(), strict=True))
    ends = np.cumsum(np.bincount(gap, minlength=len(start))).tolist()
    return [tuple(told[first:last]) for first, last in pairwise([0, *ends])]


def gap_places(context: Context, gap: NDArray[np.int64]) -> tuple[list[str | None], list[str | None]]:
    """Operator that launched the next event, and the user frame of the launch."""
    op: list[str | None] = [None] * len(gap)
    frame: list[str | None] = [None] * len(gap)
    call = context.once(idle_gaps).call[gap]
    track = np.where(call >= 0, context.calls.track[call], -1) if len(context.calls) else np.full(len(gap), -1)
    for one in distinct(track[call >= 0]).tolist():
        here = np.flatnonzero((track == one) & (call >= 0))
        _, names, frames = locate(context, one, context.calls.start[call[here]])
        for k, i in enumerate(here.tolist()):
            op[i], frame[i] = names[k], frames[k]
    return op, frame


def _trigger(context: Context, gap: int, drained: bool) -> str:
    gaps = context.once(idle_gaps)
    if drained:
        return "sync-drained"
    if gaps.event[gap] < 0:
        return "no next event"
    if gaps.call[gap] < 0:
        return "no launch record"
    return "launched late" if gaps.launch_start[gap] >= gaps.start[gap] else "queued"
