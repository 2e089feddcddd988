"""What is drawn of a window, just at and just beyond each limit: answers on paper."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.excerpt import LaneKind, Spans, boxes, excerpt, place
from traceanalyze.analyses.options import Options


def drawn(window: tuple[int, int], *events: tuple[int, int, str, int]) -> list[tuple[int, int, str, str, int]]:
    """Boxes of events with begin, end, name and kind."""
    names = [name for _, _, name, _ in events]
    starts, ends, kinds = (np.array([event[at] for event in events], np.int64) for at in (0, 1, 3))
    spans = Spans(starts, ends, np.arange(len(events)), kinds.astype(np.uint8))
    found = boxes(spans, window, ("compute", "communication"), names.__getitem__)
    return [(box.start, box.end, box.name, box.kind, box.count) for box in found]


@pytest.mark.parametrize(
    ("first", "gap", "second", "together"),
    [
        (9_999, 9_999, 9_999, True),
        (10_000, 9_999, 9_999, False),
        (9_999, 10_000, 9_999, False),
        (9_999, 9_999, 10_000, False),
    ],
)
def test_a_six_hundredth_of_the_window_can_be_seen(first: int, gap: int, second: int, together: bool) -> None:
    begin, end = first + gap, first + gap + second
    found = drawn((0, 6_000_000), (0, first, "a", 0), (begin, end, "b", 0))
    assert found == (
        [(0, end, "a", "compute", 2)] if together else [(0, first, "a", "compute", 1), (begin, end, "b", "compute", 1)]
    )


def test_in_the_shortest_window_a_nanosecond_is_seen() -> None:
    found = drawn((100, 200), (100, 101, "a", 0), (102, 103, "b", 0), (110, 110, "c", 0), (110, 110, "d", 0))
    assert found == [(0, 1, "a", "compute", 1), (2, 3, "b", "compute", 1), (10, 10, "c", "compute", 2)]


@pytest.mark.parametrize(("count", "expected"), [(60, [1] * 60), (61, [61])])
def test_sixty_boxes_are_drawn_of_a_lane(count: int, expected: list[int]) -> None:
    events = [(40_000 * n, 40_000 * n + 10_000, "", 0) for n in range(count)]
    assert [box[-1] for box in drawn((0, 6_000_000), *events)] == expected


def test_what_can_be_seen_doubles_until_the_boxes_are_few_enough() -> None:
    """61 of 15 µs join once 20 µs cannot be seen; those of 25 µs can still."""
    events = [(30_000 * n, 30_000 * n + 15_000, "", 0) for n in range(61)]
    events += [(1_830_000, 1_855_000, "", 0), (1_870_000, 1_895_000, "", 0)]
    assert [box[-1] for box in drawn((0, 6_000_000), *events)] == [61, 1, 1]


def test_a_box_of_several_has_the_name_of_the_longest_and_the_kind_of_most_time_inside_the_window() -> None:
    """The first is longest, but for all except 1 µs of it, which lies before the window."""
    events = ((0, 101_000, "a", 0), (102_000, 106_000, "b", 0), (107_000, 110_000, "c", 1), (111_000, 114_000, "d", 1))
    assert drawn((100_000, 6_100_000), *events) == [(0, 14_000, "b", "communication", 4)]


@pytest.mark.parametrize(("begin", "end", "seen"), [(0, 100, 0), (0, 101, 1), (199, 300, 1), (200, 300, 0)])
def test_what_only_touches_the_window_is_not_in_it(begin: int, end: int, seen: int) -> None:
    assert len(drawn((100, 200), (begin, end, "a", 0))) == seen
    for kind in ("op", "call", "step", "stream"):
        b = TraceBuilder()
        b.op("aten::add", 0, 300)
        b.launch(110, 5, 120, 10)
        b.launch(116, 5, 620, 500)
        if kind == "op":
            b.op("aten::mul", begin, end - begin, tid=2)
            # Only threads that launch are looked at.
            b.launch(900, 1, 910, 1, tid=2)
        elif kind == "call":
            b.launch(begin, end - begin, 910, 1, tid=2)
        elif kind == "step":
            b.step(1, begin, end - begin)
        else:
            b.device(begin, end - begin, device=1)
        found = excerpt(Context(b.trace(), Options()), 100_000, 200_000)
        lanes = [lane for lane in found.lanes if lane.name == "2" or lane.kind == LaneKind.STEPS]
        assert (len(lanes) + found.hidden_threads, found.hidden_streams) == (
            (0, seen) if kind == "stream" else (seen, 0)
        ), kind


def test_the_other_thread_is_the_one_with_most_time_in_calls_inside_the_window() -> None:
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.launch(120, 1, 120, 1)
    b.launch(110, 30, 150, 1, tid=2)
    b.launch(0, 110, 151, 1, tid=3)
    b.launch(190, 700, 900, 1, tid=3)
    found = excerpt(Context(b.trace(), Options()), 100_000, 200_000)
    assert [lane.name for lane in found.lanes if lane.kind == LaneKind.CALLS] == ["1", "2"]
    assert found.hidden_threads == 1


def test_streams_are_as_busy_as_their_work_inside_the_window() -> None:
    """Eleven streams are drawn beside the idle time."""
    b = TraceBuilder()
    for stream in range(11):
        b.device(96, 10, stream=stream)
    b.device(290, 5, stream=11)
    b.device(298, 900, stream=12)
    b.device(0, 97, stream=13)
    found = excerpt(Context(b.trace(), Options()), 95_000, 300_000)
    assert [lane.name for lane in found.lanes] == [*map(str, range(11)), ""]
    assert found.hidden_streams == 3


def test_every_kind_of_host_event_has_its_own_term() -> None:
    b = TraceBuilder()
    b.events.append({"ph": "M", "name": "thread_name", "pid": 100, "tid": 1, "args": {"name": "main loop"}})
    b.step(1, 0, 1_000)
    b.op("aten::add", 0, 100)
    b.annotation("forward", 100, 100)
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 200, 100)
    b.op("c10d::barrier", 300, 100)
    b.launch(310, 10, 400, 10)
    b.api("cudaDeviceSynchronize", 500, 100)
    b.api("cudaMalloc", 600, 100)
    found = excerpt(Context(b.trace(), Options()), 0, 1_000_000)
    ops, calls = (next(lane for lane in found.lanes if lane.kind == kind) for kind in (LaneKind.OPS, LaneKind.CALLS))
    assert [box.kind for box in ops.boxes] == ["host_op", "annotation", "data_loading", "peer_wait"]
    assert [box.kind for box in calls.boxes] == ["api_launch", "api_sync", "api_alloc"]
    assert {ops.name, calls.name} == {"main loop"}


def host_only(*steps: tuple[int, int]) -> Context:
    """Steps with begin and length, and an operator over all from 0 to 10 ms."""
    b = TraceBuilder()
    for number, (at, length) in enumerate(steps):
        b.step(number, at, length)
    b.op("aten::add", 0, 10_000)
    return Context(b.trace(), Options())


@pytest.mark.parametrize(
    ("steps", "instance", "shown"),
    [
        # A quarter on each side.
        ([(0, 10_000)], (1_000, 1_400), (900, 1_500)),
        ([(0, 10_000)], (40, 440), (0, 540)),
        ([(0, 10_000)], (9_550, 9_950), (9_450, 10_000)),
        # Of a step of 1000 µs 500 are left, and 125 are wanted on each side.
        ([(0, 1_000), (1_000, 9_000)], (500, 1_000), (375, 1_125)),
        # Beside 800 a quarter of the step may still be shown, of which half comes before, unless less follows.
        ([(0, 1_000), (1_000, 9_000)], (100, 900), (0, 1_000)),
        ([(0, 1_000), (1_000, 9_000)], (150, 950), (25, 1_025)),
        ([(0, 9_000), (9_000, 1_000)], (9_100, 9_900), (8_950, 9_950)),
        # Of what is as long as the step the beginning is seen, after an eighth of the step.
        ([(0, 1_000), (1_000, 9_000)], (400, 1_400), (275, 1_275)),
        # Before the first step the longest is the measure.
        ([(2_000, 1_000), (3_000, 7_000)], (400, 1_400), (150, 1_650)),
    ],
)
def test_how_much_is_shown_around_an_instance(
    steps: list[tuple[int, int]], instance: tuple[int, int], shown: tuple[int, int]
) -> None:
    begin, end = instance
    found = place(host_only(*steps), begin * 1000, end * 1000)
    at = found.excerpt.start // 1000
    assert (at, at + found.excerpt.length // 1000) == shown
    assert (found.start, found.end) == ((begin - shown[0]) * 1000, (min(end, shown[1]) - shown[0]) * 1000)
    assert found.length == (end - begin) * 1000


@pytest.mark.parametrize(("at", "step", "since"), [(199, -1, 0), (200, 0, 0), (299, 0, 99), (300, 1, 0), (500, 1, 200)])
def test_in_which_step_an_instance_begins(at: int, step: int, since: int) -> None:
    b = TraceBuilder()
    b.op("aten::add", 50, 900)
    b.step(1, 200, 100)
    b.step(2, 300, 100)
    found = place(Context(b.trace(), Options()), at * 1000, at * 1000 + 10)
    assert (found.step, found.since_step, found.since_first) == (step, since * 1000, (at - 50) * 1000)


@pytest.mark.parametrize(("length", "doing"), [(50, None), (51, "aten::add")])
def test_the_host_does_what_lasts_for_more_than_half_of_the_instance(length: int, doing: str | None) -> None:
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.op("aten::add", 200, length)
    assert place(Context(b.trace(), Options()), 200_000, 300_000).doing == doing
    assert place(Context(b.trace(), Options()), (100 + length) * 1000, (200 + length) * 1000).doing == doing
