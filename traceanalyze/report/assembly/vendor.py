"""What the profile says of its own steps and collectives, beside our numbers (definitions §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.collectives import collective_type
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.analyses.results_device import DeviceWork
    from traceanalyze.model.collectives import VendorCollective, VendorCollectives, VendorLink
    from traceanalyze.model.table import Row
    from traceanalyze.model.trace import VendorNumbers, VendorStep

_STEPS = (
    Column("step", Kind.TEXT),
    Column("compute_ns", Kind.DURATION),
    Column("communication_ns", Kind.DURATION),
    Column("communication_total_ns", Kind.DURATION),
    Column("free_ns", Kind.DURATION),
    Column("stage_ns", Kind.DURATION),
    Column("bubble_ns", Kind.DURATION, minor=True),
    Column("preparing_ns", Kind.DURATION),
)


_COLLECTIVES = (
    Column("collective", Kind.TEXT),
    Column("group", Kind.TEXT),
    Column("count", Kind.COUNT),
    Column("elapsed_ns", Kind.DURATION),
    Column("plane_transit_ns", Kind.DURATION),
    Column("plane_wait_ns", Kind.DURATION),
    Column("plane_rest_ns", Kind.DURATION),
    Column("sent_bytes", Kind.BYTES),
)
_LINKS = (
    Column("link", Kind.TEXT),
    Column("collective", Kind.TEXT),
    Column("group", Kind.TEXT),
    Column("source_rank", Kind.COUNT),
    Column("target_rank", Kind.COUNT),
    Column("bytes", Kind.BYTES),
    Column("time_ns", Kind.DURATION),
    Column("bandwidth", Kind.NUMBER),
)
_UNSAID = NotMeasured("vendor_does_not_say")


def vendor_tables(numbers: VendorNumbers | None) -> list[Table]:
    """The profile's own step times, if it has any; they go into none of our numbers."""
    if numbers is None:
        return []
    note = Message("vendor_source", (("source", Kind.TEXT, numbers.source),))
    return [table_of_rows("vendor_steps", _STEPS, tuple(map(_row, numbers.steps)), detail=True, notes=(note,))]


def _row(step: VendorStep) -> tuple[str | int | NotMeasured, ...]:
    times = (
        step.computing,
        step.not_overlapped,
        step.communication,
        step.free,
        step.stage,
        step.bubble,
        step.preparing,
    )
    missing = NotMeasured("vendor_does_not_say")
    return (missing if step.step is None else str(step.step), *(missing if time is None else time for time in times))


def vendor_collective_tables(told: VendorCollectives | None, work: DeviceWork | NotMeasured) -> list[Table]:
    """What the profile's own tables say of collectives: by type and group, and between ranks.

    They are only a detail where the timeline tells waiting from transfer, and better; else they are all there is.
    """
    return [] if told is None else list(_told(told, detail=_split(work)))


def _split(work: DeviceWork | NotMeasured) -> bool:
    rows = work if isinstance(work, NotMeasured) else work.collectives
    return not isinstance(rows, NotMeasured) and any(not isinstance(row.transfer, NotMeasured) for row in rows)


def _told(told: VendorCollectives, *, detail: bool) -> Iterator[Table]:
    if told.collectives:
        kinds: dict[tuple[str, str], list[VendorCollective]] = {}
        for one in told.collectives:
            kinds.setdefault((collective_type(one.name) or one.name, one.group), []).append(one)
        rows = [(*key, *_sums(members)) for key, members in kinds.items()]
        rows.sort(key=lambda row: -row[3] if isinstance(row[3], int) else 0)
        note = Message("vendor_planes", (("source", Kind.TEXT, told.source),))
        yield table_of_rows("vendor_collectives", _COLLECTIVES, tuple(rows), ranked=True, detail=detail, notes=(note,))
    if told.links:
        rows = [_link(one) for one in sorted(told.links, key=lambda one: (one.link, one.group, one.source, one.target))]
        note = Message("vendor_source", (("source", Kind.TEXT, told.links_source),))
        yield table_of_rows("vendor_links", _LINKS, tuple(rows), ranked=True, detail=detail, notes=(note,))


def _sums(members: list[VendorCollective]) -> Row:
    """Of some collectives; a time that one of them does not tell is not known of their sum."""
    times = ([getattr(one, name) for one in members] for name in ("elapsed", "transit", "wait", "idle"))
    sent = sum(size for one in members for _, size, _ in one.links)
    return (len(members), *(_UNSAID if None in each else sum(each) for each in times), sent)


def _link(one: VendorLink) -> Row:
    rate = one.bytes / one.time if one.time else NotMeasured("no_duration")
    return one.link, one.collective, one.group, one.source, one.target, one.bytes, one.time, rate
