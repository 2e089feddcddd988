"""Tables of one device's allocator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Layout, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.analyses.memory.results import AllocatorAnalysis, Holder, Moment
    from traceanalyze.model.snapshot import ProcessStatistics
    from traceanalyze.model.table import Row

_STEP = re.compile(r"ProfilerStep#(\d+)")
_MOMENTS = (
    Column("moment", Kind.TERM),
    Column("event", Kind.COUNT),
    Column("step", Kind.TEXT),
    Column("requested_bytes", Kind.MEMORY),
    Column("block_bytes", Kind.MEMORY),
    Column("block_most_bytes", Kind.MEMORY, minor=True),
    Column("reserved_bytes", Kind.MEMORY),
    Column("hole_bytes", Kind.MEMORY),
    Column("within", Kind.NAME),
)
_CATEGORIES = (
    Column("memory_category", Kind.TERM),
    Column("block_bytes", Kind.MEMORY),
    Column("share", Kind.SHARE),
    Column("blocks", Kind.COUNT),
)
_HOLDERS = (
    Column("source_line", Kind.NAME),
    Column("memory_category", Kind.TERM),
    Column("block_bytes", Kind.MEMORY),
    Column("share", Kind.SHARE),
    Column("blocks", Kind.COUNT),
    Column("requested_bytes", Kind.MEMORY, minor=True),
    Column("since_event", Kind.COUNT, minor=True),
    Column("library_line", Kind.NAME, minor=True),
    Column("file", Kind.NAME, machine=True),
)
_FREE = (
    Column("moment", Kind.TERM),
    Column("pool", Kind.COUNT),
    Column("stream", Kind.COUNT),
    Column("large_blocks", Kind.FLAG),
    Column("free_bytes", Kind.MEMORY),
    Column("holes", Kind.COUNT),
    Column("hole_bytes", Kind.MEMORY),
)
_STEPS = (
    Column("step", Kind.TEXT),
    Column("event", Kind.COUNT),
    Column("peak_requested_bytes", Kind.MEMORY),
    Column("floor_bytes", Kind.MEMORY),
    Column("reserved_bytes", Kind.MEMORY),
    Column("allocations", Kind.COUNT),
)
_RUNS = (
    Column("event", Kind.COUNT),
    Column("release_kind", Kind.TERM),
    Column("released_bytes", Kind.MEMORY),
    Column("reacquired_bytes", Kind.MEMORY),
    Column("cost_ns", Kind.DURATION),
    Column("source_line", Kind.NAME),
)
_PINNERS = (
    Column("source_line", Kind.NAME),
    Column("blocks", Kind.COUNT),
    Column("block_bytes", Kind.MEMORY),
    Column("held_bytes", Kind.MEMORY),
)
_CURVE = (
    Column("event", Kind.COUNT),
    Column("since_start_ns", Kind.DURATION),
    Column("requested_bytes", Kind.MEMORY),
    Column("block_bytes", Kind.MEMORY),
    Column("reserved_bytes", Kind.MEMORY),
)
_STATISTICS = (
    Column("retries", Kind.COUNT),
    Column("failed_requests", Kind.COUNT),
    Column("peak_block_bytes", Kind.MEMORY),
    Column("peak_reserved_memory", Kind.MEMORY),
    Column("peak_requested_bytes", Kind.MEMORY),
    Column("peak_inactive_bytes", Kind.MEMORY),
)
_CHECK = (
    Column("reconciled", Kind.FLAG),
    Column("blocks_tile", Kind.FLAG),
    Column("sums_agree", Kind.FLAG),
    Column("segments_follow", Kind.FLAG),
    Column("layout_exact", Kind.FLAG),
    Column("baseline_agrees", Kind.FLAG),
    Column("events", Kind.COUNT),
    Column("live_blocks", Kind.COUNT),
    Column("segments", Kind.COUNT),
    Column("disorder", Kind.COUNT, minor=True),
    Column("mismatched", Kind.COUNT, minor=True),
    Column("unplaced", Kind.COUNT, minor=True),
    Column("unknown_events", Kind.COUNT, minor=True),
)


def moments_table(analysis: AllocatorAnalysis) -> Table:
    """Requested, block and reserved bytes at the peak, at failed requests and at the dump."""
    rows = tuple(
        (
            f"moment_{one.kind}",
            one.event if one.event >= 0 else None,
            step_label(one.step),
            one.requested,
            one.allocated,
            one.allocated_most,
            one.reserved,
            max((free.largest for free in one.free), default=0),
            " > ".join(one.ranges) or None,
        )
        for one in analysis.moments
    )
    return table_of_rows("memory_moments", _MOMENTS, rows)


def step_label(name: str | None) -> str | None:
    """The number of `ProfilerStep#5`, else the name."""
    found = _STEP.fullmatch(name) if name else None
    return found[1] if found else name


def composition_tables(analysis: AllocatorAnalysis) -> Iterator[Table]:
    """What the peak, each failed request and the dump consist of."""
    peak = analysis.moments[0]
    yield _categories(peak)
    yield _holders("memory_at_peak", peak)
    oom = next((one for one in analysis.moments if one.kind == "oom"), None)
    if oom is not None:
        yield _holders("memory_at_oom", oom)
    dump = next((one for one in analysis.moments if one.kind == "dump"), None)
    if dump is not None and dump is not peak:
        yield _holders("memory_at_dump", dump, detail=True)


def _categories(moment: Moment) -> Table:
    sums: dict[str, list[int]] = {}
    for one in moment.holders:
        entry = sums.setdefault(one.category, [0, 0])
        entry[0] += one.allocated
        entry[1] += one.blocks
    whole = max(moment.allocated, 1)
    ordered = sorted(sums.items(), key=lambda item: -item[1][0])
    rows = tuple((f"category_{key}", size, size / whole, count) for key, (size, count) in ordered)
    total = ("moment_peak", moment.allocated, 1.0, sum(count for _, count in sums.values()))
    return table_of_rows("memory_categories", _CATEGORIES, rows, total=total, bar="share")


def _holders(key: str, moment: Moment, *, detail: bool = False) -> Table:
    whole = max(moment.allocated, 1)
    rows = tuple(_holder(one, whole) for one in moment.holders)
    return table_of_rows(key, _HOLDERS, rows, ranked=True, bar="share", detail=detail)


def _holder(one: Holder, whole: int) -> Row:
    return (
        one.line,
        f"category_{one.category}",
        one.allocated,
        one.allocated / whole,
        one.blocks,
        one.requested,
        one.oldest if one.oldest >= 0 else None,
        one.library,
        one.path,
    )


def free_table(analysis: AllocatorAnalysis) -> Table:
    """Free memory inside segments by what it can serve, at each moment."""
    rows = tuple(
        (
            f"moment_{one.kind}",
            free.domain.pool,
            free.domain.stream,
            free.domain.large,
            free.bytes,
            free.holes,
            free.largest,
        )
        for one in analysis.moments
        for free in one.free
    )
    return table_of_rows("free_memory", _FREE, rows, detail=True)


def steps_table(analysis: AllocatorAnalysis) -> Table:
    """Peak and floor of every step."""
    if isinstance(analysis.steps, NotMeasured):
        return table_of_rows("memory_steps", _STEPS, analysis.steps, detail=True)
    rows = tuple(
        (step_label(one.name), one.first, one.peak_requested, one.floor_requested, one.peak_reserved, one.allocations)
        for one in analysis.steps
    )
    return table_of_rows("memory_steps", _STEPS, rows, worst="peak_requested_bytes", detail=True)


def runs_table(analysis: AllocatorAnalysis) -> Table:
    """Memory given back to the device."""
    rows = tuple(
        (run.event, f"release_{run.kind}", run.bytes, run.reacquired, run.cost, run.line) for run in analysis.runs
    )
    return table_of_rows("release_runs", _RUNS, rows, detail=True)


def pinners_table(analysis: AllocatorAnalysis) -> Table:
    """Who kept free segments from being used whole, at the worst fragmented growth."""
    found = analysis.fragmentation
    if isinstance(found, NotMeasured):
        return table_of_rows("pinners", _PINNERS, found, detail=True)
    rows = tuple((one.line, one.blocks, one.bytes, one.held) for one in found.pinners)
    return table_of_rows("pinners", _PINNERS, rows, detail=True)


def curve_table(analysis: AllocatorAnalysis) -> Table:
    """The three quantities over the history, thinned so that no peak and no valley is lost."""
    if isinstance(analysis.groups, NotMeasured):
        return table_of_rows("allocator_curve", _CURVE, analysis.groups, plot=_PLOTTED)
    rows = tuple(
        (
            event,
            None if analysis.time is None else int(analysis.time[event] - analysis.time[0]),
            int(analysis.requested[event]),
            int(analysis.allocated[event]),
            int(analysis.reserved[event]),
        )
        for event in analysis.groups.event.tolist()
    )
    return table_of_rows("allocator_curve", _CURVE, rows, plot=_PLOTTED, detail=True)


_PLOTTED = ("reserved_bytes", "block_bytes")


def statistics_table(told: ProcessStatistics) -> Table:
    """What the process itself counted."""
    row: Row = (
        told.retries,
        told.ooms,
        told.peak_allocated,
        told.peak_reserved,
        told.peak_requested,
        told.peak_inactive,
    )
    return table_of_rows("process_statistics", _STATISTICS, (row,), layout=Layout.RECORD, detail=True)


def check_table(analysis: AllocatorAnalysis) -> Table:
    """Whether history and dump agree."""
    check = analysis.check
    row: Row = (
        check.reconciled,
        check.blocks_tile,
        check.sums_agree,
        check.segments_follow,
        check.layout_exact,
        check.baseline,
        analysis.events,
        analysis.live_blocks,
        analysis.segments,
        check.disorder,
        check.mismatched,
        check.unplaced,
        check.unknown_events,
    )
    return table_of_rows("memory_check", _CHECK, (row,), layout=Layout.RECORD, detail=True)
