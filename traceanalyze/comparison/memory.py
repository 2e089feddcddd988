"""Device memory that operators of both sides allocate: by name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.nesting import followed, innermost
from traceanalyze.analyses.host.operators import OUTSIDE_OPS
from traceanalyze.analyses.memory.recorded import HOST, field_of, records_in_time
from traceanalyze.analyses.steps.phases import program_threads
from traceanalyze.comparison import columns
from traceanalyze.comparison.align import fused_names, paired
from traceanalyze.comparison.calls import Calls, described
from traceanalyze.comparison.canonical_ops import Fused, accountable, canonical_ops
from traceanalyze.comparison.pairs import section
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured

_Cells = dict[str, Any]
"""What a row says of one side."""
_MAKES = regex(
    r"empty_tensor|aten::((new_)?(empty|zeros|ones|full)(_like|_strided)?|empty_\w+|resize_\w*|_resize_output_?)"
)
UNKNOWN = -1
"""How long an allocation lived whose free was not recorded."""


class Allocations(NamedTuple):
    """One row an allocation on a device, in order of time."""

    op: NDArray[np.int64]
    """Place in `context.op_nest` of the innermost operator of its thread at the time, -1 for none.

    Operators that do nothing but make a tensor (`aten::empty` …) count for the operator that calls them.
    """
    bytes: NDArray[np.int64]
    lived: NDArray[np.int64]
    """ns until it was freed, or `UNKNOWN`."""


def allocations(context: Context) -> Allocations | None:
    """Records of the allocator begun in the steps; None where the profile has none."""
    instants, row = context.trace.instants, records_in_time(context)
    if "bytes" not in instants.fields:
        return None
    row = row[field_of(context, "device_type", row) != HOST]
    change, lived = field_of(context, "bytes", row, 0), _lived(context, row)
    made = (change > 0) & intervals.contains(context.host_windows, instants.ts[row])
    at = row[made]
    op = innermost(context.op_nest, instants.track[at], instants.ts[at])
    # Ascend's table of allocations has no threads: what the step's thread did not do, another one of the program did.
    for track in program_threads(context) if context.trace.origin.format == "ascend" else ():
        rest = np.flatnonzero(op < 0)
        op[rest] = innermost(context.op_nest, np.full(len(rest), track, np.int32), instants.ts[at[rest]])
    return Allocations(_allocating(context, op), change[made], lived[made])


def _allocating(context: Context, op: NDArray[np.int64]) -> NDArray[np.int64]:
    """The innermost operators that do more than make a tensor; where there is none the outermost."""
    nested = context.op_nest
    if len(nested) == 0:
        return op
    names = context.trace.events.name[nested.row]
    makes = context.trace.strings.matches(names, _MAKES.fullmatch)
    of = accountable(context, np.zeros(len(nested), np.bool_))
    more = followed(np.where(makes & (nested.parent >= 0), of[nested.parent], np.arange(len(nested))))
    return np.where(op >= 0, more[of[op]], op)


def _lived(context: Context, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time from each record to the next one of its address, if that is a free of as much."""
    address = field_of(context, "address", row)
    device, change = field_of(context, "device", row), field_of(context, "bytes", row)
    order = np.lexsort((np.arange(len(row)), address, device))
    this, following = order[:-1], order[1:]
    freed = (address[this] == address[following]) & (device[this] == device[following])
    freed &= (change[this] == -change[following]) & (address[this] != -1)
    lived = np.full(len(row), UNKNOWN, np.int64)
    t = context.trace.instants.ts[row]
    lived[this[freed]] = (t[following] - t[this])[freed]
    return lived


_NO_RECORDS = NotMeasured("no_memory_records")
MEMORY = section(
    "memory_compare_statistic",
    "Device memory allocated by operators (per step)",
    replace(columns.PLACE, alias="Top"),
    replace(columns.OP, alias="Operator Name"),
    *columns.both(
        lifetime_ns="{side} Allocated Duration(ms)", bytes="{side} Allocated Memory(MB)", calls="{side} Operator Number"
    ),
    columns.diff("diff_bytes", "Diff Memory(MB)"),
    columns.ratio(),
    columns.CHANGE_SHARE,
    columns.MATCH,
    by="bytes",
)


