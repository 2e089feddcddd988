"""A history replayed through the model of the allocator, under its own settings or others.

What lived before the history is there at its place where the kind of segments stays the same; else it is allocated
anew in order of address, and what was reserved besides stays reserved: nothing is gained that happened before.
"""

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.caching import (
    Allocator,
    Block,
    Domain,
    NativeRules,
    Piece,
    Rules,
    granule,
    native_rules,
)
from traceanalyze.analyses.memory.device import Device
from traceanalyze.analyses.memory.device_calls import RETRIES, release_runs
from traceanalyze.analyses.memory.holes import RELEASE, Range, is_any
from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.model import native
from traceanalyze.model.snapshot import Action

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


class _Standing(NamedTuple):
    """A segment of the beginning with its pieces; or, where blocks are allocated anew, those of a domain."""

    domain: Domain
    pieces: Sequence[Piece]
    base: int | None = None
    """Where an expandable segment begins; None: it is none."""
    total: int = 0
    """Bytes of the domain's segments."""


class _Beginning(NamedTuple):
    """What is there before the first event."""

    standing: list[_Standing]
    anew: bool
    places: dict[int, list[int]]
    """As of the `Allocator`."""


class _Program(NamedTuple):
    """What the program does, one after the other."""

    event: NDArray[np.int64]
    operation: NDArray[np.uint8]
    row: NDArray[np.int32]
    """The block; of an emptying and a request that failed there is none."""
    emptied: list[list[int]]
    """The pools that each emptying is about."""


def replay(device: Device, supposed: Supposed) -> Outcome:
    """Do what the program did, one request after the other; the layout of the device must be exact."""
    beginning, program, library = _beginning(device, supposed), _program(device, supposed), _library()
    found = None if library is None else _replay(device, supposed, beginning, program)
    return _replay_twin(device, supposed, beginning, program) if found is None else found


class _NativeBeginning(ctypes.Structure):
    _fields_ = [
        *native.pointers("pool", "stream", "large", "base", "total", "bounds"),
        ("segments", ctypes.c_uint64),
        *native.pointers("start", "end", "row"),
        ("anew", ctypes.c_uint32),
        *native.pointers("place_size", "place_address"),
        ("places", ctypes.c_uint64),
    ]


class _NativeProgram(ctypes.Structure):
    _fields_ = [
        *native.pointers("event", "operation", "row"),
        ("operations", ctypes.c_uint64),
        *native.pointers("size", "stream", "requested", "pool"),
        ("blocks", ctypes.c_uint64),
        *native.pointers("emptied", "emptied_bounds", "reserved"),
    ]


class _NativeOutcome(ctypes.Structure):
    _fields_ = [(number, ctypes.c_int64) for number in ("limit", "start", "growths", "retries", "failed", "missing")]


_UNUSUAL, _NEVER, _FIRST = 5, -1, -2
_NO_BASE = -(1 << 63)
"""No address: those of the upper half are negative."""


@cache
def _library() -> ctypes.CDLL | None:
    library = native.library()
    if library is not None:
        given = NativeRules, _NativeBeginning, _NativeProgram, _NativeOutcome
        library.trace_replay.argtypes = tuple(map(ctypes.POINTER, given))
    return library


def _replay(device: Device, supposed: Supposed, beginning: _Beginning, program: _Program) -> Outcome | None:
    """By the library; None: it takes numbers of more than 64 bits."""
    library, reserved = _library(), np.zeros(len(program.event), np.int64)
    assert library is not None
    columns: dict[str, NDArray[Any]] = {
        "event": program.event,
        "operation": program.operation,
        "row": program.row,
        "size": device.history.size,
        "stream": device.history.stream,
        "requested": device.lives.requested,
        "pool": device.layout.pool,
        "emptied": np.array([pool for pools in program.emptied for pool in pools], np.int64),
        "emptied_bounds": np.cumsum([0, *map(len, program.emptied)], dtype=np.int64),
        "reserved": reserved,
    }
    does = native.given(_NativeProgram, columns, operations=len(program.event), blocks=len(device.lives))
    outcome = _NativeOutcome(limit=-1 if supposed.limit is None else supposed.limit)
    rules = native_rules(supposed.rules, aligned=_aligned(device))
    status = library.trace_replay(*map(ctypes.byref, (rules, _native_beginning(beginning), does, outcome)))
    if status == _UNUSUAL:
        return None
    if status:
        raise MemoryError("no memory left for a replay of the allocator")
    failed = {_NEVER: None, _FIRST: BEFORE}.get(outcome.failed, outcome.failed)
    if outcome.failed >= 0:
        failed = int(program.event[outcome.failed])
    counts = outcome.growths, outcome.retries, failed, outcome.missing
    return Outcome(outcome.start, program.event, reserved, *counts)


