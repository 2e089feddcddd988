"""Exclusive device time of one side by reason: operators, collectives, copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.collective_ranges import description_rows, types
from traceanalyze.analyses.copies import DIRECTIONS, directions
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.modules import event_modules
from traceanalyze.compare.canonical_ops import canonical_ops
from traceanalyze.compare.groups import event_groups
from traceanalyze.compare.reasons import Pieces, summed_up
from traceanalyze.frozen import frozen
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.model.vocabulary import DeviceClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.compare.options import CompareOptions
    from traceanalyze.compare.reasons import Key, Reasons
    from traceanalyze.compare.side import Side

_PARTS = {
    DeviceClass.COMPUTE: "compute",
    DeviceClass.COMM: "communication",
    DeviceClass.MEM: "memory_ops",
}


@frozen
class Labels:
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
    mine = np.flatnonzero(context.device.device[context.work.event] == context.devices[0])
    klass = context.device.klass[context.work.event[mine]]
    module = None
    if side.modules is not None:
        module = event_modules(context, side.modules, side.phase)
    found: Reasons = {}
    for each, part in _PARTS.items():
        chosen = mine[klass == each]
        keys, key = _KEYS[each](side, chosen, labels)
        event = context.work.event[chosen]
        pieces = Pieces(key, side.exclusive[event], event, event)
        named: list[Key] = [(part, what, name) for what, name in keys]
        found |= summed_up(side, named, pieces, None if module is None else module[chosen])
    return found


def _operators(
    side: Side, chosen: NDArray[np.int64], labels: Labels
) -> tuple[list[tuple[str, str]], NDArray[np.int64]]:
    """Canonical operator and direction of each event; without an operator what the kernel is for."""
    work = side.context.work
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
    event = context.work.event[chosen]
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
    return [("copy", name) for name in DIRECTIONS], directions(side.context, side.context.work.event[chosen])


def _merged(keys: list[tuple[str, str]], of: NDArray[np.int64]) -> tuple[list[tuple[str, str]], NDArray[np.int64]]:
    """Keys without repetition, and the position of each event's in them."""
    position = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    return list(position), np.array([position[key] for key in keys], np.int64)[of]


_KEYS = {DeviceClass.COMPUTE: _operators, DeviceClass.COMM: _collectives, DeviceClass.MEM: _copies}
