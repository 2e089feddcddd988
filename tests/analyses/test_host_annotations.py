"""Annotations on the host and the work launched inside them, on hand-made traces (definitions §§8, 9)."""

from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured


def annotations(b, options=None):
    return {row.name: row for row in b.rows("annotations", options)}


def work(b):
    return {name: (row.device_time_ns, row.kernels) for name, row in annotations(b).items()}


def test_calls_and_host_times_by_name():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation("decode", 10, 10)
    b.annotation("decode", 30, 20)
    b.annotation("decode", 60, 60)
    b.annotation("prefill", 130, 7)
    b.launch(131, 2, 140, 5)
    found = annotations(b)
    assert list(found) == ["prefill", "decode"]  # most device time first; the step marker is not among them
    row = found["decode"]
    assert (row.calls, row.host_time_ns, row.mean_event_ns, row.min_ns, row.max_ns) == (
        *(3, 90_000),
        *(30_000, 10_000, 60_000),
    )


def test_device_time_is_that_of_the_launches_inside_wherever_it_runs():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation("prefill", 10, 20)
    b.annotation("decode", 30, 20)
    b.launch(10, 2, 60, 30)  # at its first instant
    b.launch(29, 2, 90, 7)  # returns after the range
    b.launch(30, 2, 97, 3)  # where one ends and the next begins
    b.copy(40, 2, 110, 11)
    b.launch(55, 2, 130, 9)  # in none
    assert work(b) == {"prefill": (37_000, 2), "decode": (14_000, 1)}


def test_nested_annotations_each_have_what_is_inside():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation("generate", 10, 80)
    b.annotation("decode", 20, 20)
    b.launch(25, 2, 100, 10)
    b.launch(50, 2, 110, 5)
    assert work(b) == {"generate": (15_000, 2), "decode": (10_000, 1)}


def test_an_annotation_inside_another_of_its_name_counts_once():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation("layer", 10, 80)
    b.annotation("other", 15, 40)
    b.annotation("layer", 20, 20)
    b.launch(25, 2, 100, 10)
    row = annotations(b)["layer"]
    assert (row.calls, row.host_time_ns, row.mean_event_ns) == (2, 80_000, 80_000)
    assert (row.device_time_ns, row.kernels) == (10_000, 1)


def test_annotations_that_overlap_keep_their_ranges():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation("a", 10, 20)
    b.annotation("b", 20, 20)
    b.launch(25, 2, 100, 10)
    b.launch(35, 2, 120, 5)
    assert work(b) == {"a": (10_000, 1), "b": (15_000, 2)}
    assert annotations(b)["a"].host_time_ns == 20_000


def test_launches_of_other_threads_are_not_inside():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation("forward", 10, 50)
    b.annotation("forward", 20, 50, tid=2)
    b.launch(30, 2, 100, 10, tid=2)
    b.launch(30, 2, 120, 5, tid=3)
    row = annotations(b)["forward"]
    assert (row.calls, row.host_time_ns, row.device_time_ns, row.kernels) == (2, 100_000, 10_000, 1)


def test_only_the_analysed_steps_count():
    b = TraceBuilder()
    for number, at in ((1, 0), (2, 100)):
        b.step(number, at, 100)
        b.annotation("decode", at + 10, 20 * number)
        b.launch(at + 15, 2, at + 40, 10 * number)
    found = annotations(b, Options(steps=lambda steps: steps.start > 0))
    row = found["decode"]
    assert (row.calls, row.host_time_ns, row.device_time_ns, row.kernels) == (1, 40_000, 20_000, 1)


def test_device_time_is_cut_to_the_windows():
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.annotation("early", 70, 20)
    b.launch(75, 2, 90, 40)  # reaches 30 µs into the step
    b.annotation("inside", 105, 10)
    b.launch(110, 2, 120, 10, stream=8)
    rows = annotations(b)
    assert {name: (row.calls, row.mean_event_ns, row.device_time_ns) for name, row in rows.items()} == {
        "early": (NotMeasured("launched_before"), None, 30_000),
        "inside": (1, 10_000, 10_000),
    }


def test_no_annotations_are_not_measured():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 10)
    b.launch(1, 2, 20, 5)
    assert b.table("annotations").absent == NotMeasured("no_annotations")


def test_an_annotation_that_began_before_the_steps_has_work_in_them_but_no_host_times():
    b = TraceBuilder()
    b.annotation("epoch", 0, 150)
    b.step(1, 50, 100)
    b.launch(60, 2, 70, 10)
    row = annotations(b)["epoch"]
    assert (row.device_time_ns, row.kernels) == (10_000, 1)
    assert row.calls == row.host_time_ns == NotMeasured("launched_before")
    assert (row.mean_event_ns, row.min_ns, row.max_ns) == (None, None, None)
