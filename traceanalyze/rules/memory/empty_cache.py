import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.host.frames import locate
from traceanalyze.model.columns import occurs
from traceanalyze.model.intervals import Intervals, contains
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.allocations import allocator_calls, allocator_finding, steady
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Scope, merged, rule

_EMPTY = regex(r"empty_?cache", re.IGNORECASE)


@rule(
    "MEM102",
    "empty-cache",
    title="cache emptied in the loop",
    sentence=(
        "empty_cache() runs in the loop: {count} allocator call(s) in all (takes|take) {time} {per}, and "
        "(leaves|leave) the device idle "
        "for {idle}."
    ),
    confidence=Confidence.HIGH,
    needs="DLAP",
    advice_texts={
        "no_empty_cache.cuda": "Remove torch.cuda.empty_cache() from the loop.",
        "no_empty_cache.ascend": "Remove torch_npu.npu.empty_cache() from the loop.",
    },
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """The program empties the allocator's cache in the loop.

    What it finds
        Calls of `empty_cache` in steps after the first, and the device allocations that follow from them.
    Why it costs time
        All cached memory goes back to the device, which waits for everything that runs; the next step must take it
        again.
    How it is measured
        As MEM101, in recordings with Python functions among which `empty_cache` is. Operators that give memory back
        themselves do so for lack of it: what they take is left to MEM101 and MEM103.
    What to do
        Remove the call; it frees nothing that the program itself could not use again.

    References
        Understanding CUDA memory usage; msprof-analyze advisor.
    """
    calls = facts.once(allocator_calls)
    if not steady(facts, ~calls.pinned):
        return
    rows = facts.rows((EventKind.PYTHON, EventKind.ANNOTATION), _EMPTY)
    spans = facts.spans(rows)
    emptied = calls.frees & contains(Intervals(*merged(spans)), calls.start)
    if not emptied.any():
        return
    short = calls.op[calls.frees & ~emptied & ~calls.pinned & (calls.op >= 0)]
    found, lines = allocator_finding(facts, ~calls.pinned & ~occurs(calls.op, short)), _lines(facts, emptied)
    first = int(np.flatnonzero(emptied)[0])
    line = lines[0] if lines else None
    place = found.evidence[0]._replace(start=int(calls.start[first]), end=int(calls.end[first]), line=line)
    yield replace(found, evidence=(place, *found.evidence[1:]), scope=Scope(ops=lines[:3]))


def _lines(facts: Facts, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    """Lines of the program that the chosen calls come from, each once."""
    calls = facts.once(allocator_calls)
    _, _, lines = locate(facts.context, calls.track[chosen], calls.start[chosen])
    return tuple(dict.fromkeys(line for line in lines if line))
