"""Copies by direction and kind of host memory, and fills: sizes, bandwidth, and which of them held the host up."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import COUNT, DEVICE_TIME, EXTREMES, MEAN, Groups, group
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.kernels.work import DEVICES, device_work, on_devices
from traceanalyze.model.columns import Rows, occurs
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, Values, declare, where
from traceanalyze.model.vocabulary import DeviceClass, EventKind

DIRECTIONS = ("h2d", "d2h", "d2d", "p2p", "h2h", "unknown", "fill")
MEMORY = (None, "pageable", "pinned", "device")
_SHORT = regex(r"\b([HDP])to([HDP])\b|\b([MHD])2([MHD])\b")
_LONG = regex(r"Copy(Host|Device|Peer)To(Host|Device|Peer)")
_KINDS = regex(r"\((.+) -> (.+)\)")
_HOST_MEMORY = {"pageable": "pageable", "pinned": "pinned", "memory(unknown)": "pageable", "host": "pinned"}
"""What the profilers of CUDA and of Intel (in capitals) write; ROCm's `Host` says nothing."""
_CALLED = regex(r"^acl_memcpy_(host|device)_to_(host|device)$")
"""Operators that copy on Ascend, where the copies themselves say nothing."""


_COPIES = declare(
    "copies",
    "Copies and fills (sum over the analysed steps)",
    Column("direction", Kind.TERM, "from where to where", heading="copy"),
    Column("memory_kind", Kind.TERM, "kind of host memory: pageable copies hold the host up", heading="host memory"),
    DEVICES,
    COUNT,
    DEVICE_TIME,
    Column("share", Kind.SHARE, "part of the time of all copies and fills"),
    MEAN,
    *EXTREMES,
    Column("bytes", Kind.BYTES, "bytes of all of them"),
    Column("bandwidth", Kind.NUMBER, "bytes over device time, 10⁹ bytes per second", heading="GB/s"),
    Column("blocking", Kind.COUNT, "copies whose call held the host up"),
    ranked=True,
)


def copies(context: Context) -> Table:
    """Copies and fills inside the analysed windows, most time first."""
    work, device = context.once(device_work), context.device
    chosen = np.flatnonzero(device.klass[work.event] == DeviceClass.MEM)
    if len(chosen) == 0:
        return _COPIES.missing(context.unmeasured.get("memory_ops", "no_memory_ops"), detail=True)
    event = work.event[chosen]
    kind = _kind(context, event)
    groups = group(kind)
    spread = groups.spread(work.time[chosen])
    direction, memory = np.divmod(kind[groups.first], len(MEMORY))
    sizes, bandwidths = _sizes(context, event, groups)
    return _COPIES.fill(
        direction=[f"copy_{DIRECTIONS[code]}" for code in direction.tolist()],
        memory_kind=[_memory_term(*codes) for codes in zip(direction.tolist(), memory.tolist(), strict=True)],
        devices=on_devices(context, groups, device.device[event]),
        **spread.values,
        share=spread.shares,
        bytes=sizes,
        bandwidth=bandwidths,
        blocking=groups.sum(_blocking(context, event)),
    ).sort("-device_time_ns", "direction")


def _memory_term(direction: int, memory: int) -> Value:
    """Term of a kind of memory; a fill has none."""
    if MEMORY[memory] is not None:
        return f"memory_{MEMORY[memory]}"
    return None if DIRECTIONS[direction] == "fill" else NotMeasured("no_memory_kind")


def _kind(context: Context, event: Rows) -> NDArray[np.int64]:
    """Direction and memory of each copy or fill as one number."""
    return context.once(_kinds)[event].astype(np.int64)


