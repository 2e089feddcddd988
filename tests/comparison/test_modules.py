"""Modules of two sides: matched by their place in the model, sums exact."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.comparison.make import side_from
from traceanalyze.comparison.modules import ALL_OPERATORS, OUTSIDE_MODULES, module_pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import NotMeasured

OPTIONS = CompareOptions()


def model(*layers, first=0, outside=0.0):
    """A module with layers: (class, µs) each, numbered from `first` by class."""
    b = TraceBuilder()
    b.step(0, 0, 2000)
    b.python("nn.Module: Net_0", 1, 900)
    numbers: dict[str, int] = {}
    device = 1000.0
    for place, (klass, length) in enumerate(layers):
        at = 10 + 20 * place
        number = numbers.setdefault(klass, first)
        numbers[klass] += 1
        b.python(f"nn.Module: {klass}_{number}", at, 15)
        b.op("aten::mm", at + 1, 8)
        b.launch(at + 2, 1, device, length, name="gemm")
        device += length
    if outside:
        b.op("aten::add", 950, 8)
        b.launch(951, 1, device, outside)
    return side_from(b).context


def op_of(row):
    return None if row.shared["op"] == ALL_OPERATORS else row.shared["op"]


def told(base, candidate, **options):
    """Rows by path, operator and µs of their own."""
    return [
        (row.shared["module"], op_of(row), *(None if side is None else side["self_ns"] / 1000 for side in row[1:]))
        for row in module_pairs(base, candidate, CompareOptions(**options))
    ]


def test_each_module_with_its_operators_and_what_lies_outside():
    base, candidate = model(("Linear", 30), ("Norm", 5), outside=7), model(("Linear", 20), ("Norm", 6), outside=8)
    assert told(base, candidate) == [
        (OUTSIDE_MODULES, None, 7, 8),
        (OUTSIDE_MODULES, "aten::add", 7, 8),
        ("Net_0", None, 0, 0),
        ("Net_0/Linear_0", None, 30, 20),
        ("Net_0/Linear_0", "aten::mm", 30, 20),
        ("Net_0/Norm_0", None, 5, 6),
        ("Net_0/Norm_0", "aten::mm", 5, 6),
    ]
    net = module_pairs(base, candidate, OPTIONS)[2]
    assert (net.base["total_ns"], net.candidate["total_ns"], net.base["calls"]) == (35_000, 26_000, 1)
    assert [row.shared["module_level"] for row in module_pairs(base, candidate, OPTIONS)[2:4]] == [0, 1]


def test_modules_of_a_recording_without_operators_have_what_was_launched_in_them():
    b = TraceBuilder()
    b.step(0, 0, 2000)
    b.python("nn.Module: Net_0", 1, 900)
    b.launch(12, 1, 1000, 30, name="gemm")
    b.launch(22, 1, 1040, 20, name="gemm")
    context = side_from(b).context
    (net,) = (row for row in module_pairs(context, context, OPTIONS) if op_of(row) is None)
    (inside,) = (row for row in module_pairs(context, context, OPTIONS) if op_of(row) is not None)
    assert (net.shared["module"], net.base["total_ns"]) == ("Net_0", 50_000)
    assert (inside.shared["module"], inside.base["calls"], inside.base["self_ns"]) == ("Net_0", 2, 50_000)


def test_numbers_of_modules_may_differ_if_the_model_is_the_same():
    base, candidate = model(("Linear", 1), ("Linear", 2)), model(("Linear", 3), ("Linear", 4), first=1)
    rows = [row for row in told(base, candidate) if row[1] is None]
    assert rows[1:] == [("Net_0/Linear_0", None, 1, 3), ("Net_0/Linear_1", None, 2, 4)]


def test_a_new_module_stands_alone():
    base = model(("Linear", 1), ("Linear", 2))
    candidate = model(("Linear", 1), ("Dropout", 9), ("Linear", 2))
    rows = [row for row in told(base, candidate) if row[1] is None]
    assert sorted(rows[1:]) == [
        ("Net_0/Dropout_0", None, None, 9),
        ("Net_0/Linear_0", None, 1, 1),
        ("Net_0/Linear_1", None, 2, 2),
    ]


def test_the_map_of_the_user_holds_inside_modules():
    base, candidate = model(("Linear", 1)), model(("Linear", 2))
    rows = told(base, candidate, op_name_map={"aten::mm": "mine::gemm"})
    assert ("Net_0/Linear_0", "mine::gemm", 1, 2) in rows


def test_backward_work_belongs_to_the_module_of_its_forward_operator():
    b = TraceBuilder()
    b.step(0, 0, 1000)
    b.python("nn.Module: Net_0", 1, 50)
    b.op("aten::mm", 5, 20, **{"Sequence number": 3, "Fwd thread id": 0})
    b.launch(6, 1, 100, 30)
    arguments = {"Sequence number": 3, "Fwd thread id": 1}
    b.op("autograd::engine::evaluate_function: MmBackward0", 60, 30, tid=2, **arguments)
    b.op("aten::mm", 65, 20, tid=2)
    b.launch(66, 1, 200, 40, tid=2)
    one = side_from(b).context
    rows = module_pairs(one, one, OPTIONS)
    assert {row.shared["module"] for row in rows} == {"Net_0"}
    assert [(row.shared["direction_of_pass"], op_of(row), row.base["self_ns"]) for row in rows] == [
        ("phase_forward", None, 30_000),
        ("phase_forward", "aten::mm", 30_000),
        ("phase_backward", None, 40_000),
        ("phase_backward", "aten::mm (backward)", 40_000),
    ]
    assert rows[2].base["calls"] is None


def test_a_side_without_modules_cannot_be_compared():
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.op("aten::mm", 5, 20)
    b.launch(6, 1, 50, 30)
    assert module_pairs(model(("Linear", 1)), side_from(b).context, OPTIONS) == NotMeasured("no_modules")
    b.annotation("## forward ##", 4, 30)
    marked = side_from(b).context
    assert told(marked, marked)[0][:3] == ("## forward ##", None, 30)
    assert module_pairs(model(("Linear", 1)), marked, OPTIONS) == NotMeasured("no_modules")
