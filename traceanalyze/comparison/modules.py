"""Modules of both sides, forward and backward, and the operators inside them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.modules import Places, event_modules, marked, module_places
from traceanalyze.analyses.host.operators import OUTSIDE_OPS, UNLINKED
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.comparison import columns
from traceanalyze.comparison.align import align, fused_names
from traceanalyze.comparison.canonical_ops import CanonicalOps, Fused, canonical_ops
from traceanalyze.comparison.operators import frames_of_longest, summed_kernels
from traceanalyze.comparison.pairs import PerStep, Ranked, ranked, section
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions, work_unknown
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value
from traceanalyze.model.vocabulary import Phase

Match = tuple[int, int]
"""Positions in `Places.places`; -1 for a side that has none."""


def match_modules(base: Places, candidate: Places) -> list[Match]:
    """Every module of both sides once, parents before children.

    Children of matched modules are matched in the order of their first call: one by one if their classes are the same
    (names count through the whole program, so their numbers may differ); else by name, and between these by class.
    """
    trees = _children(base), _children(candidate)
    found: list[Match] = []
    waiting: list[Match] = [(-1, -1)]
    while waiting:
        parent = waiting.pop(0)
        a, b = (
            tree.get(place, []) if place >= 0 or parent == (-1, -1) else []
            for tree, place in zip(trees, parent, strict=True)
        )
        rows = _siblings(a, b, base, candidate)
        found += rows
        waiting += rows
    return found


def _children(found: Places) -> dict[int, list[int]]:
    """Modules inside each module, in the order of their first call; those in none under -1."""
    never = np.iinfo(np.int64).max
    first = np.full(len(found.places), never)
    np.minimum.at(first, found.of, found.nest.start)
    for index in range(len(found.places) - 1, -1, -1):
        parent = found.places[index].parent
        if parent >= 0:
            first[parent] = min(first[parent], first[index])
    tree: dict[int, list[int]] = {}
    for index in np.argsort(first, kind="stable").tolist():
        tree.setdefault(found.places[index].parent, []).append(index)
    return tree


def _siblings(a: Sequence[int], b: Sequence[int], base: Places, candidate: Places) -> list[Match]:
    classes = [base.places[i].name for i in a], [candidate.places[j].name for j in b]
    if classes[0] == classes[1]:
        return list(zip(a, b, strict=True))
    names = [_own_name(base, i) for i in a], [_own_name(candidate, j) for j in b]
    rows: list[Match] = []
    at = below = 0
    for x, y in [*_aligned(*names), (len(a), len(b))]:
        rows += _by_class(a[at:x], b[below:y], base, candidate)
        if x < len(a):
            rows.append((a[x], b[y]))
        at, below = x + 1, y + 1
    return rows


def _by_class(a: Sequence[int], b: Sequence[int], base: Places, candidate: Places) -> list[Match]:
    pairs = _aligned([base.places[i].name for i in a], [candidate.places[j].name for j in b])
    left, right = {x for x, _ in pairs}, {y for _, y in pairs}
    alone = [(place, -1) for x, place in enumerate(a) if x not in left]
    new = [(-1, place) for y, place in enumerate(b) if y not in right]
    return [*((a[x], b[y]) for x, y in pairs), *alone, *new]


def _aligned(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    number = {name: index for index, name in enumerate(sorted({*a, *b}))}
    i, j = align(*(np.array([number[name] for name in side], np.int64) for side in (a, b)))
    return list(zip(i.tolist(), j.tolist(), strict=True))


def _own_name(found: Places, index: int) -> str:
    """Name of a module without those around it."""
    place = found.places[index]
    return place.path if place.parent < 0 else place.path[len(found.places[place.parent].path) + 1 :]


OUTSIDE_MODULES = "<outside modules>"
"""Stands for device work of no module, and for backward work whose module is not known."""

ALL_OPERATORS = "[ TOTAL ]"
"""Stands for all operators of a module, as in msprof-analyze."""
_MODULE = (
    replace(columns.PLACE, alias="Order Id"),
    Column("module_class", Kind.TEXT, "class of the module", heading="class", alias="Module Class"),
    Column(
        "module_level",
        Kind.COUNT,
        "depth in the module tree, 0 is the outermost",
        heading="level",
        alias="Module Level",
    ),
    replace(columns.MODULE, alias="Module Name"),
)
_CHANGES = (
    replace(columns.TOTAL_DIFF, alias="Device Total Time Diff"),
    replace(columns.SELF_DIFF, alias="Device Self Time Diff"),
    columns.ratio(alias="Diff Total Ratio"),
    *columns.of_base(frame="Base Call Stack"),
    *columns.of_candidate(frame="Comparison Call Stack"),
    columns.CHANGE_SHARE,
    Column("direction_of_pass", Kind.TERM, "forward or backward pass", heading="pass"),
    columns.MATCH,
)
MODULES = section(
    "module_compare_statistic",
    "Modules (per step)",
    *_MODULE,
    replace(columns.OP, alias="Operator Name"),
    *columns.both(
        kernels="Kernel Details", self_ns="Device Self Time(ms)", calls="Number", total_ns="Device Total Time(ms)"
    ),
    *_CHANGES,
    by="self_ns",
    of="total_ns",
)
MODULE_OPERATORS = section(
    "module_compare",
    "Operators in their modules (per step)",
    *_MODULE,
    *columns.both(
        op="Operator Name", kernels="Kernel Details", self_ns="Device Self Time(us)", total_ns="Device Total Time(us)"
    ),
    *_CHANGES,
    by="self_ns",
    of="total_ns",
    detail=True,
)


def module_tables(pairs: Pairs, per: PerStep) -> tuple[Table, Table]:
    """Modules by how much their own work differs, below each its operators; and all operators by how much they do."""
    if isinstance(pairs, NotMeasured):
        return MODULES.fill(pairs, per), MODULE_OPERATORS.fill(pairs, per)
    operators = [pair for pair in pairs if pair.shared["op"] != ALL_OPERATORS]
    inside: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in operators:
        inside.setdefault(_place(pair), []).append(pair)
    rows: list[Ranked] = []
    for module in ranked([pair for pair in pairs if pair.shared["op"] == ALL_OPERATORS], per, "self_ns"):
        rows.append(module)
        below = ranked(inside.pop(_place(module.pair), []), per, "self_ns")
        rows += [row._replace(place=module.place, share=None) for row in below]
    return MODULES.fill(pairs, per, rows), MODULE_OPERATORS.fill(operators, per)


def _place(pair: Pair) -> tuple[Any, ...]:
    return pair.shared["module"], pair.shared["direction_of_pass"]


_Cells = dict[str, Any]
"""What a row says of one side."""
_Key = tuple[int, bool]
"""Module (-1 for none), and whether in the backward pass."""


class _Side(NamedTuple):
    """Work of the modules of one side."""

    places: Places
    whole: dict[_Key, _Cells]
    ops: dict[_Key, dict[str, _Cells]]


def module_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Modules matched by their place in the model (see `match_modules`), in order of the model.

    After each module its operators by canonical name, most time first. Self times are those of what was launched in
    the module itself; those of all modules and of the row for work outside of modules sum to all device time, and so
    do those of all operators. The operators of a module sum to it. NotMeasured if a side did not record modules: those
    of the one are not what annotations mark in the other.
    """
    places = module_places(base), module_places(candidate)
    if places[0] is None or places[1] is None or marked(places[0]) != marked(places[1]):
        return NotMeasured("no_modules")
    if why := work_unknown(base, candidate):
        return why
    fused = fused_names(base, candidate, options)
    old, new = _side(base, places[0], options, fused), _side(candidate, places[1], options, fused)
    rows: list[Pair] = []
    for one, other in [(-1, -1), *match_modules(old.places, new.places)]:
        for backward in (False, True):
            rows += _rows((old, new), (one, other), backward=backward)
    return rows


