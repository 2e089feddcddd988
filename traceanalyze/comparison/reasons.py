"""Time of one side summed by reason: the common ground of work and idle time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.ranges import description_rows, types
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import locate
from traceanalyze.analyses.host.modules import event_modules
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.idle import idle_gaps, idle_pieces
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.phases import launch_places
from traceanalyze.comparison.attribution import idle_parts
from traceanalyze.comparison.canonical_ops import canonical_ops, fused_names
from traceanalyze.comparison.caveats import coverage_differs
from traceanalyze.comparison.collectives import common_names, event_groups, several
from traceanalyze.comparison.pairs import (
    DIFF,
    MODULE,
    PART,
    PLACE,
    STEP_SHARE,
    SUMS,
    PerStep,
    diff,
    minor,
    of_base,
    of_candidate,
    ratio,
    rounded,
)
from traceanalyze.comparison.results import Comparison, Contribution, SideInfo
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.table import Column, Kind, Table, Value, Word, declare
from traceanalyze.model.vocabulary import Cause, DeviceClass


@dataclass(frozen=True)
class Reason:
    """One side of a contribution."""

    time: int
    count: int
    module: str | None
    frame: str | None


Key = tuple[str, str, str]
"""Part, what and name of a contribution."""
Reasons = dict[Key, Reason]


class Pieces(NamedTuple):
    """Stretches of time to be summed; one row each."""

    key: NDArray[np.int64]
    """Position in a list of keys."""
    time: NDArray[np.int64]
    event: NDArray[np.int64]
    """Device event (of idle time: the one that ended it), -1 for none."""
    unit: NDArray[np.int64]
    """What is counted: pieces of one unit count once."""


def summed_up(side: Side, keys: Sequence[Key], pieces: Pieces, module: NDArray[np.int64] | None = None) -> Reasons:
    """Sum by key. The source line is that of the longest piece; `module` (a place for each piece) must be the same."""
    rows = group(pieces.key)
    if len(rows) == 0:
        return {}
    units = group(rows.of, pieces.unit)
    count = np.bincount(rows.of[units.first], minlength=len(rows))
    order = np.lexsort((-np.arange(len(pieces.time)), pieces.time, rows.of))
    last = np.concatenate((np.flatnonzero(np.diff(rows.of[order])), [len(order) - 1]))
    track, t = launch_places(side.context)
    event = pieces.event[order[last]]
    _, _, frames = locate(side.context, np.where(event >= 0, track[event], -1), t[event])
    modules = [-1] * len(rows) if module is None else _same(rows.of, module, rows.first)
    places = side.modules.places if side.modules is not None else ()
    return {
        keys[key]: Reason(time, number, places[place].path if place >= 0 else None, frame)
        for key, time, number, place, frame in zip(
            pieces.key[rows.first].tolist(),
            rows.sum(pieces.time).tolist(),
            count.tolist(),
            modules,
            frames,
            strict=True,
        )
    }


def _same(of: NDArray[np.int64], value: NDArray[np.int64], first: NDArray[np.int64]) -> list[int]:
    """The value that all members of each group have, -1 where they differ."""
    other = np.zeros(len(first), np.bool_)
    other[of[value != value[first[of]]]] = True
    same: list[int] = np.where(other, -1, value[first]).tolist()
    return same


_PARTS = {DeviceClass.COMPUTE: "compute", DeviceClass.COMM: "communication", DeviceClass.MEM: "memory_ops"}


class Labels(NamedTuple):
    """How work is named."""

    options: CompareOptions
    fused: frozenset[str]
    """Fused operators that the other side may have written as several."""
    groups: bool
    """Name the groups of collectives."""
    by_operator: bool
    """Compute by operator, else all of it by what kernels are for."""


def work_reasons(side: Side, labels: Labels) -> Reasons:
    """Time and number of device events of the headline device by reason; sums to the busy parts."""
    context = side.context
    event = context.once(device_work).event
    mine = np.flatnonzero(context.device.device[event] == context.devices[0])
    klass = context.device.klass[event[mine]]
    module = None
    if side.modules is not None:
        module = event_modules(context, side.modules, side.phase)
    found: Reasons = {}
    for each, part in _PARTS.items():
        chosen = mine[klass == each]
        keys, key = _KEYS[each](side, chosen, labels)
        event = context.once(device_work).event[chosen]
        pieces = Pieces(key, side.exclusive[event], event, event)
        named: list[Key] = [(part, what, name) for what, name in keys]
        found |= summed_up(side, named, pieces, None if module is None else module[chosen])
    return found


def _operators(
    side: Side, chosen: NDArray[np.int64], labels: Labels
) -> tuple[list[tuple[str, str]], NDArray[np.int64]]:
    """Canonical operator and direction of each event; without an operator what the kernel is for."""
    work = side.context.once(device_work)
    named = side.context.event_op[work.event[chosen]] >= 0 if labels.by_operator else np.zeros(len(chosen), np.bool_)
    names, of = operator_names(side, work.event[chosen], labels)
    rows = group(np.where(named, of, -1), np.where(named, -1, work.group[chosen].astype(np.int64)))
    keys = []
    for first in rows.first.tolist():
        kind = KernelGroup(int(work.group[chosen[first]])).name.lower()
        keys.append(("operator", names[int(of[first])]) if named[first] else ("kernels", kind))
    return _merged(keys, rows.of)


def operator_names(side: Side, event: NDArray[np.int64], labels: Labels) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Canonical operator and direction of each device event: names, and the position of each one's; without any ""."""
    ops = canonical_ops(side.context, labels.options, labels.fused)
    place = side.context.event_op[event]
    code = np.full(len(event), -1, np.int64)
    code[place >= 0] = 2 * ops.code[place[place >= 0]] + ops.backward[place[place >= 0]]
    rows = group(code)
    return tuple(ops.label(int(place[f])) if place[f] >= 0 else "" for f in rows.first.tolist()), rows.of


