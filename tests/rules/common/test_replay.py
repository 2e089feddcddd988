"""The replay of launches without some host time, against answers on paper and the simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.builder import TraceBuilder
from tests.rules.make import facts_of
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time
from tests.simulate.workload import MS, US, Host, Loader, Model, Script, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.model.intervals import EMPTY, Intervals
from traceanalyze.readers.kineto import read_text
from traceanalyze.rules.common.replay import replay_without

NS = 1000


def removed(*pairs):
    return Intervals(*(np.array([pair[side] * NS for pair in pairs], np.int64) for side in (0, 1)))


def two_kernels(*, wait=None):
    """A step of 1000 µs: a kernel until 110, Python until 500, then a kernel of 400 µs."""
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(0, 5, 10, 100)
    b.launch(500, 5, 510, 400)
    if wait is not None:
        b.api("cudaStreamSynchronize", *wait)
    return facts_of(b.trace())


def test_nothing_taken_out_saves_nothing():
    gone = replay_without(two_kernels(), EMPTY)
    assert (gone.saving, len(gone.idle)) == (0, 0)


@pytest.mark.parametrize("time", [1, 50, 200, 390])
def test_the_next_launch_comes_earlier_by_what_is_taken_out(time):
    gone = replay_without(two_kernels(), removed((100, 100 + time)))
    assert gone.saving == time * NS
    assert gone.idle.tolist() == [[(510 - time) * NS, 510 * NS]]


def test_a_kernel_cannot_begin_before_the_one_before_has_ended():
    """The gap is 400 µs long, of which what is usual between kernels stays."""
    assert replay_without(two_kernels(), removed((5, 499))).saving == 400 * NS - 1500


def test_the_host_still_waits_for_the_device_elsewhere():
    """It waits from 20 to 115 for the first kernel, which does not end earlier."""
    assert replay_without(two_kernels(wait=(20, 95)), removed((6, 16))).saving == 0
    assert replay_without(two_kernels(wait=(20, 95)), removed((6, 16), (200, 300))).saving == 100 * NS


def test_a_wait_that_is_taken_out_lets_the_host_go_on():
    """Without the wait the second launch could have come 95 µs earlier."""
    assert replay_without(two_kernels(wait=(20, 95)), removed((20, 115))).saving == 95 * NS


def test_kernels_in_the_queue_do_not_move():
    b = TraceBuilder()
    b.step(1, 0, 100)
    for place in range(4):
        b.launch(place * 20, 5, 10 + place * 200, 200)
    assert replay_without(facts_of(b.trace()), removed((5, 19))).saving == 0


def test_idle_time_that_the_device_itself_needs_stays():
    """The second kernel was launched at 500 and began at 900 only: it waited for something else."""
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(0, 5, 10, 100)
    b.launch(500, 5, 900, 100)
    assert replay_without(facts_of(b.trace()), removed((5, 499))).saving < 410 * NS


def test_device_events_without_length_have_nothing_to_gain():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 5, 10, 0)
    b.api("cudaStreamSynchronize", 20, 30)
    gone = replay_without(facts_of(b.trace()), removed((0, 15)))
    assert (gone.saving, len(gone.idle)) == (0, 0)


@pytest.mark.parametrize(("event", "saving"), [(0, 30 * NS), (1, 0)])
def test_a_shorter_kernel_is_as_good_as_idle_time_before_the_next(event, saving):
    """Both are in the queue from the beginning: 100 and 400 µs, of which one is 30 shorter."""
    b = TraceBuilder()
    b.step(1, 0, 20)
    b.launch(0, 5, 10, 100)
    b.launch(6, 5, 110, 400)
    shorter = np.array([event]), np.array([30 * NS])
    assert replay_without(facts_of(b.trace()), EMPTY, shorter).saving == saving


LIGHT = Model(layers=4, batch=2)
PLAIN = Workload(model=LIGHT, host=Host(op=2 * US, python=2 * US), warmup=2, steps=4, seed=5)


@pytest.mark.parametrize("pause", [3, 8, 30])
@pytest.mark.parametrize("model", [LIGHT, Model(layers=4, batch=4), Model(layers=2, hidden=512)])
def test_a_pause_of_the_host_costs_what_the_simulator_says(pause, model):
    """The pauses lie where the host is silent the longest."""
    plain = replace(PLAIN, model=model, loader=Loader(cost=1 * MS))
    paused = replace(plain, script=Script(pause=pause * MS))
    facts = facts_of(read_text(write(simulate(paused)[0], TODAY)))
    calls = facts.context.calls
    quiet = calls.start[1:] - calls.end[:-1]
    place = np.flatnonzero(quiet > 0.9 * pause * MS)
    span = Intervals(calls.end[:-1][place], calls.end[:-1][place] + pause * MS)
    true = (step_time(paused) - step_time(plain)) / plain.steps
    assert replay_without(facts, span).saving == pytest.approx(true, rel=0.1, abs=50 * US)
