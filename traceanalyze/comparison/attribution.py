"""What the step time of each side is made of: exclusive parts that sum to it exactly."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.comparison.canonical_ops import accountable
from traceanalyze.comparison.collectives import Names, event_groups
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.results import Part, SideInfo, Time
from traceanalyze.comparison.side import Side
from traceanalyze.model.classifier import kind_of_op
from traceanalyze.model.columns import Rows
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import (
    DISPATCH,
    DISPATCH_CALLS,
    HOST_PARTS,
    IDLE_PARTS,
    NEED_HOST_OPS,
    Cause,
    DeviceClass,
    Phase,
)

STEP = "step"
"""The step as one part: one side recorded the device, the other only the host."""
IDLE = "idle"
"""Idle time as one part: only one side recorded runtime calls, without which no cause is certain."""
OUTSIDE_CALLS = "outside_calls"
"""Idle time while the host is in no runtime call, as one part: only one side recorded host operators."""
CALLS = "dispatch_calls"
"""Dispatch without host operators, where these are part of `OUTSIDE_CALLS`."""
HOST_SIDE = "host_side"
"""Idle time while the host runs operators, launches or waits, as one part: one side is of a level without the calls
that would tell these apart."""
_NEED_HOST = frozenset(NEED_HOST_OPS)
_NEED_CALLS = frozenset({Cause.SYNC, *DISPATCH})
_GROUPS = {cause.key: part for part, causes in IDLE_PARTS.items() for cause in causes}


def parts(base: Side, candidate: Side) -> tuple[Part, ...]:
    """The parts of both sides, compute first.

    Causes of idle time that one side cannot show lie within other causes there, so they are compared as one part
    together with these; causes that neither side can show are `NotMeasured` on both, their time is in `untraced`.
    Parts that are measured sum to `SideInfo.step_time`.
    """
    if base.partition is None or candidate.partition is None:
        return _without_device(base, candidate)
    of_cause = idle_parts(base, candidate)
    busy = (("compute", "compute"), ("communication", "comm_exposed"), ("memory_ops", "mem_exposed"))
    found = [Part(key, *(_busy_time(side, key, name) for side in (base, candidate))) for key, name in busy]
    for key in dict.fromkeys(of_cause.values()):
        causes = [cause for cause in Cause if of_cause[cause] == key]
        found.append(Part(key, _idle_time(base, causes), _idle_time(candidate, causes)))
    return tuple(found)


def idle_parts(base: Side, candidate: Side) -> dict[Cause, str]:
    """Key of the part that each cause of idle time counts in."""
    differ = _missing(base) ^ _missing(candidate)
    if calls_of_one_level(base, candidate):
        merged, key = _NEED_CALLS, HOST_SIDE
    elif differ - _NEED_HOST:
        return dict.fromkeys(Cause, IDLE)
    else:
        merged, key = frozenset({*_NEED_HOST, Cause.UNTRACED} if differ else ()), OUTSIDE_CALLS
    return {cause: key if cause in merged else cause.key for cause in Cause}


def calls_of_one_level(base: Side, candidate: Side) -> bool:
    """Whether only one side recorded calls of the runtime, and the other just the queue before it (Ascend, Level0)."""
    differ = _missing(base) ^ _missing(candidate)
    return Cause.SYNC in differ and differ < _NEED_CALLS


def _missing(side: Side) -> set[Cause]:
    return set(side.idle.missing) if isinstance(side.idle, IdleCauses) else set()


def _busy_time(side: Side, part: str, name: str) -> Time:
    """Time of a class of device work; of what nobody knows it is not measured."""
    why = side.context.unmeasured.get(part)
    return NotMeasured(why) if why else int(getattr(side.partition, name).sum())


def _idle_time(side: Side, causes: list[Cause]) -> Time:
    """Time of some causes. One that cannot be shown has none, and alone it is not measured."""
    if isinstance(side.idle, NotMeasured):
        return side.idle
    why = side.context.unmeasured.get("idle")
    if why:
        return NotMeasured(why)
    if len(causes) == 1 and causes[0] in side.idle.missing:
        return side.idle.missing[causes[0]]
    return int(side.idle.by_step[:, causes].sum())


def _without_device(base: Side, candidate: Side) -> tuple[Part, ...]:
    """Host time where neither side recorded a device; else nothing smaller than the step is the same on both."""
    both_host_only = base.partition is None and candidate.partition is None
    if both_host_only and isinstance(base.host, HostSplit) and isinstance(candidate.host, HostSplit):
        return tuple(
            Part(key, int(getattr(base.host, key).sum()), int(getattr(candidate.host, key).sum())) for key in HOST_PARTS
        )
    return (Part(STEP, base.info.step_time, candidate.info.step_time),)


def to_check(base: SideInfo, candidate: SideInfo, found: Sequence[Part], key: str) -> str:
    """What to check about a longer part of the headline: of dispatch what most of its change is."""
    per = PerStep.of(base, candidate)
    of = [part for part in found if key in {part.key, _GROUPS.get(part.key)}]
    changes = {
        part.key: per.exact(part.base, part.candidate)
        for part in of
        if isinstance(part.base, int) and isinstance(part.candidate, int)
    }
    most = max(changes, key=changes.__getitem__, default=key)
    most = most if 2 * changes.get(most, 0) > sum(changes.values()) else key
    if most == Cause.DISPATCH_ALLOC.key:
        return most
    if key not in {"dispatch", CALLS}:
        return key
    more = _more_to_launch(base, candidate, found)
    return (
        "dispatch" if more else most if most == Cause.HOST_OP.key else "dispatch" if more is None else "dispatch_longer"
    )


def _more_to_launch(base: SideInfo, candidate: SideInfo, found: Sequence[Part]) -> bool | None:
    """Whether more pieces of work, or smaller ones, explain longer dispatch rather than more time for each, if known.

    What a piece takes, from one to the next, is its own time and that of its dispatch.
    """
    of = [part for part in found if part.key in {"compute", "memory_ops"} or _GROUPS.get(part.key) == "dispatch"]
    times = zip(*((part.base, part.candidate) for part in of), strict=True)
    sums = [sum(time for time in each if isinstance(time, int)) for each in times]
    old, new = (side.work_number / max(side.count, 1) for side in (base, candidate))
    if not (old and new and sums):
        return None
    pace, other = sums[0] / base.work_number, sums[1] / candidate.work_number
    return (new - old) * pace >= new * (other - pace)


def headline_keys(found: Iterable[Part]) -> dict[str, str]:
    """The part of the headline in which each part counts, by their keys: causes of idle time as all commands sum them.

    Dispatch without its host operators is called otherwise: they may lie in another part together with what one side
    does not tell apart. Without the calls it is not measured, and the operators stay on their own.
    """
    parts = {part.key: part for part in found}
    if "api" in parts:  # of the host alone, where operators are no idle time of a device
        return {key: key for key in parts}
    keys = {key: _GROUPS.get(key, key) for key in parts}
    launches = parts.get(Cause.DISPATCH_LAUNCH.key)
    if OUTSIDE_CALLS in parts:
        keys |= {cause.key: CALLS for cause in DISPATCH_CALLS}
    elif launches is not None and isinstance(launches.base, NotMeasured):
        keys[Cause.HOST_OP.key] = Cause.HOST_OP.key
    return keys


def headline(found: Iterable[Part]) -> tuple[Part, ...]:
    """The parts summed as `headline_keys` says, in the same order."""
    members = tuple(found)
    keys, grouped = headline_keys(members), dict[str, list[Part]]()
    for part in members:
        grouped.setdefault(keys[part.key], []).append(part)
    return tuple(
        Part(key, summed([part.base for part in members]), summed([part.candidate for part in members]))
        for key, members in grouped.items()
    )


def summed(times: list[Time]) -> Time:
    """Sum of what was measured; `NotMeasured` where nothing was."""
    known = [time for time in times if not isinstance(time, NotMeasured)]
    return sum(known) if known or not times else times[0]


Cell = tuple[str, str | None]
"""Key of a row, and its name where the profile names it."""
Sums = dict[tuple[Cell, ...], tuple[int, int]]
"""Time and device events by path from the part down; each path holds what is below it too."""

_Paths = list[tuple[Cell, ...]]

_DIRECTED = {KernelGroup.ATTENTION: "attention", KernelGroup.CONVOLUTION: "convolution"}
_RANDOM = regex(r"DSA")
"""Core that makes random numbers."""
_MOVE = regex(r"TensorMove")
_PAGED = regex(r"paged?_?att", re.IGNORECASE)
_BACKWARD = regex(r"bwd|backward|[dw]grad|bprop|_wrw|grad_(in|weight|out)put", re.IGNORECASE)
_FORWARD = regex(r"fwd|forward|fprop", re.IGNORECASE)
_UNITS = {TensorCore.YES: "cube", TensorCore.NO: "vector", TensorCore.UNKNOWN: "units_unknown"}
_CORES = {
    "AI_CORE": TensorCore.YES,
    "MIX_AIC": TensorCore.YES,
    "AI_VECTOR_CORE": TensorCore.NO,
    "MIX_AIV": TensorCore.NO,
    "AI_CPU": TensorCore.NO,
}
"""Which NPU cores have a matrix unit."""


def headline_work(context: Context) -> list[NDArray[np.int64]]:
    """Positions in `device_work` of the headline device's events, by `DeviceClass`."""
    device, event = context.device, context.once(device_work).event
    own = device.device[event] == context.devices[0]
    return [np.flatnonzero(own & (device.klass[event] == each)) for each in DeviceClass]


