"""Data-quality checks of Ascend profiles: what a profiler level leaves out, clocks, the profile's own numbers (§14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.ownership import ownership
from traceanalyze.analyses.quality_collectives import collective_checks
from traceanalyze.analyses.quality_exports import export_checks
from traceanalyze.analyses.results import Check
from traceanalyze.analyses.steps import owners
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import DeviceClass, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


def ascend_checks(context: Context) -> Iterator[Check]:
    """What there is to say about an Ascend profile; nothing about any other."""
    if context.trace.origin.format == "ascend":
        yield from _absent(context)
        yield from _clock(context)
        if context.options.keep is None:
            # Tables of the whole recording say nothing of a part of it.
            yield from _vendor(context)
            yield from collective_checks(context)
            yield from export_checks(context)


def _absent(context: Context) -> Iterator[Check]:
    """What a profiler level leaves out: CANN's calls, the parts of collectives."""
    trace = context.trace
    if len(context.calls) == 0 or len(context.device) == 0:
        return
    level = trace.origin.level or "unknown level"
    names = trace.events.cat[context.calls.row]
    if not trace.strings.lookup(names, lambda text: text == "cann_runtime").any():
        yield Check("Q05", Level.WARN, "no_cann_calls", (("level", level),))
    if (context.device.klass == DeviceClass.COMM).any() and context.collective_parts is None:
        yield Check("Q05", Level.INFO, "no_collective_tasks", (("level", level),))


def _clock(context: Context) -> Iterator[Check]:
    """Host and device clocks differ a little; launches are taken to begin no later than their work."""
    skewed = _launches_before(context)
    if skewed.any():
        ahead = context.calls.start[context.link[skewed]] - context.device.start[skewed]
        values = (("count", int(skewed.sum())), ("share", float(skewed.mean())), ("most_ns", int(ahead.max())))
        yield Check("Q09", Level.INFO, "clock_skew", values)


def _launches_before(context: Context) -> NDArray[np.bool_]:
    """Device events that start before their launch by no more than clocks are known to differ."""
    early = np.zeros(len(context.device), np.bool_)
    linked = np.flatnonzero(context.link >= 0)
    called = context.calls.start[context.link[linked]]
    early[linked] = (called > context.device.start[linked]) & (context.launch_start[linked] < called)
    return early


_VENDOR_PARTS = ("computing", "communication", "not_overlapped")


def _vendor(context: Context) -> Iterator[Check]:
    """The profile's own step times against ours, over the span in which it measures (definitions §4)."""
    numbers = context.trace.vendor
    if numbers is None or len(context.device) == 0:
        return
    ours = _device_parts(context)
    theirs = [[getattr(step, part) for step in numbers.steps] for part in _VENDOR_PARTS]
    if any(value is None for values in theirs for value in values):
        return
    for part, mine, values in zip(_VENDOR_PARTS, ours, theirs, strict=True):
        stated_sum = sum(value or 0 for value in values)
        if abs(mine - stated_sum) > 0.01 * max(mine, stated_sum):
            stated = (("ours_ns", mine), ("theirs_ns", stated_sum), ("source", numbers.source))
            yield Check("Q12", Level.WARN, f"vendor_differs_{part}", stated)


def _device_parts(context: Context) -> tuple[int, int, int]:
    """Compute, communication and what of it nothing hides, of all devices; of what belongs to a step, as they count."""
    device = context.device
    owned = np.ones(len(device), np.bool_)
    if context.markers is not None:
        owned = owners(context.markers, device, *ownership(context)) >= 0
    sums = np.zeros(3, np.int64)
    for one in distinct(device.device).tolist():
        member = owned & (device.device == one)
        compute, comm = (
            intervals.merge(device.start[chosen], device.end[chosen])
            for chosen in (member & (device.klass == klass) for klass in (DeviceClass.COMPUTE, DeviceClass.COMM))
        )
        sums += (intervals.total(compute), intervals.total(comm), intervals.total(intervals.subtract(comm, compute)))
    return int(sums[0]), int(sums[1]), int(sums[2])
