"""What a schedule says about itself, counted cell by cell of 100 ns; shares nothing with the product."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.make_samples.schedule import CELL

if TYPE_CHECKING:
    from tests.make_samples.schedule import Program, Span

LAUNCH_LATENCY = 10_000
"""More than this between launch and start is not latency."""
_DEVICE = ("memcpy", "memset", "comm", "kernel")
"""Painted in this order: compute covers communication, that covers copies."""
_HOST = ("untraced", "data_loading", "sync", "dispatch.launch", "dispatch.copy", "host_op")


@dataclass(frozen=True, slots=True)
class Truth:
    """Step times, and parts and idle causes summed over all steps, in ns."""

    steps: tuple[int, ...]
    parts: dict[str, int]
    idle: dict[str, int]


def truth(program: Program) -> Truth:
    """Count what happened from the begin of the first step to the end of the last."""
    device = [span for span in program.spans if span.kind in _DEVICE]
    begin = program.steps[0][1]
    edges = [begin, *_ends(program, device)]
    cells = (max(*(span.end for span in program.spans), edges[-1])) // CELL
    busy, comm = bytearray(cells), bytearray(cells)
    for code, kind in enumerate(_DEVICE, start=1):
        for span in (each for each in device if each.kind == kind):
            _paint(busy, span.start, span.end, code)
            if kind == "comm":
                _paint(comm, span.start, span.end, 1)
    host = bytearray(cells)
    for start, end, state in program.host_states:
        _paint(host, start, end, _HOST.index(state))
    first, last = begin // CELL, edges[-1] // CELL
    window = bytes(busy[first:last])
    code = {kind: number for number, kind in enumerate(_DEVICE, start=1)}
    parts = {
        "compute": window.count(code["kernel"]),
        "comm_exposed": window.count(code["comm"]),
        "mem_exposed": window.count(code["memcpy"]) + window.count(code["memset"]),
        "idle": window.count(0),
        "comm_total": bytes(comm[first:last]).count(1),
    }
    return Truth(
        tuple(b - a for a, b in itertools.pairwise(edges)),
        {name: count * CELL for name, count in parts.items()},
        _idle(program, device, window, host, first),
    )


def _paint(cells: bytearray, start: int, end: int, code: int) -> None:
    if start % CELL or end % CELL:
        raise ValueError(f"{start}–{end} is off the grid")
    cells[start // CELL : end // CELL] = bytes([code]) * ((end - start) // CELL)


def _ends(program: Program, device: list[Span]) -> list[int]:
    """End of each step: of its host range, or of the last work launched in it."""
    calls = {span.correlation: span for span in program.spans if span.kind == "api"}
    ends = []
    for _, start, end in program.steps:
        own = [span.end for span in device if start <= calls[span.correlation].start < end]
        ends.append(max([end, *own]))
    return ends


def _idle(program: Program, device: list[Span], window: bytes, host: bytearray, first: int) -> dict[str, int]:
    """Each idle interval goes to the launch of the work that ended it (late), or to the device (queued)."""
    calls = {span.correlation: span for span in program.spans if span.kind == "api"}
    starts = {span.start // CELL: calls[span.correlation] for span in device}
    found: dict[str, int] = {}
    for gap in re.finditer(b"\\0+", window):
        begin, end = gap.start() + first, gap.end() + first
        call = starts.get(end)
        waiting = end if call is None else min(max(begin, call.end // CELL), end)
        for code in set(host[begin:waiting]):
            _count(found, _HOST[code], host[begin:waiting].count(code))
        if waiting == begin:
            short = end - begin <= LAUNCH_LATENCY // CELL
            _count(found, "device_side.gap" if short else "device_side.dependency", end - begin)
        elif waiting < end:
            if end - waiting > LAUNCH_LATENCY // CELL:
                raise ValueError("the schedule has a late launch that waits for something else too")
            _count(found, "dispatch.latency", end - waiting)
    return found


def _count(found: dict[str, int], cause: str, cells: int) -> None:
    found[cause] = found.get(cause, 0) + cells * CELL