def _native_beginning(given: _Beginning) -> _NativeBeginning:
    standing, pieces = given.standing, [piece for one in given.standing for piece in one.pieces]
    places = [(size, address) for size, known in given.places.items() for address in known]
    columns: dict[str, NDArray[Any]] = {
        "pool": np.array([one.domain.pool for one in standing], np.int64),
        "stream": np.array([one.domain.stream for one in standing], np.int64),
        "large": np.array([one.domain.large for one in standing], np.uint8),
        "base": np.array([_NO_BASE if one.base is None else one.base for one in standing], np.int64),
        "total": np.array([one.total for one in standing], np.int64),
        "bounds": np.cumsum([0, *(len(one.pieces) for one in standing)], dtype=np.int64),
        "start": np.array([piece.start for piece in pieces], np.int64),
        "end": np.array([piece.end for piece in pieces], np.int64),
        "row": np.array([-1 if piece.name is None else piece.name for piece in pieces], np.int32),
        "place_size": np.array([size for size, _ in places], np.int64),
        "place_address": np.array([address for _, address in places], np.int64),
    }
    return native.given(_NativeBeginning, columns, segments=len(standing), anew=given.anew, places=len(places))


def _replay_twin(device: Device, supposed: Supposed, beginning: _Beginning, program: _Program) -> Outcome:
    """The same in Python: slow, and the specification of the native function."""
    history, limit = device.history, supposed.limit
    requested, pool = device.lives.requested.tolist(), device.layout.pool.tolist()
    allocator, live = _begun(device, supposed, beginning)
    if limit is not None and allocator.reserved > limit:
        allocator.empty_cache((0,))
    start, grown = allocator.reserved, allocator.grown
    failed, missing = (BEFORE, start - limit) if limit is not None and start > limit else (None, 0)
    allocator.limit = limit
    emptied, after = iter(program.emptied), []
    for event, what, row in zip(*(column.tolist() for column in program[:3]), strict=True):
        if what == _FREE:
            allocator.free(live.pop(row))
        elif what == _EMPTY:
            allocator.empty_cache(next(emptied))
        else:
            # What the program would have done with a request that failed nobody knows: as recorded, it goes on without.
            failing, stream = what == _FAILED, int(history.stream[event])
            size, of = (int(history.size[event]) - supposed.rules.pad, 0) if failing else (requested[row], pool[row])
            block = allocator.malloc(size, of, stream)
            full = block is None
            live[row] = block or allocator.beyond(size, of, stream)
            if full and failed is None and limit is not None:
                failed, missing = event, allocator.reserved - limit
            if failing:
                allocator.free(live.pop(row))
            if failing and full:
                allocator.empty_cache((0,))
        after.append(allocator.reserved)
    reserved = np.array(after, np.int64)
    return Outcome(start, program.event, reserved, allocator.grown - grown, allocator.retries, failed, missing)


def _begun(device: Device, supposed: Supposed, beginning: _Beginning) -> tuple[Allocator, dict[int, Block]]:
    """The allocator before the first event, and the blocks in use by their rows."""
    allocator = Allocator(supposed.rules, aligned=_aligned(device), places=beginning.places)
    live: dict[int, Block] = {}
    for domain, pieces, base, total in beginning.standing:
        if beginning.anew:
            before = allocator.reserved
            for row in (piece.name for piece in pieces if piece.name is not None):
                live[row] = allocator.beyond(int(device.lives.requested[row]), domain.pool, domain.stream)
            allocator.reserve(domain, total - (allocator.reserved - before))
        else:
            live |= allocator.adopt(domain, pieces, base=base)
    return allocator, live


