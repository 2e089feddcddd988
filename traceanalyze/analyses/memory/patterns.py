"""Smaller observations: short-lived blocks at the peak (D7), gradients kept through forward (D12), settings (D11)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.memory.composition import CATEGORIES, first_of_line, live_at, short_lived
from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.analyses.memory.results import Group, Groups, HeldGradients, Leak, Spike
from traceanalyze.analyses.memory.results_patterns import GrowingSizes
from traceanalyze.analyses.memory.sites import call_stack
from traceanalyze.model.snapshot import Action
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.composition import Curve
    from traceanalyze.analyses.memory.layout import Layout
    from traceanalyze.analyses.memory.lifetimes import Lifetimes
    from traceanalyze.analyses.memory.results_calls import DeviceCalls
    from traceanalyze.analyses.memory.sites import Site
    from traceanalyze.analyses.memory.steps import StepStarts
    from traceanalyze.model.snapshot import History, Snapshot, Stacks


SPIKE_SHARE = 0.2
"""Real offenders have 0.26–1.0 of their peak in short-lived blocks, others at most 0.17 (D7)."""
GRADIENT_SHARE = 0.05


def spike(lives: Lifetimes, history: History, active: Curve, sites: Sequence[Site]) -> Spike | NotMeasured:
    """Share of the peak held by blocks that were freed again at once."""
    if len(history) <= 1:
        return NotMeasured("no_memory_history")
    peak, event = active.peak
    live = live_at(lives, event)
    live = live[short_lived(lives, history)[live]]
    size = int(lives.requested[live].sum())
    share = size / peak if peak else 0.0
    largest = int(live[lives.requested[live].argmax()]) if len(live) else -1
    line = sites[int(lives.stack[largest])].line if largest >= 0 else ""
    return Spike(share, size, line, share >= SPIKE_SHARE)


def held_gradients(
    lives: Lifetimes, starts: StepStarts, active: Curve, sites: Sequence[Site], count: int
) -> HeldGradients | NotMeasured:
    """Gradients of the step before that are alive at the peak of a later step's forward pass.

    The forward pass of a step lasts from its begin to the first allocation of its backward pass.
    """
    if len(starts.first) < 2:
        return NotMeasured("no_memory_steps")
    gradient = np.array([site.gradient for site in sites], np.bool_)[lives.stack]
    backward = np.array([site.backward for site in sites], np.bool_)[lives.stack]
    if not gradient.any():
        return NotMeasured("no_gradient_stacks")
    begins = np.sort(lives.begin[backward & (lives.begin >= 0)])
    bounds = [*starts.first.tolist(), count]
    worst: tuple[int, str] = (0, "")
    for index, (first, until) in enumerate(itertools.pairwise(bounds)):
        at = int(np.searchsorted(begins, first))
        end = min(int(begins[at]), until) if at < len(begins) else until
        if index == 0 or end <= first:
            continue
        top = first + int(active.after[first:end].argmax())
        kept = gradient & (lives.begin < first) & (lives.end > top)
        worst = max(worst, (int(lives.requested[kept].sum()), starts.name[index]))
    share = worst[0] / active.peak[0] if active.peak[0] else 0.0
    return HeldGradients(worst[0], share, worst[1], share >= GRADIENT_SHARE)


def settings_remarks(snapshot: Snapshot, *, events: int, stacks: bool) -> tuple[str, ...]:
    """Keys of what is odd about the configuration and the recording."""
    settings = snapshot.settings
    expandable = settings.get("expandable_segments") is True
    split = settings.get("max_split_size")
    threshold = settings.get("garbage_collection_threshold")
    text = str(settings.get("PYTORCH_CUDA_ALLOC_CONF", "")) + str(settings.get("PYTORCH_ALLOC_CONF", ""))
    found = []
    if expandable and isinstance(split, int) and split > 0:
        found.append("expandable_with_max_split")
    if isinstance(threshold, int | float) and threshold > 0 and "fraction" not in text:
        found.append("gc_threshold_without_fraction")
    if events == 0:
        found.append("history_never_recorded")
    elif events == 1:
        found.append("state_only_recording")
    if not stacks:
        found.append("no_memory_stacks")
    return tuple(found)


STEPS = 3
"""Steps after the first; own. The first step, and what is made when first needed, grow in every program."""
_SIZE_BITS = 42
"""4 TiB: no request is larger."""


def growing_sizes(
    history: History, calls: DeviceCalls, starts: StepStarts, sites: Sequence[Site]
) -> GrowingSizes | NotMeasured:
    """Calls of the device for a request larger than any before with the same stack, in steps after the first."""
    if len(starts.first) < STEPS + 1:
        return NotMeasured("no_memory_steps")
    record = _records(history)
    asking = np.minimum(calls.last + 1, max(len(history) - 1, 0))
    known = history.stack[asking] >= 0 if len(calls) else np.zeros(0, np.bool_)
    chosen = np.flatnonzero((calls.grown > 0) & (calls.request > 0) & record[asking] & known)
    step = np.searchsorted(starts.first, asking[chosen], "right") - 1
    chosen, step = chosen[step > 0], step[step > 0]
    if len(chosen) == 0:
        return GrowingSizes("", 0, 0, 0, 0, 0, flagged=False)
    codes, of = np.unique(history.stack[asking[chosen]], return_inverse=True)
    taken = np.zeros(len(codes), np.int64)
    np.add.at(taken, of, calls.grown[chosen])
    steps = np.bincount(np.unique(np.stack((of, step)), axis=1)[0], minlength=len(codes))
    # The user can change a line of the program; what grows in the backward pass follows from it.
    named = np.array([sites[code].path is not None for code in codes.tolist()], np.bool_)
    best = int(np.lexsort((taken, named, steps >= STEPS))[-1])
    own = of == best
    return GrowingSizes(
        line=sites[int(codes[best])].line,
        steps=int(steps[best]),
        smallest=int(calls.request[chosen[own][0]]),
        largest=int(calls.request[chosen[own][-1]]),
        grown=int(calls.grown[chosen].sum()),
        retries=sum(calls.kind[row] in {"retry", "failed_retry"} for row in chosen.tolist()),
        flagged=bool(steps[best] >= STEPS),
    )


def _records(history: History) -> NDArray[np.bool_]:
    """Allocations larger than all before with the same stack; the first of a stack is none."""
    allocs = np.flatnonzero(history.action == Action.ALLOC)
    order = allocs[np.argsort(history.stack[allocs], kind="stable")]
    stack = history.stack[order].astype(np.int64) + 1
    highest = np.maximum.accumulate((stack << _SIZE_BITS) + history.size[order])
    larger = np.zeros(len(order), np.bool_)
    larger[1:] = (stack[1:] == stack[:-1]) & (highest[1:] > highest[:-1])
    out = np.zeros(len(history), np.bool_)
    out[order[larger]] = True
    return out


POINTS = 1000
"""Points of a curve, among them the lowest and highest value of each part of the history."""
MOST = 20
"""Groups told apart; more cannot be told apart by colour."""


def groups(
    lives: Lifetimes,
    layout: Layout,
    category: NDArray[np.uint8],
    sites: Sequence[Site],
    stacks: Stacks,
    curves: tuple[Curve, Curve, Curve],
) -> Groups | NotMeasured:
    """Block bytes and number of live blocks of the largest groups, and of all others together.

    Args:
        lives: Every block of the history.
        layout: Their sizes.
        category: Of each block, index into `composition.CATEGORIES`.
        sites: What the call stacks say.
        stacks: The call stacks themselves.
        curves: Requested, block and reserved bytes.
    """
    if len(curves[0].after) <= 1:
        return NotMeasured("no_memory_history")
    event = _points(*(curve.after for curve in curves))
    count = len(event)
    first, last = np.searchsorted(event, lives.begin), np.searchsorted(event, lives.end)
    key = first_of_line(sites)[lives.stack] * len(CATEGORIES) + category
    seen = np.flatnonzero(first < last)
    distinct, of = np.unique(key[seen], return_inverse=True)
    of, first, last, size = of.reshape(-1), first[seen], last[seen], layout.size[seen]
    largest = _largest(of, first, last, size, count)
    area = np.zeros(len(distinct), np.int64)
    np.add.at(area, of, size * (last - first))
    largest = largest[np.argsort(-area[largest], kind="stable")]

    row_of = np.full(len(distinct), len(largest))
    row_of[largest] = np.arange(len(largest))
    row = row_of[of]
    shape = (len(largest) + 1, count + 1)
    amount, blocks = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for table, each in ((amount, size), (blocks, np.ones_like(size))):
        np.add.at(table, (row, first), each)
        np.subtract.at(table, (row, last), each)
    top = _top_blocks(row, size, len(largest))
    return Groups(
        event=event,
        group=tuple(
            Group(CATEGORIES[code % len(CATEGORIES)], sites[code // len(CATEGORIES)].line, call_stack(stacks, stack))
            for code, stack in zip(distinct[largest].tolist(), lives.stack[seen[top]].tolist(), strict=True)
        ),
        bytes=amount.cumsum(axis=1)[:, :count],
        blocks=blocks.cumsum(axis=1)[:, :count],
    )


def _points(
    requested: NDArray[np.int64], allocated: NDArray[np.int64], reserved: NDArray[np.int64]
) -> NDArray[np.int64]:
    """First event, last event, and of each part of the history the lowest and highest value of the curves."""
    count = len(allocated)
    if count <= POINTS:
        return np.arange(count)
    edges = np.linspace(0, count, POINTS // 4 + 1).astype(np.int64)
    kept = {0, count - 1, int(requested.argmax())}
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        for values in (allocated[first:last], reserved[first:last]):
            kept.update((first + int(values.argmin()), first + int(values.argmax())))
    return np.array(sorted(kept), np.int64)


def _largest(
    of: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64], size: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """The groups with most bytes at any point.

    Every block enters at its first point and leaves at its last: with the changes in order of group and point, leaving
    ones first, the running sum of a group starts at zero and is highest after a point, never between.
    """
    if len(of) == 0:
        return np.zeros(0, np.int64)
    span = 2 * (count + 1)
    order = np.argsort(np.concatenate((of * span + 2 * first + 1, of * span + 2 * last)), kind="stable")
    running = np.concatenate((size, -size))[order].cumsum()
    group = np.concatenate((of, of))[order]
    highest = np.maximum.reduceat(running, np.flatnonzero(np.diff(group, prepend=-1)))
    return np.argsort(-highest, kind="stable")[:MOST]


def _top_blocks(row: NDArray[np.int64], size: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The first of the largest blocks of each row."""
    order = np.lexsort((-size, row))
    return order[np.searchsorted(row[order], np.arange(count))]


