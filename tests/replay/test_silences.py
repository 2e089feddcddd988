"""A thread on which nothing happens until the device has run dry waits; on which nothing happens for longer, works."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builder import TraceBuilder
from tests.replay.test_replay import NS, of, without
from traceanalyze.replay.replay import Change, replay
from traceanalyze.replay.silences import silences


def program(goes_on: float) -> TraceBuilder:
    """A kernel from 20 to 4020 µs, launched at 10; the host launches the next one at `goes_on`."""
    b = TraceBuilder()
    b.step(1, 0, goes_on + 20)
    b.launch(10, 5, 20, 4000)
    b.launch(goes_on, 5, max(goes_on + 10, 4020), 1000)
    return b


@pytest.mark.parametrize(
    ("goes_on", "waits"), [(4020, True), (4070, True), (4071, False), (3900, False), (6000, False)]
)
def test_a_thread_that_goes_on_when_the_device_is_done_waited(goes_on, waits):
    assert (len(silences(of(program(goes_on))).event) > 0) == waits


@pytest.mark.parametrize(("others", "waits"), [(0, 1), (1, 1), (2, 0)])
def test_a_pause_that_the_device_ends_with_by_chance_is_none(others, waits):
    """Stretches of 4 ms as the one that ends with the kernel, during which the device does nothing."""
    b = program(4020)
    for number in range(others):
        b.op("aten::work", 6000 + 5000 * number, 10)
        b.op("aten::work", 10010 + 5000 * number, 10)
    b.step(2, 4040, 20000)
    assert len(silences(of(b)).event) == waits


def test_a_shorter_kernel_ends_the_wait_sooner():
    """2 ms less of the kernel: the host goes on 2 ms earlier, and the second kernel with it."""
    context = of(program(4030))
    assert replay(context, Change(events=np.array([0]), shorter=np.array([2000 * NS]))).saving == 2000 * NS
    working = of(program(6000))
    assert replay(working, Change(events=np.array([0]), shorter=np.array([2000 * NS]))).saving == 0


def test_a_stretch_below_a_millisecond_is_python():
    b = TraceBuilder()
    b.step(1, 0, 3000)
    b.launch(10, 5, 20, 900)
    b.launch(930, 5, 940, 1000)
    assert len(silences(of(b)).event) == 0


def test_work_before_a_wait_stays_work():
    """Of the 4 ms before the second launch the first 500 µs are an operator: without them nothing is gained."""
    b = program(4030)
    b.op("aten::work", 100, 500)
    assert replay(of(b), without((100, 600))).saving == 0


@pytest.mark.parametrize("reads", [True, False])
def test_who_reads_the_time_between_events_has_waited_for_them_while_the_device_works_on(reads):
    """Kernels until 3000, 4020 and 7020 µs are queued; the thread goes on at 4030, 10 µs after the second of them."""
    b = TraceBuilder()
    b.step(1, 0, 7100)
    b.launch(10, 3, 20, 2980)
    b.launch(13, 3, 3000, 1020)
    b.launch(16, 3, 4020, 3000)
    if reads:
        b.api("cudaEventElapsedTime", 4030, 2)
    b.launch(4032 if reads else 4030, 3, 7020, 50)
    context = of(b)
    assert (1 in context.once(silences).event) == reads


@pytest.mark.parametrize(
    ("read", "goes_on", "waits"), [(4030, 4050, False), (3500, 4050, True), (4005, 4019, False), (3990, 4019, True)]
)
def test_a_thread_that_another_one_hands_over_to_waited_for_that_one(read, goes_on, waits):
    """The other thread works just after the kernel is done, or just before the first one goes on, which follows it."""
    b = program(goes_on)
    b.launch(3000, 5, 3010, 5, tid=7, stream=9)
    b.op("aten::item", read, 10, tid=7)
    context = of(b)
    assert (context.step_track in silences(context).track) == waits