def _aligned(device: Device) -> bool:
    return device.snapshot.vendor == "npu"


def _program(device: Device, supposed: Supposed) -> _Program:
    """What the program does at each event, and with which block."""
    lives, count = device.lives, device.events
    operation, row_of = np.zeros(count, np.uint8), np.full(count, -1, np.int32)
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
    event = np.flatnonzero(operation)
    done = operation[event]
    return _Program(event, done, row_of[event], [sorted(emptied[at]) for at in event[done == _EMPTY].tolist()])


def _emptied(device: Device) -> dict[int, set[int]]:
    """The pools whose memory each run of releases gives back, by its last event."""
    past, first = device.layout.past, device.once(release_runs).array("event")
    events = np.flatnonzero(is_any(device.history.action, RELEASE))
    runs = zip(events.tolist(), np.searchsorted(first, events, "right").tolist(), strict=True)
    of_run = [[event for event, _ in group] for _, group in groupby(runs, key=itemgetter(1))]
    return {run[-1]: {0, *(past.domain[event].pool for event in run)} for run in of_run}


def _beginning(device: Device, supposed: Supposed) -> _Beginning:
    """What is there before the first event; blocks in use are called by their rows."""
    lives, history, past = device.lives, device.history, device.layout.past
    early = np.flatnonzero(lives.begin == BEFORE)
    early = early[np.argsort(lives.address[early], kind="stable")]
    rows, start = early.tolist(), lives.address[early]
    end = (start + device.layout.size[early]).tolist()
    bounds = np.searchsorted(start, [(one.start, one.end) for one in past.ranges]).reshape(-1, 2).tolist()
    used = list(map(Piece, start.tolist(), end, rows))
    if supposed.rules.expandable != device.rules.expandable:
        by_domain = sorted(zip(past.ranges, bounds, strict=True), key=lambda each: each[0].domain)
        anew = []
        for domain, group in groupby(by_domain, key=lambda each: each[0].domain):
            known = list(group)
            pieces = [piece for _, (first, last) in known for piece in used[first:last]]
            anew.append(_Standing(domain, pieces, total=sum(one.end - one.start for one, _ in known)))
        return _Beginning(anew, anew=True, places={})
    places: dict[int, list[int]] = {}
    for event in np.flatnonzero(history.action == Action.SEGMENT_ALLOC)[::-1].tolist():
        places.setdefault(int(history.size[event]), []).append(int(history.address[event]))
    standing: list[_Standing] = []
    grown: list[tuple[Domain, list[Piece]]] = []
    for one, (first, last) in zip(past.ranges, bounds, strict=True):
        pieces = list(_pieces(one, used[first:last]))
        if not one.expandable:
            standing.append(_Standing(one.domain, pieces))
        elif grown and grown[-1][0] == one.domain and _together(one.domain, grown[-1][1][0].start, one.start):
            grown[-1][1].extend(pieces)
        else:
            grown.append((one.domain, pieces))
    mapped = [
        (domain, int(history.address[event]))
        for event, domain in past.domain.items()
        if history.action[event] == Action.SEGMENT_MAP
    ]
    for domain, pieces in grown:
        # Where memory is mapped below later on, the segment begins there.
        lowest = pieces[0].start
        base = min(at for of, at in (*mapped, (domain, lowest)) if of == domain and _together(domain, at, lowest))
        standing.append(_Standing(domain, pieces, base))
    return _Beginning(standing, anew=False, places=places)


_NEAR = 1 << 36
"""Bytes between two addresses of the same expandable segment at most; the address space of each is larger."""


def _together(domain: Domain, start: int, other: int) -> bool:
    """Whether two mapped ranges of a domain, in order of address or not, belong to one expandable segment."""
    return (start - other) % granule(domain) == 0 and abs(start - other) < _NEAR


def _pieces(one: Range, used: Sequence[Piece]) -> Iterator[Piece]:
    """A segment as blocks and what is free between them."""
    at = one.start
    for piece in used:
        if at < piece.start:
            yield Piece(at, piece.start, None)
        yield piece
        at = piece.end
    if at < one.end:
        yield Piece(at, one.end, None)
