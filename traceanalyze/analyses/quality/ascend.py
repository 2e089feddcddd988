"""Data-quality checks of Ascend profiles: what a profiler level leaves out, clocks, the profile's own numbers (§14)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import MOVES, NETWORK, collective_parts, went_over
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.results import Check
from traceanalyze.analyses.steps.steps import owners
from traceanalyze.model import intervals
from traceanalyze.model.collectives import VendorCollective
from traceanalyze.model.columns import distinct
from traceanalyze.model.table import sentences
from traceanalyze.model.trace import OtherExport, VendorStep
from traceanalyze.model.vocabulary import DeviceClass, EventKind, Level, Mode

_SAY = sentences(
    **{
        f"vendor_differs_{key}": (
            f"The profile's own numbers ({{source}}) differ by more than 1 %: {what} is {{theirs_ns}} there, "
            "{ours_ns} here."
        )
        for key, what in (
            ("computing", "computing"),
            ("communication", "communication"),
            ("not_overlapped", "communication that nothing hides"),
        )
    },
    **{
        f"exports_differ_{key}": (
            f"{{source}}, the other export of this profile, has {theirs}, this one {ours}; are both of one run?"
        )
        for key, theirs, ours in (
            ("step_count", "{theirs} step(s)", "{ours}"),
            ("step_time", "{theirs_ns} of steps on the host", "{ours_ns}"),
            ("computing", "{theirs_ns} of computing", "{ours_ns}"),
            ("not_overlapped", "{theirs_ns} of communication that nothing hides", "{ours_ns}"),
            ("free", "{theirs_ns} of free time", "{ours_ns}"),
            ("kernel_count", "{theirs} compute kernel(s)", "{ours}"),
            ("kernel_time", "{theirs_ns} of compute kernels", "{ours_ns}"),
        )
    },
    collectives_missing=(
        "{source} lists {count} collective(s), {time_ns} in all, that the timeline does not hold: communication is "
        "too low."
    ),
    collectives_differ=(
        "{source} gives {count} of {of} collective(s) another duration than the timeline; {name} most: {theirs_ns} "
        "there, {ours_ns} here."
    ),
    link_bytes_differ=(
        "{source} says that {theirs_bytes} moved over {link}; the transfers of the timeline moved {ours_bytes}."
    ),
    exports_agree="{source}, the other export of this profile, agrees in all {count} numbers that were compared.",
    exports_not_compared="{source}, the other export of this profile, holds no number to compare.",
    wait_of_one_plane=(
        "{source} tells {theirs_ns} of waiting in collectives, that of one plane of links; over all planes {ours_ns} "
        "passed without transfer. What is called idle there is mostly waiting for other ranks too."
    ),
    no_cann_calls=(
        "No CANN calls ({level}): launches are those of the task queue, and sync points and copies that block are not "
        "measured."
    ),
    no_collective_tasks="No tasks of collectives ({level}): waiting cannot be told from transfer.",
)

TOLERANCE = 0.01
"""Share by which numbers may differ."""
_ROUNDING_NS = 1000
_LINKS, _NETWORK = frozenset({"HCCS", "PCIE", "SIO"}), "RDMA"
"""Links of the tables that tasks name as their link; and what the tables call the network."""


def collective_checks(context: Context) -> Iterator[Check]:
    """Durations, bytes by kind of link, and waiting, of the collectives that both have; they are matched by name.

    Collectives outside the steps are in no table, so that only those of the table that the timeline lacks are named.
    """
    table = context.trace.vendor_collectives
    if table is None:
        return
    listed = {name: place for place, name in enumerate(dict.fromkeys(one.name for one in table.collectives))}
    rows = np.flatnonzero(context.device.klass == DeviceClass.COMM)
    place = context.trace.strings.lookup(context.device.name[rows], lambda text: listed.get(text, -1))
    rows, place = rows[place >= 0], place[place >= 0]
    if len(rows) == 0:
        return
    here = np.bincount(place, minlength=len(listed)) > 0
    lost = [one for one in table.collectives if not here[listed[one.name]]]
    if lost:
        time = sum(one.elapsed or 0 for one in lost)
        values = (("source", table.source), ("count", len(lost)), ("time_ns", time))
        yield Check("Q12", Level.WARN, _SAY["collectives_missing"], values)
    found = tuple(one for one in table.collectives if here[listed[one.name]])
    ours, theirs = np.zeros((2, len(listed)), np.int64)
    np.add.at(ours, place, context.device.end[rows] - context.device.start[rows])
    np.add.at(theirs, [listed[one.name] for one in found], [one.elapsed or 0 for one in found])
    yield from _durations(table.source, tuple(listed), ours, theirs)
    yield from _links(context, table.source, rows, found)
    yield from _waiting(context, table.source, rows, found)


def _durations(
    source: str, names: tuple[str, ...], ours: NDArray[np.int64], theirs: NDArray[np.int64]
) -> Iterator[Check]:
    """The collective that differs most, and how many do; one whose time the table does not tell does not."""
    apart = np.where((theirs > 0) & (ours > 0), np.abs(ours - theirs), 0)
    differ = apart > np.maximum(TOLERANCE * np.maximum(ours, theirs), _ROUNDING_NS)
    if differ.any():
        most = int(np.argmax(np.where(differ, apart, 0)))
        values = (
            ("source", source),
            ("count", int(differ.sum())),
            ("of", int(((theirs > 0) & (ours > 0)).sum())),
            ("name", names[most]),
            ("ours_ns", int(ours[most])),
            ("theirs_ns", int(theirs[most])),
        )
        yield Check("Q12", Level.WARN, _SAY["collectives_differ"], values)


def _links(
    context: Context, source: str, rows: NDArray[np.int64], found: tuple[VendorCollective, ...]
) -> Iterator[Check]:
    """Bytes between ranks by kind of link; nothing where the timeline has no tasks."""
    ours = _sent(context, rows)
    theirs: dict[str, int] = {}
    for one in found:
        for link, size, _ in one.links:
            theirs[link] = theirs.get(link, 0) + size
    for link in sorted(theirs.keys() & {*_LINKS, _NETWORK}) if ours is not None else ():
        own = (ours or {}).get(link, 0)
        if abs(own - theirs[link]) > TOLERANCE * max(own, theirs[link]):
            values = (("source", source), ("link", link), ("ours_bytes", own), ("theirs_bytes", theirs[link]))
            yield Check("Q12", Level.WARN, _SAY["link_bytes_differ"], values)


def _sent(context: Context, rows: NDArray[np.int64]) -> dict[str, int] | None:
    """Bytes that the tasks of some collectives moved between ranks, by kind of link; None without tasks."""
    events = context.trace.events
    column = events.fields.get("part_of")
    if column is None or "bytes" not in context.trace.events.fields:
        return None
    part, owner = column.row.astype(np.int64), np.asarray(column.value, np.int64)
    text = context.trace.strings
    part = part[np.isin(owner, context.device.row[rows])]
    part = part[text.matches(events.name[part], MOVES.match)]
    size, link, origin, target = (
        context.trace.events.numbers(name, part) for name in ("bytes", "link_type", "src_rank", "dst_rank")
    )
    moved = (size > 0) & (origin != target) & (target >= 0)
    sums = {_NETWORK: int(size[moved & went_over(context, part, NETWORK)].sum())}
    for code in np.unique(link[moved & (link >= 0)]).tolist():
        if (name := text.text(code)) in _LINKS:
            sums[name] = int(size[moved & (link == code)].sum())
    return sums


def _waiting(
    context: Context, source: str, rows: NDArray[np.int64], found: tuple[VendorCollective, ...]
) -> Iterator[Check]:
    """The tables count waiting on one plane of links only: how much that leaves out."""
    parts = context.once(collective_parts)
    if parts is None or not parts.recorded[rows].all() or any(one.wait is None for one in found):
        return
    transfer = parts.by_event(parts.end - parts.start)[rows]
    ours = int((context.device.end[rows] - context.device.start[rows] - transfer).sum())
    theirs = sum(one.wait or 0 for one in found)
    if abs(ours - theirs) > TOLERANCE * max(ours, theirs):
        values = (("source", source), ("ours_ns", ours), ("theirs_ns", theirs))
        yield Check("Q12", Level.INFO, _SAY["wait_of_one_plane"], values)


_PARTS = ("computing", "not_overlapped", "free")


def export_checks(context: Context) -> Iterator[Check]:
    """What differs, each with both numbers; one note where all that both tell agrees."""
    other = context.trace.other_export
    if other is None:
        return
    compared = list(_pairs(context, other))
    differ = [pair for pair in compared if not _agree(*pair)]
    for what, ours, theirs in differ:
        unit = "" if what.endswith("_count") else "_ns"
        values = (("source", other.source), (f"ours{unit}", ours), (f"theirs{unit}", theirs))
        yield Check("Q12", Level.WARN, _SAY[f"exports_differ_{what}"], values)
    if compared and not differ:
        yield Check("Q12", Level.INFO, _SAY["exports_agree"], (("source", other.source), ("count", len(compared))))
    if not compared:
        yield Check("Q12", Level.INFO, _SAY["exports_not_compared"], (("source", other.source),))


def _agree(what: str, ours: int, theirs: int) -> bool:
    apart = abs(ours - theirs)
    return apart == 0 if what.endswith("_count") else apart <= max(TOLERANCE * max(ours, theirs), _ROUNDING_NS)


def _pairs(context: Context, other: OtherExport) -> Iterator[tuple[str, int, int]]:
    """What both tell: name, the number read here, that of the other export."""
    if other.windows is not None and context.mode == Mode.STEPS:
        steps = context.steps
        yield "step_count", len(steps), len(other.windows)
        yield "step_time", int((steps.host_end - steps.host_start).sum()), sum(other.windows)
    yield from _step_times(context, other)
    if other.kernels is not None and other.kernel_time is not None:
        rows = _kernels(context)
        yield "kernel_count", len(rows), other.kernels
        yield "kernel_time", int(context.trace.events.dur[rows].sum()), other.kernel_time


def _step_times(context: Context, other: OtherExport) -> Iterator[tuple[str, int, int]]:
    """Sums of the profile's own step times: both forms hold the same table."""
    own = () if context.trace.vendor is None else context.trace.vendor.steps
    for part in _PARTS if own and other.steps else ():
        here, there = _sum(own, part), _sum(other.steps, part)
        if here is not None and there is not None:
            yield part, here, there


