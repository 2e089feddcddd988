"""What a replay gains: answers on paper, and of the simulator where it ran the program both ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.builder import TraceBuilder
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import step_time
from tests.simulate.workload import MS, US, Host, Loader, Model, Script, Workload
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.intervals import Intervals
from traceanalyze.readers.kineto import read_text
from traceanalyze.replay.graph import graph
from traceanalyze.replay.replay import Change, replay, together

NS = 1000
"""Answers are in µs."""


def spans(*pairs):
    return Intervals(*(np.array([pair[side] * NS for pair in pairs], np.int64) for side in (0, 1)))


def of(builder, options=None):
    return Context(builder.trace(), options or Options())


def saved(builder, change):
    return replay(of(builder), change).saving / NS


def without(*pairs):
    return Change(host=spans(*pairs))


def call(context, name):
    """Positions of the runtime calls of a name."""
    names = context.trace.strings.texts(context.calls.name)
    return np.array([place for place, text in enumerate(names) if text == name], np.int64)


def shorter(event, time):
    return Change(events=np.array([event]), shorter=np.array([time * NS]))


def two_kernels(*, wait=None):
    """A step of 910 µs: a kernel until 110, Python until 500, then a kernel of 400 µs."""
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(0, 5, 10, 100)
    b.launch(500, 5, 510, 400)
    if wait is not None:
        b.api("cudaStreamSynchronize", *wait)
    return b


def test_nothing_taken_out_saves_nothing():
    again = replay(of(two_kernels()), Change())
    assert (again.saving, len(again.idle.start)) == (0, 0)
    assert (again.start.tolist(), again.end.tolist()) == ([0], [910 * NS])


@pytest.mark.parametrize("time", [1, 50, 200, 390])
def test_the_next_launch_comes_earlier_by_what_is_taken_out(time):
    again = replay(of(two_kernels()), without((100, 100 + time)))
    assert again.saving == time * NS
    assert [each.tolist() for each in again.idle] == [[(510 - time) * NS], [510 * NS]]


def test_a_kernel_cannot_begin_before_the_one_before_has_ended():
    """The gap is 400 µs long, of which what is usual between kernels stays."""
    assert saved(two_kernels(), without((5, 499))) == 400 - 1.5


def test_the_host_still_waits_for_the_device_elsewhere():
    """It waits from 20 to 115 for the first kernel, which does not end earlier."""
    assert saved(two_kernels(wait=(20, 95)), without((6, 16))) == 0
    assert saved(two_kernels(wait=(20, 95)), without((6, 16), (200, 300))) == 100


def test_a_wait_that_is_taken_out_lets_the_host_go_on():
    """Without the wait the second launch could have come 95 µs earlier."""
    assert saved(two_kernels(wait=(20, 95)), without((20, 115))) == 95


def test_a_wait_that_found_the_device_done_waits_where_the_host_is_early():
    """The call is at 300 and needs 5 µs; with the host 290 µs earlier it waits for the kernel's end at 110."""
    b = two_kernels(wait=(300, 5))
    # 110 where the call returns instead of 305, and 195 from there to the launch.
    assert saved(b, without((6, 296))) == 195
    context = of(b)
    both = Change(spans((6, 296)), calls=call(context, "cudaStreamSynchronize"))
    assert replay(context, both).saving / NS == 290


def test_a_call_that_no_longer_waits_still_costs_what_such_calls_cost():
    """5 µs where no call of the recording found the device done."""
    context = of(two_kernels(wait=(20, 95)))
    assert replay(context, Change(calls=call(context, "cudaStreamSynchronize"))).saving / NS == 90


@pytest.mark.parametrize(("host_end", "kernel", "longer"), [(1000, 20, 500), (200, 900, 0)])
def test_a_slower_host_takes_longer_for_its_own_work_alone(host_end, kernel, longer):
    """Half as long again: the step ends with the host's work, or with kernels that are queued until then anyway."""
    b = TraceBuilder()
    b.step(1, 0, host_end)
    b.launch(0, 5, 10, kernel)
    b.launch(100, 5, max(110, 10 + kernel), 500)
    assert (-replay(of(b), Change(slower=0.5)).shorter / NS).tolist() == [longer]


