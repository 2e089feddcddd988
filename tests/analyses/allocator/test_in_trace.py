"""A snapshot and a trace of one simulated rank: the product puts the peak and every call where they happened."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.simulate.allocator.of_schedule import GRANULE, snapshot_of
from tests.simulate.simulate import simulate
from tests.simulate.truth.summary import truth
from tests.simulate.workload import MS, US, Device, Host, Model, Script, Workload
from tests.simulate.writers.kineto import BASE, write
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.analyses.memory.in_trace import in_trace
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.schedule import Memory, OpCall, Schedule
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
