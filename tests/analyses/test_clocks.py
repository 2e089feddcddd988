"""Clocks of devices that are off: how far on paper, and that everything a device recorded is moved once."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.ascend_builder import PID, START, AscendBuilder
from tests.builder import TraceBuilder
from traceanalyze import load
from traceanalyze.analyses.analyze import analyze_context, context_of
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.host.clocks import offsets
from traceanalyze.analyses.idle.idle import idle_pieces
from traceanalyze.analyses.options import Filter, Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import NEED_CLOCKS, Cause
from traceanalyze.pipeline.perfetto import annotate


def context(b):
    return Context(b.trace(), Options())


def behind(by=30, *, device=0, stream=7, tid=1, b=None):
    """Launches at 100, 200 and 300 µs whose kernels begin 0, 4 and 50 µs later on a clock that is behind."""
    b = b or TraceBuilder()
    for at, late in ((100, 0), (200, 4), (300, 50)):
        b.launch(at, 2, at + late - by, 20, device=device, stream=stream, tid=tid)
    return b


def test_the_smallest_shift_leaves_one_in_a_thousand_before_its_launch():
    start = np.arange(2_000) * 1_000
    early = np.arange(-1_990, 10)
    assert offsets(start, early) == (7, 7)  # 9 and 8 may stay
    assert offsets(start[:1_999], early[1:]) == (8, 8)
    assert offsets(start, early, tick=5) == (10, 10)


@pytest.mark.parametrize(("bad", "moved"), [(3, False), (300, True)])
def test_a_few_damaged_times_do_not_move_a_clock(bad, moved):
    """All of 300 kernels start 5 µs after their launch, by the clock of some 1.1 ms before that."""
    b = TraceBuilder()
    for number in range(300):
        at = 100 + 2_000 * number
        b.launch(at, 2, at + 5 - 1_105 * (number >= 300 - bad), 20)
    (told,) = (check for check in b.analyze().checks if check.id == "Q04")
    assert (told.message == "clock_moved") == moved


def test_windows_parts_and_launches_are_those_of_the_clock_of_the_host():
    b = behind()
    b.step(1, 90, 260)
    found = b.analyze()
    assert (found.steps.start[0], found.steps.end[0]) == (90_000, 370_000)
    assert found.partitions[0].compute.tolist() == [60_000]
    (launches,) = found.records("launches")
    assert (launches.linked, launches.negative_latency, launches.late) == (3, 0, 3)
    assert (launches.delay_p50_ns, launches.delay_p90_ns) == (2_000, 48_000)
    cause = {cause: int(found.idle.by_step[:, cause].sum()) for cause in Cause}
    assert (cause[Cause.DISPATCH_LAUNCH], cause[Cause.DISPATCH_LATENCY]) == (4_000, 2_000 + 10_000)
    (told,) = (check for check in found.checks if check.id == "Q04")
    assert (told.message, dict(told.values)["moved_ns"]) == ("clock_moved", 30_000)


def test_each_device_has_its_own_clock_and_events_stay_in_order():
    b = behind(by=150, b=behind(by=0), device=1, stream=9, tid=2)
    found = context(b)
    assert [(clock.device, clock.first) for clock in found.trace.clocks] == [(1, 150_000)]
    assert found.device.start.tolist() == [100_000, 100_000, 204_000, 204_000, 350_000, 350_000]
    assert found.device.device.tolist() == [0, 1] * 3
    assert (found.device.start >= found.launch_start).all()
    assert found.trace.events.ts[found.device.row].tolist() == found.device.start.tolist()


def test_what_the_device_tells_beside_its_work_moves_too_and_waits_of_the_host_do_not():
    b = behind()
    b.event("gpu_user_annotation", "range", 70, 40, pid=0, tid=7)
    b.event("cuda_sync", "Stream Sync", 100, 20, pid=0, tid=7, device=0, stream=7)
    b.python("train.py(1): f", 80, 5, tid=0)
    b.events[-1]["pid"] = 0
    trace = context(b).trace
    at = dict(zip(trace.strings.texts(trace.events.name), trace.events.ts.tolist(), strict=True))
    assert (at["range"], at["Stream Sync"], at["train.py(1): f"]) == (100_000, 100_000, 80_000)


def test_arrows_and_parts_of_collectives_move_with_the_work():
    """Of one kernel the operator is known by an arrow only, whose end has the time of the device."""
    b = AscendBuilder()
    b.op("aten::mm", 10, 40)
    b.kernel("Add", 70, 5, op_type="Add", launch=100)
    b.task("MatMul", 100, 10, "AI_CORE")
    b.flow("async_npu", START + 100_000, (PID, PID, 10), (b.npu, 2, 100))
    b.collective("hcom_allReduce__001_0_1", 120, 30, ((0, "Notify_Wait", 125, 20, 1),))
    found = context(b)
    assert (found.device.start - found.device.start[0]).tolist() == [0, 30_000, 50_000]
    assert found.device.start[0] == found.calls.start[0]
    assert found.op_nest.start[found.event_op[1]] == found.device.start[0] - 90_000
    parts = found.trace.strings.matches(found.trace.events.name, lambda text: text == "Notify_Wait")
    assert found.trace.events.ts[parts].tolist() == [found.device.start[2] + 5_000]


def drifting(ends, count=200):
    """Launches 1 ms apart, each kernel at once on a clock that is behind by so much at both ends, µs."""
    b = TraceBuilder()
    for number in range(count):
        by = ends[0] + (ends[1] - ends[0]) * number / (count - 1)
        b.launch(1_000 * (number + 1), 2, round(1_000 * (number + 1) - by, 3), 100)
    return b


@pytest.mark.parametrize("ends", [(5, 45), (45, 5), (60, 30)])
def test_a_clock_that_drifts_is_moved_along_a_line(ends):
    b = drifting(ends)
    (clock,) = context(b).trace.clocks
    assert (clock.first, clock.last) == pytest.approx((ends[0] * 1000, ends[1] * 1000), abs=5)
    delay = context(b).device.start - context(b).launch_start
    assert (delay >= 0).all()
    assert (delay <= 10).all()
    (told,) = (check for check in b.analyze().checks if check.id == "Q04")
    assert told.message == "clock_drift"
    assert dict(told.values)["last_ns"] == clock.last


def test_ends_that_are_not_far_apart_or_wait_in_a_queue_make_no_drift():
    (clock,) = context(drifting((20, 29))).trace.clocks
    assert clock.first == clock.last == 29_000
    b = drifting((30, 30))
    for number in range(40):  # the last kernels wait for others
        b.launch(1_000 * (201 + number), 2, 1_000 * (201 + number) + 500, 400)
    (clock,) = context(b).trace.clocks
    assert clock.first == clock.last == 30_000


def test_one_slow_end_in_a_recording_that_is_off_everywhere_else_makes_no_drift():
    """A line through both ends would have to be above 30 µs at the first."""
    b = TraceBuilder()
    for number in range(200):
        b.launch(1_000 * (number + 1), 2, 1_000 * (number + 1) - (30 if number < 180 else 5), 100)
    (clock,) = context(b).trace.clocks
    assert clock.first == clock.last == 30_000


@pytest.mark.parametrize(("apart", "drifts"), [(2_000, True), (5, False)])
def test_a_clock_gains_little_on_another(apart, drifts):
    """Each kernel begins 100 ns later after its launch than the one before: a clock, or a queue that fills up."""
    b = TraceBuilder()
    for number in range(200):
        b.launch(100 + number * apart, 2, round(60 + number * (apart + 0.1), 3), 1)
    (clock,) = context(b).trace.clocks
    assert (clock.first != clock.last) == drifts
    assert max(clock.first, clock.last) == 40_000


def test_a_clock_that_is_off_by_ten_milliseconds_is_not_believed():
    moved, kept = context(behind(by=9_999)).trace.clocks, context(behind(by=10_000)).trace.clocks
    assert [clock.moved for clock in (*moved, *kept)] == [True, False]
    b = behind(by=10_000)
    b.step(1, -10_000, 20_000)
    found = b.analyze()
    why = NotMeasured("clocks_disagree")
    assert context(b).device.start[0] == -9_900_000
    assert found.tables["step_launches"].absent == why
    assert set(found.tables["gaps"].column("trigger")) == {why}
    assert {cause: found.idle.missing[cause] for cause in NEED_CLOCKS} == dict.fromkeys(NEED_CLOCKS, why)
    pieces = Context(b.trace(), Options()).once(idle_pieces)
    assert not np.isin(pieces.cause, NEED_CLOCKS).any()
    assert int((pieces.end - pieces.start).sum()) == int(found.partitions[0].idle.sum())


def test_a_part_of_a_recording_has_the_clock_of_the_whole():
    """Of the events that are left none is early, or by less."""
    b = behind()
    part = context_of(b.trace(), Options(keep=Filter(time=(80_000, 400_000))))
    assert part.device.start.tolist() == [204_000, 350_000]
    assert [clock.first for clock in part.trace.clocks] == [30_000]


def test_the_picture_says_that_its_text_was_not_moved(tmp_path):
    source = behind().write(tmp_path / "in.json")
    notes = annotate(source, tmp_path / "out.json")
    assert any(re.search(r"clock of device 0 moved by up to 30.00 µs", note) for note in notes)
    assert not any("clock of device" in note for note in annotate(behind(by=0).write(source), tmp_path / "out.json"))


@pytest.mark.parametrize("rank", [0, 1])
def test_both_ranks_of_a_ladder_are_bound_by_launches(shared_traces, rank):
    """Rank 1 of this run recorded a device clock that is behind by 31 µs: all but one of its kernels were early."""
    (path,) = (shared_traces / "pairs" / "torchrec_ladder" / "resnet18").glob(f"*_8586{6 + rank}.*")
    found = analyze_context(Context(load(path).traces[0], Options()))
    share = {row.part: row.share for row in found.records("split")}
    (launches,) = found.records("launches")
    assert 0.83 <= share["dispatch"] <= 0.885
    assert launches.late_share > 0.9
    assert [clock.first for clock in found.trace.clocks] == [(1_000, 31_000)[rank]]


def ahead(by, *, waits=6, woken=6, begin=6, call="cudaDeviceSynchronize", copy=False):
    """Kernels of 50 µs that begin 6 µs after their launch, each waited for, on a clock that is so much ahead."""
    b = TraceBuilder()
    for number in range(waits):
        at = 1000 * number
        if copy:
            b.copy(at, 3, at + begin + by, 50, name="Memcpy DtoH (Device -> Pageable)")
        else:
            b.launch(at, 3, at + begin + by, 50)
        b.api(call, at + 4, begin + 46 + (woken if number else 6))
    return b


@pytest.mark.parametrize("more", [{}, {"call": "cudaStreamSynchronize", "copy": True}])
def test_a_clock_is_ahead_where_waits_return_before_what_they_wait_for_has_ended(more):
    """By 294 µs or more as waits return, by 306 or less as kernels begin: the middle, at most 5 µs from the first."""
    context_ = context(b := ahead(300, **more))
    assert [(clock.first, clock.last, clock.early, clock.linked) for clock in context_.trace.clocks] == [
        (-299_000, -299_000, 6, 6)
    ]
    assert context_.device.start[0] == 7_000
    (told,) = (check for check in b.analyze().checks if check.id == "Q04")
    assert (told.message, dict(told.values)["moved_ns"]) == ("clock_ahead", -299_000)


@pytest.mark.parametrize(
    "b",
    [
        ahead(0),
        ahead(16),  # 10 µs: as much is the time a launched kernel may take to start.
        ahead(10_006),  # 10 ms
        ahead(300, waits=4),
        ahead(300, woken=20),  # All waits but the first ask for 14 µs less.
        ahead(300, call="cudaStreamSynchronize"),  # For which stream is not recorded.
        ahead(300, call="cudaEventSynchronize", copy=True),
    ],
)
def test_a_clock_that_waits_do_not_tell_ahead_stays(b):
    assert context(b).trace.clocks == ()


def test_launches_that_do_not_allow_it_keep_a_clock_where_it_is():
    b = ahead(300)
    b.launch(7000, 3, 7006, 50)
    assert context(b).trace.clocks == ()
