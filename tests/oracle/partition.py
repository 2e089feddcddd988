"""The exclusive partition of a window on one device: definitions §4, from the raw events each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.oracle import classes
from tests.oracle.spans import clip, intersect, length, subtract, union

if TYPE_CHECKING:
    from tests.oracle.raw import Event


def partition(device: list[Event], start: int, end: int) -> dict[str, int]:
    """Parts of `[start, end)` in ns."""
    groups: dict[str, list[tuple[int, int]]] = {"compute": [], "comm": [], "mem": []}
    for event in device:
        if event.start < end and event.end > start:
            groups[classes.device_class(event)].append((event.start, event.end))
    clipped = {name: clip(spans, start, end) for name, spans in groups.items()}
    compute, comm, mem = (union(clipped[name]) for name in ("compute", "comm", "mem"))
    either = union(compute + comm)
    busy = union(either + mem)
    parts = {
        "compute": length(compute),
        "comm_exposed": length(subtract(comm, compute)),
        "mem_exposed": length(subtract(mem, either)),
        "idle": end - start - length(busy),
        "comm_total": length(comm),
        "comm_overlapped": length(intersect(comm, compute)),
        "mem_total": length(mem),
        "busy": length(busy),
        "compute_dur": length(clipped["compute"]),
        "comm_dur": length(clipped["comm"]),
        "mem_dur": length(clipped["mem"]),
    }
    if parts["compute"] + parts["comm_exposed"] + parts["mem_exposed"] + parts["idle"] != end - start:
        raise AssertionError(parts)
    return parts
