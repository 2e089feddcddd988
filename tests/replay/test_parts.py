"""Changes by the names of parts: answers on paper."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.replay.parts import PARTS, named, part, shorter
from traceanalyze.replay.replay import Change, replay

NS = 1000
"""Answers are in µs."""


def of(builder):
    return Context(builder.trace(), Options())


def saved(builder, name, share=1.0):
    context = of(builder)
    return replay(context, part(context, name, share)).saving / NS


def program():
    """A step of 1000 µs: loading 300, an operator 100, unknown 100, two launches, a kernel, a copy after it."""
    b = TraceBuilder()
    b.step(1, 0, 700)
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 300)
    b.op("aten::mm", 300, 100)
    b.launch(500, 10, 515, 300, name="gemm")
    b.copy(515, 10, 815, 185, name="Memcpy HtoD (Pinned -> Device)")
    return b


@pytest.mark.parametrize(
    ("name", "gain"),
    [
        ("data_loading", 300),
        ("host_op", 100),
        ("untraced", 100),
        ("dispatch_launch", 10 - 5),
        ("compute", 290),
        ("memory_ops", 185),
        ("communication", 0),
        ("peer_wait", 0),
        ("sync", 0),
    ],
)
def test_a_part_is_worth_what_it_takes(name, gain):
    """Of a launch 5 µs are the way to the device, which stays; the copy cannot begin before it is launched, at 525."""
    assert saved(program(), name) == pytest.approx(gain, abs=6)


def test_every_part_has_a_change():
    context = of(program())
    for name in PARTS:
        replay(context, part(context, name))


@pytest.mark.parametrize(("name", "whole"), [("data_loading", 300), ("host_op", 100), ("compute", 300)])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_a_share_of_it_is_worth_that_share(name, whole, share):
    assert saved(program(), name, share) == pytest.approx(share * whole, abs=1)


def test_dispatch_is_calls_and_operators():
    b = program()
    assert saved(b, "dispatch") == pytest.approx(saved(b, "host_op") + saved(b, "dispatch_launch"), abs=6)


def test_device_work_by_its_name():
    context = of(program())
    event = named(context, lambda text: "gemm" in text)
    assert len(event) == 1
    assert replay(context, shorter(context, event, 0.5)).saving == 150 * NS


def loading(wait):
    """Three steps whose loop waits for a worker's batch; then a kernel of 500 µs is launched."""
    b = TraceBuilder()
    for number in range(3):
        at = number * (wait + 600)
        b.step(number, at, wait + 50)
        b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, wait)
        b.launch(at + wait + 20, 5, at + wait + 40, 500)
    return b


def test_workers_that_are_twice_as_fast_have_batches_in_half_the_time():
    """The batches came at 4000, 8600 and 13,200; now at 2000, 4300 and 6600: then kernel after kernel."""
    assert saved(loading(4000), "data_loading", 0.5) == pytest.approx(13_200 - 6_600, abs=1)


def test_what_another_thread_does_is_not_untraced():
    """The main thread shows nothing from 100 to 900, as the backward pass runs on another one."""
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::mm", 0, 100)
    b.launch(50, 10, 70, 50)
    b.op("autograd::engine::evaluate_function: MmBackward0", 110, 780, tid=2)
    b.launch(880, 5, 890, 50, tid=2)
    b.launch(950, 5, 960, 400)
    context = of(b)
    gone = part(context, "untraced").threads[context.step_track]
    assert [(start // NS, end // NS) for start, end in zip(*gone, strict=True) if start < 880 * NS] == [(100, 110)]


def test_a_rank_without_host_events_has_changes_too():
    b = TraceBuilder()
    b.device(0, 100)
    b.device(200, 100)
    context = of(b)
    for name in PARTS:
        assert isinstance(part(context, name), Change)
