"""A fused operator against the same written as several: one row, one call."""

from __future__ import annotations

import pytest

from tests.comparison.calls import Program, told
from traceanalyze.comparison import align
from traceanalyze.comparison.operators import operator_pairs, operator_totals
from traceanalyze.comparison.side import CompareOptions

OPTIONS = CompareOptions()


def totals(base, candidate):
    found = operator_totals(base.context, candidate.context, OPTIONS)
    return {
        row.shared["op"]: tuple((side["device_ns"] / 1000, side["calls"]) if side else (0, 0) for side in row[1:])
        for row in found
    }


def program(*names, before="aten::mm", after="aten::add"):
    made = Program().step().op(before, 100)
    for name in names:
        made.op(name, 10).op("aten::view")
    return made.op(after, 50)


@pytest.mark.parametrize(
    ("fused", "name", "parts"),
    [
        ("npu::npu_rms_norm", "aten::rms_norm", ["pow", "mean", "add", "rsqrt", "mul", "mul"]),
        ("npu::npu_rms_norm", "aten::rms_norm", ["to", "pow", "mean", "add", "rsqrt", "mul", "to", "mul"]),
        ("npu::npu_swiglu", "aten::swiglu", ["silu", "mul"]),
        ("npu::npu_rotary_mul", "aten::rotary_mul", ["mul", "neg", "cat", "mul", "add"]),
        (
            "npu::npu_fusion_attention",
            "aten::scaled_dot_product_attention",
            ["matmul", "div", "add", "softmax", "dropout", "matmul"],
        ),
        (
            "npu::npu_apply_fused_adamw",
            "aten::_fused_adamw",
            ["_foreach_add_", "_foreach_lerp_", "_foreach_mul_", "_foreach_addcdiv_"],
        ),
    ],
)
def test_a_fused_operator_meets_the_operators_it_stands_for(fused, name, parts):
    base, candidate = program(*(f"aten::{part}" for part in parts)), program(fused)
    assert totals(base, candidate) == {
        name: ((10.0 * len(parts), 1), (10.0, 1)),
        "aten::mm": ((100.0, 1), (100.0, 1)),
        "aten::add": ((50.0, 1), (50.0, 1)),
    }
    calls = told(operator_pairs(base.context, candidate.context, OPTIONS))
    assert calls[1] == ((" + ".join(f"aten::{part}" for part in parts), 10.0 * len(parts)), (fused, 10.0))
    assert [len(calls), calls[0][0], calls[2][1]] == [3, ("aten::mm", 100.0), ("aten::add", 50.0)]


def test_each_occurrence_is_a_call():
    base = program(*["aten::silu", "aten::mul"] * 3)
    candidate = program(*["npu::npu_swiglu"] * 3)
    assert totals(base, candidate)["aten::swiglu"] == ((60.0, 3), (30.0, 3))


def test_operators_are_not_joined_where_no_side_runs_the_fused_one():
    one = program("aten::silu", "aten::mul")
    assert set(totals(one, one)) == {"aten::mm", "aten::silu", "aten::mul", "aten::add"}


def test_operators_in_another_order_are_not_joined():
    base, candidate = program("aten::mul", "aten::silu"), program("npu::npu_swiglu")
    assert totals(base, candidate)["aten::swiglu"] == ((0.0, 0), (10.0, 1))


def test_threads_are_not_mixed_up():
    base = Program().step().op("aten::silu", 10).op("aten::mul", 10, tid=2)
    candidate = Program().step().op("npu::npu_swiglu", 10)
    assert totals(base, candidate)["aten::swiglu"] == ((0.0, 0), (10.0, 1))


def test_what_a_backend_composes_inside_a_fused_operator_is_part_of_it():
    inside = [("aten::pow", 10), ("aten::mean", 10), ("aten::mul", 10)]
    base, candidate = Program().step().op("aten::rms_norm", inside=inside), Program().step().op("npu::npu_rms_norm", 9)
    assert totals(base, candidate) == {"aten::rms_norm": ((30.0, 1), (9.0, 1))}


