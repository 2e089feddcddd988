"""Tracks as Chrome trace events, in pieces of JSON text."""

import dataclasses
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.classify import OVERLAY_CATEGORY
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import NotMeasured

Value = str | int | float | None
"""What a slice says of itself; None is left out."""

MIB = 1 << 20


@dataclass(frozen=True, eq=False)
class Slices:
    """One track: slices that do not overlap, in time order."""

    title: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: Sequence[str]
    """Of each slice."""
    args: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    """Argument → its value for each slice."""


@dataclass(frozen=True, eq=False)
class Counter:
    """Values that hold from their instant to the next one."""

    title: str
    t: NDArray[np.int64]
    values: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]
    """Name of a series → its value at each instant."""


@dataclasses.dataclass(frozen=True)
class Overlay:
    """All tracks of one rank, top to bottom."""

    slices: tuple[Slices, ...]
    counters: tuple[Counter, ...]
    missing: tuple[tuple[str, NotMeasured], ...] = ()
    """Titles of tracks that the profile cannot give, and why."""
    unplaced: int = 0
    """Findings that name no place in time."""


def milliseconds(ns: int) -> float:
    """For people; exact times are those of the slices."""
    return ns / 1_000_000


PROCESS = "traceanalyze"
"""Name of the process that is added; the reader of Ascend profiles knows it by that (`readers/ascend/processes.py`)."""
FIRST_PID = 2_000_000_000
"""Process ids of what is added begin here: beyond those of operating systems, below 2^31, which viewers can hold."""
_FIRST_TID = 1_000_000_000
_MOST_TRACKS = 10_000
"""Of one process. Thread ids are never used twice in a file: Perfetto names threads by their id alone."""
_ON_TOP = -1_000_000
_EVENTS_A_BLOCK = 4096


class Clock(NamedTuple):
    """How the times of a trace are written in its text."""

    offset_ns: int = 0
    """Added to a time of the trace gives the time in the text."""
    quoted: bool = False
    """Times stand in quotation marks (Ascend), so that viewers do not round them to float64."""

    def text(self, t: int) -> str:
        """A time as the value of `ts`."""
        exact = microseconds(t + self.offset_ns)
        return f'"{exact}"' if self.quoted else exact

    def length(self, start: int, end: int) -> int:
        """Duration to write, ns.

        Perfetto reads a time as float64, which is no finer than 256 ns for the absolute ones of Ascend. Durations
        between times as it reads them keep slices from overlapping that only touch; it drops those that overlap.
        """
        return self._read(end) - self._read(start) if self.quoted else end - start

    def _read(self, t: int) -> int:
        read = float(microseconds(t + self.offset_ns))
        return int(read) * 1000 if read.is_integer() else int(read * 1000)


class Process(NamedTuple):
    """The process that the tracks of one rank are shown under."""

    pid: int
    title: str
    sort: int = _ON_TOP
    """Processes are shown by this number, smallest on top."""


