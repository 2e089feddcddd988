"""Operators step by step on hand-made traces (definitions §9)."""

from tests.builder import TraceBuilder
from traceanalyze.analyses.host.operators import MOST
from traceanalyze.model.table import NotMeasured


def op_steps(b):
    found = {}
    for row in b.analyze().tables["operator_steps"].records():
        times = found.setdefault(row.op, ([], [], []))
        for column, value in zip(times, (row.calls, row.host_self_ns, row.device_self_ns), strict=True):
            column.append(value)
    return found


def test_every_step_has_its_calls_and_own_times():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::linear", 10, 30)
    b.op("aten::mm", 20, 10)
    b.launch(22, 2, 50, 16)
    b.launch(25, 2, 66, 4)
    b.step(2, 100, 100)
    b.op("aten::mm", 110, 15)
    b.launch(112, 2, 140, 30)
    b.op("aten::mm", 130, 5)
    b.launch(131, 2, 170, 4)
    found = op_steps(b)
    assert list(found) == ["aten::mm", "aten::linear"]
    assert found == {
        "aten::mm": ([1, 2], [10_000, 20_000], [20_000, 34_000]),
        "aten::linear": ([1, 0], [20_000, 0], [0, 0]),
    }


def test_device_work_across_a_boundary_is_cut_and_sums_stay():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 10, 10)
    b.launch(12, 2, 50, 20)
    b.step(2, 100, 100)
    # Without a launch record no step owns it, so it does not move the boundary.
    b.op("aten::add", 30, 10, **{"External id": 7})
    b.device(90, 30, correlation=900, stream=8, **{"External id": 7})
    b.op("aten::mm", 140, 10)
    b.launch(142, 2, 150, 20)
    found = op_steps(b)
    assert found["aten::add"] == ([1, 0], [10_000, 0], [10_000, 20_000])
    sums = {row.op: row.device_self_ns for row in b.analyze().tables["operators"].records()}
    assert {name: sum(device) for name, (_, _, device) in found.items()} == sums


def test_only_the_first_operators_are_shown():
    b = TraceBuilder()
    for step in (0, 1000):
        b.step(step // 1000, step, 1000)
        for index in range(MOST + 5):
            b.op(f"op{index}", step + 20 * index, 10)
            b.launch(step + 20 * index + 1, 1, step + 20 * index + 5, 1 + index / 2, stream=index)
    assert list(op_steps(b)) == [f"op{index}" for index in range(MOST + 4, 4, -1)]


def test_without_a_device_host_time_decides():
    b = TraceBuilder()
    for step in (0, 100):
        b.step(step // 100, step, 100)
        b.op("aten::short", step + 10, 5)
        b.op("aten::long", step + 20, 50)
    missing = NotMeasured("no_device_events")
    found = op_steps(b)
    assert list(found) == ["aten::long", "aten::short"]
    assert found == {
        "aten::long": ([1, 1], [50_000, 50_000], [missing, missing]),
        "aten::short": ([1, 1], [5_000, 5_000], [missing, missing]),
    }


def test_one_step_or_no_operators_are_not_measured():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 10)
    b.launch(1, 2, 20, 5)
    assert b.analyze().tables["operator_steps"].absent == NotMeasured("single_step")
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.launch(1, 2, 20, 5)
    assert b.analyze().tables["operator_steps"].absent == NotMeasured("no_host_ops")
