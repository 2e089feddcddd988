"""The places in a trace that show the findings best, kept while the trace is still there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.excerpt_window import place
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.build.excerpts import key_of

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context
    from traceanalyze.analyses.excerpt_window import Place
    from traceanalyze.report.build.excerpts import Key
    from traceanalyze.rules.evaluate import Outcome
    from traceanalyze.rules.finding import Finding

MAX_PLACES = 6
"""Findings that are shown in the trace, most saving first."""


def places_of(context: Context, outcome: Outcome) -> dict[Key, Place]:
    """The longest instance of each finding that has one in time, with its surroundings."""
    if context.mode == Mode.EMPTY:
        return {}
    known = [(key_of(one), _longest(one)) for one in outcome.findings]
    timed = [(key, instance) for key, instance in known if instance is not None]
    return {key: place(context, *instance) for key, instance in timed[:MAX_PLACES]}


def _longest(one: Finding) -> tuple[int, int] | None:
    """Start and end, ns; the first of equals."""
    if one.intervals is not None and len(one.intervals):
        start, end = one.intervals[int(np.argmax(one.intervals[:, 1] - one.intervals[:, 0]))].tolist()
        return start, end
    spans = [(each.start, each.end) for each in one.evidence if each.start is not None and each.end is not None]
    return max(spans, key=lambda span: span[1] - span[0], default=None)
