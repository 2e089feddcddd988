"""Device memory that one side allocated inside the steps, and the operator that asked for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.analyses.nesting import innermost
from traceanalyze.compare.levels import accountable
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context

_MAKES = re.compile(
    r"empty_tensor|aten::((new_)?(empty|zeros|ones|full)(_like|_strided)?|empty_\w+|resize_\w*|_resize_output_?)"
)
_HOST = 0
"""`Device Type` of the host in the profiler's records."""
UNKNOWN = -1
"""How long an allocation lived that was not seen to be freed."""


@frozen
class Allocations:
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
    instants = context.trace.instants
    size = instants.fields.get("bytes")
    if size is None:
        return None
    row = size.row.astype(np.int64)
    row = row[np.argsort(instants.ts[row], kind="stable")]
    row = row[_field(context, "device_type", row) != _HOST]
    change, lived = size.take(row, 0), _lived(context, row)
    mine = np.flatnonzero((change > 0) & intervals.contains(context.host_windows, instants.ts[row]))
    at = row[mine]
    return Allocations(
        op=_asking(context, innermost(context.op_nest, instants.track[at], instants.ts[at])),
        bytes=change[mine],
        lived=lived[mine],
    )


def _asking(context: Context, op: NDArray[np.int64]) -> NDArray[np.int64]:
    """The innermost operators that do more than make a tensor; where there is none the outermost."""
    nested = context.op_nest
    if len(nested) == 0:
        return op
    names = context.trace.events.name[nested.row]
    makes = context.trace.strings.lookup(names, lambda text: _MAKES.fullmatch(text) is not None).astype(np.bool_)
    of = accountable(context, np.zeros(len(nested), np.bool_))
    op[op >= 0] = of[op[op >= 0]]
    while True:
        up = np.flatnonzero((op >= 0) & makes[op] & (nested.parent[op] >= 0))
        if len(up) == 0:
            return op
        op[up] = of[nested.parent[op[up]]]


def _field(context: Context, name: str, row: NDArray[np.int64]) -> NDArray[np.int64]:
    column = context.trace.instants.fields.get(name)
    return np.full(len(row), -1, np.int64) if column is None else column.take(row, -1)


def _lived(context: Context, row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time from each record to the next one of its address, if that is a free of as much."""
    address = _field(context, "address", row)
    device, change = _field(context, "device", row), _field(context, "bytes", row)
    order = np.lexsort((np.arange(len(row)), address, device))
    this, following = order[:-1], order[1:]
    freed = (address[this] == address[following]) & (device[this] == device[following])
    freed &= (change[this] == -change[following]) & (address[this] != -1)
    lived = np.full(len(row), UNKNOWN, np.int64)
    t = context.trace.instants.ts[row]
    lived[this[freed]] = (t[following] - t[this])[freed]
    return lived
