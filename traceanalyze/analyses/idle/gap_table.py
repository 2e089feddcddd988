"""The longest idle gaps, each with its causes and what ended it (definitions §5, gap table)."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate, names_of, ops_at
from traceanalyze.analyses.idle.idle import idle_gaps, idle_pieces
from traceanalyze.analyses.idle.syncs import sync_costs
from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import Intervals, overlaps
from traceanalyze.model.table import Breakdown, Column, Kind, Message, NotMeasured, Table, declare, sentences
from traceanalyze.model.vocabulary import Cause

_SAY = sentences(gaps_kept="The {kept} longest of {count} intervals are listed.")

GAPS = declare(
    "gaps",
    "Longest idle intervals",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("at_ns", Kind.DURATION, "start, counted from the start of the step", scale="at"),
    Column("device", Kind.COUNT, "number of the device"),
    Column("length_ns", Kind.DURATION, "length of the idle interval"),
    Column("causes", Kind.BREAKDOWN, "causes of the idle interval, largest first"),
    Column("host_op", Kind.NAME, "operator or call that the host was in for most of it", heading="host was in"),
    Column("trigger", Kind.TERM, "whether the next device event was launched late or already queued", minor=True),
    Column("next_event", Kind.KERNEL, "device event that ends the idle interval", heading="next on device"),
    Column("next_op", Kind.NAME, "operator that launched it", heading="launched by", minor=True),
    Column("frame", Kind.NAME, "innermost Python frame, when stacks were recorded", heading="Python frame", minor=True),
    ranked=True,
)


def gap_table(context: Context) -> Table:
    """Gaps of the steps that count, split at window borders, longest first, at most `options.max_gaps`."""
    gaps, steps = context.once(idle_gaps), context.steps
    window = np.flatnonzero(steps.counted & (steps.end > steps.start))
    parts = overlaps(Intervals(gaps.start, gaps.end), Intervals(steps.start[window], steps.end[window]))
    length = parts.end - parts.start
    # The parts are in time order: equally long ones stay so.
    top = np.argsort(-length, kind="stable")[: context.options.max_gaps]
    # Back in time order, so that pieces can be matched by the interval algebra.
    top = np.sort(top)
    gap, step = parts.first[top], window[parts.second[top]]
    op, frame = gap_places(context, gap)
    labels, text = step_labels(steps.name), context.trace.strings.text
    event = gaps.event[gap]
    name = np.where(event >= 0, context.device.name[event], -1) if len(context.device) else event
    table = GAPS.fill(
        step=[labels[row] for row in step.tolist()],
        at_ns=parts.start[top] - steps.start[step],
        device=[context.devices[0]] * len(top) if len(context.devices) > 1 else None,
        length_ns=length[top],
        causes=_causes(context, parts.start[top], parts.end[top]),
        host_op=_host_ops(context, gap),
        trigger=_triggers(context, gap),
        next_event=[text(code) if code >= 0 else None for code in name.tolist()],
        next_op=op,
        frame=frame,
    ).take(np.argsort(-length[top], kind="stable"))
    # Which step it is goes without saying when there is one.
    first = replace(table["step"], machine=len(steps) == 1)
    kept = (("kept", Kind.COUNT, len(top)), ("count", Kind.COUNT, len(length)))
    notes = (Message(_SAY["gaps_kept"], kept),) if len(top) < len(length) else ()
    return replace(table, columns=(first, *table.columns[1:]), notes=notes)


def _causes(context: Context, start: NDArray[np.int64], end: NDArray[np.int64]) -> list[Breakdown]:
    pieces = context.once(idle_pieces)
    hit = overlaps(Intervals(pieces.start, pieces.end), Intervals(start, end))
    matrix = np.zeros((len(start), len(Cause)), np.int64)
    np.add.at(matrix, (hit.second, pieces.cause[hit.first]), hit.end - hit.start)
    gap, cause = np.nonzero(matrix)
    time = matrix[gap, cause]
    order = np.lexsort((cause, -time, gap))
    keys = [each.key for each in Cause]
    shares = list(zip(map(keys.__getitem__, cause[order].tolist()), time[order].tolist(), strict=True))
    ends = np.cumsum(np.bincount(gap, minlength=len(start))).tolist()
    return [tuple(shares[first:last]) for first, last in pairwise([0, *ends])]


def gap_places(context: Context, gap: NDArray[np.int64]) -> tuple[list[str | None], list[str | None]]:
    """Operator that launched the next event, and the user frame of the launch."""
    call = context.once(idle_gaps).call[gap]
    if len(context.calls) == 0:
        return [None] * len(gap), [None] * len(gap)
    _, op, frame = locate(context, np.where(call >= 0, context.calls.track[call], -1), context.calls.start[call])
    return op, frame


def _host_ops(context: Context, gap: NDArray[np.int64]) -> list[str | None]:
    """What the host did for most of each gap: an operator, else a call; None where the trace does not tell."""
    pieces, wanted = context.once(idle_pieces), np.zeros(len(context.once(idle_gaps)), np.bool_)
    wanted[gap] = True
    chosen = wanted[pieces.gap] & ((pieces.track >= 0) | (pieces.cause == Cause.UNTRACED))
    parts: list[tuple[NDArray[np.int64], ...]] = []
    for track in distinct(pieces.track[chosen]).tolist():
        mine, own = chosen & (pieces.track == track), context.op_nest.of(track)
        of, start, end = pieces.gap[mine], pieces.start[mine], pieces.end[mine]
        # Within a piece the innermost operator changes where one begins or ends.
        edges = np.concatenate((context.op_nest.start[own], context.op_nest.end[own], start, end))
        edges = distinct(edges[intervals.contains(Intervals(start, end), edges)])
        edges = distinct(np.concatenate((edges, end)))
        hit = overlaps(Intervals(edges[:-1], edges[1:]), Intervals(start, end))
        parts.append((of[hit.second], _names(context, track, hit.start), hit.end - hit.start))
    if not parts:
        return [None] * len(gap)
    of, name, time = (np.concatenate(column) for column in zip(*parts, strict=True))
    groups = group(of, name)
    # Of those in which it was equally long the one it was in first.
    order = np.lexsort((groups.first, -groups.sum(time), of[groups.first]))
    most = np.full(len(wanted), -1, np.int64)
    most[of[groups.first[order]][::-1]] = name[groups.first[order]][::-1]
    return names_of(context.trace, most[gap])


def _names(context: Context, track: int, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Code of the innermost operator of a thread at each instant, else of its call; -1 for neither."""
    found, calls, names = np.full(len(t), -1, np.int64), context.calls, context.trace.events.name
    if track < 0:
        return found
    first, last = np.searchsorted(calls.track, (track, track + 1)).tolist()
    if last > first:
        at = np.searchsorted(calls.start[first:last], t, "right") - 1 + first
        found = np.where((at >= first) & (calls.end[at] > t), calls.name[at], -1)
    op = ops_at(context, track, t)
    return np.where((op >= 0) & (names[op] > 0), names[op], found)  # Code 0 is no name.


_TRIGGERS = ("sync_drained", "no_next_event", "no_launch_record", "launched_late", "queued")


def _triggers(context: Context, gap: NDArray[np.int64]) -> list[str] | NotMeasured:
    """Why each of the gaps ended when it did: the first that is true."""
    if context.doubt is not None:
        return NotMeasured(context.doubt)
    gaps = context.once(idle_gaps)
    cases = (
        context.once(sync_costs).drained[gap],
        gaps.event[gap] < 0,
        gaps.call[gap] < 0,
        gaps.launch_start[gap] >= gaps.start[gap],
    )
    return [_TRIGGERS[case] for case in np.select(cases, range(4), 4).tolist()]
