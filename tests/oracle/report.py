"""All numbers of one file."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.oracle import classes, idle, raw, syncs, trace
from tests.oracle.partition import partition
from tests.oracle.spans import intersect, length, union

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oracle.raw import Event
    from tests.oracle.spans import Span

_EVER = 1 << 63
Parts = list[tuple[idle.Gap, list[idle.Piece]]]


def numbers(path: Path) -> dict[str, Any]:
    """Windows, partition, device span, idle causes, syncs and launches of a trace file, in ns."""
    read = raw.load(path)
    built = trace.build(read)
    windows = trace.windows(built)
    rows = [(row.start, row.end) for row in windows.rows]
    devices = _by_device(built.device)
    partitions = {device: [partition(events, start, end) for start, end in rows] for device, events in devices.items()}
    found: dict[str, Any] = {
        "mode": windows.mode,
        "base": built.base,
        "malformed": read.malformed,
        "repaired": built.repaired,
        "between_steps": windows.between,
        "lead_in": windows.lead_in,
        "steps": [
            {
                "name": row.name,
                "start": row.start,
                "end": row.end,
                "host_start": row.host_start,
                "host_end": row.host_end,
                "owned": row.owned,
                "complete": row.complete,
                "counted": row.counted,
            }
            for row in windows.rows
        ],
        "spans": {device: _span(events) for device, events in devices.items()},
        "partitions": partitions,
    }
    if devices:
        headline = max(devices, key=lambda device: sum(each["busy"] for each in partitions[device]))
        found["device"] = headline
        found.update(_causes(built, windows, devices[headline], rows))
    return found


def _by_device(events: list[Event]) -> dict[str, list[Event]]:
    devices: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        devices[trace.device_of(event)].append(event)
    return devices


def _span(events: list[Event]) -> dict[str, Any]:
    start, end = min(event.start for event in events), max(event.end for event in events)
    counts = Counter(classes.count_class(event) for event in events)
    return {
        "start": start,
        "end": end,
        "counts": [counts[name] for name in ("compute", "comm", "memcpy", "memset")],
        **partition(events, start, end),
    }


def _causes(built: trace.Trace, windows: trace.Windows, device: list[Event], rows: list[Span]) -> dict[str, Any]:
    state = idle.host(built, windows.thread)
    by_step: list[Counter[str]] = [Counter() for _ in rows]
    parts = []
    for gap in idle.gaps(device, built.launch, rows[0][0], rows[-1][1]):
        pieces = idle.pieces(gap, state)
        parts.append((gap, pieces))
        for index, (start, end) in enumerate(rows):
            for a, b, cause in pieces:
                if a < end and b > start:
                    by_step[index][cause] += min(b, end) - max(a, start)
    return {
        "idle": [dict(counter) for counter in by_step],
        "gaps": len(parts),
        "syncs": _syncs(built, state, parts, windows),
        "launches": _launches(built, parts, [(row.start, row.end) for row in windows.rows if not row.counted]),
    }


def _analysed(windows: trace.Windows) -> list[Span]:
    """The steps that count, and the time between two that follow each other (§18)."""
    rows = [(row.start, row.end) for row in windows.rows if row.counted]
    between = [(a.end, b.start) for a, b in pairwise(windows.rows) if a.counted and b.counted]
    return union([*rows, *between])


def _syncs(built: trace.Trace, state: idle.Host, parts: Parts, windows: trace.Windows) -> dict[str, Any]:
    """Sums by call name over the calls that touch the analysed time, with their part inside; else all (§18)."""
    found: dict[str, Any] = {}
    analysed = _analysed(windows)
    host = [(-_EVER, _EVER)] if windows.mode == "whole trace" else analysed
    inside = [
        (gap, [(*span, cause) for a, b, cause in pieces for span in intersect([(a, b)], analysed)])
        for gap, pieces in parts
    ]
    for sync in syncs.costs(built, state, inside):
        if not any(sync.call.start < end and max(sync.call.end, sync.call.start + 1) > start for start, end in host):
            continue
        row = found.setdefault(sync.call.name, {"count": 0, "blocked": 0, "idle_caused": 0, "terminal": 0})
        if sync.terminal:
            row["terminal"] += 1
            continue
        row["count"] += 1
        row["blocked"] += length(intersect([(sync.call.start, sync.call.end)], host))
        row["idle_caused"] += sync.idle_caused
    return found


def _launches(built: trace.Trace, parts: Parts, left_out: list[Span]) -> dict[str, Any]:
    """Of all events and whole gaps but those that begin in steps that do not count."""

    def counts(at: int) -> bool:
        return not any(start <= at < end for start, end in left_out)

    linked = [event for event in built.device if event.order in built.launch and counts(event.start)]
    unlinked = [event for event in built.device if event.order not in built.launch and counts(event.start)]
    delays = sorted(
        max(0, event.start - built.launch[event.order].end)
        for event in linked
        if event.start >= built.launch[event.order].start
    )
    negative = len(linked) - len(delays)
    usable = bool(delays) and 1000 * negative <= len(linked)
    return {
        "linked": len(linked),
        "unlinked": len(unlinked),
        "unlinked_time": sum(event.end - event.start for event in unlinked),
        "late": sum(1 for gap, _ in parts if _late(gap) and counts(gap.start)),
        "negative_latency": negative,
        "delay_p50": delays[int(len(delays) * 0.5)] if usable else None,
        "delay_p90": delays[int(len(delays) * 0.9)] if usable else None,
    }


def _late(gap: idle.Gap) -> bool:
    """Launched after the gap began; a launch later than its event is a clock error and says nothing."""
    return gap.launch is not None and gap.next is not None and gap.start <= gap.launch.start <= gap.next.start
