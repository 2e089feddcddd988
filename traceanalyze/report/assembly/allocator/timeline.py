"""The report of an exported memory timeline: tensors by category over time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.snapshot import CATEGORIES, MemoryTimeline
from traceanalyze.model.table import Column, Kind, Message
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.model import RankReport, Report, table_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_POINTS = 1000
_PEAK = (
    Column("tensor_category", Kind.TERM),
    Column("tensor_bytes", Kind.MEMORY),
    Column("share", Kind.SHARE),
    Column("highest_bytes", Kind.MEMORY),
)
_CURVE = (
    Column("since_start_ns", Kind.DURATION),
    Column("total_bytes", Kind.MEMORY),
    *(Column(f"{name}_bytes", Kind.MEMORY) for name in CATEGORIES),
)


def build_timeline_report(timeline: MemoryTimeline, *, version: str) -> Report:
    """What the tensors of each category take, at the peak and over time."""
    total = timeline.bytes.sum(axis=1)
    at = int(total.argmax())
    peak = timeline.bytes[at]
    order = np.argsort(-peak, kind="stable").tolist()
    most = max(int(total[at]), 1)
    highest = timeline.bytes.max(axis=0).tolist()
    rows = tuple((f"tensor_{CATEGORIES[i]}", int(peak[i]), int(peak[i]) / most, highest[i]) for i in order)
    whole = ("moment_peak", int(total[at]), 1.0, None)
    verdict = (
        Message("timeline_peak", (("peak", Kind.MEMORY, int(total[at])), ("changes", Kind.COUNT, timeline.rows))),
        Message("timeline_largest", (("share", Kind.SHARE, rows[0][2]), ("category", Kind.TERM, rows[0][0]))),
    )
    headline = Message(
        "about_timeline",
        (
            ("path", Kind.NAME, timeline.path),
            ("rank", Kind.COUNT, None),
            ("device", Kind.COUNT, None),
            ("device_name", Kind.TEXT, ""),
            ("steps", Kind.COUNT, timeline.rows),
            ("left_out", Kind.COUNT, 0),
        ),
    )
    tables = (
        table_of_rows("timeline_at_peak", _PEAK, rows, total=whole, bar="share"),
        table_of_rows(
            "timeline_curve",
            _CURVE,
            _curve(timeline, total),
            plot=("total_bytes", "total_bytes"),
            stack=tuple(f"{name}_bytes" for name in CATEGORIES),
            detail=True,
        ),
    )
    side = RankReport(None, timeline.path, Mode.MEMORY, 1000, headline, verdict, tables, (), ())
    return Report(timeline.path, version, verdict, (), (), (side,), (0,))


def _curve(timeline: MemoryTimeline, total: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """Rows that draw the curve: of each part of the time the lowest and the highest."""
    count = len(total)
    kept = {0, count - 1, int(total.argmax())}
    edges = np.linspace(0, count, min(_POINTS // 2, count) + 1).astype(np.int64).tolist()
    for first, last in pairwise(edges):
        part = total[first:last]
        kept.update((first + int(part.argmin()), first + int(part.argmax())))
    since = timeline.time - timeline.time[0]
    return tuple((int(since[i]), int(total[i]), *timeline.bytes[i].tolist()) for i in sorted(kept))
