"""The critical path of each step, walked along the simulation's own records (definitions §5: what was waited for).

Every work knows its call, every thread its states, every call that waits what it waits for: nothing is searched by id.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulate.schedule import MAIN
from tests.simulate.streams import COMPUTE
from tests.simulate.truth.causes import LATENCY, Threads
from tests.simulate.truth.windows import windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulate.schedule import Call, Schedule, Work

KINDS = {"compute": "COMPUTE", "comm": "COMM", "memcpy": "MEM", "memset": "MEM"}
_HOST = {"data_loading": "DATA_LOADING", "peer_wait": "PEER_WAIT", "host_op": "HOST_OP", "untraced": "UNTRACED"}
_DEVICE_WAITS = {"cudaDeviceSynchronize"}


class Path:
    """Walks back from the end of each step; the time of each kind is in `time`, stretches are added as they come."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._threads = Threads(schedule)
        self._edges = sorted({t for states in schedule.states.values() for s in states for t in (s.start, s.end)})
        self._turn = {id(work): place for place, work in enumerate(schedule.works)}
        self._before = _before(schedule)
        self.time: Counter[str] = Counter()
        self._begin = 0

    def step(self, begin: int, end: int) -> Counter[str]:
        """Time of each kind in one step."""
        self.time, self._begin = Counter(), begin
        work = next((each for each in self._schedule.works if each.end == end and each.end > each.start), None)
        at, thread = end, MAIN
        while at > begin:
            if work is not None:
                at, thread, work = self._device(work, at)
            else:
                at, work = self._host(thread, at)
        return self.time

    def _add(self, kind: str, start: int, end: int) -> None:
        length = end - max(start, self._begin)
        if length > 0:
            self.time[kind] += length

    def _device(self, work: Work, at: int) -> tuple[int, str, Work | None]:
        """A work, then what made it begin."""
        self._add(KINDS[work.kind], work.start, at)
        before = self._before.get(id(work))
        call = work.call
        if call is None:
            raise AssertionError("work of before the recording is on the path")
        # A copy that the host waits for was asked for when its call began.
        asked = call.start if call.klass == "sync" else call.end
        if before is not None and before.end >= asked:
            short = work.start - before.end <= LATENCY
            self._add("DEVICE_GAP" if short else "DEVICE_DEPENDENCY", before.end, work.start)
            return before.end, call.thread, before
        returned = min(call.end, work.start)
        turn = min(returned + LATENCY, work.start)
        self._add("LAUNCH_LATENCY", returned, turn)
        self._add("DEVICE_DEPENDENCY", turn, work.start)
        return returned, call.thread, None

    def _host(self, thread: str, at: int) -> tuple[int, Work | None]:
        """Back through what the host did, to a call that waited for the device or the begin of the step."""
        place = len(self._edges)
        while at > self._begin:
            while place and self._edges[place - 1] >= at:
                place -= 1
            start = self._edges[place - 1] if place else self._begin
            cause, call = self._threads.cause(max(start, self._begin), thread)
            if cause == "sync" and call is not None and call.end <= at:
                awaited = self._awaited(call)
                if awaited is not None and call.start < awaited.end <= at:
                    self._add("RUNTIME_CALL", awaited.end, at)
                    return awaited.end, awaited
            self._add(_HOST.get(cause, "RUNTIME_CALL"), start, at)
            at = start
        return at, None

    def _awaited(self, call: Call) -> Work | None:
        """What a call waits for: its own copy, what was launched on the compute stream, or everything launched."""
        if call.own_copy is not None:
            return call.own_copy
        works = [work for work in self._schedule.works if work.call is None or work.call.start < call.start]
        if call.name not in _DEVICE_WAITS:
            works = [work for work in works if work.stream == COMPUTE]
        return max(works, key=lambda work: (work.end, self._turn[id(work)]), default=None)


def _before(schedule: Schedule) -> dict[int, Work]:
    """The work that each one came after: on its own stream, or on one that its stream was made to wait for."""
    events: list[tuple[int, int, Work | Call]] = [
        (work.call.start if work.call else -1, place, work) for place, work in enumerate(schedule.works)
    ]
    events += [(call.start, 0, call) for call in schedule.calls if call.waits_for is not None]
    last: dict[int, Work] = {}
    held: dict[int, Work] = {}
    found: dict[int, Work] = {}
    for _, _, each in sorted(events, key=lambda event: event[:2]):
        if hasattr(each, "waits_for"):
            source = last.get(each.waits_for)
            if source is not None and (each.stream not in held or held[each.stream].end < source.end):
                held[each.stream] = source
            continue
        candidates = [work for work in (last.get(each.stream), held.pop(each.stream, None)) if work is not None]
        if candidates:
            found[id(each)] = max(candidates, key=lambda work: work.end)
        last[each.stream] = each
    return found


def critical_path(schedule: Schedule) -> Sequence[dict[str, int]]:
    """Time of each kind on the path of every step; kinds without time are left out."""
    path = Path(schedule)
    return [dict(path.step(step.start, step.end)) for step in windows(schedule)]
