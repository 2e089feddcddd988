"""Operators on hand-made traces: self and total time, recursion, device time (definitions §§8, 9)."""

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.model.table import Kind, NotMeasured
from traceanalyze.model.vocabulary import Detail


def operators(b, table="operators"):
    rows = b.analyze().tables[table].records()
    return {(row.op, row.shapes) if table == "operator_shapes" else row.op: row for row in rows}


def test_self_time_is_without_the_operators_inside():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::linear", 10, 30)
    b.op("aten::t", 12, 5)
    b.op("aten::addmm", 20, 15)
    b.launch(22, 4, 50, 20)
    rows = operators(b)
    times = {name: (row.calls, row.host_total_ns, row.host_self_ns) for name, row in rows.items()}
    assert times == {
        "aten::linear": (1, 30_000, 10_000),
        "aten::t": (1, 5_000, 5_000),
        "aten::addmm": (1, 15_000, 15_000),
    }
    assert (rows["aten::addmm"].api_ns, rows["aten::linear"].api_ns) == (4_000, 0)


def test_device_time_belongs_to_the_innermost_operator_and_to_all_around_it():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::linear", 10, 30)
    b.launch(11, 2, 60, 7)
    b.op("aten::addmm", 20, 15)
    b.launch(22, 4, 70, 20)
    b.launch(28, 4, 90, 10)
    rows = operators(b)
    own = {name: (row.device_self_ns, row.device_total_ns, row.launched) for name, row in rows.items()}
    assert own == {"aten::linear": (7_000, 37_000, 1), "aten::addmm": (30_000, 30_000, 2)}


def test_recursion_counts_once_in_totals():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::to", 0, 20)
    b.op("aten::_to_copy", 2, 16)
    b.op("aten::to", 4, 10)
    b.launch(5, 2, 30, 8)
    b.op("aten::to", 50, 5)
    to = operators(b)["aten::to"]
    assert (to.calls, to.host_total_ns, to.host_self_ns) == (3, 25_000, 4_000 + 10_000 + 5_000)
    assert (to.device_self_ns, to.device_total_ns) == (8_000, 8_000)


def test_threads_are_never_mixed():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::outer", 10, 40)
    b.op("aten::elsewhere", 20, 10, tid=2)
    b.launch(21, 2, 60, 5, tid=2)
    rows = operators(b)
    assert rows["aten::outer"].host_self_ns == 40_000
    assert rows["aten::outer"].device_total_ns == 0
    assert rows["aten::elsewhere"].device_self_ns == 5_000


def test_python_functions_between_operators_do_not_hide_them():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("MyFunction", 10, 40)
    b.python("train.py(3): forward", 12, 30)
    b.op("aten::mul", 15, 10)
    b.launch(16, 2, 60, 5)
    rows = operators(b)
    assert (rows["MyFunction"].host_self_ns, rows["MyFunction"].device_total_ns) == (30_000, 5_000)
    assert rows["aten::mul"].frame == "train.py(3): forward"


def test_device_work_without_operator_is_shown_and_everything_adds_up():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mul", 15, 10)
    b.launch(16, 2, 40, 5)
    b.launch(50, 2, 60, 7)  # launched outside of all operators
    b.device(70, 11)  # no launch record
    found = b.analyze().tables["operators"]
    rows = {row.op: (row.calls, row.device_self_ns, row.launched) for row in found.records()}
    assert rows == {
        "aten::mul": (1, 5_000, 1),
        "<outside operators>": (None, 7_000, 1),
        "<unlinked>": (None, 11_000, 1),
    }
    assert found.column("device_share") == (11 / 23, 7 / 23, 5 / 23)


def test_the_external_id_decides_where_the_launch_is_missing():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mul", 15, 10, **{"External id": 7})
    b.device(40, 5, correlation=900, **{"External id": 7})
    assert operators(b)["aten::mul"].device_self_ns == 5_000


def test_an_external_id_that_repeats_the_correlation_means_nothing():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mul", 15, 10, **{"External id": 900})
    b.device(40, 5, correlation=900, **{"External id": 900})
    rows = operators(b)
    assert (rows["aten::mul"].device_self_ns, rows["<unlinked>"].device_self_ns) == (0, 5_000)


def test_an_operator_counts_in_the_window_it_starts_in():
    b = TraceBuilder()
    b.op("aten::before", 0, 30)
    b.step(1, 20, 80)
    b.op("aten::inside", 40, 10)
    b.launch(41, 2, 60, 30)
    assert set(operators(b)) == {"aten::inside"}


