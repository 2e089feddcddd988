"""Runtime calls and the other host events the analyses ask for, by thread."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.classify import WAITS_OF_XPU, api_class
from traceanalyze.model.columns import Rows, distinct, rows_of, short
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import ApiClass, EventKind


@dataclass(frozen=True, eq=False)
class ApiCalls:
    """Runtime and driver calls sorted by (track, start, longer first). Times int64 ns."""

    row: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    track: NDArray[np.int32]
    name: NDArray[np.int32]
    klass: NDArray[np.uint8]
    """`ApiClass`"""
    sync: NDArray[np.uint8]
    """`SyncKind` by name alone; blocking-in-effect copies are found by `syncs`."""
    outermost: NDArray[np.bool_]
    """Not inside another call of its thread (a driver call inside a runtime call counts once)."""

    def __len__(self) -> int:
        return len(self.row)


def api_calls(trace: Trace, kind: NDArray[np.uint8]) -> ApiCalls:
    """Collect and classify the runtime calls of a trace."""
    row = rows_of(kind, EventKind.API)
    waits = trace.strings.matches(trace.events.cat, lambda text: text.lower() == WAITS_OF_XPU)[row]
    if waits.any():
        known = trace.strings.matches(trace.events.name[row], lambda text: api_class(text)[0] == ApiClass.SYNC)
        row, waits = row[~waits | known], waits[~waits | known]
    start = trace.events.ts[row]
    end = start + trace.events.dur[row]
    track = trace.events.track[row]
    if waits.any():
        thread = {int(trace.tracks[one, 1]): one for one in distinct(track[~waits]).tolist()}
        track[waits] = [thread.get(int(trace.tracks[one, 1]), one) for one in track[waits].tolist()]
    order = np.lexsort((-end, start, track))
    row, start, end, track = row[order], start[order], end[order], track[order]
    name = trace.events.name[row]

    def both_classes(text: str) -> int:
        klass, sync = api_class(text)
        return klass * 8 + sync

    coded: NDArray[np.uint8] = trace.strings.lookup(name, both_classes, np.uint8)
    return ApiCalls(
        short(row), start, end, track, name, coded >> np.uint8(3), coded & np.uint8(7), _outermost(start, end, track)
    )


def _outermost(start: NDArray[np.int64], end: NDArray[np.int64], track: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether no earlier call of the same track still runs when a call starts."""
    outer = np.ones(len(start), np.bool_)
    for first, last in runs(track):
        reach = np.maximum.accumulate(end[first:last])
        outer[first + 1 : last] = start[first + 1 : last] >= reach[:-1]
    return outer


def runs(key: NDArray[np.signedinteger[Any]]) -> list[tuple[int, int]]:
    """Bounds of the runs of equal values of a sorted array."""
    if len(key) == 0:
        return []
    cuts = np.flatnonzero(key[1:] != key[:-1]) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(key)], strict=True))


class ByTrack(NamedTuple):
    """Rows of some events grouped by track, each group in file order."""

    rows: NDArray[np.int64]
    bounds: dict[int, tuple[int, int]]

    def of(self, track: int) -> NDArray[np.int64]:
        """Rows on one track."""
        first, last = self.bounds.get(track, (0, 0))
        return self.rows[first:last]


def by_track(trace: Trace, rows: Rows) -> ByTrack:
    """Group event rows by track."""
    track = trace.events.track[rows]
    order = np.argsort(track, kind="stable")
    grouped = track[order]
    return ByTrack(rows[order], {int(grouped[first]): (first, last) for first, last in runs(grouped)})
