"""Steps, their phases and operators just at and just beyond each limit: answers on paper."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.model.table import NotMeasured

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_a_marker_that_begins_as_another_ends_is_a_step_and_one_that_begins_before_is_inside() -> None:
    b = TraceBuilder()
    for number, (at, length) in enumerate(((0, 100), (100, 50), (149.999, 0.001), (150, 50))):
        b.step(number, at, length)
        b.launch(at + 0.01, 0.01, at + 0.02, 0.01)
    assert b.analyze().steps.name == ("ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#3")


def test_markers_that_rounding_lets_overlap_are_steps_and_one_that_ends_a_tick_after_its_like_is_none() -> None:
    b = TraceBuilder()
    for number, (at, length) in enumerate(((0, 100.001), (100, 100.001), (200, 100), (200.001, 100))):
        b.step(number, at, length)
        b.launch(at + 0.01, 0.01, at + 0.02, 0.01)
    steps = b.analyze().steps
    assert steps.name == ("ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2")
    assert list(zip(steps.start.tolist(), steps.end.tolist(), strict=True)) == [
        (0, 100_001),
        (100_001, 200_001),
        (200_001, 300_000),
    ]


@pytest.mark.parametrize(("launched", "owned"), [(99.999, [1, 1]), (100, [0, 2]), (200, [0, 2]), (200.001, [0, 1])])
def test_a_step_owns_what_is_launched_from_its_begin_on_and_the_last_one_until_its_end(
    launched: float, owned: list[int]
) -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.launch(150, 1, 160, 5)
    b.launch(launched, 1, 300, 5)
    assert b.analyze().steps.owned.tolist() == owned


@pytest.mark.parametrize(("until", "begin"), [(50, 50_000), (50.001, 0)])
def test_what_ends_before_the_first_own_kernel_was_launched_before_recording(until: float, begin: int) -> None:
    b = TraceBuilder()
    b.device(-10, 10 + until, stream=8)
    b.step(1, 0, 100)
    b.launch(10, 5, 50, 30)
    steps = b.analyze().steps
    assert (int(steps.start[0]), steps.lead_in) == (begin, begin)


@pytest.mark.parametrize(
    ("kernels", "complete"),
    [
        ((4,), [True]),
        ((5, 4), [True, True]),
        ((5, 3), [True, False]),
        # Of two steps with work the larger is the measure, of three the median.
        ((5, 3, 0), [True, False, False]),
        ((5, 4, 4), [True, True, True]),
        ((10, 5, 5, 4), [True, True, True, True]),
        ((5, 5, 5, 3), [True, True, True, False]),
    ],
)
def test_a_step_is_complete_from_four_fifths_of_the_usual_events_on(
    kernels: tuple[int, ...], complete: list[bool]
) -> None:
    b = TraceBuilder()
    for step, count in enumerate(kernels):
        b.step(step, 100 * step, 100)
        for kernel in range(count):
            b.launch(100 * step + kernel, 0.5, 100 * step + 5 * kernel + 20, 4)
    assert b.analyze().steps.complete.tolist() == complete


def test_one_device_event_without_a_marker_has_a_window_of_its_own_length() -> None:
    b = TraceBuilder()
    b.device(20, 30)
    steps = b.analyze().steps
    assert (steps.start.tolist(), steps.end.tolist(), steps.owned.tolist()) == ([20_000], [50_000], [1])
    assert (steps.between_steps, steps.lead_in) == (0, 0)


@pytest.mark.parametrize(
    ("at", "phase"),
    [
        (9.999, "phase_other"),
        (10, "phase_data_loading"),
        (19.999, "phase_data_loading"),
        (20, "phase_other"),
        (30, "phase_forward"),
        (40, "phase_backward"),
        (50, "phase_zero_grad"),
        (60, "phase_optimizer"),
        (70, "phase_other"),
    ],
)
def test_a_kernel_is_of_the_phase_in_which_its_call_began(at: float, phase: str) -> None:
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.annotation(LOADER, 10, 10)
    b.op("aten::linear", 30, 10, **{"Sequence number": 5})
    b.op("autograd::engine::evaluate_function: AddmmBackward0", 40, 10)
    b.annotation("Optimizer.zero_grad#SGD.zero_grad", 50, 10)
    b.annotation("Optimizer.step#SGD.step", 60, 10)
    b.launch(at, 0.0005, 100, 7)
    found = {row.phase: (row.device_ns, row.device_events) for row in b.rows("phases")}
    # The optimizer includes the setting of gradients to zero.
    of = {phase} | ({"phase_optimizer"} if phase == "phase_zero_grad" else set())
    assert {name: value for name, value in found.items() if value[1]} == dict.fromkeys(of, (7_000, 1))
    host = {row.phase: row.host_ns for row in b.rows("phases")}
    ten = ("phase_data_loading", "phase_forward", "phase_backward", "phase_zero_grad")
    assert {name: time for name, time in host.items() if time} == {
        **dict.fromkeys(ten, 10_000),
        "phase_optimizer": 20_000,
    }


def test_work_without_a_launch_record_is_of_the_phase_of_its_operator_or_of_none() -> None:
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::linear", 30, 10, **{"Sequence number": 5, "External id": 7})
    b.launch(90, 1, 95, 3)
    b.device(100, 5, correlation=900, **{"External id": 7})
    b.device(110, 11)
    # Of another device nothing is counted.
    b.device(130, 2, device=1)
    found = {row.phase: (row.device_ns, row.device_events) for row in b.rows("phases")}
    assert found == {"phase_forward": (5_000, 1), "phase_other": (3_000, 1), "phase_unknown": (11_000, 1)}


def test_phases_of_every_step_are_cut_to_it() -> None:
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.op("aten::linear", 90, 20, **{"Sequence number": 5})
    b.launch(10, 1, 20, 30)
    b.launch(91, 1, 95, 10)
    b.launch(120, 1, 130, 5)
    b.launch(122, 1, 140, 5)
    rows = [(row.step, row.phase, row.device_ns, row.host_ns) for row in b.rows("step_phases")]
    # The first step lasts until 105, when its last kernel ends.
    assert rows == [
        ("1", "phase_forward", 10_000, 15_000),
        ("1", "phase_other", 30_000, 0),
        ("2", "phase_forward", 0, 5_000),
        ("2", "phase_other", 10_000, 0),
    ]


@pytest.mark.parametrize(
    ("at", "length", "calls", "total"),
    [(99, 1, 0, None), (100, 10, 1, 10_000), (199, 10, 1, 10_000), (200, 10, 0, None)],
)
def test_an_operator_counts_whole_where_it_begins_inside_the_steps(
    at: float, length: float, calls: int, total: int | None
) -> None:
    b = TraceBuilder()
    b.step(1, 100, 100)
    b.op("aten::mm", 120, 10)
    b.launch(121, 1, 140, 5)
    b.op("aten::relu", at, length)
    b.api("cudaEventRecord", at, 1)
    found = {row.op: (row.calls, row.host_total_ns, row.api_ns) for row in b.rows("operators")}
    assert found.get("aten::relu", (0, None, None)) == (calls, total, 1_000 if calls else None)


def test_operators_step_by_step_need_two_steps_and_are_at_most_twenty() -> None:
    for steps in (1, 2):
        b = TraceBuilder()
        for step in range(steps):
            at = 1000 * step
            b.step(step, at, 1000)
            for kind in range(22):
                b.op(f"op {kind:02}", at + 10 * kind, 5)
                b.launch(at + 10 * kind + 1, 1, at + 300 + 30 * kind, 1 + kind)
        table = b.table("operator_steps")
        if steps == 1:
            assert table.absent == NotMeasured("single_step")
        else:
            assert table.column("op") == tuple(f"op {kind:02}" for kind in range(21, 1, -1) for _ in range(2))
            assert table.column("device_self_ns") == tuple(1000 * (1 + kind) for kind in range(21, 1, -1) for _ in "12")


@pytest.mark.parametrize(
    ("operators", "counted"), [([5, 5, 5, 4], 4), ([5, 5, 5, 3], 3), ([1, 5, 5, 5], 4), ([5, 0], 1)]
)
def test_without_a_device_the_last_step_is_cut_where_it_has_not_its_operators(
    operators: list[int], counted: int
) -> None:
    """The profiler ends its marker when the program does: a step of nothing but the wait for other ranks."""
    b = TraceBuilder()
    for step, count in enumerate(operators):
        b.step(step, 1000 * step, 1000)
        for at in range(count):
            b.op("aten::mm", 1000 * step + 100 * at, 50)
    analysis = b.analyze()
    assert int(analysis.steps.counted.sum()) == counted
    cut = [dict(check.values) for check in analysis.checks if check.id == "Q07"]
    assert cut == ([] if counted == len(operators) else [{"step": f"ProfilerStep#{counted}"}])