def test_operators_of_the_backward_pass_are_not_joined_as_if_they_were_forward():
    node = "autograd::engine::evaluate_function: OtherBackward0"
    base = Program().step().op(node, inside=[("aten::silu", 10), ("aten::mul", 10)])
    candidate = Program().step().op("npu::npu_swiglu", 10)
    assert set(totals(base, candidate)) == {"aten::silu (backward)", "aten::mul (backward)", "aten::swiglu"}


def test_the_backward_pass_of_the_parts_meets_that_of_the_fused_operator():
    base = Program().step()
    for number, name in enumerate(("aten::silu", "aten::mul")):
        base.op(name, 10, **{"Sequence number": number, "Fwd thread id": 0})
    for number, name in ((1, "Mul"), (0, "Silu")):
        arguments = {"Sequence number": number, "Fwd thread id": 1}
        kernel = [(f"aten::{name.lower()}_backward", 5)]
        base.op(f"autograd::engine::evaluate_function: {name}Backward0", inside=kernel, tid=2, **arguments)
    candidate = Program().step().op("npu::npu_swiglu", 12)
    candidate.op("autograd::engine::evaluate_function: NpuSwigluBackward0", inside=[("npu::npu_swiglu_backward", 8)])
    assert totals(base, candidate) == {
        "aten::swiglu": ((20.0, 1), (12.0, 1)),
        "aten::swiglu (backward)": ((10.0, 1), (8.0, 1)),
    }


def _across(monkeypatch: pytest.MonkeyPatch, one: list[str], other: list[str]) -> dict:
    """Totals of a GPU that runs these operators, and of an NPU that runs those."""
    base, candidate = Program().step(), Program().step().op("npu::mark")
    for side, names in ((base, one), (candidate, other)):
        for name in names:
            side.op(name if "::" in name or "triton" in name else f"aten::{name}", 10)

    def vendor(context) -> str:
        return "ascend" if "npu::mark" in context.trace.strings.each(context.op_names) else "cuda"

    monkeypatch.setattr(align, "vendor", vendor)
    return totals(base, candidate)


MISH = ["softplus", "tanh", "mul"]


def test_across_vendors_what_stands_in_an_operator_s_place_every_time_is_that_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = ["mm", "mish", "mm", "mul", "mm", "mish", "mish"]
    found = _across(monkeypatch, one, ["mm", *MISH, "mm", "mul", "mm", *MISH, *MISH])
    assert found == {
        "aten::mish": ((30.0, 3), (90.0, 3)),
        "aten::mm": ((30.0, 3), (30.0, 3)),
        "aten::mul": ((10.0, 1), (10.0, 1)),
    }
    assert _across(monkeypatch, ["mm", "mish"], ["mm", "npu::other"])["aten::mish"] == ((10.0, 1), (10.0, 1))


def test_compiled_kernels_meet_the_operators_they_were_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    norm = ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    one = ["mm", "triton_red_fused_add_mean_mul_pow_rsqrt_0", "mm", "triton_poi_fused_add_1", "mm"]
    assert _across(monkeypatch, one, ["mm", *norm, "mm", "add", "mm"]) == {
        "aten::rms_norm": ((10.0, 1), (60.0, 1)),
        "triton_poi_fused_add": ((10.0, 1), (10.0, 1)),
        "aten::mm": ((30.0, 3), (30.0, 3)),
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # Not everywhere the same; elsewhere, too; and a name that the first side has.
        (["mm", "mish", "mm", "mish"], ["mm", *MISH, "mm", "softplus", "tanh"]),
        (["mm", "mish", "mm"], ["mm", *MISH, "mm", "softplus", "tanh", "mul"]),
        (["mm", "mish", "mm", "mul"], ["mm", "mul", "mm", "mul"]),
        # Another function of PyTorch's.
        (["mm", "mish", "mm"], ["mm", "gelu", "mm"]),
    ],
)
def test_what_does_not_always_stand_in_its_place_is_another(
    monkeypatch: pytest.MonkeyPatch, one: list[str], other: list[str]
) -> None:
    assert _across(monkeypatch, one, other)["aten::mish"][1] == (0, 0)


def test_of_one_vendor_another_operator_is_another() -> None:
    base, candidate = (Program().step().op("aten::mm", 10).op(name, 10) for name in ("aten::relu", "aten::gelu"))
    assert set(totals(base, candidate)) == {"aten::mm", "aten::relu", "aten::gelu"}
