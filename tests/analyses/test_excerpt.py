"""What a trace shows between two times: a hand-made trace drawn on paper, and laws that hold for any trace."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.excerpt import MAX_BOXES, MAX_LANES, Box, LaneKind, Launch, Spans, boxes, excerpt, place
from traceanalyze.analyses.options import Options

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def slow_loader():
    """Two steps of 400 µs. In the second the device works at 400-450 and from 620 on, the host loads data 450-590."""
    b = TraceBuilder()
    for number in (0, 1):
        at = 400 * number
        b.step(number, at, 400)
        b.annotation(LOADER, at + 50, 140)
        b.op("aten::linear", at + 190, 100)
        b.op("aten::addmm", at + 195, 60)
        b.launch(at + 200, 10, at + 220, 100, name="gemm")
        b.launch(at + 230, 10, at + 320, 60, name="relu", stream=8)
        b.copy(at + 300, 20, at + 400, 50, name="Memcpy DtoH")
    b.op("autograd::engine", 700, 80, tid=2)
    b.launch(710, 10, 810, 30, tid=2, name="backward")
    b.python("train.py(3): main", 0, 900, tid=1)
    return Context(b.trace(), Options())


def shown(lane):
    return [(box.start // 1000, box.end // 1000, box.name, box.kind) for box in lane.boxes]


def test_a_window_shows_host_and_device_and_why_the_device_is_idle():
    found = excerpt(slow_loader(), 440_000, 640_000, until=620_000)
    assert (found.start, found.length) == (440_000, 200_000)
    assert [(lane.kind, lane.name, lane.depth) for lane in found.lanes] == [
        (LaneKind.STEPS, "", 0),
        (LaneKind.OPS, "1", 0),
        (LaneKind.OPS, "1", 1),
        (LaneKind.CALLS, "1", 0),
        (LaneKind.STREAM, "7", 0),
        (LaneKind.IDLE, "", 0),
    ]
    step, outer, inner, calls, stream, idle = found.lanes
    assert shown(step) == [(0, 200, "ProfilerStep#1", "step")]
    assert shown(outer) == [(10, 150, LOADER, "data_loading"), (150, 200, "aten::linear", "host_op")]
    assert shown(inner) == [(155, 200, "aten::addmm", "host_op")]
    launches = [(160, 170, "cudaLaunchKernel", "api_launch"), (190, 200, "cudaLaunchKernel", "api_launch")]
    assert shown(calls) == launches
    assert shown(stream) == [(0, 10, "Memcpy DtoH", "memory_ops"), (180, 200, "gemm", "compute")]
    # Of the gap 450-620 the loader explains 450-590, operators 590-600, the call 600-610, latency the rest.
    assert shown(idle) == [
        (10, 150, "", "data_loading"),
        (150, 160, "", "host_op"),
        (160, 170, "", "dispatch_launch"),
        (170, 180, "", "dispatch_latency"),
    ]
    assert found.launch == Launch(at=160_000, start=180_000, thread=3, stream=4)
    assert (found.hidden_events, found.hidden_threads, found.hidden_streams, found.merged_events) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("call", "device", "window", "until", "drawn"),
    [
        (100, 200, (50, 300), 200, True),
        # The call begins with the window, the device event with the call, or with the end of the time of interest.
        (100, 200, (100, 300), 150, True),
        (100, 200, (100.001, 300), 150, False),
        (200, 200, (50, 300), 200, True),
        (100, 200, (50, 300), 200.001, False),
        (100, 200, (50, 200), 150, False),
        (100, 200, (50, 200.001), 150, True),
        (100, 200, (50, 300), None, False),
    ],
)
def test_how_it_went_on_is_drawn_where_call_and_device_event_are(call, device, window, until, drawn):
    b = TraceBuilder()
    b.step(1, 0, 400)
    b.launch(call, 10, device, 20)
    start, end = (round(at * 1000) for at in window)
    found = excerpt(Context(b.trace(), Options()), start, end, None if until is None else round(until * 1000))
    launch = Launch(round(call * 1000) - start, round(device * 1000) - start, 1, 2)
    assert found.launch == (launch if drawn else None)


def test_without_a_launch_record_no_arrow_is_drawn():
    b = TraceBuilder()
    b.launch(10, 5, 20, 10)
    b.device(40, 10)
    found = excerpt(Context(b.trace(), Options()), 0, 60_000, until=35_000)
    assert found.launch is None


def test_the_other_launching_thread_is_shown_and_further_threads_are_counted():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mul", 0, 10)
    b.launch(0, 5, 20, 5)
    for tid in (2, 3):
        b.op("autograd::engine", 30, 40, tid=tid)
        b.op("deeper", 32, 30, tid=tid)
        b.launch(35, 2 * tid, 50 + 10 * tid, 5, tid=tid)
    found = excerpt(Context(b.trace(), Options()), 0, 100_000)
    assert [(lane.kind, lane.name) for lane in found.lanes if lane.kind in {LaneKind.OPS, LaneKind.CALLS}] == [
        (LaneKind.OPS, "1"),
        (LaneKind.CALLS, "1"),
        (LaneKind.OPS, "3"),
        (LaneKind.CALLS, "3"),
    ]
    assert found.hidden_threads == 1
    assert found.hidden_events == 1


def test_deeper_operators_and_streams_without_room_are_counted():
    b = TraceBuilder()
    b.step(1, 0, 100)
    for depth in range(7):
        b.op(f"level {depth}", depth, 100 - 2 * depth)
    for stream in range(20):
        b.launch(10, 1, 40, 1 + stream, stream=stream)
    found = excerpt(Context(b.trace(), Options()), 0, 100_000)
    assert [lane.boxes[0].name for lane in found.lanes if lane.kind == LaneKind.OPS] == [f"level {n}" for n in range(4)]
    assert found.hidden_events == 3
    assert len(found.lanes) == MAX_LANES
    # One lane of steps, four of operators, one of calls, one of idle time: the five busiest streams are left.
    assert [lane.name for lane in found.lanes if lane.kind == LaneKind.STREAM] == ["15", "16", "17", "18", "19"]
    assert found.hidden_streams == 15


def test_what_is_too_short_to_be_seen_shares_a_box():
    # In a window of 6 ms what is shorter than 10 µs cannot be seen; a gap of 15 µs can.
    at = np.array([0, 8_000, 16_000, 33_000, 41_000, 100_000], np.int64)
    length = np.array([4_000, 8_000, 2_000, 4_000, 4_000, 900_000], np.int64)
    spans = Spans(at, at + length, np.arange(6), np.zeros(6, np.uint8))
    found = boxes(spans, (0, 6_000_000), ("compute",), "abcdef".__getitem__)
    assert found == (
        Box(0, 18_000, "b", "compute", 3, 14_000),
        Box(33_000, 45_000, "d", "compute", 2, 8_000),
        Box(100_000, 1_000_000, "f", "compute", 1, 900_000),
    )


@st.composite
def lanes(draw):
    """Disjoint events of one lane, and a window over some of them."""
    lengths = draw(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 5_000)), min_size=1, max_size=400))
    edges = np.cumsum(np.array(lengths, np.int64).reshape(-1))
    kind = np.arange(len(lengths)) % 3
    spans = Spans(edges[0::2], edges[1::2], np.arange(len(lengths)), kind.astype(np.uint8))
    start = draw(st.integers(0, int(edges[-1])))
    return spans, (start, start + draw(st.integers(1, 1 + int(edges[-1]))))


@given(lanes())
def test_boxes_are_few_and_hold_every_event_of_the_window_and_all_its_time(lane):
    spans, (first, last) = lane
    found = boxes(spans, (first, last), ("a", "b", "c"), str)
    inside = (spans.start < last) & (spans.end > first)
    assert len(found) <= MAX_BOXES
    assert sum(box.count for box in found) == inside.sum()
    time = np.minimum(spans.end, last) - np.maximum(spans.start, first)
    assert sum(box.busy for box in found) == time[inside].sum()
    for before, after in pairwise(found):
        assert before.end <= after.start
    assert all(0 <= box.start <= box.end <= last - first and box.busy <= box.end - box.start for box in found)


def test_a_crowded_window_stays_within_its_bounds_and_loses_nothing():
    b = TraceBuilder()
    b.step(1, 0, 100_000)
    for n in range(3_000):
        b.op("aten::mul", 30 * n, 20)
        b.launch(30 * n + 5, 8, 30 * n + 20, 5 + 20 * (n % 2), name=f"kernel {n % 7}", stream=n % 3)
    found = excerpt(Context(b.trace(), Options()), 0, 90_000_000)
    assert len(found.lanes) <= MAX_LANES
    assert max(len(lane.boxes) for lane in found.lanes) <= MAX_BOXES
    by_kind = {kind: [lane for lane in found.lanes if lane.kind == kind] for kind in LaneKind}
    for kind in (LaneKind.OPS, LaneKind.CALLS, LaneKind.STREAM):
        assert sum(box.count for lane in by_kind[kind] for box in lane.boxes) == 3_000
    assert found.merged_events == sum(box.count for lane in found.lanes for box in lane.boxes if box.count > 1) > 5_000


def test_the_surroundings_of_a_gap_show_what_came_before_and_after():
    found = place(slow_loader(), 450_000, 620_000)
    # The step lasts from 450, where the copy of the step before ends, to 850. A quarter of the gap would be 42.5 µs;
    # the three events before it begin at 220, the last of the four after it ends at 850. The step has room for 230 µs
    # beside the gap, half on each side.
    assert found.excerpt.start == 450_000 - 115_000
    assert found.excerpt.length == 400_000
    assert (found.start, found.end, found.length) == (115_000, 285_000, 170_000)
    assert (found.step, found.since_step, found.since_first) == (1, 0, 450_000)
    assert (found.idle, found.cause, found.doing) == (170_000, "data_loading", LOADER)


def test_the_host_is_said_to_wait_even_inside_another_range():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    b.annotation("## copy_batch ##", 0, 900)
    b.annotation(LOADER, 100, 700)
    b.op("aten::cat", 200, 500)
    b.launch(50, 2, 60, 20)
    b.launch(850, 2, 860, 100)
    context = Context(b.trace(), Options())
    assert place(context, 150_000, 750_000).doing == LOADER
    assert place(context, 0, 150_000).doing == "## copy_batch ##"
    assert place(context, 700_000, 1_000_000).doing == "## copy_batch ##"
    assert place(context, 860_000, 1_000_000).doing is None


def test_four_device_events_are_shown_on_each_side_where_the_step_has_room():
    b = TraceBuilder()
    b.step(1, 0, 10_000)
    for n in range(20):
        # One each 10 µs, and 40 µs without work after the tenth.
        at = 1_000 + 10 * n + (40 if n >= 10 else 0)
        b.launch(at - 50, 2, at, 10, name=f"k{n}")
    found = place(Context(b.trace(), Options()), 1_100_000, 1_140_000)
    stream = next(lane for lane in found.excerpt.lanes if lane.kind == LaneKind.STREAM)
    assert [box.name for box in stream.boxes] == ["k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13"]


def test_what_is_shown_beside_a_short_instance_is_no_more_than_twice_as_long():
    b = TraceBuilder()
    b.step(1, 0, 10_000)
    b.launch(10, 2, 100, 900)
    b.launch(20, 2, 1_010, 900)
    found = place(Context(b.trace(), Options()), 1_000_000, 1_010_000)
    assert (found.excerpt.start, found.excerpt.length) == (980_000, 50_000)


def test_a_busy_instance_has_no_cause_of_idle_time():
    found = place(slow_loader(), 220_000, 320_000)
    assert (found.idle, found.cause) == (0, None)


def test_of_what_is_longer_than_a_step_the_beginning_is_shown():
    found = place(slow_loader(), 0, 800_000)
    assert (found.excerpt.start, found.excerpt.length) == (0, 450_000)
    assert (found.start, found.step, found.since_step) == (0, 0, 0)
    assert found.end == found.excerpt.length
    assert found.length == 800_000


def test_a_trace_of_the_host_alone_has_no_device_lanes():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::add", 10, 50)
    found = place(Context(b.trace(), Options()), 20_000, 40_000)
    assert {lane.kind for lane in found.excerpt.lanes} == {LaneKind.STEPS, LaneKind.OPS}
    assert (found.idle, found.cause, found.doing) == (0, None, "aten::add")


def test_a_trace_of_the_device_alone_has_no_host_lanes():
    b = TraceBuilder()
    for n in range(3):
        b.device(10 * n, 8, stream=7, device=n % 2)
    found = excerpt(Context(b.trace(), Options()), 0, 28_000, until=8_000)
    assert [(lane.kind, lane.name) for lane in found.lanes] == [(LaneKind.STREAM, "7"), (LaneKind.IDLE, "")]
    # Stream 7 of the other device.
    assert found.hidden_streams == 1
    assert found.launch is None


@pytest.mark.parametrize("streams", [1, 3])
def test_busy_and_idle_time_of_a_window_add_up_to_it(streams):
    rng = np.random.default_rng(streams)
    b = TraceBuilder()
    b.step(1, 0, 10_000)
    at = 0
    for n in range(200):
        at += int(rng.integers(1, 60))
        length = int(rng.integers(1, 40))
        b.launch(max(at - 10, 0), 4, at, length, stream=n % streams)
        at += length if streams == 1 else 0
    context = Context(b.trace(), Options())
    found = excerpt(context, 1_000_000, 2_000_000)
    device = context.device
    ticks = np.zeros(1_000, np.bool_)
    for start, end in zip(device.start // 1000 - 1000, device.end // 1000 - 1000, strict=True):
        ticks[max(start, 0) : max(end, 0)] = True
    idle = sum(box.busy for lane in found.lanes if lane.kind == LaneKind.IDLE for box in lane.boxes)
    assert idle == 1000 * int((~ticks).sum())