def _sum(steps: Sequence[VendorStep], part: str) -> int | None:
    """None where one of the steps does not say."""
    values = [getattr(step, part) for step in steps]
    return None if None in values else sum(values)


def _kernels(context: Context) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of compute kernels: the collectives among kernels are known by the fields that only they have."""
    device, fields = context.device, context.trace.events.fields
    rows = device.row[device.kind == EventKind.KERNEL]
    collective = fields.get("collective")
    return rows if collective is None else np.setdiff1d(rows, collective.row.astype(np.int64))


def ascend_checks(context: Context) -> Iterator[Check]:
    """What there is to say about an Ascend profile; nothing about any other."""
    if context.trace.origin.format == "ascend":
        yield from _absent(context)
        if context.options.keep is None:
            # Tables of the whole recording say nothing of a part of it.
            yield from _vendor(context)
            yield from collective_checks(context)
            yield from export_checks(context)


def _absent(context: Context) -> Iterator[Check]:
    """What a profiler level leaves out: CANN's calls, the parts of collectives."""
    trace = context.trace
    if len(context.calls) == 0 or len(context.device) == 0:
        return
    level = trace.origin.level or "unknown level"
    if context.queue_only:
        yield Check("Q05", Level.WARN, _SAY["no_cann_calls"], (("level", level),))
    if (context.device.klass == DeviceClass.COMM).any() and context.once(collective_parts) is None:
        yield Check("Q05", Level.INFO, _SAY["no_collective_tasks"], (("level", level),))


