"""What a recording's own oddities are told as."""

from __future__ import annotations

from tests.builder import TraceBuilder


def suspected(duration):
    """Names of kernels that may be communication."""
    b = TraceBuilder()
    b.op("record_param_comms", 10, duration)
    b.launch(12, 2, 20, 30, name="my_own_reduce")
    b.launch(60, 2, 70, 30, name="gemm")
    found = (dict(check.values) for check in b.analyze().checks if check.message == "suspected_communication")
    return [values["names"] for values in found]


def test_a_kernel_launched_inside_a_collective_is_suspected():
    assert suspected(10) == ["my_own_reduce"]


def test_collectives_that_took_no_time_on_a_coarse_clock_hold_nothing():
    assert suspected(0) == []