def work_classes(side: Side, names: Names) -> Sums:
    """Time and number of device events of the headline device by class; sums to the busy parts of the step.

    `names` of process groups are those of `common_names`.
    """
    context = side.context
    every = context.once(device_work).event
    sums: Sums = {}
    compute, comm, mem = headline_work(context)
    labels, group_of = event_groups(context, every[comm])
    groups: _Paths = [(("communication", None), ("group", names[label])) for label in labels]
    copies: _Paths = [(("memory_ops", None), (name, None)) for name in DIRECTIONS]
    tables = (
        (compute, *_compute(side, compute)),
        (comm, groups, group_of),
        (mem, copies, directions(context, every[mem])),
    )
    for rows, paths, of in tables:
        time = side.exclusive[every[rows]]
        table = group(of)
        for first, total, count in zip(
            table.first.tolist(), table.sum(time).tolist(), table.count().tolist(), strict=True
        ):
            path = paths[int(of[first])]
            for depth in range(1, len(path) + 1):
                before = sums.get(path[:depth], (0, 0))
                sums[path[:depth]] = before[0] + total, before[1] + count
    return sums


def _compute(side: Side, chosen: NDArray[np.int64]) -> tuple[_Paths, NDArray[np.int64]]:
    """Class by the kernel first; direction of attention and convolutions by phase; matrix or vector units."""
    context = side.context
    device, event = context.device, context.once(device_work).event[chosen]
    backward, units, purpose = _direction(side, event), _units(side, chosen), _purpose(side, chosen)
    rows = group(device.name[event], purpose, units, device.rule[event], backward)
    paths: _Paths = []
    for first in rows.first.tolist():
        at = int(event[first])
        name, rule = context.trace.strings.text(int(device.name[at])), device.rules[int(device.rule[at])]
        what = KernelGroup(int(purpose[first]))
        paths.append(_path(what, name, rule, TensorCore(int(units[first])), int(backward[first])))
    return paths, rows.of


