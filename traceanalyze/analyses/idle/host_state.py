"""What a host thread is doing at each instant, as disjoint labelled segments (definitions §5, "host state")."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.vocabulary import ApiClass, Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

API_CAUSE = {
    ApiClass.LAUNCH: Cause.DISPATCH_LAUNCH,
    ApiClass.COPY: Cause.DISPATCH_COPY,
    ApiClass.ALLOC: Cause.DISPATCH_ALLOC,
    ApiClass.OTHER: Cause.DISPATCH_OTHER,
    ApiClass.SYNC: Cause.SYNC,
}


class States(NamedTuple):
    """Disjoint segments of one thread in time order, each with the `Cause` (or `Phase`) it stands for."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cause: NDArray[np.uint8]

    @property
    def spans(self) -> Intervals:
        """The segments without their labels."""
        return Intervals(self.start, self.end)


def layered(layers: Iterable[tuple[int, Intervals]]) -> States:
    """Segments of several overlapping sets where an earlier set hides the later ones."""
    seen = [(cause, one) for cause, one in layers if len(one.start)]
    parts: list[tuple[int, Intervals]] = []
    taken = intervals.EMPTY
    for cause, one in seen:
        parts.append((cause, intervals.subtract(one, taken)))
        if len(parts) < len(seen):
            taken = intervals.union(taken, one)
    if not parts:
        return States(*intervals.EMPTY, np.empty(0, np.uint8))
    start = np.concatenate([p.start for _, p in parts])
    end = np.concatenate([p.end for _, p in parts])
    causes = np.concatenate([np.full(len(p.start), c, np.uint8) for c, p in parts])
    order = np.argsort(start, kind="stable")
    return States(start[order], end[order], causes[order])
