"""Idle time just at and just beyond each limit: traces of a few events, answers on paper."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.options import Options
from traceanalyze.model.vocabulary import Cause


def causes(b: TraceBuilder) -> dict[Cause, int]:
    row = b.analyze().idle.by_step.sum(axis=0)
    return {cause: int(row[cause]) for cause in Cause if row[cause]}


@pytest.mark.parametrize(
    ("call", "length", "expected"),
    [
        ((1, 1), 10, {Cause.DEVICE_GAP: 10_000}),
        ((1, 1), 10.001, {Cause.DEVICE_DEPENDENCY: 10_001}),
        # The call returns as the gap begins, and just after.
        ((9, 1), 8, {Cause.DEVICE_GAP: 8_000}),
        ((9, 1.001), 8, {Cause.DISPATCH_LAUNCH: 1, Cause.DISPATCH_LATENCY: 7_999}),
        ((9, 2), 11, {Cause.DISPATCH_LAUNCH: 1_000, Cause.DISPATCH_LATENCY: 10_000}),
        ((9, 2), 11.001, {Cause.DISPATCH_LAUNCH: 1_000, Cause.DISPATCH_LATENCY: 10_000, Cause.DEVICE_DEPENDENCY: 1}),
    ],
)
def test_what_a_gap_after_ten_microseconds_of_work_is_laid_to(
    call: tuple[float, float], length: float, expected: dict[Cause, int]
) -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 0, 0, 10)
    b.launch(*call, 10 + length, 90 - length)
    assert causes(b) == expected


@pytest.mark.parametrize(
    ("launch_at", "trigger"), [(10, "launched_late"), (9.999, "queued"), (None, "no_launch_record")]
)
def test_a_launch_is_late_from_the_begin_of_the_gap_on(launch_at: float | None, trigger: str) -> None:
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 0, 0, 10)
    if launch_at is None:
        b.device(110, 40)
    else:
        b.launch(launch_at, 0.5, 110, 40)
    gaps = b.table("gaps")
    assert gaps.column("trigger") == (trigger, "no_next_event")
    assert gaps.column("length_ns") == (100_000, 50_000)


def test_the_longest_gaps_are_kept_and_of_equal_ones_the_first() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    for at, length in ((0, 10), (30, 10), (60, 10), (75, 25)):
        b.launch(at, 0.5, at, length, name=f"at {at}")
    for kept, expected in ((1, ("at 30",)), (2, ("at 30", "at 60")), (3, ("at 30", "at 60", "at 75"))):
        gaps = b.table("gaps", Options(max_gaps=kept))
        assert gaps.column("next_event") == expected
        assert [{key: value for key, _, value in note.values} for note in gaps.notes] == (
            [] if kept == 3 else [{"kept": kept, "count": 3}]
        )


@pytest.mark.parametrize("steps", [1, 2])
def test_the_step_of_a_gap_is_shown_where_there_are_several(steps: int) -> None:
    b = TraceBuilder()
    for number in range(steps):
        b.step(number, 100 * number, 100)
        b.launch(100 * number, 1, 100 * number + 5, 50)
    gaps = b.table("gaps")
    assert gaps["step"].machine is (steps == 1)
    assert gaps.column("step") == (("0", "0") if steps == 1 else ("0", "1", "0", "1"))


@pytest.mark.parametrize(
    ("length", "begins", "blocks"), [(50, 40, True), (49.999, 40, False), (50, 49.999, True), (50, 50, False)]
)
def test_a_copy_blocks_from_fifty_microseconds_on_while_it_runs(length: float, begins: float, blocks: bool) -> None:
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.copy(0, length, begins, 20)
    b.launch(120, 1, 130, 50)
    assert b.table("sync_points").column("kind") == (("sync_blocking_in_effect",) if blocks else ())


@pytest.mark.parametrize(
    ("call", "launch", "cost", "trigger"),
    [
        # Returns as the kernel ends, and just before.
        ((20, 30), (90, 1), 50_000, "sync_drained"),
        ((20, 29.999), (90, 1), 0, "launched_late"),
        # Begins as the kernel ends, and just after: then only its own time is its.
        ((50, 10), (90, 1), 50_000, "sync_drained"),
        ((50.001, 10), (90, 1), 10_000, "launched_late"),
        # The next kernel is launched, by another thread, as the call returns, and just before.
        ((20, 40), (60, 2), 50_000, "sync_drained"),
        ((20, 40), (59.999, 2), 9_999, "launched_late"),
    ],
)
def test_which_gap_a_wait_of_the_host_has_opened(
    call: tuple[float, float], launch: tuple[float, int], cost: int, trigger: str
) -> None:
    """The device works from 0 to 50 and from 100 on."""
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.launch(0, 1, 0, 50)
    b.api("cudaStreamSynchronize", *call)
    b.launch(launch[0], 1, 100, 50, tid=launch[1])
    b.launch(140, 1, 150, 50)
    found = b.analyze()
    assert found.tables["sync_points"].column("idle_caused_ns") == (cost,)
    assert found.tables["gaps"].column("trigger") == (trigger,)


def test_a_gap_tells_what_the_host_did_not_what_came_next() -> None:
    b = TraceBuilder()
    b.step(1, 0, 400)
    b.launch(0, 1, 1, 9)
    b.op("aten::normal_", 20, 60)  # On the host: it launches nothing.
    b.op("aten::to", 85, 10)
    b.launch(90, 2, 100, 50)
    b.api("cudaMalloc", 155, 30)  # Outside of operators.
    b.launch(190, 2, 200, 50)
    b.op("aten::add", 340, 10)  # Most of that gap the trace does not tell.
    b.launch(345, 2, 350, 50)
    found = b.rows("gaps")
    assert [(gap.length_ns // 1000, gap.host_op, gap.next_op) for gap in found[:3]] == [
        (100, None, "aten::add"),
        (90, "aten::normal_", "aten::to"),
        (50, "cudaMalloc", None),
    ]


def test_the_first_call_and_the_first_kernel_of_a_trace_count_like_all_others() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 5, 15)
    b.launch(10, 1, 20, 80, name="gemm")
    (gap,) = b.rows("gaps")
    assert (gap.length_ns, gap.trigger, gap.next_event, gap.next_op) == (20_000, "launched_late", "gemm", "aten::mm")
    (launches,) = b.rows("launches")
    assert (launches.linked, launches.unlinked, launches.late, launches.delay_p50_ns) == (1, 0, 1, 9_000)
    (path,) = b.rows("call_paths")
    assert (path.call_path, path.calls, path.device_self_ns, path.launched) == ("aten::mm", 1, 80_000, 1)
    first = TraceBuilder()
    first.device(0, 50)
    first.op("aten::item", 18, 40)
    first.api("cudaStreamSynchronize", 20, 30)
    first.launch(90, 1, 100, 50)
    first.launch(140, 1, 150, 50)
    (site,) = first.rows("sync_points")
    assert (site.op, site.count, site.blocked_ns, site.idle_caused_ns) == ("aten::item", 1, 30_000, 50_000)


def test_a_wait_belongs_to_the_operator_and_the_line_that_it_begins_in() -> None:
    b = TraceBuilder()
    b.step(1, 0, 400)
    b.launch(0, 1, 0, 50)
    b.python("train.py(7): loop", 20, 10)
    b.op("aten::item", 20, 10)
    b.op("aten::relu", 30, 10)
    for at in (19.5, 20, 29.5, 30):
        b.api("cudaStreamSynchronize", at, 0.25)
    b.launch(350, 1, 360, 10)
    found = {(row.op, row.frame): (row.count, row.blocked_ns) for row in b.rows("sync_points")}
    assert found == {
        (None, None): (1, 250),
        ("aten::item", "train.py(7): loop"): (1, 500),
        ("aten::relu", None): (1, 250),
    }


def test_frames_recorded_without_a_thread_are_those_of_the_one_that_there_is() -> None:
    b = TraceBuilder()
    b.step(1, 0, 400)
    b.launch(0, 1, 0, 50)
    b.event("python_function", "train.py(7): loop", 20, 10, pid=0, tid=0)
    b.op("aten::item", 20, 10)
    b.api("cudaStreamSynchronize", 21, 5)
    b.launch(350, 1, 360, 10)
    (site,) = b.rows("sync_points")
    assert (site.op, site.frame) == ("aten::item", "train.py(7): loop")
