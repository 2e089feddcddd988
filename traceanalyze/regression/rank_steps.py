"""One rank of a run with the steps that count, and to which of them each event belongs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.steps.steps import owners
from traceanalyze.comparison.side import side
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from traceanalyze.analyses.options import Options
    from traceanalyze.analyses.results import Steps
    from traceanalyze.comparison.side import Side
    from traceanalyze.model.trace import Trace


@frozen
class RankSteps:
    """A rank and its usable steps: complete ones after the warm-up."""

    side: Side
    """Its `context.steps` are the usable steps."""
    position: NDArray[np.int64]
    """Of each step of the recording its row among the usable ones, -1 for the others."""

    @property
    def count(self) -> int:
        """Usable steps."""
        return len(self.side.context.steps)

    def of_host(self, t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Usable step whose marker (to the next marker) holds each instant, -1 for none; without markers the whole."""
        context = self.side.context
        if context.markers is None:
            return np.zeros(len(t), np.int64)
        steps = context.all_steps
        at = np.searchsorted(steps.host_start, t, "right") - 1
        return self._usable(np.where(t > steps.host_end[-1], -1, at))

    def of_device(self) -> NDArray[np.int64]:
        """Usable step that launched each device event; of events without a launch the one they begin in."""
        context = self.side.context
        if context.markers is None:
            return np.zeros(len(context.device), np.int64)
        time, known = context.ownership
        steps, start = context.all_steps, context.device.start
        at = np.searchsorted(steps.end, start, "right")
        inside = (at < len(steps)) & (start >= steps.start[np.minimum(at, len(steps) - 1)])
        owned = owners(context.markers, context.device, time, known)
        return self._usable(np.where(known, owned, np.where(inside, at, -1)))

    def per_step(self, step: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.float64]:
        """Exact sums by usable step; rows of no step (-1) are left out."""
        out = np.zeros(self.count, np.int64)
        np.add.at(out, step[step >= 0], values[step >= 0])
        return out.astype(np.float64)

    def counted(self, step: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows by usable step."""
        return np.bincount(step[step >= 0], minlength=self.count).astype(np.float64)

    def _usable(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(at >= 0, self.position[at], -1)


def rank_steps(
    trace: Trace, options: Options, *, warmup: int, chosen: Callable[[Steps], NDArray[np.bool_]] | None = None
) -> RankSteps:
    """Analyse one rank over its usable steps.

    Args:
        trace: the recording.
        options: classification; its steps are ignored.
        warmup: marked steps left out at the beginning of the recording.
        chosen: the user's choice of steps; then nothing is left out as warm-up.
    """

    def usable(steps: Steps) -> NDArray[np.bool_]:
        marked = not (len(steps) == 1 and steps.name[0] == "whole trace")
        wanted = np.arange(len(steps)) >= (warmup if marked else 0) if chosen is None else chosen(steps)
        return wanted & steps.complete

    found = side(trace, replace(options, steps=usable))
    mask = usable(found.context.all_steps)
    return RankSteps(found, np.where(mask, np.cumsum(mask) - 1, -1))