def test_device_work_is_cut_to_the_windows():
    b = TraceBuilder()
    b.step(1, 0, 50)
    b.op("aten::early", 5, 10)
    b.launch(6, 2, 20, 10)
    b.device(45, 20)  # unlinked, reaches 15 µs beyond the step
    assert sum(row.device_self_ns for row in operators(b).values()) == 15_000


def test_without_steps_all_host_events_count():
    b = TraceBuilder()
    b.op("aten::mul", 0, 10)
    b.launch(1, 2, 40, 5)
    assert operators(b)["aten::mul"].calls == 1


def test_improper_nesting_is_counted_and_self_time_stays_positive():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::a", 10, 10)
    b.op("aten::b", 15, 15)
    b.launch(22, 2, 40, 5)
    rows = operators(b)
    assert [note.key for note in b.analyze().tables["operators"].notes] == ["broken_nesting"]
    assert b.analyze().tables["operators"].notes[0].values == (("count", Kind.COUNT, 1),)
    assert (rows["aten::a"].host_self_ns, rows["aten::b"].host_self_ns) == (5_000, 15_000)
    assert rows["aten::b"].device_self_ns == 5_000


def test_shapes_of_a_name_add_up_to_it():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 10, **{"Input Dims": [[2, 3], [3, 4]]})
    b.launch(1, 2, 30, 5)
    b.op("aten::mm", 10, 20, **{"Input Dims": [[8, 8], [8, 8]]})
    b.launch(11, 2, 40, 15)
    shapes = operators(b, "operator_shapes")
    assert [(key[1], row.calls, row.host_total_ns, row.device_self_ns) for key, row in shapes.items()] == [
        ("[[8, 8], [8, 8]]", 1, 20_000, 15_000),
        ("[[2, 3], [3, 4]]", 1, 10_000, 5_000),
    ]
    assert operators(b)["aten::mm"].host_total_ns == 30_000


def test_the_user_frame_comes_from_the_call_stack():
    b = TraceBuilder()
    b.step(1, 0, 100)
    stack = "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py(5): forward;train.py(42): step"
    b.op("aten::mm", 0, 10, **{"Call stack": stack})
    b.launch(1, 2, 30, 5)
    assert operators(b)["aten::mm"].frame == "train.py(42): step"


def test_what_is_not_recorded_is_not_measured():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(1, 2, 30, 5)
    found = {key: None if table.absent is None else table.absent.reason for key, table in b.analyze().tables.items()}
    assert found["operators"] == found["operator_shapes"] == found["phases"] == found["step_phases"] == "no_host_ops"
    assert found["modules"] == "no_modules"
    assert found["source_lines"] == "no_python"
    assert found["op_kernels"] == "no_linked_launches"


def test_without_a_device_the_host_side_is_there():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 0, 10)
    assert [(row.op, row.host_self_ns, row.device_self_ns, row.device_share) for row in operators(b).values()] == [
        ("aten::mm", 10_000, NotMeasured("no_device_events"), NotMeasured("no_device_events"))
    ]


def test_kernels_of_an_operator_with_mean_delays():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.op("aten::mm", 0, 20)
    b.launch(5, 5, 20, 30, name="gemm")
    b.op("aten::mm", 20, 20)
    b.launch(35, 5, 60, 10, name="gemm")
    (row,) = b.analyze().tables["op_kernels"].records()
    assert (row.op, row.kernel, row.count, row.device_time_ns) == ("aten::mm", "gemm", 2, 40_000)
    assert (row.op_to_launch_ns, row.launch_to_kernel_ns) == (10_000, 15_000)


def test_the_share_of_a_single_nanosecond_is_all():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 10, 5)
    b.launch(11, 1, 20, 0.001)
    b.op("aten::t", 30, 5)
    assert [operators(b)[name].device_share for name in ("aten::mm", "aten::t")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("shapes", "detail", "shown"),
    [
        (True, Detail.NORMAL, None),
        (False, Detail.NORMAL, NotMeasured("no_shapes")),
        (False, Detail.VERBOSE, NotMeasured("no_shapes")),
        (True, Detail.VERBOSE, [("aten::mm", "[[2, 3]]")]),
    ],
)
def test_shapes_are_for_those_who_ask_for_all_but_that_they_are_missing_for_everybody(shapes, detail, shown):
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("aten::mm", 10, 30, **({"Input Dims": [[2, 3]]} if shapes else {}))
    b.launch(22, 4, 50, 20)
    table = analyze_context(Context(b.trace(), Options()), detail).tables.get("operator_shapes")
    rows = None if table is None else table.absent or [(row.op, row.shapes) for row in table.records()]
    assert rows == shown
