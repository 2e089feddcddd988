"""Where to look for a finding: its longest stretch in the trace, and the line of the program that most of it is for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model.columns import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.finding import Finding

MOST = 64
"""Stretches whose lines are looked up, longest first: names of lines are found one by one."""


def located(one: Finding, facts: Facts) -> Finding:
    """The finding with a place on its first evidence, where it has stretches of time and no place yet.

    A stretch is for the device event that it is, or that ends it: its line is that of the user's function from which
    the event was launched. The line that most of the stretches are for is told, with the longest of them; without any
    line, the longest of all.
    """
    spans = one.intervals
    if spans is None or not len(spans) or not one.evidence or any(each.start is not None for each in one.evidence):
        return one
    length = spans[:, 1] - spans[:, 0]
    longest = spans[np.argsort(-length, kind="stable")[:MOST]]
    lines = _lines(facts, longest[:, 0])
    time: dict[str, int] = {}
    for line, span in zip(lines, longest.tolist(), strict=True):
        if line is not None:
            time[line] = time.get(line, 0) + span[1] - span[0]
    line = max(time, key=lambda each: time[each], default=None)
    start, end = longest[lines.index(line) if line is not None else 0].tolist()
    first = replace(one.evidence[0], start=start, end=end, line=one.evidence[0].line or line)
    ops = one.scope.ops or (() if line is None else (line,))
    return replace(one, evidence=(first, *one.evidence[1:]), scope=replace(one.scope, ops=ops))


def _lines(facts: Facts, start: NDArray[np.int64]) -> list[str | None]:
    """User's line that launched the first device event at or after each instant; None where that is not known.

    Of a host that computes, the line it was at.
    """
    context = facts.context
    if facts.host_computes:
        return context.locate(context.step_track, start)[2]
    mine = np.flatnonzero(context.device.device == context.devices[0]) if context.devices else np.zeros(0, np.int64)
    found: list[str | None] = [None] * len(start)
    if not len(mine) or not len(context.calls):
        return found
    event = mine[np.minimum(np.searchsorted(context.device.start[mine], start, "left"), len(mine) - 1)]
    call = context.link[event]
    track = np.where(call >= 0, context.calls.track[call], -1)
    for thread in distinct(track[call >= 0]).tolist():
        rows = np.flatnonzero(track == thread)
        _, _, frames = context.locate(thread, context.calls.start[call[rows]])
        for row, frame in zip(rows.tolist(), frames, strict=True):
            found[row] = frame
    return found
