"""The critical path of hand-made traces, worked out on paper; times in µs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.critical_path import PathKind, PathSegments, critical_path

if TYPE_CHECKING:
    from numpy.typing import NDArray


def measured(b: TraceBuilder) -> PathSegments:
    context = Context(b.trace(), Options())
    path = critical_path(context)
    assert isinstance(path, PathSegments), path
    assert path.by_step(len(context.steps)).sum(axis=1).tolist() == context.steps.time.tolist()
    return path


def by_step(b: TraceBuilder) -> NDArray[np.int64]:
    return measured(b).by_step(len(b.analyze().steps))


def places(b: TraceBuilder) -> list[Any]:
    return list(b.analyze().records("critical_path_work"))


def kernels(b: TraceBuilder) -> set[str]:
    """On the path."""
    return {place.name for place in places(b) if place.part == "compute"}


def refusal(b: TraceBuilder) -> str | None:
    first, second = (b.analyze().tables[key].absent for key in ("critical_path", "critical_path_work"))
    assert first == second
    return None if first is None else first.reason


def segments(b: TraceBuilder) -> list[tuple[float, float, str]]:
    path = measured(b)
    rows = zip(path.start.tolist(), path.end.tolist(), path.kind.tolist(), strict=True)
    return [(start / 1000, end / 1000, PathKind(kind).name) for start, end, kind in rows]


def sync_record(b: TraceBuilder, kind: str, at: float, *, stream: int, correlation: int, **args: Any) -> None:
    """What the profiler writes with `enable_cuda_sync_events=True`."""
    more = {"cuda_sync_kind": kind, "stream": stream, "device": 0, "correlation": correlation}
    b.event("cuda_sync", kind, at, 1, pid=0, tid=stream, **more, **args)


def queued() -> TraceBuilder:
    """The second kernel is launched while the first runs."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 30)
    b.launch(10, 5, 20, 40, name="first")
    b.launch(16, 4, 62, 48, name="second")
    return b


def test_from_the_last_kernel_over_the_first_to_the_host():
    assert segments(queued()) == [
        (0, 10, "HOST_OP"),
        (10, 15, "RUNTIME_CALL"),
        (15, 20, "LAUNCH_LATENCY"),
        (20, 60, "COMPUTE"),
        (60, 62, "DEVICE_GAP"),
        (62, 110, "COMPUTE"),
    ]


def test_places_are_named_by_kernel_operator_and_call():
    found = {(place.part, place.name): (place.count, place.time_ns) for place in places(queued())}
    assert found == {
        ("compute", "second"): (1, 48_000),
        ("compute", "first"): (1, 40_000),
        ("host_op", "aten::mm"): (1, 10_000),
        ("host_api", "cudaLaunchKernel"): (1, 5_000),
        ("dispatch_latency", None): (1, 5_000),
        ("device_gap", None): (1, 2_000),
    }


def test_places_come_with_most_time_first_and_name_the_innermost_operator():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::linear", 0, 90)
    b.op("aten::t", 10, 20)
    b.op("aten::addmm", 40, 45)
    b.launch(60, 5, 66, 10)
    found = [(place.name, place.count, place.time_ns, place.max_ns) for place in places(b)]
    # The host ends the step: linear 0-10, 30-40, 85-90; addmm 40-60, 65-85; t 10-30; untraced 90-100.
    assert found == [
        ("aten::addmm", 2, 40_000, 20_000),
        ("aten::linear", 3, 25_000, 10_000),
        ("aten::t", 1, 20_000, 20_000),
        (None, 1, 10_000, 10_000),
        ("cudaLaunchKernel", 1, 5_000, 5_000),
    ]


def test_a_kernel_that_begins_long_after_its_turn_waits_for_something_unseen():
    b = TraceBuilder()
    b.step(1, 0, 30)
    b.launch(0, 5, 10, 10)
    b.launch(6, 4, 50, 10)
    assert segments(b)[-3:] == [(10, 20, "COMPUTE"), (20, 50, "DEVICE_DEPENDENCY"), (50, 60, "COMPUTE")]


