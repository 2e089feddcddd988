"""Traces with very many of one thing: the answer is right, and the work grows with the trace, not with its square."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.builder import TraceBuilder
from traceanalyze import analyze
from traceanalyze.analyses.host.nesting import DEEPER, MOST_LEVELS
from traceanalyze.analyses.idle import idle

MANY = 2000


def looped(count, *, tid=lambda _: 1, stream=lambda _: 7, name=lambda _: "kernel", correlation=None):
    """`count` times 10 µs with 3 µs of work, launched by an operator; two steps."""
    trace = TraceBuilder()
    trace.step(0, 0, 5 * count)
    trace.step(1, 5 * count, 5 * count)
    for index in range(count):
        at, number = 10 * index, index + 1 if correlation is None else correlation
        trace.op("aten::mm", at + 1, 3, tid=tid(index))
        trace.api("cudaLaunchKernel", at + 2, 1, tid=tid(index), correlation=number)
        trace.device(at + 4, 3, name=name(index), stream=stream(index), correlation=number)
    return trace


@pytest.mark.parametrize(
    "shape",
    [
        {"tid": lambda index: index + 1},
        {"stream": lambda index: index},
        {"name": lambda index: f"kernel_{index}"},
        {"correlation": 1},
    ],
    ids=["threads", "streams", "names", "launches of one id"],
)
def test_parts_add_up(shape):
    found = looped(MANY, **shape).analyze()
    (parts,) = found.partitions
    assert parts.compute.sum() == 3000 * MANY
    assert (parts.compute + parts.idle == found.steps.time).all()
    assert found.idle.by_step.sum(axis=1).tolist() == parts.idle.tolist()


def test_idle_time_is_explained_thread_by_thread_once(monkeypatch):
    asked = []
    overlaps = idle.intervals.overlaps
    monkeypatch.setattr(idle.intervals, "overlaps", lambda *sets: asked.append(1) or overlaps(*sets))
    found = looped(300, tid=lambda index: index + 1).analyze()
    assert found.idle.by_step.sum() == found.partitions[0].idle.sum() > 0
    # A few times for each of 300 threads; each for each other would be 90,000.
    assert len(asked) < 300 * 60


def tower(depth, make):
    """`depth` host events each inside the one before, and a launch in the innermost."""
    trace = TraceBuilder()
    trace.step(0, 0, 10 * depth)
    for level in range(depth):
        make(trace, level, level, 10 * depth - 2 * level)
    trace.op("aten::mm", depth + 1, 9)
    trace.launch(depth + 2, 1, depth + 5, 3)
    return trace


def test_deep_operators_have_short_paths():
    found = tower(MANY, lambda trace, level, at, dur: trace.op(f"aten::f{level % 3}", at, dur)).analyze()
    paths = list(found.records("call_paths"))
    # The innermost operators are one row: what is below the last level told apart.
    (launching,) = [row for row in paths if row.device_self_ns]
    assert launching.device_self_ns == 3000
    assert launching.call_path.split(";")[-2:] == ["aten::f0", DEEPER]
    assert launching.call_path.count(";") == MOST_LEVELS
    assert launching.calls == MANY + 1 - MOST_LEVELS
    assert sum(row.calls for row in paths) == MANY + 1
    assert sum(row.host_self_ns for row in paths) == 10_000 * MANY


def test_deep_modules_have_short_paths():
    def module(trace, level, at, dur):
        trace.python(f"nn.Module: Block_{level}", at, dur)

    found = tower(MANY, module).analyze()
    modules = list(found.records("modules"))
    assert len(modules) == MOST_LEVELS + 1
    (launching,) = [row for row in modules if row.forward_self_ns]
    assert launching.module.endswith(f"Block_{MOST_LEVELS - 1}/{DEEPER}")
    assert launching.calls == MANY - MOST_LEVELS
    assert sum(row.calls for row in modules) == MANY


def stepping(count):
    """So many steps of 10 ms, each with a collection of 2 ms for which the device waits."""
    trace = TraceBuilder()
    for number in range(count):
        at = 10_000 * number
        trace.step(number, at, 10_000)
        trace.op("aten::mm", at + 1, 30)
        trace.launch(at + 10, 10, at + 40, 5_000)
        trace.event("gc", "GC", at + 6_000, 2_000)
    return trace


def test_a_report_on_twice_as_many_steps_is_twice_the_work(tmp_path):
    def calls(count):
        path, made = stepping(count).write(tmp_path / f"{count}.json"), Counter()
        sys.setprofile(lambda _frame, event, _what: made.update((event,)))
        try:
            report = analyze(path)
        finally:
            sys.setprofile(None)
        assert len(report.tables["gc_pauses"].rows) == count
        return made["call"] + made["c_call"]

    calls(25)  # Imports what is needed.
    few, some, many = (calls(count) for count in (50, 150, 350))
    # What each step more costs stays the same.
    assert (many - some) / 200 < 1.5 * (some - few) / 100
