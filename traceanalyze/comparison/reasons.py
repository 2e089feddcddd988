"""Time of one side summed by reason: the common ground of work and idle time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, types
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct, group
from traceanalyze.analyses.host.modules import event_modules
from traceanalyze.analyses.host.nesting import innermost
from traceanalyze.analyses.idle.host_state import HostSplit, host_states
from traceanalyze.analyses.idle.idle import Pieces, idle_gaps, step_pieces
from traceanalyze.analyses.idle.syncs import held_up
from traceanalyze.analyses.kernels.ascend import type_of_name
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.window import rounded
from traceanalyze.comparison import columns
from traceanalyze.comparison.align import fused_names
from traceanalyze.comparison.attribution import headline_work, idle_parts
from traceanalyze.comparison.calls import described, tensors
from traceanalyze.comparison.canonical_ops import Fused, canonical_ops
from traceanalyze.comparison.caveats import coverage_differs
from traceanalyze.comparison.collectives import common_names, event_groups, plain_api, several, untemplated
from traceanalyze.comparison.kernels import kernel_labels
from traceanalyze.comparison.noise import half_width
from traceanalyze.comparison.operators import frames_of_longest, longest
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import Rows
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.table import Column, Kind, Table, Value, Word, declare, labels_of
from traceanalyze.model.vocabulary import AND, ARROW, BUSY_PARTS, DISPATCH_CALLS, Cause


@dataclass(frozen=True)
class Reason:
    """One side of a reason for the difference."""

    time: int
    """Exclusive device time, or idle time."""
    count: int
    """Device events, or gaps of idle time."""
    module: str | None
    """Path of the module, when all of it lies in one."""
    frame: str | None
    """User source line of the longest piece."""
    steps: tuple[int, ...] = ()
    """Its time in each step that counts."""
    work: str | None = None
    """Of compute tensors, types, kernel and core of the longest piece."""


_NONE = Reason(0, 0, None, None)
Key = tuple[str, str, str]
"""Part, what and name of a reason.