def test_latency_of_a_launch_ends_after_10_us():
    b = TraceBuilder()
    b.step(1, 0, 10)
    b.launch(0, 5, 40, 10)
    assert segments(b) == [
        (0, 5, "RUNTIME_CALL"),
        (5, 15, "LAUNCH_LATENCY"),
        (15, 40, "DEVICE_DEPENDENCY"),
        (40, 50, "COMPUTE"),
    ]


def synchronized(name: str = "cudaStreamSynchronize") -> TraceBuilder:
    b = TraceBuilder()
    b.step(1, 0, 120)
    b.launch(0, 5, 8, 70)
    b.api(name, 10, 74)
    b.op("aten::add", 90, 25)
    return b


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaDeviceSynchronize", "hipEventSynchronize"])
def test_the_wait_for_the_device_is_not_on_the_path_but_the_return_from_it_is(name):
    assert segments(synchronized(name)) == [
        (0, 5, "RUNTIME_CALL"),
        (5, 8, "LAUNCH_LATENCY"),
        (8, 78, "COMPUTE"),
        (78, 84, "RUNTIME_CALL"),
        (84, 90, "UNTRACED"),
        (90, 115, "HOST_OP"),
        (115, 120, "UNTRACED"),
    ]


def test_a_sync_that_finds_the_device_done_is_host_work():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 5, 8, 10)
    b.op("aten::add", 5, 45)
    b.api("cudaDeviceSynchronize", 50, 4)
    b.op("aten::add", 54, 46)
    assert segments(b) == [
        (0, 5, "RUNTIME_CALL"),
        (5, 50, "HOST_OP"),
        (50, 54, "RUNTIME_CALL"),
        (54, 100, "HOST_OP"),
    ]


def test_a_copy_that_blocks_waits_for_the_work_before_it():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 5, 8, 60)
    b.copy(10, 85, 70, 20, name="Memcpy DtoH (Device -> Pageable)")
    # The copy was queued behind the kernel when its call began; the call itself only waits.
    assert segments(b) == [
        (0, 5, "RUNTIME_CALL"),
        (5, 8, "LAUNCH_LATENCY"),
        (8, 68, "COMPUTE"),
        (68, 70, "DEVICE_GAP"),
        (70, 90, "MEM"),
        (90, 95, "RUNTIME_CALL"),
        (95, 100, "UNTRACED"),
    ]


def test_a_graph_is_launched_once():
    b = TraceBuilder()
    b.step(1, 0, 20)
    b.api("cudaGraphLaunch", 0, 60, correlation=500)
    for start in (10, 21, 32):
        b.device(start, 10, correlation=500)
    # The later kernels do not wait for the call to return.
    assert [kind for *_, kind in segments(b)] == [
        "RUNTIME_CALL",
        *("COMPUTE", "DEVICE_GAP", "COMPUTE", "DEVICE_GAP", "COMPUTE"),
    ]


def test_the_path_goes_on_with_the_thread_that_was_at_work():
    b = TraceBuilder()
    b.step(1, 0, 50, tid=1)
    b.op("forward", 0, 20, tid=1)
    b.op("backward", 30, 20, tid=2)
    b.launch(40, 5, 50, 50, tid=2)
    assert segments(b) == [
        (0, 20, "HOST_OP"),
        (20, 30, "UNTRACED"),
        (30, 40, "HOST_OP"),
        (40, 45, "RUNTIME_CALL"),
        (45, 50, "LAUNCH_LATENCY"),
        (50, 100, "COMPUTE"),
    ]


def test_data_loading_is_on_the_path_only_when_the_device_had_nothing_queued():
    b = TraceBuilder()
    b.step(1, 0, 60)
    b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 50)
    b.launch(50, 5, 60, 100)
    b.step(2, 60, 60)
    b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 60, 50)
    b.launch(110, 5, 162, 100)
    assert by_step(b)[:, PathKind.DATA_LOADING].tolist() == [50_000, 0]
    assert by_step(b)[:, PathKind.COMPUTE].tolist() == [100_000, 100_000]


