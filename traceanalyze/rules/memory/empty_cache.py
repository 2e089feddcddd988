"""MEM102: the program empties the allocator's cache in the loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceanalyze.intervals import Intervals, contains, merge
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.allocations import allocator_calls, allocator_finding, steady
from traceanalyze.rules.finding import Confidence, Finding
from traceanalyze.rules.rule import rule

_EMPTY = re.compile(r"empty_?cache", re.IGNORECASE)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.finding import Finding
    from traceanalyze.rules.rule import Options


@rule(
    "MEM102",
    "empty-cache",
    confidence=Confidence.HIGH,
    needs="DLP",
    advice=("no_empty_cache",),
    order=-1,
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The program empties the allocator's cache in the loop.

    What it finds
        Calls of `empty_cache` in steps after the first, and the device allocations that follow from them.
    Why it costs time
        All cached memory goes back to the device, which waits for everything that runs; the next step must take it
        again.
    How it is measured
        As MEM101, in recordings with Python functions among which `empty_cache` is.
    What to do
        Remove the call; it frees nothing that the program itself could not use again.

    References
        Understanding CUDA memory usage; msprof-analyze advisor.
    """
    rows = facts.rows((EventKind.PYTHON, EventKind.ANNOTATION), _EMPTY)
    calls = facts.once(allocator_calls)
    if not len(rows) or not steady(facts, ~calls.pinned):
        return
    spans = facts.spans(rows)
    if contains(Intervals(*merge(spans[:, 0], spans[:, 1])), calls.start[calls.frees]).any():
        yield allocator_finding(facts, ~calls.pinned)
