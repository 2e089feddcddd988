"""A snapshot and a trace of one simulated rank: the product puts the peak and every call where they happened."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.examples import examples
from tests.simulate.allocator.of_schedule import GRANULE, snapshot_of
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import truth
from tests.simulate.workload import MS, US, Device, Host, Model, Script, Workload
from tests.simulate.writers.kineto import BASE, write
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.in_trace import _labels, in_trace
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.simulate.schedule import Memory, OpCall, Schedule
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.analyses.memory.in_trace import InTrace

_SMALL = Model(layers=1, hidden=512, sequence=256, batch=8, vocabulary=2048)
_FEW = examples(8, HealthCheck.function_scoped_fixture)


def workload(**more: object) -> Workload:
    values = {"model": _SMALL, "device": Device(segment=GRANULE), "tick": US, "steps": 3, "warmup": 1} | more
    return Workload(**values)  # type: ignore[arg-type]


def found(folder: Path, schedule: Schedule, **more: object) -> InTrace | NotMeasured:
    """What the product makes of both files of a rank."""
    trace, snapshot = folder / "trace.json", folder / "snapshot.pickle"
    trace.write_bytes(write(schedule))
    snapshot.write_bytes(pickle.dumps(snapshot_of(schedule, **more)))  # type: ignore[arg-type]
    (allocator,) = analyze_snapshot(read_snapshot(Source(str(snapshot), size=snapshot.stat().st_size)))
    assert allocator.reconciled
    context = Context(read_trace(Source(str(trace), size=trace.stat().st_size)), Options())
    return in_trace(context, allocator)


def placed(folder: Path, schedule: Schedule, **more: object) -> InTrace:
    result = found(folder, schedule, **more)
    assert not isinstance(result, NotMeasured)
    return result


def place(schedule: Schedule, record: Memory) -> tuple[str | None, str, str, str | None]:
    """Step, phase, operator and module of a record, looked up one by one."""
    step = next(one.number for one in schedule.steps if one.start <= record.time < one.end)
    around = [op for op in schedule.ops if op.thread == record.thread and op.start <= record.time < op.end]
    op: OpCall = max(around, key=lambda one: one.start)
    module = "/".join(name.removeprefix("nn.Module: ") for name in op.module) or None
    return str(step), op.phase, op.name, module


def spot(row: Any) -> tuple[str | None, str | None, str | None]:
    """Phase, operator and module."""
    return row.phase and row.phase.removeprefix("phase_"), row.op, row.module


def numbers(label: str) -> list[str]:
    """Steps that a label names: `1-3,5` as 1, 2, 3, 5."""
    ends = [part.partition("-") for part in label.split(",")]
    return [str(number) for first, _, last in ends for number in range(int(first), int(last or first) + 1)]


def calls_of(result: InTrace) -> list[Any]:
    """Rows of calls; the moments come first."""
    return list(result.places.records())[len(result.inside) :]


@_FEW
@given(seed=st.integers(0, 1000), batch=st.integers(5, 12), empties=st.booleans())
def test_the_peak_is_in_its_step_phase_operator_and_module(
    tmp_path: Path, seed: int, batch: int, empties: bool
) -> None:
    model = Model(layers=2, hidden=512, sequence=256, batch=batch, vocabulary=2048)
    (schedule,) = simulate(workload(seed=seed, model=model, script=Script(empty_cache=empties)))
    peak = max(schedule.memory, key=lambda one: one.allocated)
    result = placed(tmp_path, schedule)
    moment = next(result.places.records())
    assert (moment.moment, result.inside[0]) == ("moment_peak", True)
    assert (moment.requested_bytes, moment.request_bytes) == (peak.allocated, peak.bytes)
    assert (moment.step, *spot(moment)) == place(schedule, peak)


@_FEW
@given(seed=st.integers(0, 1000))
def test_calls_of_the_device_have_their_place_and_their_idle_time(tmp_path: Path, seed: int) -> None:
    slow = workload(seed=seed, script=Script(empty_cache=True), host=Host(allocate=2 * MS))
    (schedule,) = simulate(slow)
    result = placed(tmp_path, schedule)
    calls = [call for call in schedule.calls if call.klass == "alloc"]
    assert sum(one.count for one in calls_of(result)) == result.all_calls == len(calls)
    assert result.outside == 0
    growths: dict[tuple[object, ...], list[str | None]] = {}
    times = {call.end for call in calls if call.name == "cudaMalloc"}
    for record in schedule.memory:
        if record.bytes > 0 and record.time in times:
            step, *key = place(schedule, record)
            growths.setdefault(tuple(key), []).append(step)
    found = {spot(one): one for one in calls_of(result) if one.moment == "release_growth"}
    assert {key: one.count for key, one in found.items()} == {key: len(steps) for key, steps in growths.items()}
    assert {key: numbers(one.step) for key, one in found.items()} == {
        key: list(dict.fromkeys(steps)) for key, steps in growths.items()
    }
    emptied = [one for one in calls_of(result) if one.moment == "release_empty_cache"]
    assert sum(one.count for one in emptied) == len(schedule.steps)
    assert sum(one.released_bytes for one in emptied) > 0
    # All idle time that the simulation lays to allocator calls, and nothing else.
    idle = sum(causes.get("dispatch.alloc", 0) for causes in truth(schedule).idle)
    assert sum(one.idle_ns or 0 for one in calls_of(result)) == idle > 0


@pytest.mark.parametrize("apart", [86_400 * 10**9, 4 * MS])
def test_marks_align_clocks_that_differ(tmp_path: Path, apart: int) -> None:
    """By a day, or by so little that the recordings still seem to overlap."""
    (schedule,) = simulate(workload())
    near = placed(tmp_path, schedule)
    far = placed(tmp_path, schedule, clock=BASE - apart)
    assert (near.clock, far.clock) == ("absolute", "marks")
    assert far.places.rows == near.places.rows
    assert far.inside == near.inside
    assert far.shift - near.shift == apart


def test_without_common_marks_clocks_that_differ_are_told(tmp_path: Path) -> None:
    (schedule,) = simulate(workload())
    result = found(tmp_path, schedule, clock=BASE - 86_400 * 10**9, marks=False)
    assert result == NotMeasured("clocks_do_not_meet")


@pytest.mark.parametrize("late", [False, True])
def test_moments_outside_of_the_recording_have_no_place(tmp_path: Path, late: bool) -> None:
    """The trace begins or ends a step beside the history: the clocks meet, but not at every moment."""
    (schedule,) = simulate(workload(script=Script(empty_cache=True)))
    step = schedule.steps[1].end - schedule.steps[0].start
    result = placed(tmp_path, schedule, clock=BASE + (step if late else -step), marks=False)
    assert 0 < result.outside < result.all_calls
    assert sum(one.count for one in calls_of(result)) + result.outside == result.all_calls


START = 40_000
"""µs since 1970 at which trace and history begin."""


def requested(folder: Path, notes: Sequence[tuple[str, str, int]] = ()) -> AllocatorAnalysis:
    """One request of 1000 bytes for which 2 MiB are taken from the device, at 112 µs after `START`."""
    base, size = 1 << 40, 2 << 20
    common: dict[str, Any] = {"addr": base, "stream": 0, "time_us": START + 112, "frames": []}
    events = [common | {"action": "segment_alloc", "size": size}, common | {"action": "alloc", "size": 1000}]
    used = {"address": base, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": []}
    rest = {"address": base + 1024, "size": size - 1024, "requested_size": 0, "state": "inactive"}
    segment = {"device": 0, "address": base, "total_size": size, "stream": 0, "segment_type": "small"}
    sums = {"allocated_size": 1024, "active_size": 1024, "requested_size": 1000}
    path = folder / "snapshot.pickle"
    marks = [{"stage": stage, "name": name, "device": 0, "time_us": START + at} for stage, name, at in notes]
    segments = [segment | sums | {"blocks": [used, rest]}]
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [events], "external_annotations": marks}))
    (allocator,) = analyze_snapshot(read_snapshot(Source(str(path), size=path.stat().st_size)))
    assert allocator.reconciled
    return allocator


@pytest.mark.parametrize(
    ("notes", "within"),
    [
        ([], None),
        ([("START", "a", 112)], "a"),
        ([("START", "a", 113)], None),
        ([("START", "a", 100), ("START", "b", 112), ("END", "b", 113)], "a > b"),
        ([("START", "a", 100), ("END", "a", 112)], None),
        # Marks need not balance; of equal ranges the innermost ends.
        ([("END", "b", 90), ("START", "a", 100), ("START", "b", 101), ("END", "a", 102)], "b"),
        ([("START", "a", 100), ("START", "b", 101), ("START", "a", 102), ("END", "a", 103)], "a > b"),
    ],
)
def test_the_ranges_around_a_moment_also_of_the_first_event(
    tmp_path: Path, notes: list[tuple[str, str, int]], within: str | None
) -> None:
    moments = list(requested(tmp_path, notes).moments.records())
    assert [(one.moment, one.event, one.within) for one in moments] == [
        ("moment_peak", 1, within),
        ("moment_reserved_peak", 0, within),
    ]


def by_hand(folder: Path, ops: list[tuple[str, float, float]], *steps: tuple[float, float]) -> InTrace:
    """The same request in a trace of these operators."""
    b = TraceBuilder()
    b.header["baseTimeNanoseconds"] = 1000 * START
    for number, (at, duration) in enumerate(steps, 1):
        b.step(number, at, duration)
    for name, at, duration in ops:
        b.op(name, at, duration)
    b.device(120, 5)
    result = in_trace(Context(b.trace(), Options()), requested(folder))
    assert not isinstance(result, NotMeasured)
    return result


@pytest.mark.parametrize(
    "ops",
    [
        [("aten::linear", 100, 50)],
        # What only allocates gives way, also to the first operator of all; what nobody called stays.
        [("aten::linear", 100, 50), ("aten::empty", 110, 5)],
        [("aten::mul", 90, 5), ("aten::linear", 100, 50), ("aten::zeros", 108, 20), ("aten::empty", 110, 5)],
    ],
)
def test_memory_is_laid_to_the_operator_that_needs_it(tmp_path: Path, ops: list[tuple[str, float, float]]) -> None:
    result = by_hand(tmp_path, ops, (80, 100))
    rows = list(result.places.records())
    assert {(row.op, row.step) for row in rows} == {("aten::linear", "1")}
    assert {row.moment for row in rows} == {"moment_peak", "moment_reserved_peak", "release_growth"}
    # Also the largest reserve, which the request reached before it got its block, is told with its size.
    assert {row.request_bytes for row in rows} == {1000}
    assert (result.inside, result.outside, result.all_calls) == ((True, True), 0, 1)
    assert result.places.notes == ()


@pytest.mark.parametrize(
    ("op", "step", "inside", "label"),
    [
        # It happened in the middle of the microsecond, at 112.5 µs; operators end before their end, steps with it.
        (12.501, 12.501, "aten::linear", "1"),
        (12.5, 12.5, None, "1"),
        (12.499, 12.5, None, "1"),
        (20, 12.499, "aten::linear", None),
        (12.499, 12.499, False, None),
    ],
)
def test_a_moment_is_inside_until_the_last_host_event_ends(
    tmp_path: Path, op: float, step: float, inside: str | bool | None, label: str | None
) -> None:
    result = by_hand(tmp_path, [("aten::linear", 100, op)], (100, step))
    told = [(row.op, row.step) for row in result.places.records()]
    if inside is False:
        assert (told, result.inside, result.outside) == ([(None, None)] * 2, (False, False), 1)
        assert len(result.places.notes) == 2
    else:
        assert (told, result.inside, result.outside) == ([(inside, label)] * 3, (True, True), 0)


@pytest.mark.parametrize(
    ("names", "label"),
    [
        ((), None),
        (("ProfilerStep#4",), "4"),
        (("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#4", "ProfilerStep#6", "ProfilerStep#7"), "1-2,4,6-7"),
        (("warm", "train", "eval"), "warm, train, eval"),
        (("warm", "train", "eval", "save"), "warm, train, eval, …"),
    ],
)
def test_many_steps_are_told_in_few_words(names: tuple[str, ...], label: str | None) -> None:
    assert _labels(names) == label
