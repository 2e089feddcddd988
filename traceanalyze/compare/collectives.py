"""Collectives of both sides by type, group and size, whatever the library calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.collective_ranges import description_rows, types
from traceanalyze.analyses.exclusive import exclusive_time
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.work import argument
from traceanalyze.compare.groups import common_names, event_groups
from traceanalyze.compare.measured import change, measured
from traceanalyze.compare.results import CollectivePair
from traceanalyze.model.collectives import TYPES, counts_output, element_bytes
from traceanalyze.model.op_calls import MOST_ELEMENTS
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.options import CompareOptions
    from traceanalyze.compare.results import Measured, Time

_UNKNOWN = -1
"""Size of a collective that does not state it."""


class _Key(NamedTuple):
    kind: str
    group: str
    bytes: int


class _Side(NamedTuple):
    """Collectives of one side; one row an event."""

    work: NDArray[np.int64]
    """Positions in `context.work`."""
    kinds: list[_Key]
    of: NDArray[np.int64]
    """Position in `kinds`."""


def collective_pairs(base: Context, candidate: Context, _: CompareOptions) -> tuple[CollectivePair, ...] | NotMeasured:
    """Collectives by type, group and size, most changed exposed time first.

    Types are those of definitions §12, whatever the library; groups are matched by `groups.common_names`. Sizes count
    where both sides state them and share them: of one type and group the collectives that only one side has in their
    size are compared together, in the order in which they ran. Times are inside the steps and on all devices, and sum
    to all device time of communication; so do the exposed times to the time of communication in the step.
    NotMeasured if neither side communicates.
    """
    names = common_names(base, candidate)
    sides = [_side(context, own) for context, own in zip((base, candidate), names, strict=True)]
    if not any(len(side.work) for side in sides):
        return NotMeasured("no_communication")
    shared = _shared_sizes(set(sides[0].kinds), set(sides[1].kinds))
    keys: dict[_Key, int] = {}
    rows = []
    numbers = []
    for context, side in zip((base, candidate), sides, strict=True):
        number = [keys.setdefault(shared.get(key, key), len(keys)) for key in side.kinds]
        of = np.array(number, np.int64)[side.of] if number else side.of
        numbers.append((measured(context, side.work, of), _parts(context, side.work, of)))
    (old, old_parts), (new, new_parts) = numbers
    for key, index in keys.items():
        one, other = old.get(index), new.get(index)
        wait, transfer, exposed = old_parts.get(index, _missing(one))
        new_wait, new_transfer, new_exposed = new_parts.get(index, _missing(other))
        rows.append(
            CollectivePair(
                kind=key.kind,
                group=key.group,
                bytes=None if key.bytes == _UNKNOWN else key.bytes,
                base=one,
                candidate=other,
                base_wait=wait,
                candidate_wait=new_wait,
                base_transfer=transfer,
                candidate_transfer=new_transfer,
                base_exposed=exposed,
                candidate_exposed=new_exposed,
            )
        )
    steps = len(base.steps), len(candidate.steps)
    rows.sort(
        key=lambda row: (
            -abs(row.candidate_exposed * steps[0] - row.base_exposed * steps[1]),
            -change(row.base, row.candidate, steps),
            (row.kind, row.group, row.bytes or 0),
        )
    )
    return tuple(rows)


def _side(context: Context, names: Mapping[str, str]) -> _Side:
    work = np.flatnonzero(context.device.klass[context.work.event] == DeviceClass.COMM)
    event = context.work.event[work]
    if len(event) == 0:
        return _Side(work, [], event)
    described = description_rows(context, event)
    kind = types(context, event, described)
    labels, which = event_groups(context, event)
    size = _sizes(context, described, kind)
    rows = group(kind, which, size)
    kinds = [
        _Key(TYPES[int(kind[first])], names.get(labels[int(which[first])], labels[int(which[first])]), int(size[first]))
        for first in rows.first.tolist()
    ]
    # Groups that are called the same have the same key.
    position = {key: index for index, key in enumerate(dict.fromkeys(kinds))}
    return _Side(work, list(position), np.array([position[key] for key in kinds], np.int64)[rows.of])


def _sizes(context: Context, described: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each collective, `_UNKNOWN` where not stated: of its input, of an all_gather its output."""
    given, result, dtype = (
        np.where(described >= 0, argument(context, field, np.maximum(described, 0)), _UNKNOWN)
        for field in ("in_elements", "out_elements", "dtype")
    )
    rows = group(kind, given, result, dtype)
    found = []
    for first in rows.first.tolist():
        elements = int((result if counts_output(TYPES[int(kind[first])]) else given)[first])
        each = element_bytes(context.trace.strings.text(int(dtype[first]))) if dtype[first] >= 0 else None
        found.append(_UNKNOWN if each is None or not 0 <= elements <= MOST_ELEMENTS else elements * each)
    return np.array(found, np.int64)[rows.of]


def _shared_sizes(base: set[_Key], candidate: set[_Key]) -> dict[_Key, _Key]:
    """Keys of sizes that only one side has, under a key that both have."""
    alone = base - candidate, candidate - base
    both = [{key[:2] for key in side} for side in alone]
    return {
        key: _Key(key.kind, key.group, _UNKNOWN)
        for side in alone
        for key in side
        if key[:2] in both[0] and key[:2] in both[1]
    }


_Parts = dict[int, tuple["Time", "Time", int]]
"""Wait, transfer and exposed time by row."""


def _missing(side: Measured | None) -> tuple[Time, Time, int]:
    """Of a row that a side does not have: nothing waited, if it could have been told."""
    return (0, 0, 0) if side is None else (NotMeasured("needs_all_ranks"), NotMeasured("needs_all_ranks"), 0)


def _parts(context: Context, work: NDArray[np.int64], of: NDArray[np.int64]) -> _Parts:
    """Waiting is what is left of a collective without the time in which some plane moves data."""
    event, time = context.work.event[work], context.work.time[work]
    windows = intervals.merge(context.steps.start, context.steps.end)
    exposed = np.zeros(len(context.device), np.int64)
    for one in context.devices if len(work) else ():
        exposed += exclusive_time(context.device, one, windows)
    rows = group(of)
    bare = rows.sum(exposed[event]).tolist()
    parts = context.collective_parts
    keys = of[rows.first].tolist()
    if parts is None:
        why = NotMeasured("needs_all_ranks")
        return {key: (why, why, each) for key, each in zip(keys, bare, strict=True)}
    moved = parts.by_event(intervals.coverage(windows, parts.start, parts.end))[event]
    unknown = rows.sum(~parts.recorded[event]).tolist()
    sums = zip(rows.sum(time - moved).tolist(), rows.sum(moved).tolist(), strict=True)
    untold = NotMeasured("no_collective_tasks")
    return {
        key: (untold, untold, each) if some else (wait, transfer, each)
        for key, each, some, (wait, transfer) in zip(keys, bare, unknown, sums, strict=True)
    }
