"""Bytes of copies, for the rules about copies."""

from math import prod

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.collectives import element_bytes
from traceanalyze.model.columns import MISSING
from traceanalyze.rules.common.computing import dispatched, dtypes_of, op_text, shapes_of
from traceanalyze.rules.rule import Facts


def copied_bytes(facts: Facts, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each copy (position in `Context.device`), `MISSING` where unknown.

    As recorded; on Ascend, which does not, of the first tensor of the operator that copies.
    """
    context = facts.context
    size = context.trace.events.numbers("bytes", context.device.row[event]).astype(np.int64)
    if context.trace.origin.format != "ascend":
        return size
    row = context.op_nest.rows(dispatched(facts, context.event_op[event]))
    elements, each = op_text(facts, "shapes", row, _first, 0), op_text(facts, "dtypes", row, _bytes, 0)
    return np.where((size == MISSING) & (elements * each > 0), elements * each, size)


def _first(text: str) -> int:
    """Elements of the first tensor, at most 2³¹ - 1."""
    return min(max(prod(next(iter(shapes_of(text)), (0,))), 0), 2**31 - 1)


def _bytes(text: str) -> int:
    """Bytes of an element of the first tensor."""
    return element_bytes(next(iter(dtypes_of(text)), "")) or 0
