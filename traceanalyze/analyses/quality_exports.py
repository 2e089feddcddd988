"""Both exports of an Ascend profile describe one run: whether their headline numbers agree (check Q12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.results import Check
from traceanalyze.model.vocabulary import EventKind, Level, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.analyses.context import Context
    from traceanalyze.model.other_export import OtherExport

TOLERANCE = 0.01
"""Share by which times may differ; counts must be equal."""
_ROUNDING_NS = 1000
_PARTS = ("computing", "not_overlapped", "free")


def export_checks(context: Context) -> Iterator[Check]:
    """What differs, each with both numbers; one note where all that both tell agrees."""
    other = context.trace.other_export
    if other is None:
        return
    compared = list(_pairs(context, other))
    differ = [pair for pair in compared if not _agree(*pair)]
    for what, ours, theirs in differ:
        # The last word of a name tells its unit.
        if what.endswith("_count"):
            values = (("source", other.source), ("ours", ours), ("theirs", theirs))
        else:
            values = (("source", other.source), ("ours_ns", ours), ("theirs_ns", theirs))
        yield Check("Q12", Level.WARN, f"exports_differ_{what}", values)
    if compared and not differ:
        values_of_all = (("source", other.source), ("count", len(compared)))
        yield Check("Q12", Level.INFO, "exports_agree", values_of_all)
    if not compared:
        yield Check("Q12", Level.INFO, "exports_not_compared", (("source", other.source),))


def _agree(what: str, ours: int, theirs: int) -> bool:
    apart = abs(ours - theirs)
    return apart == 0 if what.endswith("_count") else apart <= max(TOLERANCE * max(ours, theirs), _ROUNDING_NS)


def _pairs(context: Context, other: OtherExport) -> Iterator[tuple[str, int, int]]:
    """What both tell: name, the number read here, that of the other export."""
    if other.windows is not None and context.mode == Mode.STEPS:
        steps = context.steps
        yield "step_count", len(steps), len(other.windows)
        yield "step_time", int((steps.host_end - steps.host_start).sum()), sum(other.windows)
    yield from _step_times(context, other)
    if other.kernels is not None and other.kernel_time is not None:
        rows = _kernels(context)
        yield "kernel_count", len(rows), other.kernels
        yield "kernel_time", int(context.trace.events.dur[rows].sum()), other.kernel_time


def _step_times(context: Context, other: OtherExport) -> Iterator[tuple[str, int, int]]:
    """Sums of the profile's own step times: both forms hold the same table."""
    mine = () if context.trace.vendor is None else context.trace.vendor.steps
    if not mine or not other.steps:
        return
    for part in _PARTS:
        sums = [[getattr(step, part) for step in steps] for steps in (mine, other.steps)]
        if not any(value is None for values in sums for value in values):
            yield part, sum(sums[0]), sum(sums[1])


def _kernels(context: Context) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of compute kernels: the collectives among kernels are told by the fields that only they have."""
    device, fields = context.device, context.trace.events.fields
    rows = device.row[device.kind == EventKind.KERNEL]
    collective = fields.get("collective")
    return rows if collective is None else np.setdiff1d(rows, collective.row.astype(np.int64))