def two_streams(*, recorded: bool = True, wait: bool = True, stream: int = 20) -> TraceBuilder:
    """Compute on stream 7; a collective on another one that waits for the first of two kernels."""
    b = TraceBuilder()
    b.step(1, 0, 40)
    b.launch(0, 4, 10, 40, name="first")
    b.api("cudaEventRecord", 5, 1, correlation=900)
    b.launch(7, 4, 51, 60, name="second")
    b.api("cudaStreamWaitEvent", 12, 1, correlation=901)
    b.launch(14, 4, 53, 100, name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL", stream=stream)
    if recorded and wait:
        source = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 900}
        sync_record(b, "Stream Wait Event", 12, stream=stream, correlation=901, **source)
    elif recorded:
        sync_record(b, "Context Sync", 150, stream=-1, correlation=999)
    return b


@pytest.mark.parametrize("stream", [20, 5])
def test_a_wait_between_streams_leads_to_the_other_stream(stream: int):
    assert segments(two_streams(stream=stream)) == [
        (0, 4, "RUNTIME_CALL"),
        (4, 10, "LAUNCH_LATENCY"),
        (10, 50, "COMPUTE"),
        (50, 53, "DEVICE_GAP"),
        (53, 153, "COMM"),
    ]


def test_the_kernel_after_the_recorded_event_is_not_waited_for():
    assert kernels(two_streams()) == {"first"}


def test_several_streams_without_records_are_refused():
    assert refusal(two_streams(recorded=False)) == "no_stream_waits"


def test_records_without_a_wait_say_that_nothing_was_waited_for():
    assert segments(two_streams(wait=False))[-4:] == [
        (14, 18, "RUNTIME_CALL"),
        (18, 28, "LAUNCH_LATENCY"),
        (28, 53, "DEVICE_DEPENDENCY"),
        (53, 153, "COMM"),
    ]


@pytest.mark.parametrize(
    ("kind", "stream", "more", "waited"),
    [
        ("Stream Sync", 7, {}, "short"),
        ("Context Sync", -1, {}, "long"),
        ("Event Sync", -1, {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 900}, "short"),
    ],
)
def test_the_record_of_a_sync_says_which_stream_the_host_waited_for(kind, stream, more, waited):
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 4, 10, 60, name="short")
    b.api("cudaEventRecord", 5, 1, correlation=900)
    b.launch(7, 4, 14, 61, name="long", stream=20)
    b.api("cudaDeviceSynchronize", 20, 60, correlation=902)
    sync_record(b, kind, 20, stream=stream, correlation=902, **more)
    assert kernels(b) == {waited}


def test_without_runtime_calls_it_is_refused():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 90)
    b.device(10, 50)
    assert refusal(b) == "no_api"


@pytest.mark.parametrize(("unlinked", "refused"), [(4, False), (8, True)])
def test_with_less_than_95_percent_of_device_time_linked_it_is_refused(unlinked, refused):
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 5, 10, 100)
    b.device(120, unlinked)
    b.launch(150, 5, 160, 0)
    assert (refusal(b) == "few_linked_launches") is refused


def test_with_clocks_that_disagree_it_is_refused():
    b = TraceBuilder()
    b.step(1, 0, 20_000)
    for start in (10, 50):
        b.launch(start + 10_000, 3, start, 20)
    assert refusal(b) == "clocks_disagree"


def test_without_a_device_it_is_not_measured():
    b = TraceBuilder()
    b.op("aten::mm", 0, 90)
    assert "critical_path" not in b.analyze().tables


def test_without_device_work_in_the_steps_it_is_not_measured():
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.launch(0, 5, 10, 20)
    assert refusal(b) == "no_device_events"


def test_host_bound_and_device_bound_extremes():
    host, device = TraceBuilder(), TraceBuilder()
    for b, duration in ((host, 1), (device, 500)):
        b.step(1, 0, 1000)
        b.op("aten::mm", 0, 1000)
        free = 0
        for at in range(0, 1000, 20):
            start = max(at + 6, free)
            b.launch(at, 5, start, duration)
            free = start + duration
    whole = {name: np.asarray(by_step(b)[0]) for name, b in (("host", host), ("device", device))}
    on_device = [PathKind.COMPUTE, PathKind.DEVICE_GAP, PathKind.LAUNCH_LATENCY]
    assert whole["host"][on_device].sum() == 0
    assert whole["device"].sum() - whole["device"][PathKind.COMPUTE] == 6_000


