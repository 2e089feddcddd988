"""What stands beside the step: peaks of memory, and the speed of the links between devices."""

from collections.abc import Iterable, Iterator

import numpy as np

from traceanalyze.analyses.memory.recorded import memory
from traceanalyze.comparison import columns
from traceanalyze.comparison.results import Time
from traceanalyze.comparison.side import Side
from traceanalyze.model import intervals
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare

Row = tuple[str, Time, Time]
"""What it is, and the amount of base and candidate."""
_PEAKS = ("peak_allocated", "peak_reserved", "peak_recorded", "peak_process")
"""Highest totals of the allocator; highest sum of recorded allocations minus frees, without what was there before;
highest memory of the whole process, the libraries' own included: never the same quantity as the allocator's."""
_LOCAL = frozenset({"ON_CHIP", "LOCAL", "INVALID_TYPE", ""})
"""Not a way between devices."""
_PEAK_MEMORY = declare(
    "memory_peak",
    "Peak memory",
    columns.INDEX,
    *columns.both(peak_bytes="Mem Usage"),
    columns.diff("diff_bytes"),
    columns.ratio(alias=""),
)
_LINK_RATES = declare(
    "link_rates",
    "Speed of the links between devices (10⁹ bytes a second)",
    Column("link", Kind.TEXT, "kind of link: HCCS, RoCE, PCIe …"),
    *columns.both(rate_gbs="SDMA Bandwidth, RDMA Bandwidth"),
    Column("rate_ratio", Kind.RATIO, "candidate over base; above 1 is faster", heading="ratio"),
)


def peak_table(rows: Iterable[Row]) -> Iterator[Table]:
    """The peaks side by side; nothing without any."""
    found = [_peak(*row) for row in rows]
    if found:
        yield _PEAK_MEMORY.fill_records(found)


def _peak(index: str, base: Time, candidate: Time) -> dict[str, Value]:
    cells: dict[str, Value] = {"index": index, "base_peak_bytes": base, "candidate_peak_bytes": candidate}
    if isinstance(base, NotMeasured) or isinstance(candidate, NotMeasured):
        return cells | dict.fromkeys(("diff_bytes", "ratio"), base if isinstance(base, NotMeasured) else candidate)
    return cells | {"diff_bytes": candidate - base, "ratio": candidate / base if base else None}


def peak_rows(base: Side, candidate: Side) -> Iterator[Row]:
    """Peaks of the allocator and of the process over the whole recording; left out where neither side can tell."""
    for row in zip(_PEAKS, *((*_allocator(side), _process(side)) for side in (base, candidate)), strict=True):
        if not all(isinstance(peak, NotMeasured) for peak in row[1:]):
            yield row


def _allocator(side: Side) -> tuple[Time, Time, Time]:
    """The allocator's peaks. Some profilers number devices otherwise in memory records; the only one is meant."""
    found = [each for each in memory(side.context).records() if each.memory_of == "memory_of_device"]
    if side.partition is not None and len(found) > 1:
        found = [each for each in found if each.device == side.partition.device]
    if side.partition is None or len(found) != 1:
        missing = NotMeasured("no_memory_records")
        return missing, missing, missing
    return found[0].peak_allocated_bytes, found[0].peak_reserved_bytes, found[0].relative_peak_bytes


def _process(side: Side) -> Time:
    found = side.context.trace.process_memory
    if len(found) > 1 and side.partition is not None:
        found = tuple(each for each in found if each.device == side.partition.device)
    return found[0].peak if len(found) == 1 else NotMeasured("no_process_memory")


def rate_table(rows: Iterable[Row]) -> Iterator[Table]:
    """Rates (bytes a second) by link in 10⁹ bytes; nothing without any."""
    found = [_rate(*row) for row in rows]
    if found:
        yield _LINK_RATES.fill_records(found)


def _rate(link: str, *both: Time) -> dict[str, Value]:
    base, candidate = (rate if isinstance(rate, NotMeasured) else rate / 10**9 for rate in both)
    cells: dict[str, Value] = {"link": link, "base_rate_gbs": base, "candidate_rate_gbs": candidate}
    old, new = both
    faster = new / old if isinstance(old, int) and isinstance(new, int) and old else None
    return cells | {"rate_ratio": faster}


def rate_rows(base: Side, candidate: Side) -> Iterator[Row]:
    """Bytes a second by kind of link; 0 where a side that tells did not use it."""
    sides = [(_rates(side), side.info.vendor) for side in (base, candidate)]
    for link in sorted({link for rates, _ in sides for link in rates or ()}):
        old, new = (
            # Only Ascend profiles can tell, at a higher level; others never do.
            NotMeasured("no_collective_tasks" if vendor == "ascend" else "vendor_does_not_say")
            if rates is None
            else rates.get(link, 0)
            for rates, vendor in sides
        )
        yield link, old, new


def _rates(side: Side) -> dict[str, int] | None:
    """Bytes a second by kind of link (HCCS, RoCE, PCIe …) inside the steps; transfers run in parallel, so the union.

    None where the profile does not hold the tasks of collectives.
    """
    context, events = side.context, side.context.trace.events
    part = events.fields.get("part_of")
    if part is None:
        return None
    row = part.row.astype(np.int64)
    size, link, transport = (context.trace.events.numbers(field, row) for field in ("bytes", "link_type", "transport"))
    code = np.where(link >= 0, link, transport)
    windows = intervals.merge(context.steps.start, context.steps.end)
    moved = (size > 0) & (code >= 0) & intervals.contains(windows, events.ts[row])
    found: dict[str, int] = {}
    for each in np.unique(code[moved]).tolist():
        chosen, name = moved & (code == each), context.trace.strings.text(each)
        busy = intervals.total(events.active(row[chosen]))
        if busy and name not in _LOCAL:
            found[name] = int(size[chosen].sum()) * 10**9 // busy
    return found
