"""Device memory that operators of both sides allocate: by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.analyses.results_host import OUTSIDE_OPS
from traceanalyze.compare.allocations import UNKNOWN, allocations
from traceanalyze.compare.canonical_ops import canonical_ops, fused_names
from traceanalyze.compare.results import MemoryPair, MemorySide

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.allocations import Allocations
    from traceanalyze.compare.canonical_ops import Fused
    from traceanalyze.compare.options import CompareOptions

_NO_RECORDS = NotMeasured("no_memory_records")


def memory_pairs(base: Context, candidate: Context, options: CompareOptions) -> tuple[MemoryPair, ...] | NotMeasured:
    """Device memory allocated in the steps by canonical operator, largest change per step first.

    An allocation counts for the innermost operator of its thread at that time. NotMeasured if a side has no records.
    """
    found = allocations(base), allocations(candidate)
    if found[0] is None or found[1] is None:
        return _NO_RECORDS
    fused = fused_names(base, candidate, options)
    old, new = _totals(base, found[0], options, fused), _totals(candidate, found[1], options, fused)
    rows = [MemoryPair(name, old.get(name), new.get(name)) for name in old | new]
    steps = len(base.steps), len(candidate.steps)
    rows.sort(key=lambda row: (-abs(_bytes(row.candidate) * steps[0] - _bytes(row.base) * steps[1]), row.name))
    return tuple(rows)


def _bytes(side: MemorySide | None) -> int:
    return 0 if side is None else side.bytes


def _totals(context: Context, found: Allocations, options: CompareOptions, fused: Fused) -> dict[str, MemorySide]:
    ops = canonical_ops(context, options, fused)
    known = found.op >= 0
    key = np.full(len(found.op), -1, np.int64)
    key[known] = 2 * ops.code[found.op[known]] + ops.backward[found.op[known]]
    rows = group(key)
    lived = found.lived != UNKNOWN
    columns = rows.count(), rows.sum(found.bytes), rows.sum(np.where(lived, found.lived, 0)), rows.sum(lived)
    return {
        ops.label(int(found.op[first])) if known[first] else OUTSIDE_OPS: MemorySide(
            count, size, time if freed else None
        )
        for first, count, size, time, freed in zip(
            rows.first.tolist(), *(column.tolist() for column in columns), strict=True
        )
    }
