"""Idle causes: one hand-made gap a test, the answer on paper. The device works 0-10 and from 110 on; gap 10-110."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.vocabulary import Cause

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def gap_trace(launch_at, launch_dur, **launch):
    """Device busy 0-10 and 110-150 inside one step 0-150; the second kernel is launched as given."""
    b = TraceBuilder()
    b.step(1, 0, 150)
    b.launch(0, 0, 0, 10)
    b.launch(launch_at, launch_dur, 110, 40, **launch)
    return b


def causes(b):
    row = b.analyze().idle.by_step.sum(axis=0)
    return {cause: int(row[cause]) for cause in Cause if row[cause]}


def test_waiting_for_the_loader_then_launching():
    b = gap_trace(100, 5)
    b.annotation(LOADER, 5, 75)  # 10-80 of the gap
    assert causes(b) == {
        Cause.DATA_LOADING: 70_000,
        Cause.UNTRACED: 20_000,
        Cause.DISPATCH_LAUNCH: 5_000,
        Cause.DISPATCH_LATENCY: 5_000,
    }


def test_the_loader_is_not_to_blame_when_the_kernel_was_already_queued():
    b = gap_trace(2, 3)
    b.annotation(LOADER, 5, 100)
    assert causes(b) == {Cause.DEVICE_DEPENDENCY: 100_000}


def test_a_short_wait_of_a_queued_kernel_is_the_devices_own_gap():
    b = TraceBuilder()
    b.step(1, 0, 50)
    b.launch(0, 0, 0, 10)
    b.launch(1, 1, 18, 32)
    assert causes(b) == {Cause.DEVICE_GAP: 8_000}


def test_beyond_ten_microseconds_after_its_launch_something_else_holds_a_kernel():
    assert causes(gap_trace(60, 10)) == {
        Cause.UNTRACED: 50_000,
        Cause.DISPATCH_LAUNCH: 10_000,
        Cause.DISPATCH_LATENCY: 10_000,
        Cause.DEVICE_DEPENDENCY: 30_000,
    }


def test_host_states_hide_each_other_in_order():
    b = gap_trace(105, 5)
    b.op("aten::big", 10, 95)
    b.api("cudaMalloc", 20, 10)
    b.api("cudaEventRecord", 40, 5)
    b.api("cudaStreamSynchronize", 50, 15)
    b.op("c10d::barrier", 70, 10)
    b.annotation(LOADER, 85, 10)
    assert causes(b) == {
        Cause.DATA_LOADING: 10_000,
        Cause.SYNC: 15_000,
        Cause.PEER_WAIT: 10_000,
        Cause.DISPATCH_LAUNCH: 5_000,
        Cause.DISPATCH_ALLOC: 10_000,
        Cause.DISPATCH_OTHER: 5_000,
        Cause.HOST_OP: 45_000,
    }


def test_python_frames_and_annotations_explain_nothing():
    b = gap_trace(105, 5)
    b.python("train.py(1): f", 0, 150)
    b.annotation("my range", 0, 150)
    assert causes(b) == {Cause.UNTRACED: 95_000, Cause.DISPATCH_LAUNCH: 5_000}


def test_the_launching_thread_is_asked_first_then_the_step_thread():
    b = gap_trace(100, 10, tid=2)
    b.op("autograd::engine", 60, 40, tid=2)
    b.op("aten::main", 10, 70, tid=1)  # hidden by thread 2 from 60 on
    b.launch(0, 0, 0, 5, tid=2, stream=9)
    assert causes(b) == {Cause.HOST_OP: 90_000, Cause.DISPATCH_LAUNCH: 10_000}


def test_a_loader_on_a_third_thread_is_not_the_steps_data_loading():
    b = gap_trace(105, 5)
    b.launch(0, 0, 0, 5, tid=3, stream=9)
    b.annotation(LOADER, 10, 95, tid=3)
    assert causes(b) == {Cause.UNTRACED: 95_000, Cause.DISPATCH_LAUNCH: 5_000}


def test_a_kernel_without_launch_record_leaves_the_host_state_of_the_step_thread():
    b = TraceBuilder()
    b.step(1, 0, 150)
    b.launch(0, 0, 0, 10)
    b.device(110, 40)
    b.op("aten::x", 20, 30)
    assert causes(b) == {Cause.HOST_OP: 30_000, Cause.UNTRACED: 70_000}


def test_a_launch_later_than_its_kernel_is_not_believed():
    """One in a thousand is no matter of clocks: the others, 2 µs apart, begin right after their launches."""
    b = gap_trace(120, 5)
    for at in range(150, 2146, 2):
        b.launch(at, 0, at, 1)
    b.op("aten::x", 20, 30)
    b.events[0]["dur"] = 2150
    found = causes(b)
    assert (found[Cause.HOST_OP], found[Cause.UNTRACED]) == (30_000, 70_000 + 998_000 + 4_000)


def test_a_driver_call_inside_a_runtime_call_counts_once():
    b = gap_trace(60, 50)
    b.event("cuda_driver", "cuMemCreate", 70, 20, correlation=77)
    assert causes(b) == {Cause.UNTRACED: 50_000, Cause.DISPATCH_LAUNCH: 50_000}


def test_a_gap_across_a_step_border_is_split_there():
    b = TraceBuilder()
    b.step(1, 0, 60)
    b.launch(0, 0, 0, 10)
    b.step(2, 60, 90)
    b.launch(100, 10, 110, 40)
    a = b.analyze()
    assert a.idle.by_step[:, Cause.UNTRACED].tolist() == [50_000, 40_000]
    gaps = a.tables["gaps"]
    assert [(gap.step, gap.at_ns, gap.length_ns) for gap in gaps.records()] == [("1", 10_000, 50_000), ("2", 0, 50_000)]


def test_zero_length_kernels_neither_end_nor_split_a_gap():
    b = gap_trace(105, 5)
    b.launch(50, 1, 60, 0)
    assert b.analyze().tables["gaps"].column("length_ns") == (100_000,)


@pytest.mark.parametrize(
    ("launch_at", "trigger"),
    [(2, "queued"), (60, "launched_late")],
)
def test_the_gap_table_says_what_ended_a_gap(launch_at, trigger):
    b = gap_trace(launch_at, 3, name="gemm")
    b.op("aten::mm", launch_at - 1, 10)
    b.python("train.py(12): forward", launch_at - 1, 20)
    (gap,) = b.analyze().tables["gaps"].records()
    assert (gap.next_event, gap.next_op, gap.frame, gap.trigger) == (
        "gemm",
        "aten::mm",
        "train.py(12): forward",
        trigger,
    )
    assert sum(length for _, length in gap.causes) == gap.length_ns == 100_000