def microseconds(ns: int) -> str:
    """Exact decimal microseconds, three decimals."""
    sign, whole = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{whole // 1000}.{whole % 1000:03d}"


def overlay_events(overlay: Overlay, process: Process, clock: Clock) -> Iterator[bytes]:
    """The events of all tracks as text with commas between them, none at its ends."""
    return blocks(_events(overlay, process, clock))


def blocks(events: Iterable[str]) -> Iterator[bytes]:
    """Text of events with commas between them, many at a time."""
    several = iter(events)
    return joined(iter(lambda: ",\n".join(islice(several, _EVENTS_A_BLOCK)).encode(errors="replace"), b""))


def metadata(kind: str, pid: int, tid: int, *, at: str = "", **args: object) -> str:
    """A metadata event; `at` is its time as written, where it has one."""
    event = _written({"ph": "M", "cat": OVERLAY_CATEGORY, "name": kind, "pid": pid, "tid": tid, "args": args})
    return f'{event[:-1]}, "ts": {at}}}' if at else event


def _written(value: object) -> str:
    """JSON in UTF-8: in names of tracks Perfetto shows escapes as they stand."""
    return json.dumps(value, ensure_ascii=False)


def _events(overlay: Overlay, process: Process, clock: Clock) -> Iterator[str]:
    yield metadata("process_name", process.pid, process.pid, name=process.title)
    yield metadata("process_sort_index", process.pid, process.pid, sort_index=process.sort)
    first = _FIRST_TID + (process.pid - FIRST_PID) * _MOST_TRACKS
    for number, track in enumerate(overlay.slices):
        tid = first + number
        yield metadata("thread_name", process.pid, tid, name=track.title)
        yield metadata("thread_sort_index", process.pid, tid, sort_index=number)
        yield from _slices(track, process.pid, tid, clock)
    for counter in overlay.counters:
        yield from _values(counter, process.pid, clock)


def _slices(track: Slices, pid: int, tid: int, clock: Clock) -> Iterator[str]:
    texts: dict[str, str] = {}
    keys = [f"{_written(key)}:" for key in track.args]
    head = f'{{"ph":"X","cat":"{OVERLAY_CATEGORY}","pid":{pid},"tid":{tid},"name":'
    columns = list(track.args.values())
    times = zip(track.start.tolist(), track.end.tolist(), track.name, strict=True)
    for row, (start, end, name) in enumerate(times):
        pairs = zip(keys, columns, strict=True)
        args = ",".join(key + _json(column[row], texts) for key, column in pairs if column[row] is not None)
        shown = f',"args":{{{args}}}' if args else ""
        length = microseconds(clock.length(start, end))
        yield f'{head}{_json(name, texts)},"ts":{clock.text(start)},"dur":{length}{shown}}}'


def _json(value: Value, known: dict[str, str]) -> str:
    """A value as JSON; texts come again and again, so each is written once."""
    if not isinstance(value, str):
        return _written(value)
    if value not in known:
        known[value] = _written(value)
    return known[value]


def _values(counter: Counter, pid: int, clock: Clock) -> Iterator[str]:
    head = f'{{"ph":"C","cat":"{OVERLAY_CATEGORY}","pid":{pid},"tid":{pid},"name":{_written(counter.title)},"ts":'
    keys = [_written(key) for key in counter.values]
    columns = [values.tolist() for values in counter.values.values()]
    for t, *values in zip(counter.t.tolist(), *columns, strict=True):
        args = ",".join(f"{key}:{json.dumps(value)}" for key, value in zip(keys, values, strict=True))
        yield f'{head}{clock.text(t)},"args":{{{args}}}}}'


def alone(events: Iterable[bytes], base_ns: int) -> Iterator[bytes]:
    """A trace of this text of events only; `base_ns` is the absolute time of its zero."""
    header = json.dumps({"displayTimeUnit": "ms", **({"baseTimeNanoseconds": base_ns} if base_ns else {})})
    yield f'{header[:-1]}, "traceEvents": [\n'.encode()
    yield from events
    yield b"\n]}\n"


def joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces of whole events as one text, with commas between them."""
    return sections(iter((piece,)) for piece in pieces)


def sections(texts: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """Texts of events one after another, with commas between them; empty ones are left out."""
    before = b""
    for text in texts:
        begun = False
        for piece in text:
            if piece:
                yield piece if begun else before + piece
                begun, before = True, b",\n"


def free_pid(taken: Mapping[str, object] | Iterable[str]) -> int:
    """A process id that is none of these."""
    known = set(taken)
    pid = FIRST_PID
    while str(pid) in known:
        pid += 1
    return pid


def lanes(start: NDArray[np.int64], end: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Positions of intervals, any order, by lane: those of a lane are in time order and do not overlap."""
    order = np.argsort(start, kind="stable")
    if len(order) == 0:
        return []
    if (start[order][1:] >= np.maximum.accumulate(end[order])[:-1]).all():
        return [order]
    free: list[tuple[int, int]] = []
    members: list[list[int]] = []
    for position, begin, until in zip(order.tolist(), start[order].tolist(), end[order].tolist(), strict=True):
        if free and free[0][0] <= begin:
            lane = heapq.heappop(free)[1]
        else:
            lane = len(members)
            members.append([])
        members[lane].append(position)
        heapq.heappush(free, (until, lane))
    return [np.array(lane, np.int64) for lane in members]
