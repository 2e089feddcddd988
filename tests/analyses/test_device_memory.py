"""Allocator records and calls on hand-made traces."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured


def test_peaks_of_the_recording_and_of_each_step():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.device(10, 5)
    b.memory(10, 500, allocated=1500, reserved=4000)
    b.memory(20, -200, allocated=1300, reserved=4000)
    b.memory(120, 100, allocated=1400, reserved=5000)
    (row,) = b.rows("memory")
    assert (row.memory_of, row.device, row.records) == ("memory_of_device", 0, 3)
    assert (row.peak_allocated_bytes, row.peak_reserved_bytes, row.relative_peak_bytes) == (1500, 5000, 500)
    assert (row.allocated_bytes, row.freed_bytes) == (600, 200)
    assert b.table("step_memory").column("peak_bytes") == (1500, 1400)


def test_old_records_have_changes_only():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    for at, size in ((10, 300), (20, 200), (30, -400), (40, 50)):
        b.memory(at, size)
    (row,) = b.rows("memory")
    assert row.peak_allocated_bytes == row.peak_reserved_bytes == NotMeasured("no_memory_totals")
    assert (row.relative_peak_bytes, *b.table("step_memory").column("peak_bytes")) == (500, 500)


def test_only_frees_leave_no_peak():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    b.memory(10, -300)
    (row,) = b.rows("memory")
    assert row.relative_peak_bytes == 0


def test_devices_and_the_host_are_apart():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    b.memory(10, 1, kind=0, device=-1)
    b.memory(20, 2, kind=1, device=1)
    b.memory(30, 4, kind=6, device=0)
    rows = b.rows("memory")
    assert [(row.memory_of, row.device, row.allocated_bytes) for row in rows] == [
        ("memory_of_device", 0, 4),
        ("memory_of_device", 1, 2),
        ("memory_of_host", None, 1),
    ]


def test_a_step_before_the_first_record_has_no_peak():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.launch(5, 1, 10, 5)
    b.launch(105, 1, 110, 5)
    b.memory(150, 7, allocated=7)
    assert b.table("step_memory").column("peak_bytes") == (NotMeasured("no_memory_records"), 7)


def test_allocation_calls_of_the_steps():
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.launch(110, 1, 120, 5)
    b.api("cudaMalloc", 0, 50)  # before the step
    b.api("cudaMalloc", 120, 30)
    b.api("cudaMalloc", 160, 10)
    b.api("cudaFree", 180, 5)
    first, second = b.rows("allocator_calls")
    assert (first.call, first.count, first.host_time_ns, first.implicit_sync) == ("cudaMalloc", 2, 40_000, False)
    assert (second.call, second.implicit_sync) == ("cudaFree", True)


def test_host_only_traces_have_memory_too():
    b = TraceBuilder()
    b.op("aten::mm", 0, 10)
    b.memory(1, 5, kind=0, device=-1, allocated=5)
    assert b.table("memory").column("peak_allocated_bytes") == (5,)
    assert b.table("allocator_calls").absent == NotMeasured("no_api")


def test_without_records_nothing_is_measured():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    assert b.table("memory").absent == NotMeasured("no_memory_records")


@pytest.mark.parametrize(
    ("late", "expected", "step"), [(200, (9, 30), "2"), (200.001, (9, 9), None), (100.001, (9, 30), "2")]
)
def test_the_record_at_the_end_of_a_step_is_its_own_and_the_next_ones(late, expected, step):
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.launch(5, 1, 10, 5)
    b.launch(105, 1, 110, 5)
    for at, total in ((10, 5), (100, 9), (late, 30)):
        b.memory(at, 1, allocated=total)
    tables = b.analyze().tables
    assert tables["step_memory"].column("peak_bytes") == expected
    assert tables["memory_peak_place"].column("step") == (step,)


def test_a_record_before_the_first_step_is_what_it_begins_with_and_in_no_step():
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.launch(105, 1, 110, 5)
    b.memory(50, 7, allocated=7)
    b.memory(150, -3, allocated=4)
    tables = b.analyze().tables
    assert tables["step_memory"].column("peak_bytes") == (7,)
    assert tables["memory_peak_place"].column("step") == (None,)


@pytest.mark.parametrize(("at", "count"), [(99.999, 0), (100, 1), (200, 1), (200.001, 0)])
def test_an_allocation_call_counts_in_the_step_it_begins_in(at, count):
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.launch(110, 1, 120, 5)
    b.api("cudaMalloc", at, 30)
    assert sum(b.table("allocator_calls").column("count")) == count


@pytest.mark.parametrize(
    ("at", "count"),
    [(99.999, 0), (100, 1), (200, 1), (200.001, 0), (249.999, 0), (250, 1), (350, 1), (350.001, 0)],
)
def test_an_allocation_call_between_two_steps_is_in_neither(at, count):
    b = TraceBuilder()
    for number, begin in enumerate((100, 250)):
        b.step(number, begin, 100)
        b.launch(begin + 10, 1, begin + 20, 5)
    b.api("cudaMalloc", at, 0.5)
    assert sum(b.table("allocator_calls").column("count")) == count
