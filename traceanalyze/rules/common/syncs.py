"""Sync calls with what they are under and the idle time each one caused, for the rules about sync points."""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.syncs import (
    blamed,
    longer_stretches,
    own_stretches,
    perhaps_timed,
    timed_stretches,
)
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.model.columns import Rows
from traceanalyze.model.intervals import coverage, intersect, subtract, union
from traceanalyze.model.vocabulary import Cause, EventKind
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.op_chains import inside_ranges, names_under
from traceanalyze.rules.common.replay import launching
from traceanalyze.rules.rule import Evidence, Facts, Finding, Scope, intervals_of, measured, merged, picked


class SyncCalls(NamedTuple):
    """Sync calls that the host is in during the windows, one row a call.

    None of what is the first or the last thing that the trace does: what the first one waits for is not recorded.
    """

    call: NDArray[np.int64]
    """Position in `Context.calls`."""
    op: Rows
    """Place of the innermost operator in `Context.op_nest`, -1 for none."""
    direction: NDArray[np.int64]
    """Position in `DIRECTIONS` of the copy it starts, or that its operator has just started; -1 for none."""
    name: tuple[str, ...]
    piece_start: NDArray[np.int64]
    """Idle time in the windows that a sync call caused; with `piece_of` the row here."""
    piece_end: NDArray[np.int64]
    piece_of: NDArray[np.int64]

    def spans(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n, 2) idle time that the chosen calls caused."""
        kept = chosen[self.piece_of]
        return picked(self.piece_start, self.piece_end, kept)


def sync_calls(facts: Facts) -> SyncCalls:
    """The sync calls of a rank."""
    context = facts.context
    calls = context.calls
    every = np.flatnonzero(context.once(is_sync_call))
    linked = context.link >= 0
    least = np.iinfo(np.int64).min
    first, last = (int(each(context.launch_start[linked])) if linked.any() else least for each in (np.min, np.max))
    row = np.full(len(calls), -1, np.int64)
    # Of a call that began before the windows the part inside counts.
    inside = (coverage(facts.windows, calls.start[every], calls.end[every]) > 0) | facts.inside(calls.start[every])
    # What was launched before the recording began is not in it.
    chosen = every[inside & (calls.start[every] > first) & (calls.start[every] < last)]
    row[chosen] = np.arange(len(chosen))
    by, _ = blamed(every, calls, context.once(idle_gaps), facts.pieces)
    caused = np.flatnonzero(by >= 0)
    caused = caused[row[by[caused]] >= 0]
    names = tuple(context.trace.strings.each(calls.name[chosen]))
    pieces = facts.pieces.start[caused], facts.pieces.end[caused], row[by[caused]]
    return SyncCalls(chosen, context.call_op[chosen], _direction(facts, chosen), names, *pieces)


def _direction(facts: Facts, chosen: Rows) -> NDArray[np.int64]:
    """Direction of the copy that each call started, or else of the last one in the same run of an operator."""
    context = facts.context
    copies = np.flatnonzero((context.device.kind == EventKind.MEMCPY) & (context.link >= 0))
    way = directions(context, copies)
    by_call = np.full(len(context.calls), -1, np.int64)
    by_call[context.link[copies]] = way
    asked = context.issued_by[copies]
    inside = np.where(asked >= 0, context.call_op[asked], -1)
    order = np.argsort(inside, kind="stable")
    own, op = by_call[chosen], context.call_op[chosen]
    if not len(copies) or not len(context.op_nest):
        return own
    last = order[np.maximum(np.searchsorted(inside[order], context.op_nest.stop[op], "left") - 1, 0)]
    return np.where((own < 0) & (op >= 0) & (inside[last] >= op), way[last], own)


class SyncUse(IntEnum):
    """What the program wants by a sync call; the first that fits."""

    SCALER = 0
    GRAD_NORM = 1
    COLLECTIVE_WAIT = 2
    DYNAMIC_SHAPE = 3
    SCALAR_READ = 4
    HOST_TO_DEVICE = 5
    DEVICE_TO_HOST = 6
    EXPLICIT = 7
    OTHER = 8


READS = r"^aten::(item|_local_scalar_dense|is_nonzero|equal)$"
"""Operators that read a single value."""
_UNDER = {
    SyncUse.GRAD_NORM: r"linalg_vector_norm|_foreach_norm",
    SyncUse.COLLECTIVE_WAIT: r"^(c10d|nccl|hccl)::?.*wait|wait_tensor",
    SyncUse.DYNAMIC_SHAPE: (
        r"^aten::(nonzero\w*|masked_select|unique\w*|_unique\w*|repeat_interleave|index|_index_put_impl_|argwhere)$"
    ),
    SyncUse.SCALAR_READ: READS,
}
"""Operators around the call."""
_INSIDE = {
    SyncUse.SCALER: r"(amp/grad_scaler|GradScaler).*(step|unscale|update|_maybe_opt_step)",
    SyncUse.GRAD_NORM: r"clip_grad_norm|get_total_norm|get_grad_norm",
    SyncUse.COLLECTIVE_WAIT: r"(distributed|c10d|torch_npu).*: (wait|_wait\w*|synchronize)$",
}
"""Annotations and Python functions around the call."""


def sync_uses(facts: Facts) -> NDArray[np.int64]:
    """`SyncUse` of each of the sync calls."""
    calls, context = facts.once(sync_calls), facts.context
    track, start = context.calls.track[calls.call], context.calls.start[calls.call]
    synchronize = np.array(["Synchronize" in name for name in calls.name], np.bool_)
    tests = {use: np.zeros(len(calls.call), np.bool_) for use in SyncUse}
    for use, pattern in _UNDER.items():
        tests[use] |= names_under(facts, calls.op, pattern)
    for use, pattern in _INSIDE.items():
        tests[use] |= inside_ranges(facts, track, start, pattern)
    tests[SyncUse.HOST_TO_DEVICE] = calls.direction == DIRECTIONS.index("h2d")
    # An index that lies on the host is copied; no shape depends on what the device computes.
    tests[SyncUse.DYNAMIC_SHAPE] &= ~tests[SyncUse.HOST_TO_DEVICE]
    tests[SyncUse.DEVICE_TO_HOST] = calls.direction == DIRECTIONS.index("d2h")
    tests[SyncUse.EXPLICIT] = synchronize & (calls.op < 0)
    tests[SyncUse.OTHER][:] = True
    first: NDArray[np.int64] = np.argmax(np.stack([tests[use] for use in SyncUse]), axis=0)
    return first


def used_for(facts: Facts, use: SyncUse) -> NDArray[np.bool_]:
    """Which of the sync calls have a use."""
    chosen: NDArray[np.bool_] = facts.once(sync_uses) == use
    return chosen


def places(
    facts: Facts, calls: SyncCalls, chosen: NDArray[np.bool_]
) -> list[tuple[str, str | None, NDArray[np.bool_]]]:
    """Where the chosen calls are: operator (else the call), user line, and which of the calls; costliest first."""
    context = facts.context
    found: dict[tuple[str, str | None], list[int]] = {}
    rows = np.flatnonzero(chosen)
    call = calls.call[rows]
    _, ops, frames = locate(context, context.calls.track[call], context.calls.start[call])
    for row, op, frame in zip(rows.tolist(), ops, frames, strict=True):
        found.setdefault((op or calls.name[row], frame), []).append(row)
    masks = []
    for (op, frame), members in found.items():
        mask = np.zeros(len(chosen), np.bool_)
        mask[members] = True
        masks.append((op, frame, mask))
    return sorted(masks, key=lambda one: -int(np.diff(calls.spans(one[2]), axis=1).sum()))


def sync_findings(facts: Facts, chosen: NDArray[np.bool_], *, with_use: int = 0) -> Iterator[Finding]:
    """One finding on the chosen calls: what they cost together, the costliest places as evidence.

    What is no sync's (`own_stretches`) is left out, though a call drained the device before it. Whether that ends at
    its own time, and whether the work after a read needs the number, is not recorded: at worst both.

    `with_use`: without the calls there is no value, hence neither operators that read it nor Python between these of
    less than so many ns; at best nor any Python that follows, as far as the device waits meanwhile.
    """
    calls = facts.once(sync_calls)
    if not chosen.any():
        return
    start, end = facts.context.calls.start[calls.call], facts.context.calls.end[calls.call]
    own = facts.context.once(own_stretches)
    spans = intervals_of(*subtract(facts.clip(calls.spans(chosen)), own))
    caused = facts.length(spans)
    removed = facts.clip(picked(start, end, chosen))
    unread = removed
    if with_use:
        device = facts.context.device
        copies = np.isin(facts.context.event_op, calls.op[chosen & (calls.op >= 0)]) & (device.kind == EventKind.MEMCPY)
        quiet = merged(facts.idle(Cause.UNTRACED))
        use = union(quiet, launching(facts, np.flatnonzero(copies)))
        brief = subtract(use, facts.context.once(longer_stretches, with_use))
        unread = union(removed, intersect(use, merged(spans)))
        removed = union(removed, intersect(brief, merged(spans)))
    # Any stretch of its own may end when what it waits for comes, and what follows a read may need the number.
    change = Change(removed, pinned=facts.context.once(timed_stretches))
    blocked = facts.per_step(coverage(facts.windows, start[chosen], end[chosen]))
    where = places(facts, calls, chosen)
    each = tuple(
        Evidence(
            "place", facts.length(calls.spans(mask)), "DURATION", int(start[mask][0]), int(end[mask][0]), frame or op
        )
        for op, frame, mask in where[:3]
    )
    yield Finding(
        cost=caused,
        bound=blocked + facts.length(intervals_of(*unread)),
        change=change,
        between=(Change(removed, pinned=facts.context.once(perhaps_timed), numbers=True), Change(unread)),
        draws="idle.sync",
        intervals=spans,
        evidence=(*measured(idle=caused, count=int(chosen.sum()), blocked=blocked), *each),
        scope=Scope(ops=tuple(dict.fromkeys(frame or op for op, frame, _ in where[:3]))),
        count=int(chosen.sum()),
    )
