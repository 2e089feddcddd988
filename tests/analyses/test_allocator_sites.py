"""Allocator calls are charged to their operators with the idle time they cause; the peak has a place in the program."""

from __future__ import annotations

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured


def allocating() -> TraceBuilder:
    """A step in which `aten::empty` waits 40 µs for cudaMalloc while the device is idle, and 5 µs while it is busy."""
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::mm", 0, 12)
    b.launch(1, 4, 10, 30)
    b.op("aten::empty", 20, 10)
    b.api("cudaMalloc", 22, 5)
    b.op("aten::empty", 50, 50)
    b.api("cudaMalloc", 55, 40)
    b.op("aten::mm", 110, 10)
    b.launch(111, 4, 120, 30)
    b.memory(57, 1000, allocated=5000, reserved=9000)
    b.memory(150, -500, allocated=4500, reserved=9000)
    return b


def test_calls_are_charged_to_their_operator_with_the_idle_time_inside_them() -> None:
    (row,) = allocating().rows("allocator_sites")
    assert (row.op, row.call, row.count, row.host_time_ns) == ("aten::empty", "cudaMalloc", 2, 45_000)
    assert row.idle_ns == 40_000
    assert row.module is None


def test_the_peak_has_its_step_operator_and_phase() -> None:
    (peak,) = allocating().rows("memory_peak_place")
    assert (peak.device, peak.peak_bytes, peak.step, peak.op) == (0, 5000, "1", "aten::empty")
    assert peak.phase == "phase_other"


def test_without_calls_or_records_nothing_is_claimed() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    assert b.table("allocator_sites").absent == NotMeasured("no_api")
    assert b.table("memory_peak_place").absent == NotMeasured("no_memory_records")


def test_records_of_the_host_alone_have_no_peak_of_a_device() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::empty", 10, 5)
    b.memory(12, 1000, kind=0, device=-1)
    assert len(b.table("memory")) == 1
    assert b.table("memory_peak_place").absent == NotMeasured("no_memory_records")


def test_a_record_without_its_device_type_is_no_peak_of_a_device() -> None:
    b = allocating()
    (peak,) = b.rows("memory_peak_place")
    b.memory(12, 900_000)
    del b.events[-1]["args"]["Device Type"]
    assert b.rows("memory_peak_place") == [peak]


def test_sums_over_sites_are_those_over_calls() -> None:
    sites, calls = (allocating().table(key).column("host_time_ns") for key in ("allocator_sites", "allocator_calls"))
    assert sum(sites) == sum(calls)
