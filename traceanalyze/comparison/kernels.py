"""Kernels of both sides: by name, and by what they are for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import distinct, group
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison import columns
from traceanalyze.comparison.collectives import common_labels, plain_collective, plain_kernel, untemplated
from traceanalyze.comparison.pairs import section
from traceanalyze.comparison.results import Pair, Pairs
from traceanalyze.comparison.side import CompareOptions, measured
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.table import Column, Kind, NotMeasured, Word

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
    return _pairs((base, candidate), lambda context: _kinds(context, options, typed=typed, foreign=foreign))


def kernel_type_pairs(base: Context, candidate: Context, options: CompareOptions) -> Pairs:
    """Device events by what they are for, or by type of operator and core where both profiles state these (Ascend).

    The times of a side sum to all its device time. NotMeasured if a side has no device events.
    """
    if min(len(base.device), len(candidate.device)) == 0:
        return NotMeasured("no_device_events")
    typed = _typed(base, candidate)
    return _pairs((base, candidate), lambda context: _types(context, options) if typed else _families(context))


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


def _pairs(contexts: tuple[Context, Context], kinds_of: Callable[[Context], _Kinds]) -> list[Pair]:
    sides = [kinds_of(context) for context in contexts]
    names = [[key.name for key in kinds] for kinds, _ in sides]
    label = common_labels(names[0], names[1], (plain_kernel, True), (untemplated, False))
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
    return [Pair(_shared(key, time[key]), *(side.get(key) for side in found)) for key in ordered]


def _shared(key: _Key, families: dict[str, int]) -> dict[str, str | None]:
    """A type that the profile names, or a kind of work that the tool does: that of most time."""
    kind = max(families, key=lambda family: (families[family], -KernelGroup[family.upper()]))
    name = Word(f"work_{kind}") if key.name == kind else key.name
    return {"kernel": key.name, "kernel_type": name, "shapes": key.shapes, "core": key.core, "work": f"work_{kind}"}
