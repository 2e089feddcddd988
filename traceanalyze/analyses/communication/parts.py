"""What collectives consist of, where the profile records it (Ascend): moving data, and waiting for others (§12)."""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
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


def collective_parts(context: Context) -> CollectiveParts | None:
    """The tasks of all collectives that move data or wait; None where the profile has none."""
    trace, device = context.trace, context.device
    column = trace.events.fields.get("part_of")
    if column is None or len(device) == 0:
        return None
    place = np.full(len(trace.events), -1, np.int64)
    place[device.row] = np.arange(len(device))
    row, owner = column.row.astype(np.int64), np.asarray(column.value, np.int64)
    valid = (owner >= 0) & (owner < len(place))
    event = np.where(valid, place[np.where(valid, owner, 0)], -1)
    row, event = row[event >= 0], event[event >= 0]
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


def went_over(context: Context, row: NDArray[np.int64], link: re.Pattern[str]) -> NDArray[np.bool_]:
    """Whether the kind of link, or of transport, of each task (rows of events) is so called; False where not told."""
    found = np.zeros(len(row), np.bool_)
    for name in ("link_type", "transport"):
        code = context.trace.events.numbers(name, row)
        known = code >= 0
        named = context.trace.strings.lookup(code[known].astype(np.int32), lambda text: link.search(text) is not None)
        found[known] |= named.astype(np.bool_)
    return found
