"""What the memory of a moment consists of: live blocks by category and source line."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses import memory as columns
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.memory.categories import categories
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.lifetimes import BEFORE, Lifetimes
from traceanalyze.analyses.memory.sites import Site
from traceanalyze.analyses.memory.steps import step_label, step_starts
from traceanalyze.model.snapshot import History, Snapshot
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare

_HELD = (
    columns.LINE,
    columns.CATEGORY,
    columns.BLOCK_BYTES,
    Column("share", Kind.SHARE, "part of all live blocks"),
    columns.BLOCKS,
    replace(columns.REQUESTED, minor=True),
    Column("since_event", Kind.COUNT, "event that allocated the oldest of them; empty: before the history", minor=True),
    Column("library_line", Kind.NAME, "innermost line of an installed package below it", minor=True),
    Column("file", Kind.NAME, "whole path of the file", machine=True),
)
AT_PEAK = declare("memory_at_peak", "Who holds the memory at the peak", *_HELD, ranked=True, bar="share")
AT_OOM = declare("memory_at_oom", "Who held the memory when a request failed", *_HELD, ranked=True, bar="share")
AT_DUMP = declare("memory_at_dump", "Who holds the memory at the dump", *_HELD, ranked=True, bar="share", detail=True)
_CATEGORIES = declare(
    "memory_categories",
    "What the peak consists of, in the allocator's blocks",
    columns.CATEGORY,
    replace(columns.BLOCK_BYTES, heading="bytes"),
    Column("share", Kind.SHARE, "part of what was reserved at most"),
    columns.BLOCKS,
    bar="share",
)
_MOMENTS = declare(
    "memory_moments",
    "Memory at its decisive moments",
    columns.MOMENT,
    columns.EVENT,
    columns.STEP,
    columns.REQUESTED,
    columns.BLOCK_BYTES,
    Column(
        "block_most_bytes",
        Kind.MEMORY,
        "upper bound: blocks allocated before the history may have been larger than needed",
        heading="in blocks at most",
        minor=True,
    ),
    columns.RESERVED,
    columns.HOLE,
    Column("within", Kind.NAME, "user annotations around the moment"),
)
_FREE = declare(
    "free_memory",
    "Free memory inside segments",
    columns.MOMENT,
    columns.POOL,
    columns.STREAM,
    columns.LARGE,
    Column("free_bytes", Kind.MEMORY, "bytes inside segments that no block uses"),
    Column("holes", Kind.COUNT, "number of free pieces"),
    columns.HOLE,
    detail=True,
)


def live_at(lives: Lifetimes, event: int) -> NDArray[np.int64]:
    """Blocks alive just after an event, -1 for before the first."""
    return np.flatnonzero((lives.begin <= event) & (lives.end > event))


def first_of_line(sites: Sequence[Site]) -> NDArray[np.int64]:
    """For every site the first one with the same line: what tells lines apart."""
    lines = {site.line: index for index, site in reversed(list(enumerate(sites)))}
    return np.array([lines[site.line] for site in sites], np.int64)


def holders(table: Table, device: Device, event: int) -> Table:
    """Live blocks just after an event by category and line, most block bytes first; they sum to what is in blocks."""
    lives, sites, (category, names, _) = device.lives, device.sites, device.once(categories)
    live = live_at(lives, event)
    line = first_of_line(sites)[lives.stack[live]]
    rows = group(line, category[live])
    site = [sites[at] for at in line[rows.first].tolist()]
    allocated = rows.sum(device.layout.size[live])
    oldest = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(oldest, rows.of, lives.begin[live])
    return table.fill(
        source_line=[one.line for one in site],
        memory_category=[names[code] for code in category[live[rows.first]].tolist()],
        block_bytes=allocated,
        share=allocated / max(int(allocated.sum()), 1),
        blocks=rows.count(),
        requested_bytes=rows.sum(lives.requested[live]),
        since_event=[None if begin == BEFORE else begin for begin in oldest.tolist()],
        library_line=[one.library for one in site],
        file=[one.path for one in site],
    ).sort("-block_bytes", "source_line", "memory_category")


def by_category(held: Table, reserved: int) -> Table:
    """The same blocks by category alone, and what was reserved at most besides: together all that was taken."""
    names = held.column("memory_category")
    rows = group(np.array([names.index(name) for name in names], np.int64))
    size, count = rows.sum(held.array("block_bytes")), rows.sum(held.array("blocks"))
    records: list[dict[str, Value]] = [
        {"memory_category": names[row], "block_bytes": amount, "share": amount / max(reserved, 1), "blocks": blocks}
        for row, amount, blocks in zip(rows.first.tolist(), size.tolist(), count.tolist(), strict=True)
    ]
    used = int(size.sum())
    if reserved > used:
        unused: dict[str, Value] = {
            "block_bytes": reserved - used,
            "share": (reserved - used) / reserved,
            "blocks": None,
        }
        records.append({"memory_category": "category_cached", **unused})
    found = _CATEGORIES.fill_records(records).sort("-block_bytes")
    totals: dict[str, Value] = {"memory_category": "moment_reserved_peak", "block_bytes": reserved, "share": 1.0}
    return replace(found, totals={**totals, "blocks": int(count.sum())})


def moments(device: Device) -> tuple[Table, Table]:
    """Peak, largest reserve, failed requests and the dump, in this order, and what was free then; each once."""
    active, blocks, reserved = device.active, device.blocks, device.reserved
    layout, starts = device.layout, device.once(step_starts)
    wanted = {device.events - 1: "dump", reserved.peak[1]: "reserved_peak", active.peak[1]: "peak"}
    wanted |= dict.fromkeys(device.failures, "oom")
    order = ("peak", "reserved_peak", "oom", "dump")
    chosen = sorted(wanted, key=lambda event: (order.index(wanted[event]), event))
    kinds = [f"moment_{wanted[event]}" for event in chosen]
    held = [layout.watched.get(event if wanted[event] == "oom" else event + 1) for event in chosen]
    allocated = [blocks.at(event) for event in chosen]
    slack = [int(layout.slack[live_at(device.lives, event)].sum()) for event in chosen]
    unknown = NotMeasured("layout_not_exact")
    found = _MOMENTS.fill(
        moment=kinds,
        event=[event if event >= 0 else None for event in chosen],
        step=[step_label(starts.at(event)) for event in chosen],
        requested_bytes=[active.at(event) for event in chosen],
        block_bytes=allocated,
        block_most_bytes=[
            unknown if known is None else least + more
            for least, more, known in zip(allocated, slack, held, strict=True)
        ],
        reserved_bytes=[reserved.at(event) for event in chosen],
        hole_bytes=[unknown if free is None else max((one.largest for one in free), default=0) for free in held],
        within=[" > ".join(_ranges_at(device.snapshot, device.history, event)) or None for event in chosen],
    )
    free = [(kind, one) for kind, several in zip(kinds, held, strict=True) for one in several or ()]
    return found, _FREE.fill(
        moment=[kind for kind, _ in free],
        pool=[one.domain.pool for _, one in free],
        stream=[one.domain.stream for _, one in free],
        large_blocks=[one.domain.large for _, one in free],
        free_bytes=[one.bytes for _, one in free],
        holes=[one.holes for _, one in free],
        hole_bytes=[one.largest for _, one in free],
    )


def _ranges_at(snapshot: Snapshot, history: History, event: int) -> tuple[str, ...]:
    """User annotations open at an event, outermost first; marks need not balance."""
    notes = snapshot.annotations
    if notes is None or history.time is None or event < 0:
        return ()
    stack: list[str] = []
    for row in np.flatnonzero(notes.time <= history.time[event]).tolist():
        if notes.start[row]:
            stack.append(notes.name[row])
        elif notes.name[row] in stack:
            stack.reverse()
            stack.remove(notes.name[row])
            stack.reverse()
    return tuple(stack)