def test_a_blocking_copy_returns_when_it_is_done():
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(0, 5, 10, 100)
    b.copy(20, 300, 110, 200, name="Memcpy DtoH (Device -> Pageable)", api="cudaMemcpy")
    b.launch(330, 5, 340, 400)
    # The call returns 10 µs after its copy; the second kernel comes 30 µs after that.
    assert saved(b, shorter(0, 60)) == 60
    assert saved(b, shorter(1, 150)) == 150
    assert saved(b, without((6, 16))) == 0
    # Without the call the launch is at 30, and the kernel 1.5 µs after the copy.
    assert saved(b, without((20, 320))) == 340 - 311.5


@pytest.mark.parametrize(("size", "work", "gain"), [(4 << 20, 2000, 0), (8, 2000, 300), (4 << 20, 900, 300)])
def test_what_reads_a_copy_is_not_done_before_it(size, work, gain):
    """The copy is done at 310, its call returns at 320; then the host computes and launches a kernel."""
    b = TraceBuilder()
    b.step(1, 0, 340 + work)
    b.launch(0, 5, 10, 100)
    b.copy(20, 300, 110, 200, name="Memcpy DtoH (Device -> Pageable)", api="cudaMemcpy", bytes=size)
    b.launch(330 + work, 5, 340 + work, 400)
    # Of a number nobody knows whether anything depends on it; short work is the Python between two operators.
    assert saved(b, without((20, 320))) == gain
    # Without the work as well the launch is at 30, and the kernel 1.5 µs after the copy.
    assert saved(b, without((20, 320 + work))) == 340 + work - 311.5


@pytest.mark.parametrize(("numbers", "gain"), [(False, 300), (True, 0)])
def test_what_reads_a_number_may_need_it(numbers, gain):
    """As above, 2 ms of operators after it."""
    b = TraceBuilder()
    b.step(1, 0, 2340)
    b.launch(0, 5, 10, 100)
    b.copy(20, 300, 110, 200, name="Memcpy DtoH (Device -> Pageable)", api="cudaMemcpy", bytes=8)
    for at in range(325, 2300, 500):
        b.op("aten::index", at, 490)
    b.launch(2330, 5, 2340, 400)
    assert saved(b, without((20, 320))._replace(numbers=numbers)) == gain


@pytest.mark.parametrize(
    ("pinned", "removed", "gain"),
    [
        ((200, 450), ((20, 115),), 0),
        # What comes after it is as long as it is, and ends the sooner the less it is.
        ((200, 450), ((20, 115), (460, 490)), 30),
        # A wait that is mostly taken out is none.
        ((200, 450), ((20, 115), (200, 330)), 225),
        # In this the host is busy.
        ((10, 450), ((20, 115),), 95),
    ],
)
def test_the_host_goes_on_no_earlier_after_what_ends_at_its_own_time(pinned, removed, gain):
    assert saved(two_kernels(wait=(20, 95)), without(*removed)._replace(pinned=spans(pinned))) == gain


def test_kernels_in_the_queue_do_not_move():
    b = TraceBuilder()
    b.step(1, 0, 100)
    for place in range(4):
        b.launch(place * 20, 5, 10 + place * 200, 200)
    assert saved(b, without((5, 19))) == 0


def test_time_that_nothing_recorded_explains_stays():
    """The second kernel was launched at 500 and began at 900 only: 385 µs after its launch had returned and τ."""
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(0, 5, 10, 100)
    b.launch(500, 5, 900, 100)
    assert saved(b, without((5, 499))) == 900 - (110 + 385 + 1.5)


@pytest.mark.parametrize("event", [0, 1])
def test_a_shorter_kernel_lets_the_next_one_begin_or_the_step_end(event):
    b = TraceBuilder()
    b.step(1, 0, 20)
    b.launch(0, 5, 10, 100)
    b.launch(6, 5, 110, 400)
    assert saved(b, shorter(event, 30)) == 30


def test_a_shorter_kernel_saves_nothing_where_the_next_launch_is_late():
    assert saved(two_kernels(), shorter(0, 60)) == 0
    assert saved(two_kernels(), shorter(1, 60)) == 60


def test_a_step_ends_with_its_host():
    """The kernel ends at 110, the host at 520: only the host's time counts."""
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(0, 5, 10, 100)
    assert saved(b, shorter(0, 90)) == 0
    assert saved(b, without((200, 300))) == 100
    assert saved(b, without((6, 516))) == 410


