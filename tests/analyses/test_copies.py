"""Copies and fills on hand-made traces."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.kernels.copies import copy_direction, copy_memory
from traceanalyze.model.table import NotMeasured

UNKNOWN = NotMeasured("no_memory_kind")


def copies(b):
    return {(row.direction, row.memory_kind): row for row in b.rows("copies")}


def test_sizes_and_bandwidth_by_direction_and_memory():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.copy(0, 5, 10, 20, bytes=100_000)
    b.copy(40, 5, 50, 20, bytes=300_000)
    b.copy(80, 5, 90, 10, name="Memcpy DtoH (Device -> Pinned)", bytes=500)
    b.device(120, 2, name="Memset (Device)", cat="gpu_memset", bytes=64)
    found = copies(b)
    up = found["copy_h2d", "memory_pageable"]
    assert (up.count, up.device_time_ns, up.bytes) == (2, 40_000, 400_000)
    assert up.bandwidth == pytest.approx(10.0)  # 400 kB in 40 µs
    assert found["copy_d2h", "memory_pinned"].bandwidth == pytest.approx(0.05)
    assert (found["copy_fill", None].bytes, found["copy_fill", None].blocking) == (64, 0)


def test_a_size_below_zero_is_none():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.copy(0, 5, 10, 20, bytes=100_000)
    b.copy(40, 5, 50, 20, bytes=-1)
    row = copies(b)["copy_h2d", "memory_pageable"]
    assert (row.count, row.bytes, row.bandwidth) == (2, 100_000, pytest.approx(5.0))


def test_bandwidth_counts_only_copies_with_size_and_duration():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.copy(0, 5, 10, 20, bytes=100_000)
    b.copy(40, 5, 50, 0, bytes=300_000)
    b.copy(80, 5, 90, 20)
    row = copies(b)["copy_h2d", "memory_pageable"]
    assert (row.bytes, row.bandwidth) == (400_000, pytest.approx(5.0))


def test_without_sizes_there_is_no_bandwidth():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.copy(0, 5, 10, 20)
    b.device(50, 0, name="Memset (Device)", cat="gpu_memset", bytes=4)
    found = copies(b)
    assert (
        found["copy_h2d", "memory_pageable"].bytes
        == found["copy_h2d", "memory_pageable"].bandwidth
        == NotMeasured("no_bytes")
    )
    assert found["copy_fill", None].bandwidth == NotMeasured("no_duration")


def test_a_copy_that_holds_the_host_up_is_blocking():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.copy(0, 100, 50, 40)  # asynchronous by name; the call is still running when its copy starts
    b.copy(200, 5, 220, 40)
    b.copy(300, 60, 310, 40, api="cudaMemcpy")
    assert copies(b)["copy_h2d", "memory_pageable"].blocking == 2


def test_the_argument_goes_before_the_name():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.device(10, 5, name="CopyDeviceToDevice", cat="gpu_memcpy", kind="HtoD")
    b.device(20, 5, name="__amd_rocclr_copyBuffer")
    assert set(copies(b)) == {("copy_h2d", UNKNOWN), ("copy_unknown", UNKNOWN)}


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "h2d"),
        ("Memcpy PtoP (Device -> Device)", "p2p"),
        ("CopyHostToDevice", "h2d"),
        ("DtoD", "d2d"),
        ("Memcpy M2D (MEMORY(Unknown) -> DEVICE)", "h2d"),
        ("Memcpy D2M", "d2h"),
        ("Memcpy D2D (DEVICE -> DEVICE)", "d2d"),
        ("Memcpy HtoP", None),
        ("Dispatch Kernel", None),
        ("Memcpy (Unknown)", None),
    ],
)
def test_direction(text, direction):
    assert copy_direction(text) == direction


@pytest.mark.parametrize(
    ("name", "direction", "memory"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "h2d", "pinned"),
        ("Memcpy DtoH (Device -> Pageable)", "d2h", "pageable"),
        ("Memcpy HtoD (Host -> Device)", "h2d", None),
        ("Memcpy DtoD (Device -> Device)", "d2d", "device"),
        ("Memcpy M2D (MEMORY(Unknown) -> DEVICE)", "h2d", "pageable"),
        ("Memcpy D2H (DEVICE -> HOST)", "d2h", "pinned"),
    ],
)
def test_memory(name, direction, memory):
    assert copy_memory(name, direction) == memory


@pytest.mark.parametrize(("side", "memory"), [("Pageable", "memory_pageable"), ("pinned", "memory_pinned")])
def test_copies_that_only_their_arguments_describe(side, memory):
    """Later exporters name every copy `Memcpy`."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.copy(0, 5, 10, 20, name="Memcpy", **{"copy kind": "HtoD", "src kind": side, "dst kind": "Device", "bytes": 40})
    (row,) = b.rows("copies")
    assert (row.direction, row.memory_kind, row.bytes) == ("copy_h2d", memory, 40)


def test_without_copies_there_is_no_table():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    assert b.table("copies").absent == NotMeasured("no_memory_ops")
