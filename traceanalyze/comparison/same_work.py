"""Whether both sides do the same work: how often, of which sizes, how many bytes, in which precision."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, sizes, types
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.modules import marked, module_places
from traceanalyze.analyses.idle.launches import lost_launches
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.op_work import precisions
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison.align import fused_names
from traceanalyze.comparison.canonical_ops import CanonicalOps, canonical_ops, op_phases
from traceanalyze.comparison.names import canonical
from traceanalyze.comparison.results import Caveat
from traceanalyze.comparison.side import CompareOptions, Side
from traceanalyze.model.collectives import SENDS, TYPES, element_bytes
from traceanalyze.model.columns import Rows
from traceanalyze.model.intervals import contains, merge
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import ApiClass, DeviceClass, Phase

OTHER_WORK = (
    "launches_lost",
    "work_backward",
    "work_modules",
    "work_unmatched",
    "work_number",
    "work_shapes",
    "work_grids",
)
"""Caveats that make percentages of the two sides meaningless."""
MATCHED = 0.5
"""Share of the device time of both sides that must have a partner for them to do the same work."""
_FAIR = 0.25
"""Own: share of what the side does that does less, which the other has to do as well."""
_ALIKE = 1.25
"""Up to how much larger work of one name may be on one side and still be called the same."""
SIDES = ("base", "candidate")
_TRAINING = [Phase.BACKWARD, Phase.RECOMPUTE, Phase.OPTIMIZER, Phase.ZERO_GRAD]
_DIMENSIONS = regex(r"\[(\d{1,18}(?:,\s*\d{1,18})*)\]")
_OTHER = 1.5
"""From how much more bytes on one side they are told."""
_LOST = 0.05
"""By how much more of its launches one side shows no work."""
_PASS = 0.05
"""Share of a side's device time from which a pass that the other does without is told."""