def two_streams(*, records):
    """A kernel on stream 20 waits for one of stream 7, either as recorded or as the calls tell."""
    b = TraceBuilder()
    b.step(1, 0, 60)
    b.launch(0, 5, 10, 300)
    b.api("cudaEventRecord", 10, 2, correlation=901)
    b.api("cudaStreamWaitEvent", 14, 2, correlation=902)
    b.launch(20, 5, 311, 100, stream=20)
    if records:
        record = "Stream Wait Event"
        told = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 901, "cuda_sync_kind": record}
        b.event("cuda_sync", record, 14, 1, pid=0, tid=20, stream=20, device=0, correlation=902, **told)
    return b


@pytest.mark.parametrize("records", [True, False])
def test_a_stream_waits_for_another_one(records):
    assert saved(two_streams(records=records), shorter(0, 200)) == 200
    # With 299 less the first kernel ends at 11, before the second is launched at 20; launches take 10.
    assert saved(two_streams(records=records), shorter(0, 299)) == 311 - 30


@pytest.mark.parametrize(("wait", "gain"), [(302, 280), (299, 0)])
def test_a_collective_waits_for_no_stream_with_earlier_work_that_it_overtakes(wait, gain):
    """It is launched at 305 and runs from 316 beside the second of two kernels, the first of which ends at 310.

    What its own operator waits for has begun before both; a wait before that operator may be for the first alone.
    """
    b = TraceBuilder()
    b.step(1, 0, 320)
    b.launch(0, 5, 10, 300)
    b.launch(6, 5, 310, 200)
    b.op("c10d::alltoall_base_", 300, 20)
    b.api("cudaStreamWaitEvent", wait, 2)
    b.launch(305, 5, 316, 900, name="ncclDevKernel_SendRecv", stream=20)
    assert saved(b, without((12, 292))) == gain


def test_a_kernel_that_begins_right_after_one_of_another_stream_waited_for_it():
    """Neither record nor call tells, but it was in the queue since 25 and began when the other one ended."""
    b = TraceBuilder()
    b.step(1, 0, 60)
    b.launch(0, 5, 10, 300)
    b.launch(20, 5, 311, 100, stream=20)
    assert saved(b, shorter(0, 200)) == 200


def test_all_kernels_of_a_graph_hang_on_its_first():
    b = TraceBuilder()
    b.step(1, 0, 520)
    b.launch(400, 50, 410, 100)
    b.device(512, 100, correlation=1)
    b.device(515, 200, stream=8, correlation=1)
    assert saved(b, without((0, 300))) == 300
    assert saved(b, shorter(0, 40)) == 40


def test_a_kernel_that_overlaps_the_one_before_follows_it():
    """As programmatic launches do: it begins 3 µs before the other one has ended."""
    b = TraceBuilder()
    b.step(1, 0, 60)
    b.launch(0, 5, 10, 300)
    b.launch(20, 5, 307, 100)
    assert saved(b, shorter(0, 200)) == 200


def test_events_without_a_launch_follow_their_stream():
    b = TraceBuilder()
    b.step(1, 0, 60)
    b.launch(0, 5, 10, 300)
    b.device(350, 100)
    b.launch(30, 5, 460, 100)
    assert saved(b, shorter(0, 200)) == 200


def test_a_thread_goes_on_where_the_other_one_stopped():
    """Forward on thread 1, backward on thread 2, then thread 1 again: one line of work."""
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::mm", 0, 100)
    b.launch(10, 5, 20, 10)
    b.op("aten::mm_backward", 200, 400, tid=2)
    b.launch(500, 5, 510, 10, tid=2)
    b.op("aten::add", 700, 200)
    b.launch(800, 5, 810, 10)
    assert len(of(b).once(graph).tracks) == 1
    assert saved(b, without((250, 450))) == 200


def test_threads_that_work_at_the_same_time_do_not_wait_for_each_other():
    """Thread 2 launches a long kernel at 500, whatever thread 1 does until 900; with 300 less there the step ends as
    the kernel does."""
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::mm", 0, 900)
    b.op("aten::copy", 10, 800, tid=2)
    b.launch(500, 5, 510, 300, tid=2, stream=8)
    b.launch(850, 5, 860, 10)
    context = of(b)
    assert len(context.once(graph).tracks) == 2
    main = context.step_track
    assert replay(context, Change(threads={main: spans((100, 400))})).saving / NS == 1000 - 810
    assert replay(context, Change(threads={main: spans((100, 200))})).saving / NS == 100
    assert replay(context, without((100, 400))).saving / NS == 300


