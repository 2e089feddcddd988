"""Which operator launched which device event (definitions §8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.links import arrows
from traceanalyze.analyses.nesting import innermost

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context


_OP_FLOWS = frozenset({"async_npu"})


def launching_ops(context: Context) -> NDArray[np.int64]:
    """Place in `context.op_nest` of the operator of each device event, -1 for none.

    The innermost operator around the call by which the program asked for the event, on the thread of the call; else
    the one an `async_npu` arrow starts at; the `External id` decides only where the launch was not recorded.
    """
    op = np.full(len(context.device), -1, np.int64)
    linked = context.link >= 0
    op[linked] = context.call_op[context.asked[linked]]
    if (op < 0).any() and len(context.trace.flows.ts):
        op = np.where(op < 0, _by_arrow(context), op)
    alone = np.flatnonzero(~linked & (op < 0))
    op[alone] = _by_external_id(context, alone)
    return op


def _by_arrow(context: Context) -> NDArray[np.int64]:
    """By the arrows from operators to device events of torch_npu: they start where the innermost operator does."""
    found = np.full(len(context.device), -1, np.int64)
    source, event = arrows(context.trace, context.device, _OP_FLOWS)
    if len(source):
        flows = context.trace.flows
        found[event] = innermost(context.op_nest, flows.track[source], flows.ts[source])
    return found


def _by_external_id(context: Context, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """By the id of the operator. In many traces the field only repeats the correlation: such values mean nothing."""
    found = np.full(len(event), -1, np.int64)
    column = context.trace.events.fields.get("external_id")
    if column is None or len(event) == 0 or len(context.op_nest) == 0:
        return found
    wanted = column.take(context.device.row[event], 0)
    correlation = context.trace.events.fields.get("correlation")
    if correlation is not None:
        wanted[wanted == correlation.take(context.device.row[event], -1)] = 0
    offered = column.take(context.op_nest.row, 0)
    order = np.argsort(offered, kind="stable")
    at = np.searchsorted(offered[order], wanted)
    at[at == len(order)] = 0
    valid = (wanted > 0) & (offered[order[at]] == wanted)
    found[valid] = order[at[valid]]
    return found