def _rows(sides: tuple[_Side, _Side], match: tuple[int, int], *, backward: bool) -> list[Pair]:
    """A module and its operators; nothing where neither side has work there."""
    outside = match == (-1, -1)
    keys = [(place, backward) if place >= 0 or outside else None for place in match]
    whole = [None if key is None else side.whole.get(key) for side, key in zip(sides, keys, strict=True)]
    if not any(whole):
        return []
    path, name, level = OUTSIDE_MODULES, "", 0
    if not outside:
        places, index = next((side.places, at) for side, at in zip(sides, match, strict=True) if at >= 0)
        path, name = places.places[index].path, places.places[index].name
        while (index := places.places[index].parent) >= 0:
            level += 1
    old, new = ({} if key is None else side.ops.get(key, {}) for side, key in zip(sides, keys, strict=True))
    inside = sorted(old | new, key=lambda op: (-max(side[op]["self_ns"] for side in (old, new) if op in side), op))
    phase = "phase_backward" if backward else "phase_forward"
    shared: dict[str, Value] = {"module": path, "module_class": name, "module_level": level, "direction_of_pass": phase}
    return [
        Pair(shared | {"op": ALL_OPERATORS}, whole[0], whole[1]),
        *(Pair(shared | {"op": op}, old.get(op), new.get(op)) for op in inside),
    ]


