"""The requests of a history replayed through the model of the allocator: under its own settings, and under others.

What lived before the history is there at its place where the kind of segments stays the same; else it is allocated
anew in order of address, and what was reserved besides stays reserved: nothing is gained that happened before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory import EVENT, LINE
from traceanalyze.analyses.memory.caching import Allocator, Block, Domain, Piece, Rules, granule
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.device_calls import RETRIES, OutOfMemory, release_runs
from traceanalyze.analyses.memory.holes import RELEASE, Past, Range, past_segments
from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.model.snapshot import Action
from traceanalyze.model.table import Column, Kind, NotMeasured, Table, Value, declare

WHATIF = declare(
    "memory_whatif",
    "What the allocator would do",
    Column("settings", Kind.NAME, "what would be different; the first row is the recording"),
    Column("limit_bytes", Kind.MEMORY, "bytes that may be taken from the device; empty: any number", heading="device"),
    Column(
        "then_reserved_bytes",
        Kind.MEMORY,
        "most bytes taken from the device then; empty: a request fails",
        heading="reserved at most",
    ),
    Column("reserved_change_bytes", Kind.MEMORY_CHANGE, "that minus what is recorded", heading="change", par=0.0),
    Column("growths", Kind.COUNT, "how often memory was taken from the device"),
    Column("retries", Kind.COUNT, "requests that found the device full"),
    Column("fits", Kind.FLAG, "every request succeeds; empty: nothing limits them"),
    replace(EVENT, meaning="of the first request that fails; empty: none, or it was before the history"),
    Column("failing_bytes", Kind.MEMORY, "bytes that it asks for", heading="request"),
    Column("missing_bytes", Kind.MEMORY, "bytes that the device would need besides", heading="missing"),
    LINE,
)
EXACT = 0.005
"""A replay under the recorded settings that is further from the recorded reserve tells nothing about others."""
MOSTLY = 0.05
"""Share of the events after which it may be (own): a retry is one step of the replay, and several of a history."""
_ALLOC, _FREE, _EMPTY, _FAILED = range(1, 5)


class Supposed(NamedTuple):
    """What would be different."""

    rules: Rules
    limit: int | None
    """Bytes that the process may take from the device; None: any number."""
    empties: bool = True
    """Calls of empty_cache stay."""


class Outcome(NamedTuple):
    """What the allocator would do."""

    start: int
    """Bytes reserved before the first event."""
    event: NDArray[np.int64]
    """Requests, frees and calls of empty_cache."""
    reserved: NDArray[np.int64]
    """After each of them."""
    growths: int
    """How often memory was taken from the device."""
    retries: int
    """Requests that found the device full."""
    failed: int | None
    """First event whose request failed even then, `BEFORE` where what lived before the history was too much already."""
    missing: int
    """Bytes beyond the limit that it would have needed. What failed is given them, and the replay goes on."""

    @property
    def peak(self) -> int:
        """Most bytes reserved."""
        return max(self.start, int(self.reserved.max(initial=0)))


def recorded_limit(device: Device) -> int | None:
    """Bytes that the process could take from the device; None: it was never full.

    Failed requests tell it; where others were only repeated, the device was full at the peak, or nearly so.
    """
    left, peak = device.history.device_free, device.reserved.peak[0]
    known = [device.reserved.at(event) + left[event] for event in device.failures if event in left]
    if known:
        return max(min(known), peak)
    return None if RETRIES.isdisjoint(device.once(release_runs).column("release_kind")) else peak


def as_recorded(device: Device) -> Supposed:
    """Nothing is different."""
    return Supposed(device.rules, device.once(recorded_limit))


def recorded(device: Device) -> Outcome:
    """The history itself."""
    return replay(device, as_recorded(device))


def replay(device: Device, supposed: Supposed) -> Outcome:
    """Do what the program did, one request after the other; the layout of the device must be exact."""
    history, lives, pad = device.history, device.lives, device.rules.pad
    allocator, live = _beginning(device, supposed)
    limit = supposed.limit
    if limit is not None and allocator.reserved > limit:
        allocator.empty_cache((0,))
    start, grown = allocator.reserved, allocator.grown
    failed, missing = (BEFORE, start - limit) if limit is not None and start > limit else (None, 0)
    allocator.limit = limit
    operation, row_of = _operations(device, supposed)
    requested, pool = lives.requested.tolist(), device.layout.pool.tolist()
    events, emptied = np.flatnonzero(operation), device.once(_emptied)
    columns = events, operation[events], row_of[events], history.stream[events]
    after = []
    for event, what, row, stream in zip(*(column.tolist() for column in columns), strict=True):
        if what in {_ALLOC, _FAILED}:
            # What the program would have done with a request that failed nobody knows: as recorded, it goes on without.
            failing = what == _FAILED
            size, of = (int(history.size[event]) - pad, 0) if failing else (requested[row], pool[row])
            block = allocator.malloc(size, of, stream)
            full = block is None
            if block is None:
                block = allocator.beyond(size, of, stream)
                if failed is None and limit is not None:
                    failed, missing = event, allocator.reserved - limit
            if failing:
                allocator.free(block)
                if full:
                    allocator.empty_cache((0,))
            else:
                live[row] = block
        elif what == _FREE:
            allocator.free(live.pop(row))
        else:
            allocator.empty_cache(emptied[event])
        after.append(allocator.reserved)
    return Outcome(
        start, events, np.array(after, np.int64), allocator.grown - grown, allocator.retries, failed, missing
    )


class Asked(NamedTuple):
    """What a user asks."""

    settings: tuple[tuple[str, Mapping[str, Any], float], ...] = ()
    """Each a question of its own: as written, the `Rules` that it sets, and the part of the device that it allows."""
    capacity: int | None = None
    empties: bool = True


def answers(device: Device, asked: Asked) -> Table | NotMeasured:
    """The recording, and what every change would do, by the replay."""
    reason = device.once(unknown)
    if reason is not None:
        return reason
    base = as_recorded(device)
    rows = [_row(device, "", base, device.once(recorded), 0)]
    for text, changed, fraction in asked.settings or (("", {}, 1.0),):
        limit = base.limit if asked.capacity is None else int(asked.capacity * fraction)
        supposed = Supposed(base.rules._replace(**changed), limit, asked.empties)
        found = replay(device, supposed)
        saved = None if found.failed is not None else saving(device, found)
        name = "; ".join(filter(None, (text, "" if asked.empties else NO_EMPTY_CACHE)))
        rows.append(_row(device, name, supposed, found, saved))
    return WHATIF.fill_records(rows)


NO_EMPTY_CACHE = "no empty_cache"


def _row(
    device: Device, name: str, supposed: Supposed, found: Outcome, saved: int | NotMeasured | None
) -> dict[str, Value]:
    at = found.failed if found.failed is not None and found.failed != BEFORE else None
    return {
        "settings": name or None,
        "limit_bytes": supposed.limit,
        "then_reserved_bytes": found.peak if isinstance(saved, int) else saved,
        "reserved_change_bytes": -saved if isinstance(saved, int) else saved,
        "growths": found.growths,
        "retries": found.retries,
        "fits": None if supposed.limit is None else found.failed is None,
        "event": at,
        "failing_bytes": None if at is None else int(device.history.size[at]),
        "missing_bytes": None if found.failed is None else found.missing,
        "source_line": None if at is None else device.line(at),
    }


def unknown(device: Device) -> NotMeasured | None:
    """Why a replay under other settings would tell nothing; None: it tells something."""
    if device.events <= 1:
        return NotMeasured("no_memory_history")
    if device.layout.lost:
        return NotMeasured("layout_not_exact")
    peak, found = device.reserved.peak[0], device.once(recorded)
    # A right peak may be chance, as where the file does not tell of which pools memory was that is gone by now.
    off = np.abs(found.reserved - device.reserved.after[found.event]) > EXACT * peak
    wrong = abs(found.peak - peak) > EXACT * peak or off.sum() > 1 + MOSTLY * len(off)
    return NotMeasured("replay_off") if wrong else None


def saving(device: Device, found: Outcome) -> int | NotMeasured:
    """By how much less is reserved at most, of what nobody asked for at both peaks; below 0: more is."""
    (peak, event), used = device.reserved.peak, device.active.peak[0]
    return NotMeasured("reserve_peak_before") if event < 0 else min(peak - found.peak, max(peak - used, 0))


def expandable_saving(device: Device) -> int | NotMeasured:
    """What expandable segments would save; nothing where segments are already."""
    if device.rules.expandable:
        return 0
    base = as_recorded(device)
    wider = base._replace(rules=base.rules._replace(expandable=True))
    return device.once(unknown) or saving(device, replay(device, wider))


def without_empty_cache(device: Device) -> int | NotMeasured | None:
    """Requests that then would not go to the device; None where one of them would fail."""
    reason = device.once(unknown)
    if reason is not None:
        return reason
    found, now = replay(device, as_recorded(device)._replace(empties=False)), device.once(recorded)
    return None if found.failed is not None and now.failed is None else max(now.growths - found.growths, 0)


def missing(device: Device) -> int | None:
    """Bytes that the first failed request lacked: by the replay, else beside what the device had; else None.

    None too where the device had enough: then something else refused it, such as the process's share of the device.
    """
    if not device.failures:
        return None
    event, left = device.failures[0], device.history.device_free
    found = None if device.once(unknown) is not None else device.once(recorded)
    if found is not None and found.failed == event:
        return found.missing
    lacking = int(device.history.size[event]) - left[event] if event in left else 0
    return lacking if lacking > 0 else None


def with_expandable(device: Device, ooms: tuple[OutOfMemory, ...]) -> tuple[OutOfMemory, ...]:
    """Failed requests; where memory was free in pieces, with whether expandable segments would have helped."""
    base = as_recorded(device)
    in_pieces = any(one.kind in {"fragmentation", "split"} for one in ooms) and not base.rules.expandable
    if not in_pieces or base.limit is None or device.once(unknown) is not None:
        return ooms
    failed = replay(device, base._replace(rules=base.rules._replace(expandable=True))).failed
    return tuple(one._replace(expandable=failed is None or failed > one.event) for one in ooms)


def _operations(device: Device, supposed: Supposed) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """What the program does at each event, and with which block."""
    lives, count = device.lives, device.events
    operation, row_of = np.zeros(count, np.int8), np.full(count, -1, np.int64)
    for at, what in ((lives.begin, _ALLOC), (lives.end, _FREE)):
        known = np.flatnonzero((at != BEFORE) & (at < count))
        operation[at[known]], row_of[at[known]] = what, known
    operation[list(device.failures)] = 0 if supposed.limit is None else _FAILED
    emptied = device.once(_emptied)
    for kind, last in zip(device.once(release_runs).column("release_kind"), emptied, strict=True):
        own = kind in RETRIES and supposed.limit is not None
        own |= kind == "release_gc" and supposed.rules.collect > 0 and supposed.limit is not None
        if not own and (supposed.empties or kind != "release_empty_cache"):
            operation[last] = _EMPTY
    return operation, row_of


def _past(device: Device) -> Past:
    return past_segments(device.device, device.rules)


def _emptied(device: Device) -> dict[int, set[int]]:
    """The pools whose memory each run of releases gives back, by its last event."""
    past, first = device.once(_past), device.once(release_runs).array("event")
    events = np.flatnonzero(np.isin(device.history.action, RELEASE))
    runs = zip(events.tolist(), np.searchsorted(first, events, "right").tolist(), strict=True)
    of_run = [[event for event, _ in group] for _, group in groupby(runs, key=itemgetter(1))]
    return {run[-1]: {0, *(past.domain[event].pool for event in run)} for run in of_run}


def _beginning(device: Device, supposed: Supposed) -> tuple[Allocator, dict[int, Block]]:
    """The allocator before the first event, and the blocks in use by their rows."""
    lives, history, ranges = device.lives, device.history, device.once(_past).ranges
    early = np.flatnonzero(lives.begin == BEFORE)
    early = early[np.argsort(lives.address[early], kind="stable")]
    rows, start = early.tolist(), lives.address[early]
    end = (start + device.layout.size[early]).tolist()
    bounds = np.searchsorted(start, [(one.start, one.end) for one in ranges]).reshape(-1, 2).tolist()
    aligned, same = device.snapshot.vendor == "npu", supposed.rules.expandable == device.rules.expandable
    live: dict[int, Block] = {}
    if not same:
        allocator = Allocator(supposed.rules, aligned=aligned)
        by_domain = sorted(zip(ranges, bounds, strict=True), key=lambda each: each[0].domain)
        for domain, group in groupby(by_domain, key=lambda each: each[0].domain):
            known, before = list(group), allocator.reserved
            for row in (row for _, (first, last) in known for row in rows[first:last]):
                block = allocator.malloc(int(lives.requested[row]), domain.pool, domain.stream)
                if block is not None:
                    live[row] = block
            total = sum(one.end - one.start for one, _ in known)
            allocator.reserve(domain, total - (allocator.reserved - before))
        return allocator, live
    places: dict[int, list[int]] = {}
    for event in np.flatnonzero(history.action == Action.SEGMENT_ALLOC)[::-1].tolist():
        places.setdefault(int(history.size[event]), []).append(int(history.address[event]))
    allocator = Allocator(supposed.rules, aligned=aligned, places=places)
    start = start.tolist()
    grown: list[tuple[Domain, list[Piece]]] = []
    for one, (first, last) in zip(ranges, bounds, strict=True):
        pieces = list(_pieces(one, zip(start[first:last], end[first:last], rows[first:last], strict=True)))
        if not one.expandable:
            live |= allocator.adopt(one.domain, pieces)
        elif grown and grown[-1][0] == one.domain and _together(one.domain, grown[-1][1][0].start, one.start):
            grown[-1][1].extend(pieces)
        else:
            grown.append((one.domain, pieces))
    mapped = [
        (domain, int(history.address[event]))
        for event, domain in device.once(_past).domain.items()
        if history.action[event] == Action.SEGMENT_MAP
    ]
    for domain, pieces in grown:
        # Where memory is mapped below later on, the segment begins there.
        first = pieces[0].start
        base = min(at for of, at in (*mapped, (domain, first)) if of == domain and _together(domain, at, first))
        live |= allocator.adopt(domain, pieces, base=base)
    return allocator, live


_NEAR = 1 << 36
"""Bytes between two addresses of the same expandable segment at most; the address space of each is larger."""


def _together(domain: Domain, start: int, other: int) -> bool:
    """Whether two mapped ranges of a domain, in order of address or not, belong to one expandable segment."""
    return (start - other) % granule(domain) == 0 and abs(start - other) < _NEAR


def _pieces(one: Range, used: Iterable[tuple[int, int, int]]) -> Iterator[Piece]:
    """A segment as blocks and what is free between them."""
    at = one.start
    for start, end, row in used:
        if at < start:
            yield Piece(at, start, None)
        yield Piece(start, end, row)
        at = end
    if at < one.end:
        yield Piece(at, one.end, None)