def memory_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device memory allocated in the steps by canonical operator.

    An allocation counts for the innermost operator of its thread at that time. NotMeasured if a side has no records.
    """
    found = allocations(base), allocations(candidate)
    if found[0] is None or found[1] is None:
        return _NO_RECORDS
    fused = fused_names(base, candidate, options)
    old, new = _totals(base, found[0], options, fused), _totals(candidate, found[1], options, fused)
    return [Pair({"op": name}, old.get(name), new.get(name)) for name in sorted(old | new)]


def _totals(context: Context, found: Allocations, options: CompareOptions, fused: Fused) -> dict[str, _Cells]:
    names, of = canonical_ops(context, options, fused).named(found.op)
    rows, freed = group(of), found.lived != UNKNOWN
    amounts = rows.count(), rows.sum(found.bytes), rows.sum(np.where(freed, found.lived, 0)), rows.sum(freed)
    cells = zip(of[rows.first].tolist(), *(amount.tolist() for amount in amounts), strict=True)
    return {
        names[name] or OUTSIDE_OPS: {
            "calls": count,
            "bytes": size,
            "lifetime_ns": time if frees else NotMeasured("no_frees"),
        }
        for name, count, size, time, frees in cells
    }


OTHER_CALLS = "<other calls>"
"""Stands for calls that are not matched one by one: those that only wrap others, and steps without a partner."""
_OUTSIDE = -1


MEMORY_CALLS = section(
    "memory_compare",
    "Device memory allocated call by call",
    Column("order", Kind.COUNT, "order in time", alias="Order Id"),
    *columns.both(
        op="Operator Name",
        shapes="Input Shape",
        dtypes="Input Type",
        details="Allocated Details",
        size_bytes="Size(KB)",
    ),
    columns.diff("diff_size_bytes", "Diff Size(KB)"),
    columns.ratio(),
    columns.CHANGE_SHARE,
    columns.PLACE,
    columns.MATCH,
    by="size_bytes",
    detail=True,
    per_call=True,
)


def memory_call_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Allocations of matched calls (see `operators.operator_pairs`), in order of time; calls with none are left out.

    What other calls allocated, and what was allocated in none, are rows at the end: so each allocation in the steps
    counts once. NotMeasured if a side has no records of its allocator, or no operators.
    """
    found = allocations(base), allocations(candidate)
    if found[0] is None or found[1] is None:
        return _NO_RECORDS
    if min(len(base.op_nest), len(candidate.op_nest)) == 0:
        return NotMeasured("no_host_ops")
    calls, pairing = paired(base, candidate, options)
    sides = [
        _Side(one, made, level.owner)
        for one, made, level in zip(calls, (found[0], found[1]), pairing.levels, strict=True)
    ]
    pairs = list(zip(*(side.of([row[at] for row in pairing.rows]) for at, side in enumerate(sides)), strict=True))
    pairs += [(sides[0].rest(name), sides[1].rest(name)) for name in (OTHER_CALLS, OUTSIDE_OPS)]
    there = [pair for pair in pairs if any(pair)]
    return [Pair({"order": order}, *pair) for order, pair in enumerate(there, start=1)]


class _Side:
    """Allocations of one side by call; those handed out are crossed off."""

    def __init__(self, calls: Calls, made: Allocations, owner: NDArray[np.int64]) -> None:
        self._context, self._made = calls.context, made
        self._left: dict[int, list[int]] = {}
        known = made.op >= 0
        of = np.full(len(made.op), _OUTSIDE, np.int64)
        of[known] = owner[calls.ops.unit[made.op[known]]]
        for index, place in enumerate(of.tolist()):
            self._left.setdefault(place, []).append(index)

    def of(self, places: Sequence[int]) -> list[_Cells | None]:
        """What single calls allocated; None for one with nothing, and where there is no call (-1)."""
        rows = [self._left.pop(place, None) if place >= 0 else None for place in places]
        there = [at for at, one in enumerate(rows) if one is not None]
        event = self._context.op_nest.row[np.array([places[at] for at in there], np.int64)]
        names = self._context.trace.strings.each(self._context.trace.events.name[event])
        shapes, dtypes = (described(self._context, field, event) for field in ("shapes", "dtypes"))
        cells: list[_Cells | None] = [None] * len(places)
        for at, *call in zip(there, names, shapes, dtypes, strict=True):
            name, shape, dtype = call
            cells[at] = self._cells(str(name), rows[at] or (), shape, dtype)
        return cells

    def rest(self, name: str) -> _Cells | None:
        """What was allocated in other calls, or in none."""
        places = [place for place in self._left if (place == _OUTSIDE) == (name == OUTSIDE_OPS)]
        rows = sorted(index for place in places for index in self._left.pop(place))
        return self._cells(name, rows, None, None) if rows else None

    def _cells(self, name: str, rows: Sequence[int], shapes: str | None, dtypes: str | None) -> _Cells:
        sizes, lived = (column[rows].tolist() for column in (self._made.bytes, self._made.lived))
        each = tuple((size, None if time == UNKNOWN else time) for size, time in zip(sizes, lived, strict=True))
        return {"op": name, "shapes": shapes, "dtypes": dtypes, "details": each, "size_bytes": sum(sizes)}
