"""Kernels of both sides: by name, and by what they are for."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct, group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison import columns
from traceanalyze.comparison.align import align
from traceanalyze.comparison.collectives import common_labels, plain_collective, plain_kernel, untemplated
from traceanalyze.comparison.pairs import section
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions, lost_collectives, measured, work_unknown
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.table import Column, Kind, Word

_CORE = Column("core", Kind.TEXT, "kind of core the kernels ran on")
_NUMBERS = (
    *columns.both(
        total_ns="Total Duration(us)",
        avg_ns="Avg Duration(us)",
        max_ns="Max Duration(us)",
        min_ns="Min Duration(us)",
        calls="Calls",
    ),
    columns.TOTAL_RATIO,
    columns.AVG_RATIO,
    columns.DIFF,
    columns.CHANGE_SHARE,
    Column(
        "work",
        Kind.TERM,
        "what the device event does, by its name, else by the operator that launched it",
        heading="kind of work",
        minor=True,
    ),
    columns.MATCH,
    *columns.minor(*columns.both(kernel="")),
)
KERNELS = section(
    "kernel_compare",
    "Kernels (per step)",
    replace(columns.PLACE, alias="Order Id"),
    Column("kernel", Kind.KERNEL, "kernel, copy or fill that the operator launched", alias="Kernel"),
    replace(columns.SHAPES, alias="Input Shape"),
    *_NUMBERS,
    replace(_CORE, minor=True),
    by="total_ns",
)
KERNEL_TYPES = section(
    "kernel_type_compare",
    "Types of kernels (per step)",
    replace(columns.PLACE, alias="Order Id"),
    Column(
        "kernel_type", Kind.NAME, "operator or kind of work the kernels belong to", heading="type", alias="Kernel Type"
    ),
    replace(_CORE, alias="Core Type"),
    *_NUMBERS,
    by="total_ns",
    detail=True,
)


class _Key(NamedTuple):
    name: str
    shapes: str | None
    core: str | None


_Kinds = tuple[list[_Key], NDArray[np.int64]]
"""Distinct kinds of device events of one side, and the kind of each event of `device_work`."""


def kernel_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device events by name; the times of a side sum to all its device time.

    Names are matched as `kernel_labels` does. Profiles of Ascend that both
    state the type of operator are compared by this type, shapes and core. Kernels of different vendors often have no
    partner by name: `kernel_type_pairs` compares these by family; those of Ascend, whose names are numbered, are rows
    by their type. NotMeasured if a side lacks its device events.
    """
    if why := work_unknown(base, candidate):
        return why
    typed = _typed(base, candidate)
    foreign = base.trace.origin.format != candidate.trace.origin.format
    kinds = [_kinds(context, options, typed=typed, foreign=foreign) for context in (base, candidate)]
    old, new = ([key.name for key in each] for each, _ in kinds)
    label, anew = kernel_labels(base, candidate, (old, new))
    return [
        pair._replace(shared={**pair.shared, "match": "renamed"}) if pair.shared["kernel"] in anew else pair
        for pair in _pairs((base, candidate), kinds, label)
    ]


