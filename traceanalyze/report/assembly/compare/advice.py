"""Where to look next: for each part that takes longer, its largest cause and one thing to check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.comparison.attribution import CALLS, headline, headline_keys
from traceanalyze.model.table import Kind, Message
from traceanalyze.model.vocabulary import Cause
from traceanalyze.report.assembly.compare.causes import WORDS
from traceanalyze.report.assembly.compare.per_step import EVEN, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceanalyze.comparison.results import Comparison
    from traceanalyze.model.table import Value
    from traceanalyze.report.assembly.compare.per_step import PerStep

MOST = 3
"""Parts that are spoken of."""
WORTH = 0.05
"""Share of all changes from which a part is."""


def advice(comparison: Comparison, per: PerStep) -> tuple[Message, ...]:
    """The parts that take longer in the candidate, most first; nothing where both steps are made up alike."""
    keys = headline_keys(comparison.parts)
    changes = [
        (per.exact(part.base, part.candidate), part.key)
        for part in headline(comparison.parts)
        if isinstance(part.base, int) and isinstance(part.candidate, int)
    ]
    whole = sum(abs(change) for change, _ in changes)
    longest = max(comparison.base.step_time * per.candidate_steps, comparison.candidate.step_time * per.base_steps)
    if whole <= EVEN * longest:
        return ()
    longer = sorted((item for item in changes if item[0] > 0 and item[0] >= WORTH * whole), key=lambda item: -item[0])
    return tuple(_of(key, change, comparison, keys, per) for change, key in longer[:MOST])


def _of(key: str, change: int, comparison: Comparison, keys: Mapping[str, str], per: PerStep) -> Message:
    """One part, with what makes most of it, if that is known."""
    values: list[tuple[str, Kind, Value]] = [
        ("part", Kind.TERM, key),
        ("diff", Kind.CHANGE, rounded(change, per.base_steps * per.candidate_steps)),
        ("check", Kind.TERM, f"check_{_check(key, change, comparison, per)}"),
    ]
    causes = [row for row in comparison.contributions if keys.get(row.part, row.part) == key and row.what not in WORDS]
    top = max(causes, key=lambda row: per.exact(row.base, row.candidate), default=None)
    if top is None or per.exact(top.base, top.candidate) <= 0:
        return Message("compare_advice", tuple(values))
    cause = (("cause", Kind.NAME, top.name), ("cause_diff", Kind.CHANGE, per.diff(top.base, top.candidate)))
    return Message("compare_advice_cause", (*values, *cause))


def _check(key: str, change: int, comparison: Comparison, per: PerStep) -> str:
    """What to check about a part: of dispatch the host operators, where they are most of its change."""
    if key == CALLS:
        return "dispatch"
    for part in comparison.parts if key == "dispatch" else ():
        if part.key == Cause.HOST_OP.key and isinstance(part.base, int) and isinstance(part.candidate, int):
            return part.key if 2 * per.exact(part.base, part.candidate) > change else key
    return key
