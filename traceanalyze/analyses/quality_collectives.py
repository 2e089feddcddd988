"""What an Ascend profile's own tables say of collectives against its timeline (check Q12 of definitions §14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.collective_parts import MOVES
from traceanalyze.analyses.results import Check
from traceanalyze.analyses.task_links import NETWORK, went_over
from traceanalyze.analyses.work import argument
from traceanalyze.model.vocabulary import DeviceClass, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.model.vendor_collectives import VendorCollective

TOLERANCE = 0.01
"""Share by which numbers may differ."""
_ROUNDING_NS = 1000
_LINKS, _NETWORK = frozenset({"HCCS", "PCIE", "SIO"}), "RDMA"
"""Links of the tables that tasks name as their link; and what the tables call the network."""


def collective_checks(context: Context) -> Iterator[Check]:
    """Durations, bytes by kind of link, and waiting, of the collectives that both have; they are matched by name.

    Collectives outside the steps are in no table, so that only those of the table that the timeline lacks are told.
    """
    told = context.trace.vendor_collectives
    if told is None:
        return
    listed = {name: place for place, name in enumerate(dict.fromkeys(one.name for one in told.collectives))}
    rows = np.flatnonzero(context.device.klass == DeviceClass.COMM)
    place = context.trace.strings.lookup(context.device.name[rows], lambda text: listed.get(text, -1))
    rows, place = rows[place >= 0], place[place >= 0]
    if len(rows) == 0:
        return
    here = np.bincount(place, minlength=len(listed)) > 0
    yield from _missing(told.source, [one for one in told.collectives if not here[listed[one.name]]])
    found = tuple(one for one in told.collectives if here[listed[one.name]])
    theirs = np.zeros(len(listed), np.int64)
    np.add.at(theirs, [listed[one.name] for one in found], [one.elapsed or 0 for one in found])
    yield from _durations(told.source, tuple(listed), _elapsed(context, rows, place, len(listed)), theirs)
    yield from _links(context, told.source, rows, found)
    yield from _waiting(context, told.source, rows, found)


def _missing(source: str, lost: list[VendorCollective]) -> Iterator[Check]:
    if lost:
        time = sum(one.elapsed or 0 for one in lost)
        values = (("source", source), ("count", len(lost)), ("time_ns", time))
        yield Check("Q12", Level.WARN, "collectives_missing", values)


def _elapsed(context: Context, rows: NDArray[np.int64], place: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, place, context.device.end[rows] - context.device.start[rows])
    return sums


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
        yield Check("Q12", Level.WARN, "collectives_differ", values)


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
        mine = (ours or {}).get(link, 0)
        if abs(mine - theirs[link]) > TOLERANCE * max(mine, theirs[link]):
            values = (("source", source), ("link", link), ("ours_bytes", mine), ("theirs_bytes", theirs[link]))
            yield Check("Q12", Level.WARN, "link_bytes_differ", values)


def _sent(context: Context, rows: NDArray[np.int64]) -> dict[str, int] | None:
    """Bytes that the tasks of some collectives moved between ranks, by kind of link; None without tasks."""
    events = context.trace.events
    column = events.fields.get("part_of")
    if column is None:
        return None
    part, owner = column.row.astype(np.int64), np.asarray(column.value, np.int64)
    text = context.trace.strings
    part = part[np.isin(owner, context.device.row[rows])]
    part = part[text.lookup(events.name[part], lambda name: MOVES.match(name) is not None).astype(np.bool_)]
    size, link, origin, target = (
        argument(context, name, part) for name in ("bytes", "link_type", "src_rank", "dst_rank")
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
    parts = context.collective_parts
    if parts is None or not parts.recorded[rows].all() or any(one.wait is None for one in found):
        return
    transfer = parts.by_event(parts.end - parts.start)[rows]
    ours = int((context.device.end[rows] - context.device.start[rows] - transfer).sum())
    theirs = sum(one.wait or 0 for one in found)
    if abs(ours - theirs) > TOLERANCE * max(ours, theirs):
        values = (("source", source), ("ours_ns", ours), ("theirs_ns", theirs))
        yield Check("Q12", Level.INFO, "wait_of_one_plane", values)
