"""The sentences a comparison opens with: how much, made of what, how much of it explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.comparison.attribution import STEP, headline
from traceanalyze.model.table import Kind, Message, NotMeasured
from traceanalyze.report.assembly.compare.causes import contribution_name
from traceanalyze.report.assembly.compare.per_step import EVEN
from traceanalyze.report.assembly.compare.sides import mean_step

if TYPE_CHECKING:
    from traceanalyze.comparison.results import Comparison, Contribution, Part
    from traceanalyze.model.table import Value
    from traceanalyze.report.assembly.compare.per_step import PerStep

NAMED = 4
"""Parts named in the verdict."""
WORTH_NAMING = 0.02
"""Share of all changes from which a part is named."""
ALL = 0.999
"""Explained share of the difference from which it is called all."""
UNEXPLAINED = ("untraced", "idle", "outside_calls")
"""Parts that say only that the profile does not tell."""


def verdict(comparison: Comparison, per: PerStep) -> tuple[Message, ...]:
    """What there is to say, most important first."""
    changes = _changes(comparison, per)
    base, candidate = mean_step(comparison.base), mean_step(comparison.candidate)
    step = comparison.base.step_time, comparison.candidate.step_time
    values: list[tuple[str, Kind, Value]] = [("base", Kind.DURATION, base), ("candidate", Kind.DURATION, candidate)]
    if per.change == 0 and not changes:
        return (Message("compare_same", (("time", Kind.DURATION, base),)),)
    if per.even and sum(abs(diff) for _, diff in changes) <= EVEN * max(base, candidate):
        return (Message("compare_even", (*values, ("diff", Kind.CHANGE, per.diff(*step)))),)
    named = _named(changes)
    for number, (part, diff) in enumerate(named, start=1):
        values += [(f"part{number}", Kind.TERM, part.key), (f"diff{number}", Kind.CHANGE, diff)]
    if per.even:
        return (Message(f"compare_equal_{len(named)}", (*values, ("diff", Kind.CHANGE, per.diff(*step)))),)
    word = "slower" if per.change > 0 else "faster"
    share = abs(per.change) / (step[0] * per.candidate_steps) if step[0] else NotMeasured("empty_window")
    values += [("diff", Kind.DURATION, abs(per.diff(*step))), ("share", Kind.SHARE, share)]
    first = Message(f"compare_{word}_{len(named)}", tuple(values))
    if not named:
        return (first, Message("compare_unexplained"))
    return (first, *_explained(comparison, per), *_largest(comparison, named, per))


def _changes(comparison: Comparison, per: PerStep) -> list[tuple[Part, int]]:
    """Parts that differ, largest change first; what one side cannot tell is left out."""
    known = [
        (part, per.diff(part.base, part.candidate))
        for part in headline(comparison.parts)
        if part.key != STEP and isinstance(part.base, int) and isinstance(part.candidate, int)
    ]
    return sorted([item for item in known if item[1]], key=lambda item: -abs(item[1]))


def _named(changes: list[tuple[Part, int]]) -> list[tuple[Part, int]]:
    whole = sum(abs(diff) for _, diff in changes)
    return [item for item in changes[:NAMED] if abs(item[1]) >= WORTH_NAMING * whole]


def _explained(comparison: Comparison, per: PerStep) -> tuple[Message, ...]:
    """How much of the difference is not mere time that the profiles do not show."""
    unknown = [
        per.exact(part.base, part.candidate)
        for part in comparison.parts
        if part.key in UNEXPLAINED and isinstance(part.base, int) and isinstance(part.candidate, int)
    ]
    rest = sum(unknown)
    share = max(0.0, 1 - abs(rest) / abs(per.change))
    if share > ALL:
        return (Message("compare_explained_all"),)
    scale = per.base_steps * per.candidate_steps
    left: tuple[str, Kind, Value] = ("rest", Kind.CHANGE, round(rest / scale))
    if not share:
        # More is unknown than differs in all: the known parts nearly cancel out, and no share says so.
        return (Message("compare_unknown", (left,)),)
    return (Message("compare_explained", (("share", Kind.SHARE, share), left)),)


def _largest(comparison: Comparison, named: list[tuple[Part, int]], per: PerStep) -> tuple[Message, ...]:
    """The largest single reason, if it says more than its part does."""
    found = [row for row in comparison.contributions if row.what != "rest"]
    if not found:
        return ()
    top: Contribution = max(found, key=lambda row: abs(per.exact(row.base, row.candidate)))
    diff = per.diff(top.base, top.candidate)
    if not diff or any(part.key == top.part and change == diff for part, change in named):
        return ()
    values = (
        ("name", Kind.NAME, contribution_name(top)),
        ("part", Kind.TERM, top.part),
        ("diff", Kind.CHANGE, diff),
    )
    return (Message("compare_largest", values),)