def kernel_type_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device events by what they are for, or by type of operator and core where both profiles state these (Ascend).

    The times of a side sum to all its device time. NotMeasured if a side lacks its device events.
    """
    if why := work_unknown(base, candidate):
        return why
    typed = _typed(base, candidate)
    kinds = [_types(context, options) if typed else _families(context) for context in (base, candidate)]
    return _pairs((base, candidate), kinds, {key.name: key.name for each, _ in kinds for key in each})


def _typed(base: Context, candidate: Context) -> bool:
    return all("op_type" in context.trace.events.fields for context in (base, candidate))


def _kinds(context: Context, options: CompareOptions, *, typed: bool, foreign: bool) -> _Kinds:
    """Names as mapped by the user; with `typed` the type of operator where it is stated, its shapes and core.

    Against a profile in another format the type stands for the name, too.
    """
    event = context.once(device_work).event
    row, name = context.device.row[event], context.device.name[event].astype(np.int64)
    shapes = core = np.full(len(row), -1, np.int64)
    if typed or foreign:
        stated = context.trace.events.numbers("op_type", row)
        name = np.where(stated >= 0, stated, name)
    if typed:
        shapes, core = (context.trace.events.numbers(field, row) for field in ("kernel_shapes", "core"))
    rows = group(name, shapes, core)
    kinds = []
    for first in rows.first.tolist():
        own = plain_collective(context.trace.strings.text(int(name[first])))
        kinds.append(
            _Key(options.op_name_map.get(own, own), _text(context, shapes[first]), _text(context, core[first]))
        )
    return kinds, rows.of


def _text(context: Context, code: int) -> str | None:
    return context.trace.strings.text(int(code)) if code >= 0 else None


def _types(context: Context, options: CompareOptions) -> _Kinds:
    """Types of operator as mapped by the user, and cores; what states none by family."""
    work = context.once(device_work)
    stated, core = (
        context.trace.events.numbers(field, context.device.row[work.event]) for field in ("op_type", "core")
    )
    rows = group(stated, core, np.where(stated >= 0, 0, work.group))
    kinds = []
    for first in rows.first.tolist():
        own = context.trace.strings.text(int(stated[first])) if stated[first] >= 0 else _family(work.group[first])
        kinds.append(_Key(options.op_name_map.get(own, own), None, _text(context, core[first])))
    return kinds, rows.of


def _families(context: Context) -> _Kinds:
    family = context.once(device_work).group
    rows = group(family)
    return [_Key(_family(code), None, None) for code in family[rows.first]], rows.of


def _family(code: int) -> str:
    return KernelGroup(int(code)).name.lower()


def kernel_labels(
    base: Context, candidate: Context, names: tuple[Iterable[str], Iterable[str]]
) -> tuple[dict[str, str], frozenset[str]]:
    """What each kernel of either side is called in a comparison, and which of these names the candidate has changed.

    Names are matched as recorded; where that fails without signature, trailing counter and CANN's prefix; where even
    that fails without template arguments, if only one kernel of each side can be meant; and what a compiler or a
    library has given another name is called as in the base (see `renamed`).
    """
    label = common_labels(*names, (plain_kernel, True), (untemplated, False))
    alike = base.trace.origin.format == candidate.trace.origin.format
    anew = renamed(base, candidate, label) if alike else {}
    return label | {name: anew[called] for name, called in label.items() if called in anew}, frozenset(anew.values())


_GENERATED = (KernelGroup.COMPILED, KernelGroup.MATMUL, KernelGroup.CONVOLUTION, KernelGroup.ATTENTION)
"""Kernels whose names a compiler or a library makes up: they change with tile, stages and number, the work does not."""


class _Sequence(NamedTuple):
    """Kernels of one step in their order."""

    token: NDArray[np.int64]
    """Of what they are called; equal on both sides for what is called equally."""
    trait: NDArray[np.int64]
    """Of what a renamed kernel keeps: what it is for, of generated code the launch configuration too; -1 for others."""


def renamed(base: Context, candidate: Context, label: Mapping[str, str]) -> dict[str, str]:
    """Kernels that only the candidate has → those that only the base has, and that stood in their place.

    Of the first step. A place is between the same two neighbours that both sides have, and among what is left there,
    in order, of one family and, of generated code, with equal grid and block. Most places of both names must agree.
    """
    known: tuple[dict[str, int], dict[object, int]] = ({}, {})
    a, b = (_sequence(context, label, *known) for context in (base, candidate))
    i, j = align(a.token, b.token)
    (rest, place), (other_rest, other_place) = (
        _left_over(side, other, met) for side, other, met in ((a, b, i), (b, a, j))
    )
    size = len(known[1]) + 1
    k, m = align(place * size + a.trait[rest], other_place * size + b.trait[other_rest])
    names, old, new = list(known[0]), a.token[rest], b.token[other_rest]
    total, other_total = Counter(old.tolist()), Counter(new.tolist())
    pairs = Counter(zip(old[k].tolist(), new[m].tolist(), strict=True))
    return {
        names[after]: names[before]
        for (before, after), count in pairs.items()
        if 2 * count > max(total[before], other_total[after])
    }


def _sequence(
    context: Context, label: Mapping[str, str], tokens: dict[str, int], traits: dict[object, int]
) -> _Sequence:
    work, device, steps = context.once(device_work), context.device, context.steps
    last = int(steps.end[0]) if len(steps) else 0
    chosen = np.flatnonzero(device.start[work.event] < last)
    event, family = work.event[chosen], work.group[chosen].astype(np.int64)
    shape = [context.trace.events.numbers(field, device.row[event]) for field in ("grid", "block")]
    rows = group(device.name[event], family, *shape)
    token, trait = [], []
    for first in rows.first.tolist():
        own = plain_collective(context.trace.strings.text(int(device.name[event[first]])))
        token.append(tokens.setdefault(label.get(own, own), len(tokens)))
        compiled, launch = family[first] == KernelGroup.COMPILED, [_text(context, each[first]) for each in shape]
        kept = (family[first], *(launch if compiled else ()))
        told = family[first] in _GENERATED and not (compiled and None in launch)
        trait.append(traits.setdefault(kept, len(traits)) if told else -1)
    return _Sequence(np.array(token, np.int64)[rows.of], np.array(trait, np.int64)[rows.of])


def _left_over(
    side: _Sequence, other: _Sequence, met: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kernels that only this side has and that may be called otherwise there, and after how many met ones each runs."""
    rest = np.flatnonzero((side.trait >= 0) & ~np.isin(side.token, other.token))
    return rest, np.searchsorted(met, rest)


def _pairs(contexts: tuple[Context, Context], sides: Sequence[_Kinds], label: Mapping[str, str]) -> list[Pair]:
    found: list[dict[_Key, dict[str, Any]]] = []
    time: dict[_Key, dict[str, int]] = {}
    for context, (kinds, of) in zip(contexts, sides, strict=True):
        work = context.once(device_work)
        keys, key = distinct((key._replace(name=label[key.name]) for key in kinds), of)
        found.append({keys[at]: cells for at, cells in measured(context, np.arange(len(key)), key, "kernel").items()})
        parts = group(key, work.group)
        for first, total in zip(parts.first.tolist(), parts.sum(work.time).tolist(), strict=True):
            families, family = time.setdefault(keys[key[first]], {}), _family(work.group[first])
            families[family] = families.get(family, 0) + total
    ordered = sorted(time, key=lambda key: (key.name, key.shapes or "", key.core or ""))
    rows = [(_shared(key, time[key]), [side.get(key) for side in found]) for key in ordered]
    return [Pair(shared, *lost_collectives(contexts, sides, shared["work"] == _SENDS)) for shared, sides in rows]


_SENDS = f"work_{KernelGroup.COMMUNICATION.name.lower()}"


def _shared(key: _Key, families: dict[str, int]) -> dict[str, str | None]:
    """A type that the profile names, or a kind of work that the tool does: that of most time."""
    kind = max(families, key=lambda family: (families[family], -KernelGroup[family.upper()]))
    name = Word(f"work_{kind}") if key.name == kind else key.name
    return {"kernel": key.name, "kernel_type": name, "shapes": key.shapes, "core": key.core, "work": f"work_{kind}"}
