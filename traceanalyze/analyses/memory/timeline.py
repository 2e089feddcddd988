"""An exported memory timeline: tensors by category at the peak and over time."""

from dataclasses import replace

import numpy as np

from traceanalyze.analyses.memory.columns import SINCE_START
from traceanalyze.analyses.memory.groups import POINTS, points
from traceanalyze.model.snapshot import CATEGORIES, MemoryTimeline
from traceanalyze.model.table import Column, Kind, Table, Value, declare

_PEAK = declare(
    "timeline_at_peak",
    "Tensors at the peak",
    Column("tensor_category", Kind.TERM, "the profiler's own category of tensors", heading="category"),
    Column("tensor_bytes", Kind.MEMORY, "bytes of tensors when all of them together were most", heading="at the peak"),
    Column("share", Kind.SHARE, "part of the bytes of all tensors then"),
    Column("highest_bytes", Kind.MEMORY, "most bytes of this category at any time"),
    bar="share",
)
_CURVE = declare(
    "timeline_curve",
    "Tensors over time",
    SINCE_START,
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
    stack=tuple(f"{name}_bytes" for name in CATEGORIES),
    detail=True,
)


def timeline_tables(timeline: MemoryTimeline) -> tuple[Table, Table]:
    """What the tensors of each category take, at the peak and over time."""
    total = timeline.bytes.sum(axis=1)
    at = int(total.argmax())
    peak = timeline.bytes[at]
    order = np.argsort(-peak, kind="stable")
    at_peak = _PEAK.fill(
        tensor_category=[f"tensor_{CATEGORIES[i]}" for i in order.tolist()],
        tensor_bytes=peak[order],
        share=peak[order] / max(int(total[at]), 1),
        highest_bytes=timeline.bytes.max(axis=0)[order],
    )
    whole: dict[str, Value] = {"tensor_category": "moment_peak", "tensor_bytes": int(total[at]), "share": 1.0}
    rows = np.array(sorted(points(min(POINTS // 2, len(total)), total) | {at}), np.int64)
    curve = _CURVE.fill(
        since_start_ns=timeline.time[rows] - timeline.time[0],
        total_bytes=total[rows],
        **{f"{name}_bytes": timeline.bytes[rows, column] for column, name in enumerate(CATEGORIES)},
    )
    return replace(at_peak, totals=whole), curve
