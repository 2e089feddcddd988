"""Which operators something lies under."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.intervals import Intervals, contains, merge
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts


def names_under(facts: Facts, op: NDArray[np.int64], pattern: str) -> NDArray[np.bool_]:
    """Whether each operator (place in `Context.op_nest`, -1 for none), or one around it, has a name that fits."""
    nest, trace = facts.context.op_nest, facts.context.trace
    fits = re.compile(pattern)
    found = np.zeros(len(op), np.bool_)
    at = op.copy()
    while (at >= 0).any():
        here = np.flatnonzero(at >= 0)
        names = trace.events.name[nest.row[at[here]]]
        found[here] |= trace.strings.lookup(names, lambda text: fits.search(text) is not None).astype(np.bool_)
        at[here] = nest.parent[at[here]]
    return found


def inside_ranges(facts: Facts, track: NDArray[np.int32], t: NDArray[np.int64], pattern: str) -> NDArray[np.bool_]:
    """Whether each instant of a thread lies in an annotation or Python function whose name fits."""
    context, fits = facts.context, re.compile(pattern)
    events, strings = context.trace.events, context.trace.strings
    rows = np.flatnonzero((context.kind == EventKind.ANNOTATION) | (context.kind == EventKind.PYTHON))
    rows = rows[strings.lookup(events.name[rows], lambda text: fits.search(text) is not None).astype(np.bool_)]
    found = np.zeros(len(t), np.bool_)
    for thread in np.unique(track).tolist():
        mine = track == thread
        lane = context.frames.track(thread)
        here = rows[
            (events.track[rows] == thread) | ((events.track[rows] == lane) & (context.kind[rows] == EventKind.PYTHON))
        ]
        found[mine] = contains(Intervals(*merge(events.ts[here], events.ts[here] + events.dur[here])), t[mine])
    return found