def _collectives(
    side: Side, chosen: NDArray[np.int64], labels: Labels
) -> tuple[list[tuple[str, str]], NDArray[np.int64]]:
    """Type of each collective, and its group where there are several."""
    context = side.context
    event = context.once(device_work).event[chosen]
    kind = types(context, event, description_rows(context, event))
    groups, which = event_groups(context, event)
    rows = group(kind, which if labels.groups else np.zeros(len(event), np.int64))
    keys = []
    for first in rows.first.tolist():
        name = TYPES[int(kind[first])]
        keys.append(("collective", f"{name} {groups[int(which[first])]}".rstrip() if labels.groups else name))
    return _merged(keys, rows.of)


def _copies(side: Side, chosen: NDArray[np.int64], _: Labels) -> tuple[list[tuple[str, str]], NDArray[np.int64]]:
    """Direction of each copy; fills are one."""
    event = side.context.once(device_work).event[chosen]
    return [("copy", name) for name in DIRECTIONS], directions(side.context, event)


def _merged(keys: list[tuple[str, str]], of: NDArray[np.int64]) -> tuple[list[tuple[str, str]], NDArray[np.int64]]:
    """Keys without repetition, and the position of each event's in them."""
    position = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    return list(position), np.array([position[key] for key in keys], np.int64)[of]


_KEYS = {DeviceClass.COMPUTE: _operators, DeviceClass.COMM: _collectives, DeviceClass.MEM: _copies}


def idle_reasons(side: Side, labels: Labels, of_cause: Mapping[Cause, str]) -> Reasons:
    """Time and number of gaps of the headline device by reason; sums to every idle part.

    A gap with several causes counts in the row of each. Waiting for data is one row, whatever came next.
    """
    context = side.context
    cut, _ = idle.clipped(context.once(idle_pieces), context.steps.start, context.steps.end)
    event = context.once(idle_gaps).event[cut.gap]
    known = event >= 0
    known[known] = context.event_op[event[known]] >= 0
    names, of = operator_names(side, event[known], labels)
    name = np.full(len(event), -1, np.int64)
    name[known] = of
    parts = list(dict.fromkeys(of_cause.values()))
    part = np.array([parts.index(of_cause[cause]) for cause in Cause], np.int64)[cut.cause]
    rows = group(part, name)
    keys = [_key(parts[int(part[first])], names[name[first]] if name[first] >= 0 else None) for first in rows.first]
    position = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    key = np.array([position[each] for each in keys], np.int64)[rows.of]
    return summed_up(side, list(position), Pieces(key, cut.end - cut.start, event, cut.gap))


def _key(part: str, name: str | None) -> Key:
    if part == "data_loading":
        return part, "data_loading", "DataLoader"
    return (part, "rest", "rest") if name is None else (part, "next_op", name)


