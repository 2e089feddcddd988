"""Launch metrics on hand-made traces."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured


def record(b):
    """The one row of the table of launches."""
    (row,) = b.analyze().tables["launches"].records()
    return row


def test_delay_is_from_the_calls_return_to_the_kernels_start():
    b = TraceBuilder()
    b.step(1, 0, 200)
    for i, delay in enumerate((1, 3, 5, 7)):
        b.launch(i * 20, 2, i * 20 + 2 + delay, 4)
    launches = record(b)
    assert (launches.linked, launches.unlinked, launches.negative_latency) == (4, 0, 0)
    assert (launches.delay_p50_ns, launches.delay_p90_ns) == (5_000, 7_000)


def test_queue_depth_counts_what_was_launched_and_has_not_started():
    b = TraceBuilder()
    b.step(1, 0, 200)
    for i in range(4):
        b.launch(i, 0.5, 10 + 20 * i, 20)  # all four queued before the first starts
    launches = record(b)
    assert launches.queue_depth_p50 == 2.5  # depths at start: 4, 3, 2, 1
    assert launches.queue_depth_p90 == 3.7


def test_kernels_of_one_graph_launch_wait_as_one():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.api("cudaGraphLaunch", 0, 5, correlation=500)
    for i in range(3):
        b.device(10 + 20 * i, 10, correlation=500)
    launches = record(b)
    assert (launches.linked, launches.queue_depth_p50) == (3, 1)
    # Idle from 0 to 10, between the kernels and at the end: something waits from 0 to 10 alone.
    assert launches.idle_queue_empty == pytest.approx(1 - 10 / 170)


def test_a_kernel_launched_after_the_queue_ran_empty_is_late():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 0, 0, 10)
    b.launch(1, 1, 30, 10)  # queued: waits for something else
    b.launch(60, 1, 70, 10)  # late
    launches = record(b)
    assert launches.late == 1


def test_a_kernel_long_before_its_launch_leaves_nothing_measured():
    b = TraceBuilder()
    b.step(1, 0, 20_000)
    b.launch(10_010, 1, 10, 10)
    b.launch(10_060, 1, 10_070, 10)
    launches = record(b)
    assert (launches.linked, launches.negative_latency) == (2, 1)
    drawn = {"late", "late_share", "delay_p50_ns", "delay_p90_ns", "queue_depth_p50", "queue_depth_p90"}
    drawn |= {"idle_queue_empty", "queue_full_ns"}
    assert {getattr(launches, key) for key in drawn} == {NotMeasured("clocks_disagree")}


def test_of_a_device_that_is_never_idle_nothing_is_said_of_its_idle_time():
    b = TraceBuilder()
    b.launch(0, 5, 10, 20)
    launches = record(b)
    assert (launches.linked, launches.idle_queue_empty) == (1, NotMeasured("never_idle"))


def test_host_cost_is_counted_in_the_outermost_call():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 10, 20, 10)
    b.event("cuda_driver", "cuLaunchKernel", 2, 5, correlation=900)
    b.api("cudaStreamSynchronize", 40, 7)
    assert b.analyze().tables["runtime_calls"].rows == (
        ("cudaLaunchKernel", "api_launch", 1, 10_000, 10_000),
        ("cudaStreamSynchronize", "api_sync", 1, 7_000, 7_000),
    )


def test_without_runtime_calls_launches_are_not_measured():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(10, 10)
    tables = b.analyze().tables
    assert tables["launches"].rows == tables["runtime_calls"].rows == NotMeasured("no_api")
    assert tables["sync_points"].rows == NotMeasured("no_api")


def test_flows_tell_kernels_apart_that_begin_at_one_instant():
    """The first call launched the last stream's; an arrow may also lead nowhere, or be of another kind."""
    b = TraceBuilder()
    b.step(1, 0, 200)
    for at in (10, 15, 20):
        b.event("cuda_runtime", "cudaLaunchKernel", at, 2)
    for stream in (7, 8, 9):
        b.device(30, stream, stream=stream)
    ends = enumerate(((10, 9), (15, 8), (20, 7), (20, 6)))
    others = enumerate(((10, 7), (15, 7), (20, 9)))
    arrows = [*(("fwdbwd", *each) for each in others), *(("ac2g", *each) for each in ends)]
    for cat, number, (at, stream) in arrows:
        arrow = {"cat": cat, "name": cat, "id": number}
        b.events += [
            {"ph": "s", **arrow, "pid": 100, "tid": 1, "ts": at},
            {"ph": "f", **arrow, "pid": 0, "tid": stream, "ts": 30, "bp": "e"},
        ]
    context = Context(b.trace(), Options())
    launched = context.calls.start[context.link].tolist()
    assert dict(zip(context.device.stream.tolist(), launched, strict=True)) == {7: 20_000, 8: 15_000, 9: 10_000}


def test_an_arrow_from_the_first_operator_goes_before_its_number():
    """As torch_npu has it: no call of the runtime is known; the number names the second operator."""
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::first", 10, 5, **{"External id": 1})
    b.op("aten::second", 20, 5, **{"External id": 2})
    b.device(30, 10, **{"External id": 2})
    arrow = {"cat": "async_npu", "name": "async_npu", "id": 5}
    b.events += [
        {"ph": "s", **arrow, "pid": 100, "tid": 1, "ts": 10},
        {"ph": "f", **arrow, "pid": 0, "tid": 7, "ts": 30, "bp": "e"},
    ]
    assert Context(b.trace(), Options()).event_op.tolist() == [0]


@pytest.mark.parametrize("launches", [1, 2])
def test_the_thread_of_the_very_first_launch_is_a_launching_one(launches):
    b = TraceBuilder()
    b.op("aten::mm", 0, 5, tid=2)
    for number in range(launches):
        b.launch(10 + 20 * number, 5, 20 + 20 * number, 8, tid=3)
    context = Context(b.trace(), Options())
    assert [context.trace.tracks[track].tolist() for track in context.threads] == [
        context.trace.tracks[context.calls.track[0]].tolist()
    ]
    assert context.step_track == context.calls.track[0]


def test_flows_link_what_has_no_correlation():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.event("cuda_runtime", "cudaLaunchKernel", 10, 5)
    b.device(30, 10)
    b.events += [
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 5, "pid": 100, "tid": 1, "ts": 10},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 5, "pid": 0, "tid": 7, "ts": 30, "bp": "e"},
    ]
    assert record(b).linked == 1
