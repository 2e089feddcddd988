"""Reasons for the difference, each with its exact share: work by operator, idle time by what ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.compare.attribution import idle_parts
from traceanalyze.compare.canonical_ops import fused_names
from traceanalyze.compare.caveats import coverage_differs
from traceanalyze.compare.groups import common_names, several
from traceanalyze.compare.idle_reasons import idle_reasons
from traceanalyze.compare.results import Contribution
from traceanalyze.compare.work_reasons import Labels, work_reasons

if TYPE_CHECKING:
    from traceanalyze.compare.options import CompareOptions
    from traceanalyze.compare.reasons import Reasons
    from traceanalyze.compare.results import SideInfo
    from traceanalyze.compare.side import Side


def contributions(base: Side, candidate: Side, options: CompareOptions) -> tuple[Contribution, ...]:
    """Rows of every part, largest absolute change per step first; none where a side has no device events.

    The rows of a part sum to it on both sides, exactly. A row is one canonical operator and direction (compute), type
    and group of collectives, direction of copies, or operator before whose work the device was idle. Where operators
    cannot be compared, compute is by what kernels are for, so that a change of class does not show as a speed-up (M5).
    """
    if base.partition is None or candidate.partition is None:
        return ()
    of_cause = idle_parts(base, candidate)
    groups = several(common_names(base.context, candidate.context))
    fused = fused_names(base.context, candidate.context, options)
    labels = Labels(options, fused, groups, by_operator=not coverage_differs(base, candidate))
    found = [work_reasons(side, labels) | idle_reasons(side, labels, of_cause) for side in (base, candidate)]
    rows = [_row(key, *found) for key in found[0] | found[1]]
    rows.sort(key=lambda row: (-_change(row, base.info, candidate.info), row.part, row.what, row.name))
    return tuple(rows)


def _row(key: tuple[str, str, str], base: Reasons, candidate: Reasons) -> Contribution:
    part, what, name = key
    old, new = base.get(key), candidate.get(key)
    modules = {side.module for side in (old, new) if side is not None}
    frames = [side.frame for side in (new, old) if side is not None and side.frame is not None]
    return Contribution(
        part=part,
        what=what,
        name=name,
        base=old.time if old else 0,
        candidate=new.time if new else 0,
        base_count=old.count if old else 0,
        candidate_count=new.count if new else 0,
        module=modules.pop() if len(modules) == 1 else None,
        frame=frames[0] if frames else None,
    )


def _change(row: Contribution, base: SideInfo, candidate: SideInfo) -> int:
    """Absolute change per step, times the number of steps of both sides."""
    return abs(row.candidate * base.count - row.base * candidate.count)
