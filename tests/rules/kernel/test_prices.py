"""What findings about kernels say they save, worked out on paper: µs a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ascend_builder import AscendBuilder
from tests.rules.kernel.cases import (
    BMM,
    CAST,
    CHAIN,
    CONTIGUOUS,
    FLASH,
    GATHER,
    NORM,
    ROTARY,
    SCATTER,
    SOFTMAX,
    TRANSPOSE,
    checkpointed,
    convolutions,
    grid,
    looping,
    npu,
    pointwise,
)
from tests.rules.make import finding, judged, kernel, program
from tests.rules.sequences import POINTWISE, Run, mm, read_npu, steps

US = 1000
FLOAT = {"dtype": "float", "tensor": False}

CASES = [
    # A100: 19.5, 156 and 312 TFLOPS; half of 8 times as fast is 4 times, all of 16 bits 16 times.
    ("KRN101", [mm(1600, **FLOAT)], 1600 * 3 / 4, 1600 * 15 / 16),
    # Reading 4096 × 1024 numbers takes this product as long on faster units.
    ("KRN101", [mm(1600, **FLOAT), mm(400, n=1, **FLOAT)], 1600 * 3 / 4, 1600 * 15 / 16),
    # Operands of 18.1 MB are not moved in less than 8.88 of its 40 µs.
    ("KRN101", [mm(40, n=64, **FLOAT)] * 40, 1600 * 3 / 4, 1600 * (1 - 8.88 / 40)),
    ("KRN102", [mm(1000, n=50257), mm(1000)], 300, 500),
    # 421 GFLOP take 1351 µs at 312 TFLOPS, of which nothing is saved; 33.6 take 107.6, or 153.8 at 0.7 of the roofline.
    ("KRN102", [mm(1500, n=50257)], 149, 149),
    ("KRN102", [mm(1500, k=1001, tensor=False)], 1500 - 153.8, 1500 - 107.6),
    # What a product that fits reaches, 34.4 GFLOP in 120 µs, these could: 421 GFLOP in 1472 µs.
    ("KRN102", [mm(3000, n=50257), mm(120)], 1528, 1528),
    # 3.05 waves take as long as 4; half of what is lost is the estimate.
    ("KRN103", [grid(3.05, 1600)], 1600 * 0.95 / 8, 1600 * 0.95 / 4),
    # All but the two products of 300 µs, and half of these; at most with them.
    ("KRN104", [BMM, pointwise("mul", 100), SOFTMAX, BMM], 200 + 0.5 * 600, 800),
    ("KRN104", [BMM, SOFTMAX, BMM, Run("aten::_softmax_backward_data", 150), mm(500)], 250 + 0.5 * 600, 850),
    # Six kernels of 100 µs become one.
    ("KRN105", [*NORM, mm(500), *NORM], 1000, 1200),
    ("KRN105", [*ROTARY, mm(500), *ROTARY], 800, 1000),
    ("KRN106", [mm(1000), *CHAIN], 600, 750),
    ("KRN106", [mm(500), *CHAIN, mm(500), *CHAIN], 1200, 1500),
    # A change of format goes altogether, three quarters of the other copies: half of them at least, all at most.
    ("KRN107", [mm(1000), TRANSPOSE, CONTIGUOUS], 150 + 112.5, 300),
    ("KRN110", [mm(1000), CAST, CAST], 375, 500),
    # 0.7 of the device is empty.
    ("KRN111", [grid(0.3)], 1500 * 0.7 / 2, 1500 * 0.7),
    ("KRN112", [mm(1000), GATHER, SCATTER], 100, 200),
    # 268 MB at 2039 GB/s are 131.65 µs, of which float32 saves half; of a comparison, whose results are bytes, 4 of 9
    # parts of 74.04; of an operator without a formula a fifth.
    ("KRN117", [mm(1000), *[pointwise("add", 200, dtype="double")] * 2], 131.65, 200),
    ("KRN117", [mm(1000), *[pointwise("gt", 75, dtype="double")] * 4], 131.6, 150),
    ("KRN117", [mm(1000), pointwise("upsample_bilinear2d", 800, dtype="double")], 160, 400),
]


@pytest.mark.parametrize(("rule", "runs", "saving", "bound"), CASES)
def test_a_finding_says_what_its_kernels_save(rule, runs, saving, bound):
    found = finding(steps(runs), rule)
    # A launch that is not there leaves no gap of 1.5 µs either.
    assert found.saving == pytest.approx(saving * US, rel=0.01)
    assert found.bound <= (bound + max(0.13 * bound, 16)) * US


def test_without_another_product_the_gain_of_alignment_is_uncertain():
    alone, beside, larger = (
        finding(steps(runs), "KRN102")
        for runs in ([mm(3000, n=50257)], [mm(3000, n=50257), mm(120)], [mm(3000, n=50257), mm(500, n=65536)])
    )
    assert (alone.low, alone.saving, alone.bound) == (450 * US, 900 * US, 1500 * US)
    assert beside.low == pytest.approx(1528 * US * 0.88, rel=0.01)
    # A larger product tells nothing about this one.
    assert (larger.low, larger.bound) == (alone.low, alone.bound)


def test_what_is_far_from_its_roofline_is_brought_to_half_of_it():
    """4096 × 1024 × 4096 in bfloat16 are 34.4 GFLOP, 110.1 µs at 312 TFLOPS; the product takes 1000 µs."""
    found = finding(steps([mm(1000)]), "KRN119")
    share = 2 * 4096 * 1024 * 4096 / 312e12 * 1e6 / 1000
    assert found.saving == pytest.approx(1000 * US * (1 - share / 0.5), rel=1e-3)


def test_only_what_others_reach_in_the_same_recording_is_certain():
    """A smaller product reaches 0.275 of the roofline: 27.5 of 100 µs; a larger one tells nothing about small ones."""
    slow, small, large = mm(1000), mm(100, m=1024), mm(250, m=8192)
    alone, beside, near = (finding(steps(runs), "KRN119") for runs in ([slow], [slow, small], [slow, large]))
    share, other = 110.1 / 1000, 27.53 / 100
    assert alone.low == near.low == 0
    assert beside.low == pytest.approx(1000 * US * (1 - share / other), rel=1e-2)


def test_kernels_of_ascend_far_from_their_roofline_need_no_recorded_shapes():
    """A sum moves 3 × 32 MiB, 61.5 µs at 1638 GB/s, and takes 615 µs; the device is known by its matrix units."""
    b = AscendBuilder()
    for number in range(3):
        at = number * 4000
        b.step(number, at, 3900)
        cube = {"aic_total_cycles": "2160000", "Input Shapes": "N/A"}
        b.kernel("aclnnMatMul_1", at + 100, 100, op_type="MatMulV2", launch=at + 10, **cube)
        sums = {"Input Shapes": '"8192,1024;8192,1024"', "Output Shapes": '"8192,1024"', "Output Data Types": "FLOAT"}
        tensors = sums | {"Input Data Types": "FLOAT;FLOAT", "Input Formats": "ND;ND"}
        b.kernel("aclnnAdd_1", at + 200, 615, op_type="Add", core="AI_VECTOR_CORE", launch=at + 40, **tensors)
        b.call("AscendCL@aclrtSynchronizeDevice", at + 60, 770)
    (found,) = judged(read_npu(b), "KRN119").findings
    share = 3 * 4 * 8192 * 1024 / 1638e9 / 615e-6
    assert found.scope.ops == ("Add 8192×1024, 8192×1024",)
    assert found.saving == pytest.approx(615 * US * (1 - share / 0.5), rel=1e-3)


def test_recomputation_is_half_saved():
    found = finding(checkpointed(1000, 30 * 2**30), "KRN114")
    assert found.saving == pytest.approx(500 * US, rel=0.01)


def test_a_bias_before_batch_norm_costs_its_additions():
    found = finding(convolutions(bias=True), "KRN109")
    assert found.saving == 3 * 150 * US


ADAM = [pointwise(name, 50) for name in ("mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_")]
OUT_OF_PLACE = [replace(one, op=one.op.rstrip("_")) for one in ADAM]


@pytest.mark.parametrize(("optimizer", "in_place"), [(True, True), (True, False), (False, True)])
def test_a_loop_over_equal_parameters_is_a_chain_each(optimizer, in_place):
    """Eight parameters, each of eight kernels of 50 µs that one could do."""
    b = steps([mm(500), *(ADAM if in_place else OUT_OF_PLACE) * 8])
    for number in range(4 * optimizer):
        b.annotation("Optimizer.step#Muon.step", number * 4000 + 5, 700)
    found = finding(b, "KRN106")
    assert (found.saving, found.bound, found.evidence[2].value) == (2800 * US, 2800 * US, 32)


def test_what_repeats_without_a_change_in_place_may_be_about_one_tensor():
    found = finding(steps([mm(500), *OUT_OF_PLACE * 8]), "KRN106")
    assert (found.saving, found.bound) == (3150 * US, 3150 * US)
    assert found.least <= 2800 * US
    of_two = finding(steps([mm(500), *OUT_OF_PLACE[:2] * 20]), "KRN106")
    assert (of_two.saving, of_two.least, of_two.confidence.name) == (1950 * US, 1000 * US, "MEDIUM")


def test_one_operator_again_and_again_leaves_the_time_before_late_launches_to_the_host():
    """Steps of 40 operators of 24 µs, each of which launches 3 µs of work: a chain a step, if they are one at all."""

    def body(b, at, number):
        for part in range(40):
            b.op("aten::mul", at + 25 * part, 24, **{"Input Dims": [[64, 64]]})
            b.launch(at + 25 * part + 12, 5, at + 25 * part + 20, 3, name=POINTWISE)

    first, second = judged(program(body, length=1000), "HST101", "KRN106").findings
    assert (first.rule, first.severity.name, first.confidence.name) == ("HST101", "HIGH", "HIGH")
    assert (second.rule, second.confidence.name, second.least, second.count) == ("KRN106", "LOW", 0, 4)


def test_one_operator_over_many_tensors_is_no_chain():
    assert finding(steps([mm(500), *ADAM[:1] * 40]), "KRN106") is None


@pytest.mark.parametrize(("operators", "saving"), [(3, None), (4, (3 * 120 * US, 4))])
def test_an_operator_whose_tensors_are_cut_into_kernels_is_one_link_of_a_chain(operators, saving):
    """Each of four kernels of 30 µs, as foreach functions launch them: of what is fused one pass remains."""

    def body(b, at, number):
        kernel(b, at, 1000)
        for place, name in enumerate(("mul", "add", "tanh", "exp")[:operators]):
            begin, runs = at + 30 + 50 * place, at + 1010 + 120 * place
            b.op(f"aten::{name}", begin, 48, **{"Input Dims": [[4096, 4096]]})
            for part in range(4):
                b.launch(begin + 10 * part, 5, runs + 30 * part, 30, name=POINTWISE)

    found = finding(program(body, length=1500), "KRN106")
    assert (found and (found.saving, found.evidence[2].value)) == saving


def test_the_products_of_attention_have_one_owner():
    """They are far from their roofline, too, as all that waits for memory is."""
    found = judged(steps([replace(BMM, dur=900), SOFTMAX, replace(BMM, dur=900)]), "KRN").findings
    assert [one.rule for one in found] == ["KRN104"]
    assert found[0].bound <= 1900 * US


def test_a_loop_is_saved_but_for_one_of_its_kernels():
    found = finding(looping(20), "KRN115")
    # With the gaps of 10 µs that it leaves as long as a kernel is none of them.
    assert found.saving == pytest.approx(19 * 50 * US, rel=0.03)


def test_what_runs_on_the_ai_cpu_is_saved_whole():
    assert finding(npu("AI_CPU", 500), "KRN116").saving == 500 * US


def test_rules_about_the_same_kernels_never_add_up_to_more_than_these():
    """The float32 products are also misaligned and far from their roofline: only one rule prices their time."""
    found = judged(steps([mm(2000, n=50257, **FLOAT)]), "KRN").findings
    assert sum(one.saving or 0 for one in found) <= 2000 * US


def test_a_volta_is_not_told_to_use_tf32():
    from tests.rules.sequences import A100

    volta = A100 | {"name": "Tesla V100-SXM2-16GB", "computeMajor": 7}
    found = finding(steps([mm(2000, **FLOAT)], device=volta), "KRN101")
    assert found.sentence == "volta"
    assert "tf32" not in found.advice


def test_of_operators_far_below_their_roofline_the_three_that_take_most_are_told():
    four = [replace(FLASH, dur=900 - 100 * n, shapes=[[64 + n, 64], [64, 64]]) for n in range(4)]
    found = judged(steps(four), "KRN119").findings
    assert [one.scope.ops for one in found] == [(f"aten::mm {64 + n}×64, 64×64",) for n in range(3)]