What: operator, layout (what an operator does to change layouts and types), kernel (of a region that holds most of the
compute), kernels (work by what it is for, where the operator
is not known or not comparable), collective, copy, in_op (idle while the host is in this operator or call, or after it
has waited there), next_op (idle before work of this operator), data_loading or rest.
"""
Reasons = dict[Key, Reason]


def summed_up(
    side: Side,
    keys: Sequence[Key],
    key: NDArray[np.int64],
    time: NDArray[np.int64],
    event: Rows,
    unit: Rows,
    start: NDArray[np.int64],
    module: NDArray[np.int64] | None = None,
    line: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> Reasons:
    """Stretches of time of one side, each with the position of its reason among the `keys`, summed by reason.

    `event`: device event (of idle time: the one that ended it), -1 for none; the source line is the longest's.
    Stretches of one `unit` count once. `module`: place of each, that of all stretches of a reason, or none. `line`:
    thread (-1: that of the event's launch) and time at which to look for each one's source line.
    """
    rows = group(key)
    if len(rows) == 0:
        return {}
    count = np.bincount(rows.of[group(rows.of, unit).first], minlength=len(rows))
    place = np.full(len(rows), -1)
    if module is not None:
        place = module[rows.first]
        place[rows.of[module != place[rows.of]]] = -1
    paths = [side.modules.places[at].path if side.modules and at >= 0 else None for at in place.tolist()]
    frames = frames_of_longest(side.context, rows.of, event, time, line)
    steps = side.context.steps
    step = np.maximum(np.searchsorted(steps.start, start, "right") - 1, 0)
    by_step = np.zeros((len(rows), max(len(steps), 1)), np.int64)
    np.add.at(by_step, (rows.of, step), time)
    reasons = map(Reason, rows.sum(time).tolist(), count.tolist(), paths, frames, map(tuple, by_step.tolist()))
    return dict(zip((keys[at] for at in key[rows.first].tolist()), reasons, strict=True))


class Labels(NamedTuple):
    """How work is named."""

    options: CompareOptions
    fused: Fused
    """Fused operators that the other side may have written as several."""
    groups: bool
    """Name the groups of collectives."""
    by_operator: bool
    """Compute by operator, else all of it by what kernels are for."""
    opened: frozenset[str] = frozenset()
    """Operators whose kernels are named instead."""
    kernels: Mapping[str, str] = MappingProxyType({})
    """What these are called."""
    split: frozenset[str] = frozenset()
    """Operators whose changes of layout and type are told beside them."""


_Keyed = tuple[list[tuple[str, str]], NDArray[np.int64]]
"""What and name of reasons, and the position of each piece's."""


def work_reasons(side: Side, labels: Labels) -> Reasons:
    """Time and number of device events of the headline device by reason; sums to the busy parts."""
    context = side.context
    module = None if side.modules is None else event_modules(context, side.modules, side.phase)
    found: Reasons = {}
    for each, part, chosen in zip(_KEYS, BUSY_PARTS, headline_work(context), strict=True):
        named, key = each(side, chosen, labels)
        keys: list[Key] = [(part, what, name) for what, name in named]
        event = context.once(device_work).event[chosen]
        of_module = None if module is None else module[chosen]
        whole = np.array([what == "operator" for what, _ in named], np.bool_)[key]
        unit = np.where(whole, _calls(side, event, labels), -1 - event)
        time = side.exclusive[event]
        sums = summed_up(side, keys, key, time, event, unit, context.device.start[event], of_module)
        if part == BUSY_PARTS[0]:
            works = map(partial(_work, context), event[longest(key, time)].tolist())
            sums = {of: replace(each, work=work) for (of, each), work in zip(sums.items(), works, strict=True)}
        found |= sums
    return found


def _work(context: Context, event: int) -> str:
    """Tensors and types of the operator of a device event, or else of the kernel (Ascend), its name and its core."""
    row, place = context.device.row[[event]], int(context.event_op[event])
    op = context.op_nest.row[[place]] if place >= 0 else row[:0]
    of_op = [each for field in ("shapes", "dtypes") for each in described(context, field, op)]
    fields = "kernel_shapes", "kernel_dtypes", "op_type", "core"
    shapes, dtypes, op_type, core = (described(context, field, row)[0] for field in fields)
    said = tensors(*of_op) if any(of_op) else tensors(shapes, dtypes)
    name = context.trace.strings.text(int(context.device.name[event]))
    return ", ".join(filter(None, [said, op_type or labels_of(Kind.KERNEL, [name])[name], core]))


def _calls(side: Side, event: Rows, labels: Labels) -> NDArray[np.int64]:
    """The call that each event counts for; whatever for those without."""
    ops = canonical_ops(side.context, labels.options, labels.fused)
    place = np.maximum(side.context.event_op[event], 0)
    return ops.unit[ops.whole[place]].astype(np.int64) if len(ops.unit) else place


def _operators(side: Side, chosen: NDArray[np.int64], labels: Labels) -> _Keyed:
    """Canonical operator and direction of each event; without an operator what the kernel is for."""
    work = side.context.once(device_work)
    named = side.context.event_op[work.event[chosen]] >= 0 if labels.by_operator else np.zeros(len(chosen), np.bool_)
    names, of = operator_names(side, work.event[chosen], labels)
    opened, split = (
        named & np.array([name in wanted for name in names], np.bool_)[of] for wanted in (labels.opened, labels.split)
    )
    split &= work.group[chosen] == KernelGroup.LAYOUT
    kernel = np.where(opened | split, side.context.device.name[work.event[chosen]], -1)
    rows = group(np.where(named, of, -1), np.where(named, -1, work.group[chosen].astype(np.int64)), kernel)
    keys = []
    for first in rows.first.tolist():
        name, op = side.context.trace.strings.text(int(kernel[first])) if kernel[first] >= 0 else "", names[of[first]]
        kind = KernelGroup(int(work.group[chosen[first]])).name.lower()
        if opened[first]:
            keys.append(("kernel", labels.kernels[name]))
        elif split[first]:
            short = type_of_name if side.context.trace.origin.format.startswith("ascend") else untemplated
            keys.append(("layout", f"{op} › {short(name)}"))
        else:
            keys.append(("operator", op) if named[first] else ("kernels", kind))
    return distinct(keys, rows.of)


def operator_names(side: Side, event: Rows, labels: Labels) -> tuple[list[str], NDArray[np.int64]]:
    """Canonical operator and direction of each device event: names, and the position of each one's; without any ""."""
    return canonical_ops(side.context, labels.options, labels.fused).named(side.context.event_op[event])


def _collectives(side: Side, chosen: NDArray[np.int64], labels: Labels) -> _Keyed:
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
    return distinct(keys, rows.of)


def _copies(side: Side, chosen: NDArray[np.int64], _: Labels) -> _Keyed:
    """Direction of each copy; fills are one."""
    event = side.context.once(device_work).event[chosen]
    return [("copy", name) for name in DIRECTIONS], directions(side.context, event)


_KEYS = (_operators, _collectives, _copies)
"""Of the classes of device work, in their order."""


def idle_reasons(side: Side, labels: Labels, of_cause: Mapping[Cause, str]) -> Reasons:
    """Time and number of gaps of the headline device by reason; sums to every idle part.

    A gap with several causes counts in the row of each, which is called after what the host did; where it shows
    nothing, or has launched already, after the operator whose work came next. Waiting for data is one row.
    """
    context = side.context
    cut, _ = context.once(step_pieces)
    event = context.once(idle_gaps).event[cut.gap]
    track, at, call = _host(context, cut)
    place = innermost(context.op_nest, track, at)
    what = np.where((place >= 0) | (call >= 0), _IN_OP, _NEXT_OP)
    later = np.flatnonzero((what == _NEXT_OP) & (event >= 0))
    place[later] = context.event_op[event[later]]
    names, of = canonical_ops(context, labels.options, labels.fused).named(place)
    of[place < 0] = -1
    call[place >= 0] = -1
    parts = list(dict.fromkeys(of_cause.values()))
    part = np.array([parts.index(of_cause[cause]) for cause in Cause], np.int64)[cut.cause]
    rows = group(part, what, of, np.where(call >= 0, context.calls.name[call], -1) if len(context.calls) else call)
    keys = []
    for first in rows.first.tolist():
        name = names[of[first]] if of[first] >= 0 else None
        if call[first] >= 0:
            name = plain_api(context.trace.strings.text(int(context.calls.name[call[first]])))
        keys.append(_key(parts[int(part[first])], _WHATS[what[first]], name))
    distinct_keys, key = distinct(keys, rows.of)
    shown = what == _IN_OP
    place_of_line = np.where(shown, track, -1), at
    return summed_up(side, distinct_keys, key, cut.end - cut.start, event, cut.gap, cut.start, line=place_of_line)


_NEXT_OP, _IN_OP = range(2)
_WHATS = ("next_op", "in_op")


def _host(context: Context, cut: Pieces) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Thread and time at which to look for what the host did in each piece of idle time, and the call that it sat in.

    -1 for none.
    """
    track, at, calls, call = cut.track.copy(), cut.start.copy(), context.calls, held_up(context, cut)
    known = call >= 0
    track[known], at[known] = calls.track[call[known]], calls.start[call[known]]
    return track, at, call


def host_reasons(side: Side, labels: Labels) -> Reasons:
    """Time and number of stretches of the steps' thread by reason, where only the host was recorded; sums to its parts.

    Operators by their own time, each call counting once; of other parts what they are inside, or comes next.
    """
    context, nest, steps, track = side.context, side.context.op_nest, side.context.steps, side.context.step_track
    states, own = context.once(host_states, track, True), nest.of(track)
    edges = (steps.start, steps.end, states.start, states.end, nest.start[own], nest.end[own])
    start = np.unique(np.concatenate(edges))
    start, time = start[:-1], np.diff(start)
    inside = intervals.contains(intervals.merge(steps.start, steps.end), start)
    start, time = start[inside], time[inside]
    state = np.searchsorted(states.start, start, "right") - 1
    known = (state >= 0) & (start < np.append(states.end, 0)[state])
    cause = np.where(known, np.append(states.cause, 0)[state], Cause.UNTRACED)
    place = innermost(nest, np.full(len(start), track), start)
    unit = np.where(place >= 0, place, -1 - np.arange(len(start)))
    later = np.searchsorted(nest.start[own], start)
    # What other threads do meanwhile (collectives) is not called after what comes next.
    ahead = np.flatnonzero((place < 0) & (later < own.stop - own.start) & (cause != Cause.PEER_WAIT))
    place[ahead] = own.start + later[ahead]
    names, of = canonical_ops(context, labels.options, labels.fused).named(place)
    of[place < 0] = -1
    rows = group(cause, of, unit < 0)
    keys: list[Key] = []
    for first in rows.first.tolist():
        part = "api" if cause[first] in DISPATCH_CALLS else Cause(int(cause[first])).key
        what = "operator" if part == Cause.HOST_OP.key else _WHATS[_NEXT_OP if unit[first] < 0 else _IN_OP]
        keys.append(_key(part, what, names[of[first]] if of[first] >= 0 else None))
    distinct_keys, key = distinct(keys, rows.of)
    none = np.full(len(start), -1, np.int64)
    return summed_up(side, distinct_keys, key, time, none, unit, start, line=(np.full(len(start), track), start))


def _key(part: str, what: str, name: str | None) -> Key:
    if part == "data_loading":
        return part, "data_loading", "DataLoader"
    return (part, "rest", "rest") if name is None else (part, what, name)


WORDS = ("copy", "kernels", "rest", "data_loading")
"""Kinds of reasons that the tool names."""
MOVED = 0.5
"""How much of what fewer of some names take off a part more of others must add to it, to say that work has moved."""
NOISE = "change_noise"
"""What changed: nothing that the steps of both sides do not vary by."""
MOSTLY = 0.8
"""Share of a difference from which one of its two effects is called its reason."""


def _calls_in_place_of_events(column: Column) -> Column:
    counted = "calls per step; of idle time intervals, of other work device events"
    return replace(column, meaning=f"{column.side}: {counted}") if column.key.endswith("number") else column


_CAUSES = declare(
    "causes",
    "What makes the difference (per step)",
    replace(columns.PLACE, minor=True),
    Column(
        "contribution",
        Kind.PLACE,
        "operator, collective, copy; of idle time what the host did, or else the operator whose work ended it; with "
        "an arrow work that moved from some to others, by the largest of each",
        heading="cause",
    ),
    columns.PART,
    *columns.of_base(time_ns=""),
    *map(_calls_in_place_of_events, columns.minor(*columns.of_base(number="", each_ns=""))),
    *columns.of_candidate(time_ns=""),
    *map(_calls_in_place_of_events, columns.minor(*columns.of_candidate(number="", each_ns=""))),
    columns.DIFF,
    columns.STEP_SHARE,
    Column("change", Kind.TERM, "what changed: whether there is more of it, or each takes longer", heading="how"),
    *columns.minor(
        columns.ratio(alias=""),
        columns.diff(
            "number_effect_ns",
            heading="by number",
            meaning="part of the difference due to the number, at the mean duration of both sides",
        ),
        columns.diff(
            "each_effect_ns",
            heading="by each",
            meaning="part of the difference due to the duration of each, at the mean number of both sides",
        ),
        columns.CHANCE,
        Column("what", Kind.TERM, "what the row stands for", heading="kind"),
        columns.MODULE,
        Column("frame", Kind.NAME, "innermost Python frame, when stacks were recorded", heading="Python frame"),
        Column("base_work", Kind.NAME, "base: tensors, types and kernel of the longest of compute", side="base"),
        Column("candidate_work", Kind.NAME, "candidate: the same", side="candidate"),
    ),
    *columns.SUMS,
    ranked=True,
    faint=("change", NOISE),
)


def causes_table(found: tuple[Reasons, Reasons], per: PerStep, cycles: tuple[int, int] = (1, 1)) -> Table:
    """Every reason that changes anything, largest change per step first; together they are the whole difference.

    What does not change by more than the steps of both sides vary comes last, and what moves within a part is one row.
    `cycles` are as of `noise.half_width`.
    """
    rows = [(key, *pair) for key, pair in _netted(found, per).items()]
    changes = {key: per.exact(base.time, candidate.time) for key, base, candidate in rows}
    noise = {key: _noise(base, candidate, per, cycles) for key, base, candidate in rows if changes[key]}
    within = {key: _by_chance(changes[key], chance, per) for key, chance in noise.items()}
    for part, chance in chance_of_parts(found, {}, per, cycles).items():
        own = {key: changes[key] for key in within if key[0] == part}
        total, sure = sum(own.values()), sum(change for key, change in own.items() if not within[key])
        # What is called one thing in some steps and another in others varies more than the part that both are of.
        if chance is not None and not _by_chance(total, chance, per) and 2 * sure / total < 1:
            within |= dict.fromkeys((key for key, change in own.items() if change * total > 0), False)

    def order(row: tuple[Key, Reason, Reason]) -> tuple[bool, int, Key]:
        return within[row[0]], -abs(changes[row[0]]), row[0]

    changed = sorted((row for row in rows if changes[row[0]]), key=order)
    table = _CAUSES.fill_records(
        {**_cells(*row, place, per), "noise_ns": noise[row[0]], **({"change": NOISE} if within[row[0]] else {})}
        for place, row in enumerate(changed, start=1)
    )
    whole = per.amounts(sum(base.time for _, base, _ in changed), sum(new.time for _, _, new in changed))
    return replace(table, totals={"part": "all_causes", **whole}) if changed else table


def _by_chance(change: int, chance: int | None, per: PerStep) -> bool:
    return chance is not None and abs(per.mean(change)) <= chance


def _netted(found: tuple[Reasons, Reasons], per: PerStep) -> dict[Key, tuple[Reason, Reason]]:
    """Both sides of every reason; those of a part between which work has moved are one, called by the largest two.

    Of what one name has fewer and takes less time for, another has more: the change of either alone is no cause.
    """
    rows = {key: (found[0].get(key, _NONE), found[1].get(key, _NONE)) for key in found[0] | found[1]}
    changes = {key: per.exact(old.time, new.time) for key, (old, new) in rows.items()}
    more = {key: per.exact(old.count, new.count) for key, (old, new) in rows.items()}
    for part in dict.fromkeys(key[0] for key in rows):
        own = sorted((key for key in more if key[0] == part), key=lambda key: (-abs(changes[key]), key))
        lost, gained = ([key for key in own if min(sign * changes[key], sign * more[key]) > 0] for sign in (-1, 1))
        sums = [sum(abs(changes[key]) for key in keys) for keys in (lost, gained)]
        if not all(sums) or min(sums) < MOVED * max(sums):
            continue
        ends = [
            (keys[0], len(keys) - 1, 2 * abs(changes[keys[0]]) < each)
            for keys, each in zip((lost, gained), sums, strict=True)
        ]
        # One that is less than half of its end alone says little.
        name = ARROW.join(key[2] + (f"{AND}{others}" if little else "") for key, others, little in ends)
        named = Word(name) if any(key[1] in WORDS for key, _, _ in ends) else name
        pairs = [rows.pop(key) for key in (*lost, *gained)]
        rows[part, "moved", named] = _together([old for old, _ in pairs]), _together([new for _, new in pairs])
    return rows


def _together(found: Sequence[Reason]) -> Reason:
    """Several reasons of one side as one; the line is that of the largest."""
    there = [each for each in found if each is not _NONE]
    if not there:
        return _NONE
    modules, most = {each.module for each in there}, max(there, key=lambda each: each.time)
    return Reason(
        sum(each.time for each in there),
        sum(each.count for each in there),
        modules.pop() if len(modules) == 1 else None,
        most.frame,
        tuple(map(sum, zip(*(each.steps for each in there), strict=True))),
        most.work,
    )


def chance_of_parts(
    found: tuple[Reasons, Reasons], keys: Mapping[str, str], per: PerStep, cycles: tuple[int, int]
) -> dict[str, int | None]:
    """By how much each part may differ by chance, ns a step; `keys` are as of `headline_keys`."""
    parts: dict[str, tuple[list[Reason], list[Reason]]] = {}
    for at, side in enumerate(found):
        for (part, _, _), reason in side.items():
            parts.setdefault(keys.get(part, part), ([], []))[at].append(reason)
    return {key: _noise(_together(old), _together(new), per, cycles) for key, (old, new) in parts.items()}


def _cells(key: Key, base: Reason, candidate: Reason, place: int, per: PerStep) -> dict[str, Value]:
    part, what, name = key
    by_number, by_each = effects(base.time, candidate.time, (base.count, candidate.count), per)
    modules = {side.module for side in (base, candidate) if side is not _NONE}
    return {
        "place": place,
        "contribution": Word(name) if what in WORDS else name,
        "part": part,
        **per.amounts(base.time, candidate.time),
        "base_number": base.count / per.base_steps,
        "candidate_number": candidate.count / per.candidate_steps,
        "base_each_ns": rounded(base.time, base.count) if base.count else None,
        "candidate_each_ns": rounded(candidate.time, candidate.count) if candidate.count else None,
        "change": _effect(base, candidate, by_number, by_each),
        "number_effect_ns": by_number,
        "each_effect_ns": by_each,
        "what": what,
        "module": modules.pop() if len(modules) == 1 else None,
        "frame": candidate.frame or base.frame,
        "base_work": base.work,
        "candidate_work": candidate.work,
    }


def _noise(base: Reason, candidate: Reason, per: PerStep, cycles: tuple[int, int]) -> int | None:
    """By how much the reason may differ by chance, ns a step; None where too few steps tell."""
    old, new = (
        each.steps or (0,) * count for each, count in ((base, per.base_steps), (candidate, per.candidate_steps))
    )
    return half_width(old, new, cycles)


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


def _effect(base: Reason, candidate: Reason, by_number: int, by_each: int) -> str:
    """Which of the two effects it is, if one of them is most of it."""
    if base.time == 0 and base.count == 0:
        return "change_new"
    if candidate.time == 0 and candidate.count == 0:
        return "change_vanished"
    whole = by_number + by_each
    if whole and by_number / whole >= MOSTLY:
        return "change_more" if whole > 0 else "change_fewer"
    if whole and by_each / whole >= MOSTLY:
        return "change_longer" if whole > 0 else "change_shorter"
    return "change_both"


def reasons(base: Side, candidate: Side, options: CompareOptions) -> tuple[Reasons, Reasons]:
    """Reasons of every part on both sides; none where only one side has device events.

    The reasons of a part sum to it on both sides, exactly. One is a canonical operator and direction (compute), type
    and group of collectives, direction of copies, or operator before whose work the device was idle. Where operators
    cannot be compared, compute is by what kernels are for, so that a change of class does not show as a speed-up (M5).
    Without a device on either side they are of the host's time.
    """
    host = [isinstance(each.host, HostSplit) and each.partition is None for each in (base, candidate)]
    if all(host):
        labels = Labels(options, fused_names(base.context, candidate.context, options), groups=False, by_operator=True)
        return host_reasons(base, labels), host_reasons(candidate, labels)
    if base.partition is None or candidate.partition is None:
        return {}, {}
    of_cause = idle_parts(base, candidate)
    groups = several(common_names(base.context, candidate.context))
    fused = fused_names(base.context, candidate.context, options)
    labels = Labels(options, fused, groups, by_operator=not coverage_differs(base, candidate))
    work = [work_reasons(side, labels) for side in (base, candidate)]
    opened, split = frozenset(name for found in work for name in _regions(found)), _split((base, candidate), labels)
    if opened or split:
        names = [_names_of(side) for side in (base, candidate)]
        kernels, _ = kernel_labels(base.context, candidate.context, (names[0], names[1])) if opened else ({}, {})
        labels = labels._replace(opened=opened, kernels=kernels, split=split)
        work = [work_reasons(side, labels) for side in (base, candidate)]
    old, new = (
        found | idle_reasons(side, labels, of_cause) for found, side in zip(work, (base, candidate), strict=True)
    )
    return old, new


def _regions(found: Reasons) -> Iterator[str]:
    """What owns more than half of the compute and is no operator of a library: compiled code, a graph."""
    compute = {key: reason for key, reason in found.items() if key[0] == BUSY_PARTS[0]}
    whole = sum(reason.time for reason in compute.values())
    for (_, what, name), reason in compute.items():
        if what == "operator" and "::" not in name and 2 * reason.time > whole:
            yield name


def _split(sides: Sequence[Side], labels: Labels) -> frozenset[str]:
    """Operators that change layouts or types for something else, which is most of what they do on both sides."""
    found: dict[str, bool] = {}
    for side in sides if labels.by_operator else ():
        work = side.context.once(device_work)
        chosen = headline_work(side.context)[0]
        chosen = chosen[side.context.event_op[work.event[chosen]] >= 0]
        names, of = operator_names(side, work.event[chosen], labels)
        layout = np.where(work.group[chosen] == KernelGroup.LAYOUT, work.time[chosen], 0)
        changing = np.bincount(of, layout, len(names))
        for name, some, every in zip(names, changing, np.bincount(of, work.time[chosen], len(names)), strict=True):
            if some or name in found:
                found[name] = found.get(name, True) and 2 * some < every
    return frozenset(name for name, minor in found.items() if minor)


def _names_of(side: Side) -> list[str]:
    """Names of its kernels."""
    return list(side.context.trace.strings.texts(np.unique(side.context.device.name)))
