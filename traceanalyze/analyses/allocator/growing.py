"""Requests that grow from step to step, and the memory that is taken from the device for them (MEM105)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.results_patterns import GrowingSizes
from traceanalyze.analyses.results import NotMeasured
from traceanalyze.model.snapshot import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.allocator.results_calls import DeviceCalls
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.analyses.allocator.steps import StepStarts
    from traceanalyze.model.snapshot import History

STEPS = 3
"""Steps after the first; own. The first step, and what is made when first needed, grow in every program."""
_SIZE_BITS = 42
"""4 TiB: no request is larger."""


def growing_sizes(
    history: History, calls: DeviceCalls, starts: StepStarts, sites: Sequence[Site]
) -> GrowingSizes | NotMeasured:
    """Calls of the device for a request larger than any before with the same stack, in steps after the first."""
    if len(starts.first) < STEPS + 1:
        return NotMeasured("no_memory_steps")
    record = _records(history)
    asking = np.minimum(calls.last + 1, max(len(history) - 1, 0))
    known = history.stack[asking] >= 0 if len(calls) else np.zeros(0, np.bool_)
    chosen = np.flatnonzero((calls.grown > 0) & (calls.request > 0) & record[asking] & known)
    step = np.searchsorted(starts.first, asking[chosen], "right") - 1
    chosen, step = chosen[step > 0], step[step > 0]
    if len(chosen) == 0:
        return GrowingSizes("", 0, 0, 0, 0, 0, flagged=False)
    codes, of = np.unique(history.stack[asking[chosen]], return_inverse=True)
    taken = np.zeros(len(codes), np.int64)
    np.add.at(taken, of, calls.grown[chosen])
    steps = np.bincount(np.unique(np.stack((of, step)), axis=1)[0], minlength=len(codes))
    # The user can change a line of the program; what grows in the backward pass follows from it.
    named = np.array([sites[code].path is not None for code in codes.tolist()], np.bool_)
    best = int(np.lexsort((taken, named, steps >= STEPS))[-1])
    own = of == best
    return GrowingSizes(
        line=sites[int(codes[best])].line,
        steps=int(steps[best]),
        smallest=int(calls.request[chosen[own][0]]),
        largest=int(calls.request[chosen[own][-1]]),
        grown=int(calls.grown[chosen].sum()),
        retries=sum(calls.kind[row] in {"retry", "failed_retry"} for row in chosen.tolist()),
        flagged=bool(steps[best] >= STEPS),
    )


def _records(history: History) -> NDArray[np.bool_]:
    """Allocations larger than all before with the same stack; the first of a stack is none."""
    allocs = np.flatnonzero(history.action == Action.ALLOC)
    order = allocs[np.argsort(history.stack[allocs], kind="stable")]
    stack = history.stack[order].astype(np.int64) + 1
    highest = np.maximum.accumulate((stack << _SIZE_BITS) + history.size[order])
    larger = np.zeros(len(order), np.bool_)
    larger[1:] = (stack[1:] == stack[:-1]) & (highest[1:] > highest[:-1])
    out = np.zeros(len(history), np.bool_)
    out[order[larger]] = True
    return out
