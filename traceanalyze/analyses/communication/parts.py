"""What of a collective is moving data and what is waiting: recorded (Ascend, §12), or told by others of its kind."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import distinct, occurs
from traceanalyze.model.patterns import regex

MOVES = regex(r"Memcpy|Reduce|RDMA|SDMA|Write(?!.?Value)|Read", re.IGNORECASE)
_WAITS = regex(r"Notify.?Wait", re.IGNORECASE)


class CollectiveParts(NamedTuple):
    """Tasks of the collectives; times int64 ns."""

    recorded: NDArray[np.bool_]
    """Whether tasks of a device event are recorded that move data or wait; one value a device event."""
    event: NDArray[np.int64]
    """Device event of each piece of transfer, ascending."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    """The pieces: time in which any plane moves data, inside the collective; those of one event are disjoint."""
    longest_wait: NDArray[np.int64]
    """Longest wait on one plane, by device event."""
    waited_for: NDArray[np.int64]
    """Rank inside the group that it was for, -1 where unknown."""

    def by_event(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums over the pieces of each device event."""
        out = np.zeros(len(self.recorded), np.int64)
        np.add.at(out, self.event, values)
        return out


def collective_tasks(context: Context) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the tasks of collectives, and the device event that each is part of; none where they are not recorded."""
    trace, device = context.trace, context.device
    column = trace.events.fields.get("part_of")
    if column is None or len(device) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    place = np.full(len(trace.events), -1, np.int64)
    place[device.row] = np.arange(len(device))
    row, owner = column.row.astype(np.int64), np.asarray(column.value, np.int64)
    valid = (owner >= 0) & (owner < len(place))
    event = np.where(valid, place[np.where(valid, owner, 0)], -1)
    return row[event >= 0], event[event >= 0]


def collective_parts(context: Context) -> CollectiveParts | None:
    """The tasks of all collectives that move data or wait; None where the profile has none."""
    trace, device, (row, event) = context.trace, context.device, collective_tasks(context)
    told = trace.strings.matches(trace.events.name[row], lambda text: MOVES.match(text) or _WAITS.match(text))
    row, event = row[told], event[told]
    if len(row) == 0:
        return None
    recorded = np.zeros(len(device), np.bool_)
    recorded[event] = True
    start = trace.events.ts[row]
    end = start + trace.events.dur[row]
    name = trace.events.name[row]
    moves = trace.strings.matches(name, MOVES.match)
    inside_start = np.maximum(start, device.start[event])[moves]
    inside_end = np.minimum(end, device.end[event])[moves]
    longest, waited_for = _longest_wait(context, row, event, end - start)
    return CollectiveParts(recorded, *_union_by_event(event[moves], inside_start, inside_end), longest, waited_for)


def _union_by_event(
    event: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Union of the intervals of each event: event, start and end of the disjoint pieces."""
    some = np.flatnonzero(end > start)
    order = some[np.lexsort((start[some], event[some]))]
    if len(order) == 0:
        return event[order], start[order], end[order]
    event, start, end = event[order], start[order], end[order]
    first = np.concatenate(([True], event[1:] != event[:-1]))
    # The running maximum of ends must begin anew with each event: events are moved apart by more than the whole span.
    _, number = np.unique(event, return_inverse=True)
    apart = number.reshape(-1) * (int(end.max()) - int(start.min()) + 1)
    reach = np.maximum.accumulate(end + apart) - apart
    opens = first | np.concatenate(([True], start[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return event[opens], start[opens], reach[closes]


def _longest_wait(
    context: Context, row: NDArray[np.int64], event: NDArray[np.int64], length: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Longest wait for another rank in each collective, and the rank that it was for."""
    trace = context.trace
    longest, peer = np.zeros(len(context.device), np.int64), np.full(len(context.device), -1, np.int64)
    waits = np.flatnonzero(trace.strings.lookup(trace.events.name[row], lambda text: _WAITS.match(text) is not None))
    order = waits[np.argsort(length[waits], kind="stable")]
    longest[event[order]] = length[order]
    peer[event[order]] = np.maximum(trace.events.numbers("dst_rank", row[order], -1), -1)
    return longest, peer


NETWORK = regex(r"RDMA|ROCE", re.IGNORECASE)
ON_DEVICE = regex(r"ON_CHIP|LOCAL", re.IGNORECASE)
SDMA_GBS, SDMA_REACHED = 18.0, 0.8
"""msprof-analyze advisor: GB/s of a large transfer between devices of one machine, and the share of it that is fair."""


def went_over(context: Context, row: NDArray[np.int64], link: re.Pattern[str]) -> NDArray[np.bool_]:
    """Whether the kind of link, or of transport, of each task (rows of events) is so called; False where not told."""
    found = np.zeros(len(row), np.bool_)
    for name in ("link_type", "transport"):
        code = context.trace.events.numbers(name, row)
        known = code >= 0
        named = context.trace.strings.lookup(code[known].astype(np.int32), lambda text: link.search(text) is not None)
        found[known] |= named.astype(np.bool_)
    return found


TIMES = 10
"""So many times the median of its siblings (own: network and algorithm make collectives of one size differ by less)."""
TIMES_SCALED = 5
"""The same of what another size needs, scaled up to its bytes (own): large messages are no slower a byte than small
ones, so that this is more than they need."""
TIMES_LARGER = 3
"""The same of what one that sent more took (own: another algorithm, or compute beside it, costs less)."""
SIBLINGS = 4
"""Fewer collectives of one kind and size have no usual time."""
_EVEN = [TYPES.index(kind) for kind in ("all_reduce", "all_gather", "reduce_scatter")]
"""Those of which every rank sends and receives as many bytes as the others."""
_BETWEEN_TWO = [TYPES.index(kind) for kind in ("send", "recv", "send_recv")]


def outlasting(
    kind: NDArray[np.int64], size: NDArray[np.int64], of: NDArray[np.int64], time: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time of each collective beyond the median of those of its kind, size and process group, 0 where it is usual.

    Of two middle ones the shorter counts, so that one long collective beside one short one in each step is told. Where
    all of one size wait, others of their kind and group tell what they need, by the byte; and none needs three times as
    long as one that sent more. Those whose size (bytes) is not recorded, -1, are not judged; nor are sends and
    receives, whose waiting is the schedule of a pipeline.
    """
    rows = group(kind, size, of)
    order = np.lexsort((time, rows.of))
    count = rows.count()
    first = np.cumsum(count) - count
    middle = time[order][first + (count - 1) // 2][rows.of] if len(rows) else time
    judged = (size >= 0) & (count[rows.of] >= SIBLINGS) & (middle > 0) & ~occurs(kind, _BETWEEN_TWO)
    found = np.where(judged & (time >= TIMES * middle), time - middle, 0)
    even = np.flatnonzero(judged & (size > 0) & (of >= 0) & occurs(kind, _EVEN))
    for place in rows.first[distinct(rows.of[even])]:
        alike = even[(kind[even] == kind[place]) & (of[even] == of[place])]
        needed = (middle[place] * np.maximum(size[alike] / size[place], 1)).astype(np.int64)
        longer = np.where(time[alike] >= TIMES_SCALED * needed, time[alike] - needed, 0)
        longer[size[alike] == size[place]] = 0
        found[alike] = np.maximum(found[alike], longer)
    return np.maximum(found, beyond_larger(kind, size, of, time))


def beyond_larger(
    kind: NDArray[np.int64],
    size: NDArray[np.int64],
    of: NDArray[np.int64],
    time: NDArray[np.int64],
    least: int | None = None,
) -> NDArray[np.int64]:
    """What each takes beyond the shortest of its kind and group that sent more, or as much where these are few.

    Where it takes `least` times as long; by default as much as proves that it waits.
    """
    found, never = np.zeros(len(time), np.int64), np.iinfo(np.int64).max
    rows = np.flatnonzero((size > 0) & (time > 0) & ~occurs(kind, _BETWEEN_TWO))
    sized = group(kind[rows], of[rows], size[rows])
    shortest = np.full(len(sized), never)
    np.minimum.at(shortest, sized.of, time[rows])
    few, larger = np.where(sized.count() < SIBLINGS, shortest, never), np.full(len(sized), never)
    first = rows[sized.first]
    order = np.lexsort((-size[first], of[first], kind[first]))
    other = np.flatnonzero((np.diff(kind[first[order]]) != 0) | (np.diff(of[first[order]]) != 0)) + 1
    for alike in np.split(order, other):
        larger[alike[1:]] = np.minimum.accumulate(shortest[alike])[:-1]
    # What the others send to a rank in an exchange is not in its size.
    times = np.where(occurs(kind[rows], _EVEN), TIMES_LARGER, TIMES)
    for needed, proof in ((few[sized.of], TIMES), (larger[sized.of], times)):
        longer = time[rows] // (proof if least is None else least) >= needed
        found[rows[longer]] = np.maximum(found[rows[longer]], (time[rows] - needed)[longer])
    return found
