"""Why the device was idle at each instant, from what each thread was doing then (definitions §5)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.simulate.schedule import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulate.schedule import Call, Schedule, State, Work
    from tests.simulate.truth.windows import Window

LATENCY = 10_000
"""A launched kernel begins within this time, or something else holds it."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The device does nothing in `[start, end)`; then `next` begins."""

    start: int
    end: int
    next: Work | None

    @property
    def call(self) -> Call | None:
        """Launch of the next work, if the recording has it."""
        return self.next.launch if self.next is not None else None


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a gap with one cause; `call` is the runtime call that the blamed thread was in."""

    start: int
    end: int
    cause: str
    call: Call | None


class Threads:
    """What each thread was doing, and who is asked first."""

    def __init__(self, schedule: Schedule) -> None:
        self._states = schedule.states
        self._starts = {thread: [state.start for state in states] for thread, states in schedule.states.items()}
        launches = Counter(thread for work in schedule.recorded if work.call for thread in _threads(work.call))
        self._launching = [thread for thread, _ in launches.most_common()]

    def edges(self, start: int, end: int) -> set[int]:
        """Instants inside `(start, end)` at which any thread changes its state."""
        found: set[int] = set()
        for thread, starts in self._starts.items():
            first = max(0, bisect_right(starts, start) - 1)
            for state in self._states[thread][first : bisect_right(starts, end)]:
                found |= {time for time in (state.start, state.end) if start < time < end}
        return found

    def state(self, thread: str, time: int) -> State | None:
        """What a thread does at an instant."""
        at = bisect_right(self._starts[thread], time) - 1
        found = self._states[thread][at] if at >= 0 else None
        return found if found is not None and time < found.end else None

    def cause(self, time: int, launcher: str | None) -> tuple[str, Call | None]:
        """What the first thread that does anything does."""
        first = [thread for thread in (launcher, MAIN) if thread is not None]
        for thread in dict.fromkeys([*first, *self._launching]):
            found = label(self.state(thread, time), loading_counts=thread in first)
            if found is not None:
                state = self.state(thread, time)
                return found, state.call if state else None
        return "untraced", None


def _threads(call: Call) -> set[str]:
    """Threads that a launch took: the one that made the call, and the one that put it into a task queue."""
    queued = call.outermost.queued
    return {call.thread} | ({queued.thread} if queued is not None else set())


def label(state: State | None, *, loading_counts: bool = True) -> str | None:
    """Word for a state; None when the profiler sees nothing of it."""
    if state is None:
        return None
    if state.loading and loading_counts:
        return "data_loading"
    if state.call is not None and state.call.klass == "sync":
        return "sync"
    if state.peer:
        return "peer_wait"
    if state.call is not None:
        return f"dispatch.{state.call.klass}"
    return "host_op" if state.op else None


def gaps(works: Sequence[Work], start: int, end: int) -> Iterator[Gap]:
    """Idle intervals of `[start, end)`; work that takes no time ends none."""
    ordered = sorted((work for work in works if work.end > work.start), key=lambda work: (work.start, *_launched(work)))
    cursor = start
    for work in ordered:
        if work.start > end:
            break
        if cursor < work.start:
            yield Gap(cursor, work.start, work)
        cursor = max(cursor, work.end)
    if cursor < end:
        yield Gap(cursor, end, None)


def _launched(work: Work) -> tuple[bool, int]:
    known = work.linked and work.call is not None
    return not known, work.call.start if work.call else 0


def explained(gap: Gap, threads: Threads) -> list[Piece]:
    """The gap cut wherever the answer may change."""
    call = gap.call
    cuts = {gap.start, gap.end} | threads.edges(gap.start, gap.end)
    if call is not None:
        cuts |= {time for time in (call.end, call.end + LATENCY) if gap.start < time < gap.end}
    ordered = sorted(cuts)
    return [Piece(a, b, *_cause(a, gap, threads)) for a, b in pairwise(ordered)]


def _cause(time: int, gap: Gap, threads: Threads) -> tuple[str, Call | None]:
    call = gap.call
    if call is None:
        return threads.cause(time, None)
    if time < call.end:
        return threads.cause(time, call.thread)
    if call.end > gap.start:
        return ("dispatch.latency" if time < call.end + LATENCY else "device_side.dependency"), None
    return ("device_side.gap" if gap.end - gap.start <= LATENCY else "device_side.dependency"), None


def by_step(parts: Sequence[Piece], steps: Sequence[Window]) -> tuple[dict[str, int], ...]:
    """Idle time of each step by cause."""
    found: list[dict[str, int]] = []
    for step in steps:
        sums: Counter[str] = Counter()
        for piece in parts:
            length = min(piece.end, step.end) - max(piece.start, step.start)
            if length > 0:
                sums[piece.cause] += length
        found.append(dict(sums))
    return tuple(found)