def test_a_kernel_that_ran_into_the_step_is_cut_at_its_start():
    b = two_streams(wait=False)
    b.step(2, 40, 60)
    b.launch(60, 4, 112, 200, name="third")
    # Step 1 ends with the collective, at 153.
    path = by_step(b)
    assert path[1, PathKind.COMPUTE] == path[1].sum() == 159_000


def test_a_sync_leads_to_what_had_ended_when_it_returned():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 4, 10, 30, name="first")
    b.launch(5, 4, 41, 50, name="second")
    b.api("hipEventSynchronize", 12, 30)
    b.op("aten::add", 42, 58)
    assert kernels(b) == {"first"}


def test_a_sync_with_an_event_does_not_lead_to_what_was_launched_after_the_event():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 4, 10, 40, name="first")
    b.api("cudaEventRecord", 5, 1, correlation=900)
    b.launch(7, 4, 51, 4, name="second")
    b.api("cudaEventSynchronize", 12, 48, correlation=902)
    source = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 900}
    sync_record(b, "Event Sync", 12, stream=-1, correlation=902, **source)
    assert kernels(b) == {"first"}


@pytest.mark.parametrize("recorded", [True, False])
def test_a_sync_with_an_event_before_all_work_waits_for_nothing(recorded: bool):
    """Without a record of it a sync waits for all that was launched."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.api("cudaEventRecord", 0, 1, correlation=900)
    b.launch(2, 4, 10, 40, name="first")
    b.api("cudaEventSynchronize", 12, 48, correlation=902)
    source = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 900}
    if recorded:
        sync_record(b, "Event Sync", 12, stream=-1, correlation=902, **source)
    b.op("aten::add", 61, 39)
    assert kernels(b) == (set() if recorded else {"first"})


def test_a_wait_of_another_thread_is_not_that_of_the_path():
    b = TraceBuilder()
    b.step(1, 0, 110)
    b.launch(0, 2, 4, 4, name="mine")
    b.launch(3, 2, 10, 45, name="other", tid=2, stream=20)
    b.api("cudaStreamSynchronize", 10, 90, correlation=902)
    b.api("cudaStreamSynchronize", 20, 40, tid=2, correlation=903)
    sync_record(b, "Stream Sync", 10, stream=7, correlation=902)
    sync_record(b, "Stream Sync", 20, stream=20, correlation=903)
    assert not by_step(b)[0, PathKind.COMPUTE]


def test_what_has_an_empty_name_keeps_it_and_what_has_none_has_none():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(10, 5, 20, 100, name="")
    found = {(place.part, place.name) for place in places(b)}
    assert ("compute", "") in found
    assert ("dispatch_latency", None) in found


def test_a_loader_of_a_thread_that_only_helps_is_no_wait_for_data():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 2, 4, 4)
    b.launch(3, 2, 9, 4, tid=3)
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20, 60, tid=3)
    assert not by_step(b)[0, PathKind.DATA_LOADING]


def test_a_copy_without_length_on_a_coarse_clock_is_passed_once():
    b = TraceBuilder()
    b.step(1, 0, 150)
    b.copy(90, 10, 100, 0, api="cudaMemcpy")
    b.launch(10, 2, 14, 6)
    assert segments(b)[-2:] == [(90, 100, "RUNTIME_CALL"), (100, 150, "UNTRACED")]


@pytest.mark.parametrize(("first", "last", "source"), [(7, 9, 8), (9, 7, 30)])
def test_a_wait_without_work_on_either_stream_holds_nothing(first, last, source):
    """Nothing follows on stream 7, or nothing had been launched on the other one."""
    b = TraceBuilder()
    b.step(1, 0, 40)
    b.launch(0, 4, 10, 40, name="first", stream=first)
    b.launch(5, 4, 12, 60, name="other", stream=8)
    b.api("cudaEventRecord", 10, 1, correlation=900)
    b.api("cudaStreamWaitEvent", 12, 1, correlation=901)
    more = {"wait_on_stream": source, "wait_on_cuda_event_record_corr_id": 900}
    sync_record(b, "Stream Wait Event", 12, stream=7, correlation=901, **more)
    b.launch(14, 4, 80, 60, name="last", stream=last)
    assert kernels(b) == {"last"}