def _kinds(context: Context) -> NDArray[np.int8]:
    """The same of all device events, of others that nothing is known; once a distinct (argument, name, kind)."""
    device, strings = context.device, context.trace.strings
    known = np.full(len(device), _code("unknown", None), np.int8)
    event = np.flatnonzero(
        (device.klass == DeviceClass.MEM) | occurs(device.kind, (EventKind.MEMCPY, EventKind.MEMSET))
    )
    written = context.trace.events.numbers("copy_kind", device.row[event], -1)
    name, fill = device.name[event], device.kind[event] == EventKind.MEMSET
    sides = [context.trace.events.numbers(field, device.row[event], -1) for field in ("copy_from", "copy_to")]
    keys = group(written, name, fill, *sides)
    decided = np.zeros(len(keys), np.int64)
    for index, first in enumerate(keys.first.tolist()):
        text = strings.text(int(name[first]))
        stated = strings.text(int(written[first])) if written[first] >= 0 else ""
        direction = "fill" if fill[first] else copy_direction(stated) or copy_direction(text) or "unknown"
        source, target = (strings.text(int(side[first])) if side[first] >= 0 else "" for side in sides)
        memory = copy_memory(f"({source} -> {target})" if source and target else text, direction)
        decided[index] = _code(direction, memory)
    found = decided[keys.of]
    silent = np.flatnonzero((found == _code("unknown", None)) & (context.event_op[event] >= 0))
    ops = context.trace.events.name[context.op_nest.rows(context.event_op[event[silent]])]
    found[silent] = strings.lookup(ops, _called)
    known[event] = found
    return known


def _code(direction: str, memory: str | None) -> int:
    return DIRECTIONS.index(direction) * len(MEMORY) + MEMORY.index(memory)


def _called(op: str) -> int:
    """What an operator that copies does."""
    stated = _CALLED.match(op)
    direction = "unknown" if stated is None else f"{stated[1][0]}2{stated[2][0]}"
    return _code(direction, copy_memory("", direction))


def copy_direction(text: str) -> str | None:
    """`HtoD`, `CopyHostToDevice`, `M2D` … as h2d, d2h, d2d, p2p, h2h; None where nothing tells (§2.2)."""
    found = _SHORT.search(text) or _LONG.search(text)
    if found is None:
        return None
    source, target = (side[0].lower().replace("m", "h") for side in found.groups() if side)
    direction = f"{source}2{target}"
    return direction if direction in DIRECTIONS else None


def copy_memory(name: str, direction: str) -> str | None:
    """Memory kind of the host's side, `device` between devices; None where the name does not tell (`Host` on ROCm)."""
    if direction in {"d2d", "p2p", "fill"}:
        return "device" if direction != "fill" else None
    found = _KINDS.search(name)
    if found is None:
        return None
    side = found[1] if direction in {"h2d", "h2h"} else found[2]
    return None if side == "Host" else _HOST_MEMORY.get(side.lower())


def directions(context: Context, event: Rows) -> NDArray[np.int64]:
    """Position in `DIRECTIONS` of each copy or fill."""
    return _kind(context, event) // len(MEMORY)


def memories(context: Context, event: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in `MEMORY` of each copy or fill."""
    return _kind(context, event) % len(MEMORY)


def _sizes(context: Context, event: Rows, groups: Groups) -> tuple[Values, list[Value]]:
    """Bytes of each group, and bytes per nanosecond (GB/s) of the events that have both a size and a duration."""
    device = context.device
    size = context.trace.events.numbers("bytes", device.row[event])
    duration = device.end[event] - device.start[event]
    sized = size >= 0
    timed = sized & (duration > 0)
    with_size = groups.sum(sized)
    total = groups.sum(np.where(sized, size, 0))
    moved = groups.sum(np.where(timed, size, 0))
    time = groups.sum(np.where(timed, duration, 0))
    bandwidths: list[Value] = [
        float(b / t) if t else NotMeasured("no_duration" if n else "no_bytes")
        for b, t, n in zip(moved, time, with_size, strict=True)
    ]
    return where(with_size > 0, total, NotMeasured("no_bytes")), bandwidths


def _blocking(context: Context, event: Rows) -> NDArray[np.bool_]:
    """Whether the call that started each event counts as a sync point."""
    link = context.link[event]
    blocked = np.zeros(len(event), np.bool_)
    blocked[link >= 0] = context.once(is_sync_call)[link[link >= 0]]
    return blocked
