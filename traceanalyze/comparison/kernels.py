"""Kernels of both sides: by name, and by what they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison.collectives import common_labels, plain_collective, plain_kernel, untemplated
from traceanalyze.comparison.pairs import (
    AVG_RATIO,
    CHANGE_SHARE,
    DIFF,
    MATCH,
    PLACE,
    SHAPES,
    TOTAL_RATIO,
    both,
    minor,
    section,
)
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions, measured
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.table import Column, Kind, NotMeasured, Word

_CORE = Column("core", Kind.TEXT, "kind of core the kernels ran on")
_NUMBERS = (
    *both(
        total_ns="Total Duration(us)",
        avg_ns="Avg Duration(us)",
        max_ns="Max Duration(us)",
        min_ns="Min Duration(us)",
        calls="Calls",
    ),
    TOTAL_RATIO,
    AVG_RATIO,
    DIFF,
    CHANGE_SHARE,
    Column(
        "work",
        Kind.TERM,
        "what the kernel computes, by its name, else by the operator that launched it",
        heading="kind of work",
        minor=True,
    ),
    MATCH,
    *minor(*both(kernel="")),
)
KERNELS = section(
    "kernel_compare",
    "Kernels (per step)",
    replace(PLACE, alias="Order Id"),
    Column("kernel", Kind.NAME, "kernel, copy or fill that the operator launched", alias="Kernel"),
    replace(SHAPES, alias="Input Shape"),
    *_NUMBERS,
    replace(_CORE, minor=True),
    by="total_ns",
)
KERNEL_TYPES = section(
    "kernel_type_compare",
    "Types of kernels (per step)",
    replace(PLACE, alias="Order Id"),
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


class _Side(NamedTuple):
    """Distinct kinds of device events of one side, and the kind of each event of `device_work`."""

    kinds: list[_Key]
    of: NDArray[np.int64]


def kernel_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device events by name; the times of a side sum to all its device time.

    Names are matched as recorded; where that fails without signature, trailing counter and CANN's prefix; where even
    that fails without template arguments, if only one kernel of each side can be meant. Profiles of Ascend that both
    state the type of operator are compared by this type, shapes and core. Kernels of different vendors often have no
    partner by name: `kernel_type_pairs` compares these by family; those of Ascend, whose names are numbered, are rows
    by their type. NotMeasured if a side has no device events.
    """
    if min(len(base.device), len(candidate.device)) == 0:
        return NotMeasured("no_device_events")
    typed = _typed(base, candidate)
    foreign = base.trace.origin.format != candidate.trace.origin.format
    return _pairs(
        (base, candidate), [_kinds(context, options, typed=typed, foreign=foreign) for context in (base, candidate)]
    )


def kernel_type_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device events by what they are for, or by type of operator and core where both profiles state these (Ascend).

    The times of a side sum to all its device time. NotMeasured if a side has no device events.
    """
    if min(len(base.device), len(candidate.device)) == 0:
        return NotMeasured("no_device_events")
    if not _typed(base, candidate):
        return _pairs((base, candidate), [_families(context) for context in (base, candidate)])
    return _pairs((base, candidate), [_types(context, options) for context in (base, candidate)])


def _typed(base: Context, candidate: Context) -> bool:
    return all("op_type" in context.trace.events.fields for context in (base, candidate))


def _kinds(context: Context, options: CompareOptions, *, typed: bool, foreign: bool) -> _Side:
    """Names as mapped by the user; with `typed` the type of operator where it is stated, its shapes and core.

    Against a profile in another format the type stands for the name, too.
    """
    row = context.device.row[context.once(device_work).event]
    name = context.device.name[context.once(device_work).event].astype(np.int64)
    shapes = core = np.full(len(row), -1, np.int64)
    if typed or foreign:
        stated = context.trace.events.numbers("op_type", row)
        name = np.where(stated >= 0, stated, name)
    if typed:
        shapes, core = (context.trace.events.numbers(field, row) for field in ("kernel_shapes", "core"))
    rows = group(name, shapes, core)
    text = context.trace.strings.text
    kinds = []
    for first in rows.first.tolist():
        own = plain_collective(text(int(name[first])))
        more = (text(int(code[first])) if code[first] >= 0 else None for code in (shapes, core))
        kinds.append(_Key(options.op_name_map.get(own, own), *more))
    return _Side(kinds, rows.of)


def _types(context: Context, options: CompareOptions) -> _Side:
    """Types of operator as mapped by the user, and cores; what states none by family."""
    row, family = context.device.row[context.once(device_work).event], context.once(device_work).group
    stated, core = (context.trace.events.numbers(field, row) for field in ("op_type", "core"))
    rows = group(stated, core, np.where(stated >= 0, 0, family))
    text = context.trace.strings.text
    kinds = []
    for first in rows.first.tolist():
        own = text(int(stated[first])) if stated[first] >= 0 else KernelGroup(int(family[first])).name.lower()
        where = text(int(core[first])) if core[first] >= 0 else None
        kinds.append(_Key(options.op_name_map.get(own, own), None, where))
    return _Side(kinds, rows.of)


def _families(context: Context) -> _Side:
    rows = group(context.once(device_work).group)
    names = [KernelGroup(int(code)).name.lower() for code in context.once(device_work).group[rows.first].tolist()]
    return _Side([_Key(name, None, None) for name in names], rows.of)


def _pairs(contexts: tuple[Context, Context], sides: Sequence[_Side]) -> list[Pair]:
    names = [[key.name for key in side.kinds] for side in sides]
    label = common_labels(names[0], names[1], (plain_kernel, True), (untemplated, False))
    keys: dict[_Key, int] = {}
    found: list[dict[int, dict[str, Any]]] = []
    time: dict[tuple[int, int], int] = {}
    for context, side in zip(contexts, sides, strict=True):
        number = [keys.setdefault(key._replace(name=label[key.name]), len(keys)) for key in side.kinds]
        key = np.array(number, np.int64)[side.of] if number else side.of
        found.append(measured(context, np.arange(len(key)), key, "kernel"))
        parts = group(key, context.once(device_work).group)
        for first, total in zip(parts.first.tolist(), parts.sum(context.once(device_work).time).tolist(), strict=True):
            part = int(key[first]), int(context.once(device_work).group[first])
            time[part] = time.get(part, 0) + total
    family: dict[int, int] = {}
    for (index, kind), _ in sorted(time.items(), key=lambda item: (item[1], -item[0][1])):
        family[index] = kind
    ordered = sorted(keys, key=lambda key: (key.name, key.shapes or "", key.core or ""))
    return [Pair(_shared(key, family[keys[key]]), *(side.get(keys[key]) for side in found)) for key in ordered]


def _shared(key: _Key, family: int) -> dict[str, str | None]:
    """A type that the profile names, or a kind of work that the tool does."""
    kind = KernelGroup(family).name.lower()
    name = Word(f"work_{kind}") if key.name == kind else key.name
    return {"kernel": key.name, "kernel_type": name, "shapes": key.shapes, "core": key.core, "work": f"work_{kind}"}