def work(base: Side, candidate: Side, options: CompareOptions) -> Iterator[Caveat]:
    """Whether both sides do the same work: how often, sizes of what both do as often, and bytes that are moved."""
    lost = [_lost(side.context) for side in (base, candidate)]
    if abs(lost[0] - lost[1]) >= _LOST:
        at = lost.index(max(lost))
        yield Caveat("launches_lost", (("side", SIDES[at]), ("share", lost[at]), ("other_share", lost[1 - at])))
        return
    yield from _passes(base, candidate)
    yield from _numbers_and_sizes(base, candidate, options)
    if None not in (ranks := {base.info.rank, candidate.info.rank}) and len(ranks) > 1:
        kinds = np.concatenate([_communication(side)[1] for side in (base, candidate)])
        if SENDS & {TYPES[kind] for kind in np.unique(kinds).tolist()}:
            # Stages of a pipeline differ in what they read and send.
            return
    for key, moved in (("work_inputs", _inputs), ("work_collectives", _collectives)):
        old_bytes, new_bytes = (moved(side) // max(side.info.count, 1) for side in (base, candidate))
        if old_bytes and new_bytes and not 1 / _OTHER < new_bytes / old_bytes < _OTHER:
            values = (("base_bytes", old_bytes), ("candidate_bytes", new_bytes))
            alike = key == "work_collectives" and 1 / _OTHER < _elements_ratio(base, candidate) < _OTHER
            yield Caveat("typed_collectives" if alike else key, (("ratio", new_bytes / old_bytes), *values))


def _lost(context: Context) -> float:
    """Share of the launches of the steps of which the recording shows no work of the device."""
    calls, inside = context.calls, context.host_windows
    asked = ((calls.klass == ApiClass.LAUNCH) | (calls.klass == ApiClass.COPY)) & contains(inside, calls.start)
    lost = asked[context.once(lost_launches)].sum()
    return float(lost / asked.sum()) if lost else 0.0


def _passes(base: Side, candidate: Side) -> Iterator[Caveat]:
    """A pass of the training step that only one side makes: the backward pass, or forward operators again in it."""
    sides = base, candidate
    if (base.partition is None) != (candidate.partition is None):
        return
    times = [_by_phase(side) for side in sides]
    for at, (own, other) in enumerate((times, times[::-1])):
        least, side, count = _PASS * own.sum(), ("side", SIDES[at]), max(sides[at].info.count, 1)
        # What no operator launched (a graph) may be of any pass.
        known = sides[1 - at].exclusive[sides[1 - at].context.event_op >= 0].sum()
        if not own.sum() or (2 * known < other.sum() and base.partition is not None):
            continue
        if not other[_TRAINING].any() and own[_TRAINING].sum() > least:
            yield Caveat("work_backward", (side, ("share", float(own[_TRAINING].sum() / own.sum()))))
        elif not other[Phase.RECOMPUTE] and own[Phase.RECOMPUTE] > least:
            yield Caveat("recomputes", (side, ("time_ns", int(own[Phase.RECOMPUTE]) // count)))


def _by_phase(side: Side) -> NDArray[np.int64]:
    """Device time of the steps by phase; without a device that of the operators that begin in them."""
    if side.partition is not None:
        return np.bincount(side.phase, side.exclusive, len(Phase)).astype(np.int64)
    nest, steps = side.context.op_nest, side.context.steps
    own = nest.own * nest.begun_in(merge(steps.start, steps.end))
    return np.bincount(op_phases(side.context), own, len(Phase)).astype(np.int64)


def precision(base: Side, candidate: Side) -> Iterator[Caveat]:
    """What most of the time of products is computed in, where that is another type on the other side."""
    found = [precisions(side.context) for side in (base, candidate)]
    (old, old_share), (new, new_share) = (
        max(
            ((name, time / sum(each.values())) for name, time in each.items() if time),
            key=itemgetter(1),
            default=("", 0.0),
        )
        for each in found
    )
    # Float that may or may not have been multiplied as TF32 (Ascend: HF32) is not known to differ from either.
    kinds = old.replace("hf32", "tf32"), new.replace("hf32", "tf32")
    if old and new and min(old_share, new_share) > MATCHED and kinds[0] not in kinds[1] and kinds[1] not in kinds[0]:
        values = (("base", old), ("base_share", old_share), ("candidate", new), ("candidate_share", new_share))
        yield Caveat("precision_differs", values)


class _Sides(NamedTuple):
    """Device time of both sides that has a partner, and all of it, ns a step."""

    matched: tuple[int, int]
    whole: tuple[int, int]

    @property
    def shares(self) -> tuple[float, float]:
        """Of each side."""
        return self.matched[0] / self.whole[0], self.matched[1] / self.whole[1]

    @property
    def same(self) -> bool:
        """Whether both do most of what both do in all, and a fair part of what the one does that does less.

        Operators of any model, of which one has little and the other much, do not make them the same.
        """
        least = min(self.matched) / min(self.whole)
        return sum(self.matched) >= MATCHED * sum(self.whole) and least >= _FAIR


def unmatched_work(
    base: Side, candidate: Side, unmatched: Iterable[Mapping[str, Any]], options: CompareOptions
) -> Iterator[Caveat]:
    """Whether most of the time has no partner (rows of `unmatched`), not even within operators that both sides have.

    Where both recorded modules, and have others, each has to have partners for most of its time; and where hardly a
    class of those that hold others is common, names of operators, which any model calls, tell nothing. Where the one
    recorded modules and the other marked parts, each has to have operators with partners for most of its time.
    """
    times: dict[str, list[tuple[int, int]]] = {}
    for row in unmatched:
        times.setdefault(row["section"], []).append((row["of_ns"] - row["unmatched_ns"], row["of_ns"]))
    found = {
        key.removeprefix("section_"): _Sides((old[0], new[0]), (old[1], new[1]))
        for key, (old, new) in times.items()
        if old[1] and new[1]
    }
    modules = found.pop("modules", None)
    if not found or ("operators" not in found and base.info.vendor != candidate.info.vendor):
        return
    if modules is not None and modules.same:
        return
    old, new = (_holding(side.context) if modules is not None else [] for side in (base, candidate))
    if min(len(old), len(new)) > 1 and len({*old} & {*new}) < _FAIR * min(len(old), len(new)):
        yield Caveat("work_modules", (("base", old[0]), ("candidate", new[0])))
        return
    parts = [module_places(side.context) for side in (base, candidate)] if modules is None else []
    told = modules is not None or len({marked(each) for each in parts if each is not None}) > 1
    within = None if told else _within_common_operators((base.context, candidate.context), options)
    sides = [*found.values(), *([within] if within is not None else ())]
    if not any(min(each.shares) >= MATCHED if told else each.same for each in sides):
        shares = max((each.shares for each in sides), key=min)
        yield Caveat("work_unmatched", (("base_share", shares[0]), ("candidate_share", shares[1])))


def _holding(context: Context) -> list[str]:
    """Classes of modules that hold others, the outermost first: any model has the rest, and sequences."""
    places = found.places if (found := module_places(context)) is not None else ()
    names = dict.fromkeys(places[parent].name for parent in sorted({one.parent for one in places} - {-1}))
    return [name for name in names if name != "Sequential"]


def _within_common_operators(contexts: tuple[Context, Context], options: CompareOptions) -> _Sides | None:
    """Of what computes that which operators of names that both sides have launch, by themselves or further in."""
    base, candidate = (context.trace.strings.texts(np.unique(context.op_names)) for context in contexts)
    common = {canonical(name, options) for name in base} & {canonical(name, options) for name in candidate}
    sums = []
    for context in contexts:
        work, nest = context.once(device_work), context.op_nest
        shared = context.trace.strings.matches(context.op_names, lambda name: canonical(name, options) in common)
        for _ in range(int(nest.depth.max(initial=0))):
            shared |= (nest.parent >= 0) & shared[nest.parent]
        computes = context.device.klass[work.event] == DeviceClass.COMPUTE
        place, time, steps = context.event_op[work.event[computes]], work.time[computes], max(len(context.steps), 1)
        inside = time[place >= 0][shared[place[place >= 0]]]
        sums.append((int(inside.sum()) // steps, int(time.sum()) // steps))
    (old, base_time), (new, candidate_time) = sums
    return _Sides((old, new), (base_time, candidate_time)) if base_time and candidate_time else None


class _Sizes(NamedTuple):
    """Of calls of one name, over the steps that count."""

    number: int
    size: int
    """0 where it was not recorded."""
    time: int


_Names = dict[str, _Sizes]


def _numbers_and_sizes(base: Side, candidate: Side, options: CompareOptions) -> Iterator[Caveat]:
    """How often both do what both do, and of which size: by tensors, else by launches.

    Numbers are of what counts for one operator on both sides, sizes of what has one name.
    """
    contexts, steps = (base.context, candidate.context), (max(base.info.count, 1), max(candidate.info.count, 1))
    fused = fused_names(*contexts, options)
    shapes = all(_elements_of(context, context.op_nest.row).any() for context in contexts)
    old, new = (_calls(context, canonical_ops(context, options, fused), shapes) for context in contexts)
    kernels, key = [_launches(context) for context in contexts], "work_shapes" if shapes else "work_grids"
    labels, names = ([old[0], new[0]], [old[1], new[1]]) if all((*old, *new)) else (kernels, kernels)
    whole = sum(_computing(context) * count for context, count in zip(contexts, steps[::-1], strict=True))
    number = [*_of_another_number(labels[0], labels[1], steps, whole)]
    sized = names if shapes else kernels
    yield from number or _of_another_size(key, sized[0], sized[1], steps, whole)


def _of_another_number(old: _Names, new: _Names, steps: tuple[int, int], whole: int) -> Iterator[Caveat]:
    """Most names, and of the time, of which one side does more in more calls: layers, micro-batches, unmarked steps.

    More calls are more work unless their sizes, where both sides recorded them, say otherwise.
    """
    per, both = steps[::-1], [(old[name], new[name]) for name in old.keys() & new.keys()]

    def more(pair: tuple[_Sizes, _Sizes], at: int) -> bool:
        one, other = pair[at], pair[1 - at]
        larger = one.size * per[at] >= _ALIKE * other.size * per[1 - at] or not (one.size and other.size)
        return larger and one.number * per[at] > _ALIKE * other.number * per[1 - at]

    found = [pair for pair in both if more(pair, 0) or more(pair, 1)]
    time = sum(_of_both(*pair, steps) for pair in found)
    if time > MATCHED * whole and 2 * len(found) > len(both):
        numbers = [sum(pair[at].number for pair in found) / steps[at] for at in (0, 1)]
        values = (("base", round(numbers[0])), ("candidate", round(numbers[1])), ("ratio", numbers[1] / numbers[0]))
        yield Caveat("work_number", (("share", time / whole), *values))


def _of_another_size(key: str, old: _Names, new: _Names, steps: tuple[int, int], whole: int) -> Iterator[Caveat]:
    """What both sides do equally often a step, if of another size on one of them.

    That has to be most of the time of what both do, however often, and a fair part of the `whole` of both: of products
    another kernel is taken for another size.
    """
    both = [(old[name], new[name]) for name in old.keys() & new.keys() if old[name].size and new[name].size]
    common = sum(_of_both(*pair, steps) for pair in both)
    both = [(base, one) for base, one in both if base.number * steps[1] == one.number * steps[0]]
    ratios = [one.size * steps[0] / (base.size * steps[1]) for base, one in both]
    times = [_of_both(*pair, steps) for pair in both]
    other = sum(time for time, ratio in zip(times, ratios, strict=True) if not 1 / _ALIKE <= ratio <= _ALIKE)
    if 2 * other > common and other >= _FAIR * whole:
        ratio = sum(one.size for _, one in both) * steps[0] / (sum(base.size for base, _ in both) * steps[1])
        yield Caveat(key, (("share", other / whole), ("ratio", ratio)))


def _of_both(base: _Sizes, candidate: _Sizes, steps: tuple[int, int]) -> int:
    """Their times a step, times both numbers of steps."""
    return base.time * steps[1] + candidate.time * steps[0]


def _calls(context: Context, ops: CanonicalOps, shapes: bool) -> tuple[_Names, _Names]:
    """Calls whose work computes, by the name under which they are compared, and by their own.

    Their size is that of their inputs, or of the launches of their kernels.
    """
    work = context.once(device_work)
    place = context.event_op[work.event]
    chosen = (place >= 0) & (context.device.klass[work.event] == DeviceClass.COMPUTE)
    unit = ops.unit[ops.whole[place[chosen]]]
    rows = group(unit)
    call, time = unit[rows.first], rows.sum(work.time[chosen].astype(np.int64))
    row = context.op_nest.row[call]
    size = _elements_of(context, row) if shapes else rows.sum(_threads(context)[chosen])
    labels, label = ops.named(call)
    name = context.trace.events.name[row].astype(np.int64)
    return _by_name(label, labels.__getitem__, size, time), _by_name(name, context.trace.strings.text, size, time)


def _elements_of(context: Context, row: Rows) -> NDArray[np.int64]:
    """Elements of the inputs of operators; 0 where shapes were not recorded."""
    codes = context.trace.events.numbers("shapes", row)
    elements = np.zeros(len(row), np.int64)
    elements[codes >= 0] = context.trace.strings.lookup(codes[codes >= 0].astype(np.int32), _elements)
    return elements


def _launches(context: Context) -> _Names:
    """Kernels that compute, by name."""
    work = context.once(device_work)
    chosen = context.device.klass[work.event] == DeviceClass.COMPUTE
    name, time = (each[chosen].astype(np.int64) for each in (context.device.name[work.event], work.time))
    return _by_name(name, context.trace.strings.text, _threads(context)[chosen], time)


def _threads(context: Context) -> NDArray[np.int64]:
    """Threads of each piece of work; 0 where launch configurations were not recorded."""
    row = context.device.row[context.once(device_work).event]
    threads = np.ones(len(row), np.int64)
    for field in ("grid", "block"):
        codes = context.trace.events.numbers(field, row)
        threads[codes < 0] = 0
        threads[codes >= 0] *= context.trace.strings.lookup(codes[codes >= 0].astype(np.int32), _elements)
    return threads


def _computing(context: Context) -> int:
    """Sum of the durations of what computes."""
    work = context.once(device_work)
    return int(work.time[context.device.klass[work.event] == DeviceClass.COMPUTE].sum())


def _by_name(
    code: NDArray[np.int64], text: Callable[[int], str], size: NDArray[np.int64], time: NDArray[np.int64]
) -> _Names:
    rows = group(code)
    sums = rows.count().tolist(), rows.sum(size).tolist(), rows.sum(time).tolist()
    return {text(int(code[first])): _Sizes(*each) for first, *each in zip(rows.first.tolist(), *sums, strict=True)}


def _elements(text: str) -> int:
    """Elements of all tensors of a list of shapes, or what a grid multiplies to; at most 2³¹ - 1."""
    return min(sum(prod(map(int, found.split(","))) for found in _DIMENSIONS.findall(text)), 2**31 - 1)


def _inputs(side: Side) -> int:
    """Bytes copied to the device."""
    event = side.context.once(device_work).event
    event = event[side.context.device.klass[event] == DeviceClass.MEM]
    event = event[directions(side.context, event) == DIRECTIONS.index("h2d")]
    return _bytes(side.context.trace.events.numbers("bytes", side.context.device.row[event]))


def _collectives(side: Side) -> int:
    """Bytes of its collectives."""
    return _bytes(sizes(side.context, *_communication(side)))


def _elements_ratio(base: Side, candidate: Side) -> float:
    """Elements that the collectives of a step move, candidate over base."""
    found = []
    for side in (base, candidate):
        rows, kind = _communication(side)
        code = np.maximum(side.context.trace.events.numbers("dtype", rows, 0), 0).astype(np.int32)
        each = side.context.trace.strings.lookup(code, lambda text: element_bytes(text) or 1)
        found.append(_bytes(sizes(side.context, rows, kind) // each) / max(side.info.count, 1))
    return found[1] / found[0]


def _communication(side: Side) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What describes each of its collectives, and its kind."""
    event = side.context.once(device_work).event
    event = event[side.context.device.klass[event] == DeviceClass.COMM]
    rows = description_rows(side.context, event)
    return rows, types(side.context, event, rows)


def _bytes(size: NDArray[np.int64]) -> int:
    return int(size[size > 0].sum())
