"""What the profile says of its own steps and collectives, beside our numbers: it goes into none of them (§4)."""

from collections import Counter
from dataclasses import replace

from traceanalyze.analyses.grouping import COUNT
from traceanalyze.model.collectives import VendorCollective, collective_type
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences
from traceanalyze.model.trace import Trace

_SAY = sentences(
    vendor_planes="From {source}, for comparison: it looks at one plane of links; most waiting stands under rest.",
    vendor_source="From {source}, for comparison: none of these numbers is used here.",
)

_COLLECTIVE = Column("collective", Kind.TEXT, "type, the same for all libraries")
_GROUP = Column("group", Kind.TEXT, "ranks of the process group, or its name")
_LINK_KINDS = ("HCCS", "RDMA", "PCIE", "SIO")
_STEPS = declare(
    "vendor_steps",
    "Step times as the profile itself gives them",
    Column("step", Kind.TEXT, "number of the step, or its name"),
    Column("compute_ns", Kind.DURATION, "some compute kernel is running"),
    Column("communication_ns", Kind.DURATION, "a collective is running and no compute kernel", heading="comm"),
    Column("communication_total_ns", Kind.DURATION, "a collective is running, hidden or not", heading="comm total"),
    Column("free_ns", Kind.DURATION, "neither compute nor communication: copies count as free"),
    Column("stage_ns", Kind.DURATION, "first to last device work, without the bubble"),
    Column("bubble_ns", Kind.DURATION, "time in receive operations", minor=True),
    Column("preparing_ns", Kind.DURATION, "from the step's start on the host to its first device work"),
    detail=True,
)
_COLLECTIVES = declare(
    "vendor_collectives",
    "Collectives as the profile's own table gives them",
    _COLLECTIVE,
    _GROUP,
    COUNT,
    Column("elapsed_ns", Kind.DURATION, "from start to end, the table's Elapse Time"),
    Column(
        "least_wait_ns",
        Kind.DURATION,
        "waiting for other ranks at least: elapsed beyond the sum of all transfers",
        heading="waits ≥",
    ),
    Column(
        "most_wait_ns",
        Kind.DURATION,
        "waiting for other ranks at most: elapsed beyond what one plane of links moved",
        heading="waits ≤",
    ),
    Column(
        "plane_transit_ns",
        Kind.DURATION,
        "moving data on one plane of links, the table's Transit Time",
        heading="transit",
    ),
    Column("plane_wait_ns", Kind.DURATION, "waiting on one plane of links, the table's Wait Time", heading="wait"),
    Column(
        "plane_rest_ns",
        Kind.DURATION,
        "neither on that plane, the table's Idle Time: mostly waiting on the other planes",
        heading="rest",
    ),
    Column("sent_bytes", Kind.BYTES, "bytes that went over links between ranks"),
    *(
        Column(
            f"{link.lower()}_bandwidth",
            Kind.NUMBER,
            "bytes over this kind of link by the sum of their transfers, 10⁹ bytes a second",
            heading=f"{link} GB/s",
            minor=True,
        )
        for link in _LINK_KINDS
    ),
    ranked=True,
)
_LINKS = declare(
    "vendor_links",
    "Traffic between ranks as the profile's own table gives it",
    Column("link", Kind.TEXT, "kind of link: HCCS, RoCE, PCIe …"),
    _COLLECTIVE,
    _GROUP,
    Column("source_rank", Kind.COUNT, "rank inside the group that sends", heading="from"),
    Column("target_rank", Kind.COUNT, "rank inside the group that receives", heading="to"),
    Column("bytes", Kind.BYTES, "sum over the collectives of this type"),
    Column("time_ns", Kind.DURATION, "sum over transfers, which may run at the same time"),
    Column("bandwidth", Kind.NUMBER, "bytes over that time, 10⁹ bytes a second", heading="GB/s"),
    ranked=True,
)