AGREEMENT = 0.2
"""How far the survivors' growth may be from the rise of the floor (memory-snapshot specification, D6)."""
LIKELY_STEPS = 5
LEAST_STEPS = 3
TRIMMED_FROM = 4
"""With at least this many steps the first and the last are left out: they are often cut, or warm up."""


def step_floors(starts: StepStarts, active: Curve, count: int) -> NDArray[np.int64]:
    """Least requested bytes of each step."""
    bounds = [*starts.first.tolist(), count]
    return np.array(
        [int(active.after[a:b].min()) if b > a else active.at(a - 1) for a, b in itertools.pairwise(bounds)],
        np.int64,
    )


def leaks(
    lives: Lifetimes, starts: StepStarts, sites: Sequence[Site], active: Curve, count: int
) -> tuple[Leak, ...] | NotMeasured:
    """Lines whose blocks survive from every step, most bytes first; together they must explain the rise of the floor.

    Args:
        lives: Blocks of the history.
        starts: Begin of each step.
        sites: What the stacks say.
        active: Requested bytes after each event.
        count: Number of events.
    """
    steps = len(starts.first)
    if steps < LEAST_STEPS:
        return NotMeasured("no_memory_steps")
    trimmed = steps >= TRIMMED_FROM
    kept = range(1, steps - 1) if trimmed else range(steps)
    alive = np.flatnonzero((lives.end == count) & (lives.begin != BEFORE))
    step = np.searchsorted(starts.first, lives.begin[alive], "right") - 1
    alive, step = alive[step >= 0], step[step >= 0]
    found = []
    for stack in np.unique(lives.stack[alive]).tolist():
        mine = lives.stack[alive] == stack
        left = np.bincount(step[mine], lives.requested[alive[mine]], minlength=steps)[list(kept)]
        if stack >= 0 and (left > 0).all():
            found.append((stack, left.astype(np.int64), int(lives.requested[alive[mine]].sum())))
    floors = step_floors(starts, active, count)
    # The first step also makes what stays for good, such as the optimizer's state.
    rises = np.diff(floors[1:])
    rise = float(np.median(rises)) if len(rises) else 0.0
    growth = sum(float(np.median(left)) for _, left, _ in found)
    if rise <= 0 or abs(growth - rise) > AGREEMENT * rise:
        return ()
    confidence = "likely" if steps >= LIKELY_STEPS else "suspected"
    rows = [
        Leak(sites[stack].line, sites[stack].library, int(np.median(left)), len(left), total, confidence)
        for stack, left, total in found
    ]
    return tuple(sorted(rows, key=lambda leak: -leak.per_step))