def loading(wait):
    b = TraceBuilder()
    for number in range(3):
        at = number * 3000
        b.step(number, at, 3000)
        b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, wait)
        b.launch(at + 2500, 5, at + 2510, 100)
    return b


def test_workers_have_no_batch_earlier_than_they_had():
    """Host time taken out before a wait for them saves nothing; after the last one it does."""
    quick = without((2100, 2400), (5100, 5400))
    assert saved(loading(2000), quick) == 0
    assert saved(loading(2000), without((8100, 8400))) == 300
    # A batch that was ready is no wait.
    assert saved(loading(500), quick) == 600


def test_ready_batches_take_no_more_than_their_fetching():
    assert saved(loading(2000), Change(batches=True)) == 3 * (2000 - 600)
    assert saved(loading(2000), without((0, 2000), (3000, 5000), (6000, 8000))) == 3 * 2000


def test_a_wait_that_began_before_the_windows_counts_from_their_beginning():
    """The device is busy until 300 with work from before the first step: 200 µs of the wait lie before the window."""
    b = TraceBuilder()
    b.device(0, 300)
    b.step(1, 50, 750)
    b.api("cudaDeviceSynchronize", 100, 205)
    b.launch(700, 5, 710, 90)
    assert of(b).all_steps.start.tolist() == [300 * NS]
    assert saved(b, without((100, 305))) == 5


def test_a_full_queue_lets_the_launch_return_when_there_is_room():
    """Launch 1001 waits from 5010 until the second kernel begins at 10,010; all kernels are queued behind."""
    b = TraceBuilder()
    b.step(1, 0, 12_000)
    for place in range(1002):
        b.launch(place * 5, 4 if place < 1001 else 5008, 10 + place * 10_000, 10_000)
    context = of(b)
    assert len(context.once(graph).returns.call) == 1
    change = Change(events=np.array([0]), shorter=np.array([4000 * NS]))
    again = replay(context, change)
    assert again.saving == 4000 * NS


def test_changes_together_are_one_run():
    """The pauses lie beside each other: 100 + 390 are gone, of which the device gives 398.5."""
    b = two_kernels()
    first, second = without((5, 105)), without((105, 495))
    assert saved(b, first) == 100
    assert saved(b, second) == 390
    assert saved(b, together(first, second)) == 398.5
    both = together(shorter(1, 60), shorter(1, 90), without((200, 300)))
    assert saved(b, both) == 190


def test_where_the_host_alone_computes_its_time_is_the_step():
    b = TraceBuilder()
    b.step(1, 0, 1000)
    b.op("aten::mm", 100, 300)
    assert saved(b, without((100, 250))) == 150


def test_a_trace_without_steps_is_one_window_of_the_device():
    b = TraceBuilder()
    b.launch(0, 5, 10, 100)
    b.launch(500, 5, 510, 400)
    assert saved(b, without((100, 300))) == 200


LIGHT = Model(layers=4, batch=2)
PLAIN = Workload(model=LIGHT, host=Host(op=2 * US, python=2 * US), warmup=2, steps=4, seed=5)


@pytest.mark.parametrize("pause", [3, 8, 30])
@pytest.mark.parametrize("model", [LIGHT, Model(layers=4, batch=4), Model(layers=2, hidden=512)])
def test_a_pause_of_the_host_costs_what_the_simulator_says(pause, model):
    """The pauses lie where the host is silent the longest."""
    plain = replace(PLAIN, model=model, loader=Loader(cost=1 * MS))
    paused = replace(plain, script=Script(pause=pause * MS))
    context = Context(read_text(write(simulate(paused)[0], TODAY)), Options())
    own = np.flatnonzero(context.calls.track == context.step_track)
    start, end = context.calls.start[own], context.calls.end[own]
    place = np.flatnonzero(start[1:] - end[:-1] > 0.9 * pause * MS)
    span = Intervals(end[place], end[place] + pause * MS)
    true = step_time(paused) - step_time(plain)
    assert replay(context, Change(span)).saving == pytest.approx(true, rel=0.005, abs=10 * US)