def _purpose(side: Side, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """`KernelGroup` of each event: by the kernel, but a step of a larger operation is for what that computes.

    Convolutions run as matrix products, change formats on the way, and sum the gradient of their bias; NPUs change
    formats and clear memory for matrix products, too. What makes random numbers is no vector core.
    """
    context, work = side.context, side.context.once(device_work)
    purpose, named = work.group[chosen].astype(np.int64), work.op_name[chosen]
    core = context.trace.events.numbers("core", context.device.row[work.event[chosen]])
    on_npu, nested = core >= 0, context.op_nest
    inside = np.flatnonzero(on_npu & (named >= 0))
    if len(inside):
        of = accountable(context, np.zeros(len(nested), np.bool_))[context.event_op[work.event[chosen[inside]]]]
        named[inside] = context.trace.events.name[nested.row[of]]
    op = np.full(len(chosen), KernelGroup.OTHER, np.int64)
    known, codes = context.options.classify.plugins, named[named >= 0].astype(np.int32)
    op[named >= 0] = context.trace.strings.lookup(codes, lambda text: kind_of_op(text, known))
    steps = np.isin(purpose, (KernelGroup.LAYOUT, KernelGroup.FILL, KernelGroup.OTHER))
    of_matmul = (op == KernelGroup.MATMUL) & steps & on_npu
    other_steps = np.isin(purpose, (KernelGroup.MATMUL, KernelGroup.REDUCTION))
    of_convolution = (op == KernelGroup.CONVOLUTION) & (steps | other_steps)
    by_kernel = work.plugin[chosen] < 0  # what a plug-in says stays
    purpose[of_matmul & by_kernel] = KernelGroup.MATMUL
    purpose[of_convolution & by_kernel] = KernelGroup.CONVOLUTION
    random = context.trace.strings.matches(np.maximum(core, 0).astype(np.int32), _RANDOM.match) & on_npu
    purpose[random & by_kernel] = KernelGroup.OTHER
    return purpose


def _path(what: KernelGroup, name: str, rule: str, units: TensorCore, direction: int) -> tuple[Cell, ...]:
    compute: Cell = ("compute", None)
    if rule == "fused_comm":
        key = "fused_communication"
    elif what == KernelGroup.ATTENTION and _PAGED.search(name):
        key = "paged_attention"
    elif what in _DIRECTED:
        key = _DIRECTED[what] + ("", "_forward", "_backward")[direction]
    elif what == KernelGroup.MATMUL:
        key = "matmul"
    elif what in {KernelGroup.COMPILED, KernelGroup.OTHER}:
        return compute, (what.name.lower(), None)
    elif what == KernelGroup.LAYOUT and _MOVE.search(name):
        return compute, ("tensor_move", None)
    else:
        return compute, ("vector_work", None), (what.name.lower(), None)
    return compute, (key, None), (_UNITS[units], None)


def _units(side: Side, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """`TensorCore` of each event: of an NPU by the counters of its matrix unit, else its core; else by its name."""
    context, work = side.context, side.context.once(device_work)
    row, strings = context.device.row[work.event[chosen]], context.trace.strings
    units = work.tensor_core[chosen].astype(np.int64)
    core = context.trace.events.numbers("core", row)
    on_npu = np.flatnonzero(core >= 0)
    units[on_npu] = strings.lookup(core[on_npu].astype(np.int32), lambda text: _CORES.get(text, TensorCore.UNKNOWN))
    matrix = context.trace.events.numbers("mac_time", row)
    units[matrix == 0] = TensorCore.NO
    units[matrix > 0] = TensorCore.YES
    return units


def _direction(side: Side, event: Rows) -> NDArray[np.int64]:
    """2 backward, 1 forward, 0 not known: by phase; by the kernel's name where the phase is not known.

    Work that autograd did not record (inference) is forward unless its name says otherwise.
    """
    phase, strings, names = side.phase[event], side.context.trace.strings, side.context.device.name[event]
    by_name = strings.lookup(names, _named_direction).astype(np.int64)
    out = np.where(phase == Phase.UNKNOWN, by_name, np.maximum(by_name, 1))
    out[np.isin(phase, (Phase.FORWARD, Phase.DATA_LOADING))] = 1
    out[np.isin(phase, (Phase.BACKWARD, Phase.RECOMPUTE))] = 2
    return out


def _named_direction(name: str) -> int:
    """Of a name with both nothing is known: MIOpen's forward convolution can run as `…ForwardAlgo_BwdData…`."""
    backward, forward = (pattern.search(name) is not None for pattern in (_BACKWARD, _FORWARD))
    return 0 if backward == forward else 2 if backward else 1
