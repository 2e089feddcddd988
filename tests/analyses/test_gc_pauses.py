from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import Kind, NotMeasured

US, MS = 1_000, 1_000_000


def loop(*, pause, at=40_000.0, kernel_until=30_000.0):
    """One step: a launch at 0, the next one after a pause that begins at `at`; µs."""
    trace = TraceBuilder()
    after = at + pause
    trace.step(1, 0, after + 2000)
    trace.op("aten::mm", 0, at)
    trace.launch(10, 5, 20, kernel_until - 20)
    trace.op("aten::mm", after, 1000)
    trace.launch(after + 10, 5, after + 20, 1500)
    return trace


def pauses(trace):
    found = trace.analyze().tables["gc_pauses"]
    assert found.absent is None
    return list(found.records())


def pause(start, length, idle, evidence, *, thread="100/1"):
    """A row of the step 1."""
    return ("1", start, length, idle, f"gc_{evidence}", thread)


def remarks(trace):
    return [note.key for note in trace.analyze().tables["gc_pauses"].notes]


def test_a_stretch_in_which_all_stand_still_is_suspected():
    assert remarks(loop(pause=30_000)) == ["gc_source_nothing", "gc_suspected_sum"]
    # The whole stretch is idle: the device ran dry 10 ms before it began.
    assert pauses(loop(pause=30_000)) == [pause(40 * MS, 30 * MS, 30 * MS, "suspected")]


def test_only_the_idle_part_counts_as_idle():
    assert pauses(loop(pause=30_000, kernel_until=55_000.0)) == [pause(40 * MS, 30 * MS, 15 * MS, "suspected")]


@pytest.mark.parametrize(("length", "evidence"), [(199_999, "suspected"), (200_000, "strongly_suspected")])
def test_from_200_ms_on_suspicion_is_strong(length, evidence):
    assert [each.evidence for each in pauses(loop(pause=length))] == [f"gc_{evidence}"]


def test_a_short_stretch_is_not():
    assert pauses(loop(pause=9_999)) == []


def test_a_busy_device_is_not():
    assert pauses(loop(pause=30_000, kernel_until=70_015.0)) == []


@pytest.mark.parametrize(
    "awake",
    [
        lambda trace: trace.op("aten::add", 45_000, 20_000),
        lambda trace: trace.api("cudaDeviceSynchronize", 45_000, 20_000),
        lambda trace: trace.annotation("enumerate(DataLoader)#_Iter.__next__", 45_000, 20_000),
        lambda trace: trace.event("overhead", "Activity Buffer Flush", 45_000, 20_000),
    ],
)
def test_a_thread_that_does_something_is_not_silent(awake):
    trace = loop(pause=30_000)
    awake(trace)
    assert pauses(trace) == []


def test_another_launching_thread_counts_as_well():
    trace = loop(pause=30_000)
    trace.launch(1000, 5, 1100, 10, tid=2, stream=9)
    trace.op("aten::add", 45_000, 18_000, tid=2)
    assert pauses(trace) == []


def test_functions_that_begin_cut_the_stretch():
    trace = loop(pause=40_000)
    trace.python("train.py(3): f", 52_000, 8_000)
    assert remarks(trace)[0] == "gc_source_python"
    assert [(each.start_ns, each.length_ns) for each in pauses(trace)] == [(40 * MS, 12 * MS), (60 * MS, 20 * MS)]


@pytest.mark.parametrize("fill", ["event", "python", "annotation"])
def test_recorded_pauses_go_before_suspicion(fill):
    trace = loop(pause=30_000, kernel_until=55_000.0)
    record = {
        "event": lambda at, dur: trace.event("gc", "GC", at, dur, pid=7, tid=9),
        "python": lambda at, dur: trace.python("<built-in function collect>", at, dur),
        "annotation": lambda at, dur: trace.annotation("gc.collect", at, dur),
    }[fill]
    record(41_000, 20_000)
    record(64_000, 999)
    record(65_000, 1_000)
    thread = "7/9" if fill == "event" else "100/1"
    assert pauses(trace) == [
        pause(41 * MS, 20 * MS, 6 * MS, "recorded", thread=thread),
        pause(65 * MS, MS, MS, "recorded", thread=thread),
    ]
    assert remarks(trace) == ["gc_recorded_sum", "gc_short"]
    short = trace.analyze().tables["gc_pauses"].notes[1]
    assert short.values == (("count", Kind.COUNT, 1), ("total", Kind.DURATION, 999 * US))


def test_functions_inside_each_other_are_one_pause():
    trace = loop(pause=30_000)
    trace.python("gc.py(3): tidy", 41_000, 5_000)
    trace.python("<built-in function collect>", 41_500, 4_000)
    assert [each.length_ns for each in pauses(trace)] == [5 * MS]


def test_the_category_is_known():
    trace = loop(pause=1)
    trace.event("gc", "GC", 5, 1)
    assert "unknown_categories" not in [check.message for check in trace.analyze().checks]


def test_without_a_device_only_recorded_pauses_are_known():
    trace = TraceBuilder()
    trace.step(1, 0, 50_000)
    trace.op("aten::mm", 0, 100)
    assert trace.analyze().tables["gc_pauses"].absent == NotMeasured("no_gc_events")
    trace.annotation("gc", 1_000, 2_000)
    assert pauses(trace) == [pause(MS, 2 * MS, NotMeasured("no_device_events"), "recorded")]


def test_without_operators_silence_means_nothing():
    trace = TraceBuilder()
    trace.step(1, 0, 100_000)
    trace.launch(10, 5, 20, 100)
    trace.launch(60_000, 5, 60_020, 100)
    assert trace.analyze().tables["gc_pauses"].absent == NotMeasured("no_gc_events")


def test_pauses_of_other_steps_are_not_shown():
    trace = loop(pause=30_000)
    trace.step(2, 80_000, 10_000)
    trace.launch(80_010, 5, 80_020, 100)
    trace.annotation("gc", 81_000, 2_000)
    from traceanalyze.analyses.options import Options

    found = trace.analyze(Options(steps=lambda steps: steps.start < 50 * MS)).tables["gc_pauses"]
    assert found.rows == ()


def logged(places):
    """Six steps of three operators and a kernel each; a pause of 5 ms after the named operator of some steps; µs."""
    trace = TraceBuilder()
    for number in range(6):
        at = number * 20_000.0
        trace.step(number, at, 20_000)
        for name in ("aten::mm", "aten::add", "aten::relu", "aten::sum"):
            trace.op(name, at, 90)
            trace.launch(at + 10, 5, at + 30, 60)
            at += 5_100 if places.get(number) == name else 100
    return trace


def test_what_comes_now_and_then_at_one_place_is_a_habit_of_the_program():
    assert pauses(logged({1: "aten::add", 3: "aten::add", 5: "aten::add"})) == []


def test_what_comes_now_and_then_at_any_place_is_suspected():
    found = pauses(logged({1: "aten::add", 3: "aten::mm", 5: "aten::relu"}))
    assert [(each.step, each.evidence) for each in found] == [(str(step), "gc_suspected") for step in (1, 3, 5)]
    # Between the end of the operator and the start of the next one.
    assert [each.length_ns for each in found] == [5_010 * US] * 3