_VENDOR_PARTS = ("computing", "communication", "not_overlapped")


def _vendor(context: Context) -> Iterator[Check]:
    """The profile's own step times against ours, over the span in which it measures (definitions §4)."""
    numbers = context.trace.vendor
    if numbers is None or len(context.device) == 0:
        return
    sums = [_sum(numbers.steps, part) for part in _VENDOR_PARTS]
    theirs = [each for each in sums if each is not None]
    if len(theirs) < len(sums):
        return
    for part, here, there in zip(_VENDOR_PARTS, _device_parts(context), theirs, strict=True):
        if abs(here - there) > TOLERANCE * max(here, there):
            values = (("ours_ns", here), ("theirs_ns", there), ("source", numbers.source))
            yield Check("Q12", Level.WARN, _SAY[f"vendor_differs_{part}"], values)


def _device_parts(context: Context) -> tuple[int, int, int]:
    """Compute, communication and what of it nothing hides, of all devices; of what belongs to a step, as they count."""
    device = context.device
    owned = np.ones(len(device), np.bool_)
    if context.markers is not None:
        owned = owners(context.markers, device.start, *context.ownership) >= 0
    sums = np.zeros(3, np.int64)
    for one in distinct(device.device).tolist():
        member = owned & (device.device == one)
        compute, comm = (
            intervals.merge(device.start[chosen], device.end[chosen])
            for chosen in (member & (device.klass == klass) for klass in (DeviceClass.COMPUTE, DeviceClass.COMM))
        )
        sums += (intervals.total(compute), intervals.total(comm), intervals.total(intervals.subtract(comm, compute)))
    return int(sums[0]), int(sums[1]), int(sums[2])
