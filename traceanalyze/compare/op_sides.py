"""One side of matched calls as results: names, shapes, kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.operators import counted_events
from traceanalyze.analyses.results_host import OUTSIDE_OPS, UNLINKED
from traceanalyze.analyses.work import argument
from traceanalyze.compare.calls import compact
from traceanalyze.compare.results import OpSide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.calls import Calls

    Work = tuple[NDArray[np.int64], NDArray[np.int64]]
    """Device events, and their time inside the windows."""


def without_operator(context: Context) -> dict[str, Work]:
    """Device events in the windows whose launch lies in no operator, or is not known; only what there is."""
    event, time = counted_events(context)
    alone, linked = context.event_op[event] < 0, context.link[event] >= 0
    parts = ((UNLINKED, alone & ~linked), (OUTSIDE_OPS, alone & linked))
    return {name: (event[member], time[member]) for name, member in parts if member.any()}


class OpSides:
    """Makes the results of one side's calls."""

    def __init__(self, calls: Calls, owner: NDArray[np.int64]) -> None:
        self._calls, self._context = calls, calls.context
        of = owner[calls.event_unit]
        order = np.argsort(of, kind="stable")
        self._event, self._time = (column[order] for column in calls.events)
        self._bound = np.searchsorted(of[order], np.arange(len(owner) + 1))
        self._without = without_operator(calls.context)

    def busy(self, place: int) -> bool:
        """Whether a call has device work; none (-1) has not."""
        return place >= 0 and bool(self._bound[place] < self._bound[place + 1])

    def of(self, places: Sequence[int]) -> list[OpSide | None]:
        """The calls at some places, None for each -1."""
        context = self._context
        place = np.array(places, np.int64)
        row = context.op_nest.row[np.maximum(place, 0)]
        text = context.trace.strings.text
        shapes, dtypes = (argument(context, field, row).tolist() for field in ("shapes", "dtypes"))
        frames = frames_at(
            context, self._calls.track[np.maximum(place, 0)], context.op_nest.start[np.maximum(place, 0)]
        )
        return [
            None
            if at < 0
            else OpSide(
                name=self._name(at),
                shapes=compact(text(shape)) if shape >= 0 else None,
                dtypes=compact(text(dtype)) if dtype >= 0 else None,
                kernels=self._kernels(slice(int(self._bound[at]), int(self._bound[at + 1]))),
                device_time=int(self._time[self._bound[at] : self._bound[at + 1]].sum()),
                start=int(context.op_nest.start[at]),
                frame=frame,
            )
            for at, shape, dtype, frame in zip(places, shapes, dtypes, frames, strict=True)
        ]

    def _name(self, place: int) -> str:
        """Name as recorded; of operators that stand for a fused one those that launched work, in order."""
        events, text = self._context.trace.events, self._context.trace.strings.text
        if not self._calls.grouped[place]:
            return text(int(events.name[self._context.op_nest.row[place]]))
        launched = self._context.event_op[self._event[self._bound[place] : self._bound[place + 1]]]
        parts = dict.fromkeys(launched[np.argsort(launched, kind="stable")].tolist())
        return " + ".join(text(int(events.name[self._context.op_nest.row[part]])) for part in parts)

    def _kernels(self, mine: slice) -> tuple[tuple[str, int], ...]:
        """Device events in order of start."""
        names = self._context.device.name[self._event[mine]].tolist()
        text = self._context.trace.strings.text
        return tuple((text(name), time) for name, time in zip(names, self._time[mine].tolist(), strict=True))

    def together(self, name: str, places: NDArray[np.int64]) -> OpSide | None:
        """Several calls as one; None if they have no device work."""
        mine = np.concatenate(
            [np.zeros(0, np.int64), *(np.arange(self._bound[at], self._bound[at + 1]) for at in places.tolist())]
        )
        return self._sum(name, (self._event[mine], self._time[mine])) if len(mine) else None

    def alone(self, name: str) -> OpSide | None:
        """Work of no operator, see `without_operator`."""
        work = self._without.get(name)
        return None if work is None else self._sum(name, work)

    def _sum(self, name: str, work: Work) -> OpSide:
        """Work as one row, its kernels summed by name, most time first."""
        event, time = work
        kernels = summed_kernels(self._context, event, time)
        start = int(self._context.device.start[event].min())
        return OpSide(name, None, None, kernels, int(time.sum()), start)


def summed_kernels(context: Context, event: NDArray[np.int64], time: NDArray[np.int64]) -> tuple[tuple[str, int], ...]:
    """Time of device events by name, most first."""
    rows = group(context.device.name[event])
    names = [context.trace.strings.text(int(code)) for code in context.device.name[event[rows.first]].tolist()]
    return tuple(sorted(zip(names, rows.sum(time).tolist(), strict=True), key=lambda item: (-item[1], item[0])))


def frames_at(context: Context, track: NDArray[np.int32], t: NDArray[np.int64]) -> list[str | None]:
    """User source line of a thread at an instant each; threads below 0 are unknown."""
    found: list[str | None] = [None] * len(t)
    lanes = group(track)
    for lane, first in enumerate(lanes.first.tolist()):
        mine = np.flatnonzero(lanes.of == lane)
        if track[first] >= 0:
            _, _, frames = context.locate(int(track[first]), t[mine])
            for at, frame in zip(mine.tolist(), frames, strict=True):
                found[at] = frame
    return found
