"""Launch delay and queue depth over time: one row a step (definitions §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.analyses.launches import clocks_agree
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
    queue = context.queue
    if not clocks_agree(linked & ~queue.good, linked):
        return NotMeasured("clocks_disagree")
    delay = np.maximum(device.start[queue.good] - context.launch_end[queue.good], 0)
    delayed = _by_step(steps, device.start[queue.good], delay)
    queued = _by_step(steps, device.start[queue.event], queue.depth)
    return StepLaunches(
        late=_late(context),
        delay_p50=_percentiles(delayed, 50, between=False),
        delay_p90=_percentiles(delayed, 90, between=False),
        depth_p50=_percentiles(queued, 50, between=True),
        depth_p90=_percentiles(queued, 90, between=True),
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


class _Sorted(NamedTuple):
    """Values step by step, ascending in each."""

    value: NDArray[np.int64]
    first: NDArray[np.int64]
    """Place of each step's first value."""
    size: NDArray[np.int64]
    """Number of its values."""


def _by_step(steps: Steps, t: NDArray[np.int64], values: NDArray[np.int64]) -> _Sorted:
    """Values of each step."""
    row = step_of(steps, t)
    order = np.lexsort((values, row))
    cuts = np.searchsorted(row[order], np.arange(len(steps) + 1))
    return _Sorted(values[order], cuts[:-1], np.diff(cuts))


def _percentiles(values: _Sorted, q: int, *, between: bool) -> NDArray[np.float64]:
    """Percentile of each step as `numpy.percentile` has it, NaN for a step without values.

    Args:
        values: what to take it of.
        q: 0 to 100.
        between: interpolate ("linear") where it falls between two values; else the larger ("higher").
    """
    out = np.full(len(values.size), np.nan)
    some = values.size > 0
    first, last = values.first[some], values.size[some] - 1
    place = last * (q / 100)
    low = (np.floor(place) if between else np.ceil(place)).astype(np.int64)
    lower, upper = values.value[first + low], values.value[first + np.minimum(low + 1, last)]
    share = np.where(between, place - low, 0.0)
    step = upper - lower
    out[some] = np.where(share < 0.5, lower + step * share, upper - step * (1 - share))
    return out
