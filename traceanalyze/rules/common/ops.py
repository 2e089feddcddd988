"""Which operators something lies under."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.intervals import Intervals, contains, merge
from traceanalyze.model.columns import distinct
from traceanalyze.model.vocabulary import EventKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts


def names_under(facts: Facts, op: NDArray[np.int64], pattern: str) -> NDArray[np.bool_]:
    """Whether each operator (place in `Context.op_nest`, -1 for none), or one around it, has a name that fits."""
    nest, trace, fits = facts.context.op_nest, facts.context.trace, re.compile(pattern)
    fitting = [code for code, text in facts.named((EventKind.HOST_OP,))[2].items() if fits.search(text)]
    if not fitting:
        return np.zeros(len(op), np.bool_)
    wanted = np.zeros(len(trace.strings), np.bool_)
    wanted[fitting] = True
    place = np.flatnonzero(wanted[trace.events.name[nest.row]])
    # What lies under an operator follows it in the tree, up to its stop.
    return contains(merge(place, nest.stop[place].astype(np.int64)), op)


def inside_ranges(facts: Facts, track: NDArray[np.int32], t: NDArray[np.int64], pattern: str) -> NDArray[np.bool_]:
    """Whether each instant of a thread lies in an annotation or Python function whose name fits."""
    context, fits = facts.context, re.compile(pattern)
    events, strings = context.trace.events, context.trace.strings
    rows = np.flatnonzero((context.kind == EventKind.ANNOTATION) | (context.kind == EventKind.PYTHON))
    rows = rows[strings.lookup(events.name[rows], lambda text: fits.search(text) is not None).astype(np.bool_)]
    found = np.zeros(len(t), np.bool_)
    for thread in distinct(track).tolist():
        mine = track == thread
        lane = context.frames.track(thread)
        here = rows[
            (events.track[rows] == thread) | ((events.track[rows] == lane) & (context.kind[rows] == EventKind.PYTHON))
        ]
        found[mine] = contains(Intervals(*merge(events.ts[here], events.ts[here] + events.dur[here])), t[mine])
    return found
