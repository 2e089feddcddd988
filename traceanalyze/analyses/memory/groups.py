"""Who held the memory over time: live blocks of a history by category and source line, tensors of a timeline by theirs.

Curves are drawn at points, among them the lowest and highest value of each part.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses import memory as columns
from traceanalyze.analyses.memory.categories import categories
from traceanalyze.analyses.memory.composition import first_of_line
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.sites import call_stack
from traceanalyze.model.snapshot import CATEGORIES as TENSORS
from traceanalyze.model.snapshot import MemoryTimeline
from traceanalyze.model.table import Column, Kind, Table, Value, Word, declare

POINTS = 1000
"""Points of a curve, among them the lowest and highest value of each part of the history."""
MOST = 20
"""Groups; more of them cannot be distinguished by colour."""
_NAMES = (*map(str, range(1, MOST + 1)), "rest")
_CURVE = declare(
    "allocator_curve",
    "Memory over the history",
    columns.EVENT,
    columns.SINCE_START,
    columns.REQUESTED,
    columns.BLOCK_BYTES,
    columns.RESERVED,
    plot=("reserved_bytes", "block_bytes"),
    detail=True,
)
_GROUP_CURVE = declare(
    "allocator_group_curve",
    "Who holds the memory over the history",
    columns.EVENT,
    columns.SINCE_START,
    *(
        Column(f"group_{name}_bytes", Kind.MEMORY, "bytes of its live blocks; see the table of the groups")
        for name in _NAMES
    ),
    *(
        Column(
            f"group_{name}_blocks",
            Kind.COUNT,
            "number of its live blocks",
            heading="blocks of the other groups" if name == "rest" else f"blocks of group {name}",
            machine=True,
        )
        for name in _NAMES
    ),
    detail=True,
)
_GROUPS = declare(
    "allocator_groups",
    "Those who hold most",
    Column("group", Kind.COUNT, "number of its columns in the table of the curve; empty: all others"),
    columns.CATEGORY,
    columns.LINE,
    Column("highest_bytes", Kind.MEMORY, "most bytes of its live blocks at any point of the curve"),
    replace(columns.EVENT, meaning="event after which it is first so many"),
    replace(columns.BLOCKS, meaning="live blocks then"),
    Column("call_stack", Kind.TEXT, "user's frames of its largest block, innermost first", machine=True),
    detail=True,
)
_TENSORS = declare(
    "timeline_at_peak",
    "Tensors at the peak",
    Column("tensor_category", Kind.TERM, "the profiler's own category of tensors", heading="category"),
    Column("tensor_bytes", Kind.MEMORY, "bytes of tensors when all of them together were most", heading="at the peak"),
    Column("share", Kind.SHARE, "part of the bytes of all tensors then"),
    Column("highest_bytes", Kind.MEMORY, "most bytes of this category at any time"),
    bar="share",
)
_TENSOR_CURVE = declare(
    "timeline_curve",
    "Tensors over time",
    columns.SINCE_START,
    Column("total_bytes", Kind.MEMORY, "bytes of all tensors; the allocator's blocks are larger", heading="all"),
    Column("parameter_bytes", Kind.MEMORY, "bytes of parameters", heading="parameters"),
    Column("optimizer_state_bytes", Kind.MEMORY, "bytes of the optimizer's state"),
    Column("input_bytes", Kind.MEMORY, "bytes of inputs"),
    Column("temporary_bytes", Kind.MEMORY, "bytes of tensors that live within one operator"),
    Column("activation_bytes", Kind.MEMORY, "bytes of tensors kept for the backward pass", heading="activations"),
    Column("gradient_bytes", Kind.MEMORY, "bytes of gradients", heading="gradients"),
    Column("autograd_detail_bytes", Kind.MEMORY, "bytes of autograd's own tensors", heading="autograd"),
    Column("unknown_bytes", Kind.MEMORY, "bytes the profiler could not classify"),
    plot=("total_bytes", "total_bytes"),
    stack=tuple(f"{name}_bytes" for name in TENSORS),
    detail=True,
)


def memory_over_time(device: Device) -> tuple[Table, Table, Table]:
    """The curves of the allocator, their parts by who holds them, and who these are.

    Parts are the largest groups and all other blocks together, whose bytes sum to the block bytes at every point.
    """
    lives, sites, time = device.lives, device.sites, device.history.time
    if device.events <= 1:
        parts = replace(_GROUP_CURVE, columns=_GROUP_CURVE.columns[:2])
        none = "no_memory_history"
        return replace(_CURVE.missing(none), detail=False), parts.missing(none), _GROUPS.missing(none)
    kept: Collection[int] = range(device.events)
    if device.events > POINTS:
        kept = points(POINTS // 4, device.blocks.after, device.reserved.after) | {int(device.active.after.argmax())}
    event, count = np.array(sorted(kept), np.int64), len(kept)
    first, last = np.searchsorted(event, lives.begin), np.searchsorted(event, lives.end)
    lasting = np.flatnonzero(first < last)
    category, terms, _ = device.once(categories)
    key = (first_of_line(sites)[lives.stack] * len(terms) + category)[lasting]
    distinct, of = np.unique(key, return_inverse=True)
    of, first, last, size = of.reshape(-1), first[lasting], last[lasting], device.layout.size[lasting]
    largest = _largest(of, first, last, size, count)
    area = np.zeros(len(distinct), np.int64)
    np.add.at(area, of, size * (last - first))
    largest = largest[np.argsort(-area[largest], kind="stable")]

    row_of = np.full(len(distinct), len(largest))
    row_of[largest] = np.arange(len(largest))
    row = row_of[of]

    def at_points(amount: NDArray[np.int64]) -> NDArray[np.int64]:
        change = np.zeros((len(largest) + 1, count + 1), np.int64)
        np.add.at(change, (row, first), amount)
        np.subtract.at(change, (row, last), amount)
        return change.cumsum(axis=1)[:, :count]

    amount, blocks = at_points(size), at_points(np.ones_like(size))
    since = [None] * count if time is None else time[event] - time[0]
    curve = _CURVE.fill(
        event=event,
        since_start_ns=since,
        requested_bytes=device.active.after[event],
        block_bytes=device.blocks.after[event],
        reserved_bytes=device.reserved.after[event],
    )
    names = [*_NAMES[: len(largest)], "rest"]
    held = {f"group_{name}_bytes": amount[at] for at, name in enumerate(names)}
    counts = {f"group_{name}_blocks": blocks[at] for at, name in enumerate(names)}
    values = {"event": event, "since_start_ns": since, **held, **counts}
    known = replace(_GROUP_CURVE, columns=tuple(each for each in _GROUP_CURVE.columns if each.key in values))
    top = lives.stack[lasting[_top_blocks(row, size, len(largest))]].tolist()
    highest, whole = amount.argmax(axis=1), np.arange(len(names))
    groups = _GROUPS.fill(
        group=[*range(1, len(names)), None],
        memory_category=[*(terms[code % len(terms)] for code in distinct[largest]), None],
        source_line=[*(sites[code // len(terms)].line for code in distinct[largest]), Word("other_groups")],
        highest_bytes=amount[whole, highest],
        event=event[highest],
        blocks=blocks[whole, highest],
        call_stack=[*("\n".join(call_stack(device.snapshot.stacks, stack)) for stack in top), None],
    )
    return curve, replace(known.fill(**values), stack=tuple(held)), groups


def points(pieces: int, *curves: NDArray[np.int64]) -> set[int]:
    """First and last place of the curves, and of each piece of them the lowest and the highest value."""
    count = len(curves[0])
    kept = {0, count - 1}
    for first, last in pairwise(np.linspace(0, count, pieces + 1).astype(np.int64).tolist()):
        for part in (curve[first:last] for curve in curves):
            kept.update((first + int(part.argmin()), first + int(part.argmax())))
    return kept


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


def timeline_tables(timeline: MemoryTimeline) -> tuple[Table, Table]:
    """What the tensors of each category take, at the peak and over time."""
    total = timeline.bytes.sum(axis=1)
    at = int(total.argmax())
    peak = timeline.bytes[at]
    order = np.argsort(-peak, kind="stable")
    at_peak = _TENSORS.fill(
        tensor_category=[f"tensor_{TENSORS[i]}" for i in order.tolist()],
        tensor_bytes=peak[order],
        share=peak[order] / max(int(total[at]), 1),
        highest_bytes=timeline.bytes.max(axis=0)[order],
    )
    whole: dict[str, Value] = {"tensor_category": "moment_peak", "tensor_bytes": int(total[at]), "share": 1.0}
    rows = np.array(sorted(points(min(POINTS // 2, len(total)), total) | {at}), np.int64)
    curve = _TENSOR_CURVE.fill(
        since_start_ns=timeline.time[rows] - timeline.time[0],
        total_bytes=total[rows],
        **{f"{name}_bytes": timeline.bytes[rows, column] for column, name in enumerate(TENSORS)},
    )
    return replace(at_peak, totals=whole), curve
