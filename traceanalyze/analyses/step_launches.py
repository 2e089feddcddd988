"""Launch delay and queue depth over time: one row a step (definitions §6)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.launches import clocks_agree, queue_depth
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_device import StepLaunches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.results import Steps


def step_launches(context: Context) -> StepLaunches | NotMeasured:
    """Delays and depths of the device events that start inside each window."""
    device, steps = context.device, context.steps
    linked = context.link >= 0
    if not linked.any():
        return NotMeasured("no_linked_launches" if len(context.calls) else "no_api")
    clock_error = linked & (device.start < context.launch_start)
    if not clocks_agree(clock_error, linked):
        return NotMeasured("clocks_disagree")
    good = linked & ~clock_error
    event, depth, _ = queue_depth(device, context.launch_start, good, context.link, context.calls)
    delay = np.maximum(device.start[good] - context.launch_end[good], 0)
    delayed = _by_step(steps, device.start[good], delay)
    queued = _by_step(steps, device.start[event], depth)
    return StepLaunches(
        late=_late(context),
        delay_p50=_percentiles(delayed, 50, "higher"),
        delay_p90=_percentiles(delayed, 90, "higher"),
        depth_p50=_percentiles(queued, 50, "linear"),
        depth_p90=_percentiles(queued, 90, "linear"),
    )


def step_of(steps: Steps, t: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the window that holds each instant, -1 for none."""
    row = np.searchsorted(steps.start, t, "right") - 1
    return np.where((row >= 0) & (t < steps.end[row]), row, -1)


def _late(context: Context) -> NDArray[np.int64]:
    """Events of the headline device that ended a gap and were launched after it began, by step."""
    gaps = context.gaps
    late = (gaps.call >= 0) & (gaps.launch_start >= gaps.start)
    row = step_of(context.steps, gaps.end[late])
    return np.bincount(row[row >= 0], minlength=len(context.steps))


def _by_step(steps: Steps, t: NDArray[np.int64], values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Values of each step."""
    row = step_of(steps, t)
    order = np.argsort(row, kind="stable")
    cuts = np.searchsorted(row[order], np.arange(len(steps) + 1))
    return [values[order[first:last]] for first, last in pairwise(cuts.tolist())]


def _percentiles(values: list[NDArray[np.int64]], q: int, method: str) -> NDArray[np.float64]:
    """Percentile of each step, NaN for a step without values."""
    found = [float(np.percentile(each, q, method=method)) if len(each) else np.nan for each in values]  # type: ignore[call-overload]
    return np.array(found, np.float64)