def _side(context: Context, found: Places, options: CompareOptions, fused: Fused) -> _Side:
    ops = canonical_ops(context, options, fused)
    if len(context.device) == 0:
        return _Side(found, _whole(context, found, {}, {}), {})
    phase = context.once(event_phases)
    work = context.once(device_work)
    event, time = work.event, work.time
    back = np.isin(phase[event], (Phase.BACKWARD, Phase.RECOMPUTE))
    of = event_modules(context, found, phase)
    op = context.event_op[event]
    known = op >= 0
    label = np.where(context.link[event] >= 0, -1, -2)
    label[known] = 2 * ops.code[op[known]] + ops.backward[op[known]]
    rows = group(of, back, label)
    # Calls of an operator that launched work: several kernels of one call count once.
    call = -1 - np.arange(len(op))
    call[known] = ops.unit[ops.whole[op[known]]]
    calls = group(rows.of, call)
    number = np.bincount(rows.of[calls.first], minlength=len(rows)).tolist()
    kernels = summed_kernels(context, event, time, rows.of)
    frames = frames_of_longest(context, rows.of, event, time)
    inside: dict[_Key, dict[str, _Cells]] = {}
    frame_of: dict[_Key, str | None] = {}
    for index, (first, own) in enumerate(zip(rows.first.tolist(), rows.sum(time).tolist(), strict=True)):
        key = int(of[first]), bool(back[first])
        name = _label(ops, int(op[first]), linked=bool(label[first] == -1))
        cells = {"op": name, "calls": number[index], "self_ns": own, "total_ns": own}
        inside.setdefault(key, {})[name] = cells | {"kernels": kernels[index], "frame": frames[index]}
        frame_of.setdefault(key, frames[index])
    return _Side(found, _whole(context, found, inside, frame_of), inside)


def _label(ops: CanonicalOps, place: int, *, linked: bool) -> str:
    if place >= 0:
        return ops.label(place)
    return OUTSIDE_OPS if linked else UNLINKED


def _whole(
    context: Context, found: Places, inside: dict[_Key, dict[str, _Cells]], frame: dict[_Key, str | None]
) -> dict[_Key, _Cells]:
    """Modules from their operators, with the work of the modules inside them as total."""
    begun = found.of[found.nest.begun_in(context.host_windows)]
    calls = np.bincount(begun, minlength=len(found.places)).tolist()
    own = {key: sum(side["self_ns"] for side in ops.values()) for key, ops in inside.items()}
    total = dict(own)
    for index in range(len(found.places) - 1, -1, -1):
        parent = found.places[index].parent
        for backward in (False, True):
            if parent >= 0 and (index, backward) in total:
                total[parent, backward] = total.get((parent, backward), 0) + total[index, backward]
    for index, number in enumerate(calls):
        if number:
            total.setdefault((index, False), 0)
    return {
        key: {
            "calls": calls[key[0]] if found.calls and key[0] >= 0 and not key[1] else None,
            "self_ns": own.get(key, 0),
            "total_ns": time,
            "kernels": _joined([side["kernels"] for side in inside.get(key, {}).values()]),
            "frame": frame.get(key),
        }
        for key, time in total.items()
    }


def _joined(parts: list[tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
    """Kernels of several operators summed by name, most time first."""
    found: dict[str, int] = {}
    for kernels in parts:
        for name, time in kernels:
            found[name] = found.get(name, 0) + time
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))
