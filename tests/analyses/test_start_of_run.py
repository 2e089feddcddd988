"""Which first steps are the start of a run, and that no number is over them: times in ms, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import traceanalyze
from tests.builder import TraceBuilder
from tests.report.make import steps_of
from traceanalyze.analyses.steps.window import counted_steps, cycle_of, settled, whole_cycles

MS = 1_000


@pytest.mark.parametrize(
    ("times", "left_out"),
    [
        ((437, 145, 145), 1),
        # Twice the median is not more than twice.
        ((200, 100, 100), 0),
        ((200.1, 100, 100), 1),
        # 300 is more than 2 × 145, the median of what is left each time.
        ((437, 300, 145, 145), 2),
        # Fewer than two would be left.
        ((437, 145), 0),
        ((900, 300, 100), 1),
        # A long step later on is not of the start.
        ((100, 437, 100, 100), 0),
        ((437, 145, 145, 400), 1),
        # Long and short steps in turn are the program: two whole cycles.
        ((300, 100, 300, 100), 0),
        ((300, 100, 100, 300, 100, 100, 300), 0),
        # Its length returns once, but not in turn.
        ((300, 100, 300, 100, 100, 100, 100, 100), 1),
        ((100,), 0),
    ],
)
def test_leading_steps_over_twice_the_median_of_those_after_them_are_left_out(times, left_out):
    assert counted_steps(steps_of(*times)).tolist() == [False] * left_out + [True] * (len(times) - left_out)


@pytest.mark.parametrize(
    ("times", "cycle", "left_out"),
    [
        ((58.6, 61.7, 58.6, 61.9, 58.5), 2, 1),
        ((300, 100, 300, 100), 2, 0),
        ((100, 100, 300, 101, 99, 300, 100, 100), 3, 2),
        # The start is left out first.
        ((900, 60, 50, 60, 50, 60), 2, 2),
        ((100, 101, 100, 101), 1, 0),
        ((100, 120, 90, 130, 80), 1, 0),
        ((100, 110, 120, 130), 1, 0),
        ((300, 100, 300), 1, 0),
        ((100,), 1, 0),
        ((100, 100, 100, 100), 1, 0),
    ],
)
def test_of_long_and_short_steps_whole_cycles_are_compared(times, cycle, left_out):
    """What is left out at the beginning; places of a cycle that differ by 1 % of the step are none."""
    steps = steps_of(*times)
    assert whole_cycles(steps).tolist() == [False] * left_out + [True] * (len(times) - left_out)
    assert cycle_of(steps.time[counted_steps(steps)]) == cycle


def test_only_complete_steps_are_looked_at():
    steps = steps_of(50, 437, 145, 145, 20, complete=[False, True, True, True, False])
    assert counted_steps(steps).tolist() == [False, False, True, True, False]


def test_ranks_may_agree_on_others():
    steps = steps_of(100, 100, 100)
    agreed = frozenset({(steps.name[1], 0), (steps.name[2], 0)})
    assert settled(steps, agreed).counted.tolist() == [False, True, True]


def run(first, *, rank=None):
    """Steps 4 to 6 of 100 ms; the first has `first` ms more, in which the host allocates device memory."""
    trace = TraceBuilder()
    if rank is not None:
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
    at = 0
    for number in (4, 5, 6):
        more = first * MS if number == 4 else 0
        trace.step(number, at, 100 * MS + more)
        if more:
            trace.api("cudaMalloc", at + 1_000, more)
        trace.launch(at + more + 2_000, 10, at + more + 3_000, 60 * MS, name="work")
        trace.launch(at + more + 63_000, 10, at + more + 64_000, 30 * MS, name="more_work")
        at += 100 * MS + more
    return trace


def test_no_number_is_over_them_and_the_report_says_what_they_spent_more_on(tmp_path):
    run(200).write(tmp_path / "trace.json")
    report = traceanalyze.analyze(tmp_path / "trace.json")
    said = {message.key: {name: value for name, _, value in message.values} for message in report.verdict_messages}
    assert said["start_step"] == {
        "step": "4",
        "time": 300_000_000,
        "factor": 3.0,
        "part": "start_allocation",
        "excess": 200_000_000,
    }
    tables = report.tables
    assert list(tables["steps"].column("counted")) == [False, True, True]
    assert tables["steps"].totals["time_ns"] == 100_000_000
    assert sum(tables["split"].column("sum_ns")) == 200_000_000
    assert list(tables["kernels"].column("count")) == [2, 2]
    assert "cudaMalloc" not in tables["runtime_calls"].column("call")
    assert list(tables["step_statistics"].column("max_ns")) == [100_000_000]
    assert list(tables["launches"].column("linked")) == [4]
    assert set(tables["gaps"].column("step")) == {"5", "6"}


@pytest.mark.parametrize(
    ("until", "starting", "mean"),
    # A copy that the first step starts beside the others' work, until the end of which its window lasts: it holds all
    # the work of steps 2 and 3, or of every other. 6 steps of 100 ms, and what the copy takes longer than the last.
    [(290, 3, 100), (590, 0, 100), (900, 0, 150)],
)
def test_steps_whose_time_lies_in_the_window_of_the_first_are_no_usual_ones(until, starting, mean):
    trace = TraceBuilder()
    for number in range(6):
        at = number * 100 * MS
        trace.step(number, at, 100 * MS)
        trace.launch(at + 1_000, 10, at + 2_000, 50 * MS)
        trace.launch(at + 55_000, 10, at + 56_000, 44 * MS)
    trace.copy(500, 10, 1_000, until * MS - 1_000, stream=9)
    steps = trace.analyze().steps
    assert steps.counted.tolist() == [False] * starting + [True] * (6 - starting)
    assert steps.time[steps.counted].mean() == mean * MS * 1_000
    assert (steps.start[1:] >= steps.end[:-1]).all()
    assert steps.time.sum() == max(until, 600) * MS * 1_000


def test_steps_all_counts_them(tmp_path):
    run(200).write(tmp_path / "trace.json")
    for steps in ("all", "4-6"):
        report = traceanalyze.analyze(tmp_path / "trace.json", steps=steps)
        assert list(report.tables["step_statistics"].column("complete_steps")) == [3]
        assert "start_step" not in [message.key for message in report.verdict_messages]


def test_ranks_of_a_run_count_the_same_steps(tmp_path):
    """Rank 1 has no long first step of its own, but rank 0 leaves it out: so do both, in every table."""
    for rank, first in ((0, 200), (1, 20)):
        run(first, rank=rank).write(tmp_path / f"rank{rank}.json")
    for report in (traceanalyze.analyze(tmp_path), traceanalyze.analyze(traceanalyze.load(tmp_path))):
        assert list(report.tables["ranks"].column("steps")) == [2, 2]
        assert [one.steps.counted.tolist() for one in report.analyses] == [[False, True, True]] * 2
        assert [sum(one.tables["split"].column("sum_ns")) for one in report.analyses] == [200_000_000] * 2


def test_a_comparison_is_over_steady_steps_of_both_sides(tmp_path):
    for name, first in (("base", 200), ("candidate", 0)):
        run(first).write(tmp_path / f"{name}.json")
    found = traceanalyze.compare(tmp_path / "base.json", tmp_path / "candidate.json").comparison
    assert (found.base.step_time, found.candidate.step_time) == (200_000_000, 300_000_000)
    assert (found.base.count, found.candidate.count) == (2, 3)
    assert np.isclose(found.base.step_time / found.base.count, found.candidate.step_time / found.candidate.count)
