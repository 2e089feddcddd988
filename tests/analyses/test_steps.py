"""Step windows on hand-made traces (times in µs in the builder, ns in the answers)."""

import numpy as np

from tests.builder import TraceBuilder
from traceanalyze.model.vocabulary import Mode


def windows(analysis):
    return [(int(a), int(b)) for a, b in zip(analysis.steps.start, analysis.steps.end, strict=True)]


def test_a_step_lasts_until_its_last_kernel_and_the_next_begins_there():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(10, 5, 20, 130)  # runs until 150, 50 into step 2's marker
    b.step(2, 100, 100)
    b.launch(110, 5, 150, 20)
    a = b.analyze()
    assert a.mode == Mode.STEPS
    assert windows(a) == [(0, 150_000), (150_000, 200_000)]
    assert a.steps.owned.tolist() == [1, 1]


def test_left_over_work_of_before_recording_is_not_the_first_steps():
    b = TraceBuilder()
    b.device(5, 40)  # nobody launched it here; ends at 45
    b.step(1, 0, 100)
    b.launch(10, 5, 50, 30)
    a = b.analyze()
    assert windows(a) == [(45_000, 100_000)]
    assert a.steps.lead_in == 45_000


def test_unlinked_work_after_the_first_own_kernel_does_not_move_the_start():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(10, 5, 20, 30)
    b.device(60, 20)
    assert windows(b.analyze()) == [(0, 100_000)]


def test_time_between_markers_belongs_to_no_step():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(10, 5, 20, 30)
    b.step(2, 130, 100)
    b.launch(140, 5, 150, 30)
    a = b.analyze()
    assert windows(a) == [(0, 100_000), (130_000, 230_000)]
    assert a.steps.between_steps == 30_000


def test_a_kernel_launched_after_the_last_marker_belongs_to_no_step():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(10, 5, 20, 30)
    b.launch(120, 5, 130, 500)
    assert windows(b.analyze()) == [(0, 100_000)]


def test_markers_of_the_busiest_marker_thread_count_and_device_annotations_do_not():
    b = TraceBuilder()
    for n in (1, 2):
        b.step(n, n * 100, 100)
        b.launch(n * 100 + 10, 5, n * 100 + 20, 30)
        b.event("gpu_user_annotation", f"ProfilerStep#{n}", n * 100 + 20, 30, pid=0, tid=7)
    b.step(9, 0, 1000, tid=2)
    assert b.analyze().steps.name == ("ProfilerStep#1", "ProfilerStep#2")


def test_the_outer_of_nested_markers_counts():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(1, 5, 90)
    b.launch(10, 5, 20, 30)
    assert windows(b.analyze()) == [(0, 100_000)]


def test_a_step_with_few_device_events_is_incomplete():
    b = TraceBuilder()
    for n in range(4):
        b.step(n, n * 1000, 1000)
        for k in range(10 if n < 3 else 7):
            b.launch(n * 1000 + 20 * k, 5, n * 1000 + 20 * k + 10, 5)
    a = b.analyze()
    assert a.steps.complete.tolist() == [True, True, True, False]
    assert {c.message for c in a.checks} >= {"incomplete_steps", "last_step_cut"}


def test_without_markers_the_window_is_the_device_span():
    b = TraceBuilder()
    b.op("aten::mm", 0, 30)
    b.launch(5, 5, 20, 100)
    a = b.analyze()
    assert a.mode == Mode.WHOLE_TRACE
    assert windows(a) == [(20_000, 120_000)]
    assert "no_steps" in {c.message for c in a.checks}


def test_old_files_record_markers_as_operators():
    b = TraceBuilder()
    b.op("ProfilerStep#7", 0, 100)
    b.launch(5, 5, 20, 50)
    assert b.analyze().steps.name == ("ProfilerStep#7",)


def test_without_device_events_the_host_time_is_split():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 40)
    b.op("aten::mm", 50, 30)
    a = b.analyze()
    assert a.mode == Mode.HOST_ONLY
    host = {k: int(np.sum(getattr(a.host, k))) for k in ("data_loading", "host_op", "api", "untraced")}
    assert host == {"data_loading": 40_000, "host_op": 30_000, "api": 0, "untraced": 30_000}
    assert a.idle.reason == "no_device_events"