WORDS = ("copy", "kernels", "rest", "data_loading")
"""Kinds of contributions that the tool names."""
MOSTLY = 0.8
"""Share of a difference from which one of its two effects is called its reason."""
_CAUSES = declare(
    "causes",
    "What makes the difference (per step)",
    replace(PLACE, minor=True),
    Column(
        "contribution",
        Kind.NAME,
        "operator, collective, copy; of idle time the operator whose work ended it",
        heading="cause",
    ),
    PART,
    *of_base(time_ns=""),
    *minor(*of_base(number="", each_ns="")),
    *of_candidate(time_ns=""),
    *minor(*of_candidate(number="", each_ns="")),
    DIFF,
    STEP_SHARE,
    Column("change", Kind.TERM, "what changed: whether there is more of it, or each takes longer", heading="how"),
    *minor(
        ratio(alias=""),
        diff(
            "number_effect_ns",
            heading="by number",
            meaning="part of the difference due to the number, at the mean duration of both sides",
        ),
        diff(
            "each_effect_ns",
            heading="by each",
            meaning="part of the difference due to the duration of each, at the mean number of both sides",
        ),
        Column("what", Kind.TERM, "what the row stands for", heading="kind"),
        MODULE,
        Column("frame", Kind.NAME, "innermost Python frame, when stacks were recorded", heading="Python frame"),
    ),
    *SUMS,
    ranked=True,
)


def causes_table(comparison: Comparison, per: PerStep) -> Table:
    """Every reason that changes anything, largest first; together they are the whole difference."""
    changed = [row for row in comparison.contributions if per.exact(row.base, row.candidate)]
    ordered = sorted(changed, key=lambda row: -abs(per.exact(row.base, row.candidate)))
    table = _CAUSES.fill_records(_cells(row, place, per) for place, row in enumerate(ordered, start=1))
    whole = per.amounts(sum(row.base for row in changed), sum(row.candidate for row in changed))
    return replace(table, totals={"part": "all_causes", **whole}) if changed else table


def _cells(row: Contribution, place: int, per: PerStep) -> dict[str, Value]:
    by_number, by_each = effects(row.base, row.candidate, (row.base_count, row.candidate_count), per)
    return {
        "place": place,
        "contribution": contribution_name(row),
        "part": row.part,
        **per.amounts(row.base, row.candidate),
        "base_number": row.base_count / per.base_steps,
        "candidate_number": row.candidate_count / per.candidate_steps,
        "base_each_ns": rounded(row.base, row.base_count) if row.base_count else None,
        "candidate_each_ns": rounded(row.candidate, row.candidate_count) if row.candidate_count else None,
        "change": _effect(row, by_number, by_each),
        "number_effect_ns": by_number,
        "each_effect_ns": by_each,
        "what": row.what,
        "module": row.module,
        "frame": row.frame,
    }


def effects(base: int, candidate: int, counts: tuple[int, int], per: PerStep) -> tuple[int, int]:
    """A difference per step as what the number of calls makes of it, and what the time of each does.

    Both are measured at the mean of the two sides, so that swapping the sides negates them; they sum to the
    difference. What one side lacks is due to its number.
    """
    whole = per.diff(base, candidate)
    if not all(counts):
        return (whole, 0) if any(counts) else (0, whole)
    before, after = counts
    # (n2/s2 - n1/s1) · (c/n2 + b/n1) / 2, over one denominator.
    numbers = after * per.base_steps - before * per.candidate_steps
    means = candidate * before + base * after
    by_number = rounded(numbers * means, 2 * before * after * per.base_steps * per.candidate_steps)
    return by_number, whole - by_number


def contribution_name(row: Contribution) -> str:
    """Its name: of the trace, or a word of the tool."""
    return Word(row.name) if row.what in WORDS else row.name


def _effect(row: Contribution, by_number: int, by_each: int) -> str:
    """Which of the two effects it is, if one of them is most of it."""
    if row.base == 0 and row.base_count == 0:
        return "change_new"
    if row.candidate == 0 and row.candidate_count == 0:
        return "change_vanished"
    whole = by_number + by_each
    if whole and by_number / whole >= MOSTLY:
        return "change_more" if whole > 0 else "change_fewer"
    if whole and by_each / whole >= MOSTLY:
        return "change_longer" if whole > 0 else "change_shorter"
    return "change_both"


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