def vendor_tables(trace: Trace, collectives: Table) -> list[Table]:
    """The profile's own step times and collectives, by type and group and between ranks, as far as it has any.

    Its collectives are only a detail where the timeline tells waiting from transfer, and better (`collectives`); else
    they are all there is.
    """
    tables = []
    if trace.vendor is not None:
        fields = ("computing", "not_overlapped", "communication", "free", "stage", "bubble", "preparing")
        steps = [
            (None if one.step is None else str(one.step), *(getattr(one, name) for name in fields))
            for one in trace.vendor.steps
        ]
        rows = (dict(zip(_STEPS.keys, map(_stated, row), strict=True)) for row in steps)
        tables.append(replace(_STEPS, notes=(_source(_SAY["vendor_source"], trace.vendor.source),)).fill_records(rows))
    own = trace.vendor_collectives
    detail = "wait_ns" in collectives.keys
    if own is not None and own.collectives:
        kinds: dict[tuple[str, str], list[VendorCollective]] = {}
        for each in own.collectives:
            kinds.setdefault((collective_type(each.name) or each.name, each.group), []).append(each)
        local = Counter[tuple[str, str]]()
        for link in own.links:
            local[link.collective, link.group] += link.time if link.source == link.target else 0
        sums = [_sums(*key, members, local[key]) for key, members in kinds.items()]
        note = _source(_SAY["vendor_planes"], own.source)
        tables.append(replace(_COLLECTIVES, detail=detail, notes=(note,)).fill_records(sums).sort("-elapsed_ns"))
    if own is not None and own.links:
        links = sorted(own.links, key=lambda one: (one.link, one.group, one.source, one.target))
        table = _LINKS.fill(
            link=[one.link for one in links],
            collective=[one.collective for one in links],
            group=[one.group for one in links],
            source_rank=[one.source for one in links],
            target_rank=[one.target for one in links],
            bytes=[one.bytes for one in links],
            time_ns=[one.time for one in links],
            bandwidth=[one.bytes / one.time if one.time else NotMeasured("no_duration") for one in links],
        )
        tables.append(replace(table, detail=detail, notes=(_source(_SAY["vendor_source"], own.links_source),)))
    return tables


def _source(key: str, source: str) -> Message:
    return Message(key, (("source", Kind.TEXT, source),))


def _stated(value: Value) -> Value:
    return NotMeasured("vendor_does_not_say") if value is None else value


def _sums(kind: str, group: str, members: list[VendorCollective], local: int) -> dict[str, Value]:
    """Of the collectives of one type and group; a time that one of them does not tell is not known of their sum."""
    times = {
        "elapsed_ns": [one.elapsed for one in members],
        "plane_transit_ns": [one.transit for one in members],
        "plane_wait_ns": [one.wait for one in members],
        "plane_rest_ns": [one.idle for one in members],
    }
    known = {
        key: NotMeasured("vendor_does_not_say") if None in each else sum(time or 0 for time in each)
        for key, each in times.items()
    }
    rates = {f"{link.lower()}_bandwidth": _bandwidth(members, link) for link in _LINK_KINDS}
    sent = sum(size for one in members for _, size, _ in one.links)
    sums = known | _wait_bounds(members, local) | {"sent_bytes": sent} | rates
    return {"collective": kind, "group": group, "count": len(members), **sums}


def _wait_bounds(members: list[VendorCollective], local: int) -> dict[str, Value]:
    """Time in which nothing moves, by what transfers of planes side by side take at most and at least.

    `local` is what copies inside the device take; they are in the table of pairs alone.

    Of a collective without any transfer the table knows too little to tell waiting.
    """
    told = [(one.elapsed, one.transit, sum(time for *_, time in one.links)) for one in members]
    if any(None in each for each in told):
        return dict.fromkeys(("least_wait_ns", "most_wait_ns"), NotMeasured("vendor_does_not_say"))
    least = sum(max(0, (elapsed or 0) - moving) for elapsed, _, moving in told if moving)
    return {
        "least_wait_ns": max(0, least - local),
        "most_wait_ns": sum(max(0, (elapsed or 0) - (transit or 0)) for elapsed, transit, _ in told),
    }


def _bandwidth(members: list[VendorCollective], link: str) -> Value:
    moved = [(size, time) for one in members for kind, size, time in one.links if kind == link]
    size, time = (sum(column) for column in zip(*moved, strict=True)) if moved else (0, 0)
    return size / time if time else NotMeasured("nothing_moved")
