"""What the rules about kernels, compilation and communication say about public traces, judged by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.make import judged, known
from traceanalyze.pipeline import load
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand
from traceanalyze.rules.registry import every_rule

FAMILIES = ("KRN", "CGR", "COM", "NPU")
SAMPLES = Path(__file__).parents[3] / "sample_traces"
QWEN = "kineto/tracelens/{}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"


def outcome_of(folder, pattern, *rules):
    (path,) = folder.glob(pattern)
    (source,) = expand([str(path)]).sources
    return judged(read_trace(source), *rules)


def said(folder, pattern, *rules):
    return outcome_of(folder, pattern, *(rules or FAMILIES)).findings


@pytest.mark.parametrize("device", ["h100", "mi300"])
def test_an_eager_qwen_computes_its_norms_and_rotary_embeddings_operator_by_operator(shared_traces, device):
    """24 blocks with two norms each and one at the end, and a rotary embedding of queries and one of keys."""
    found = {one.scope.ops[0]: one.count for one in said(shared_traces, QWEN.format(device), "KRN105")}
    assert found == {"pow, mean, rsqrt, mul": 49, "neg, cat, mul, add": 48}


def test_a_language_model_is_not_told_to_keep_its_images_in_another_format(shared_traces):
    """96 copies under `aten::contiguous`, and no convolution; ResNet-50 has `nchwToNhwc` kernels."""
    (found,) = said(shared_traces, QWEN.format("h100"), "KRN107")
    assert (found.count, found.advice) == (96, ("views",))
    (found,) = said(shared_traces, "kineto/deepview/8d56dc*", "KRN107")
    assert found.advice == ("one_layout",)


def test_copies_in_a_compiled_program_are_named_with_what_makes_them(shared_traces):
    """4645 copies of 20 µs in six steps, 92.9 ms in all; most are under `copy_` and `clone` of its backward pass.

    By the raw events, 81.806 ms of them lie inside the steps with neither a kernel nor another copy or fill beside.
    """
    (found,) = said(shared_traces, "kineto/hta/trace_diff/test/*", "KRN121")
    assert found.scope.ops[0] == "CompiledFunctionBackward"
    assert found.evidence[0].value == round(81_806_000 / 6)


def test_the_first_segment_anything_multiplies_in_float32(shared_traces):
    """The first rung of its ladder of speed-ups."""
    found = {one.rule: one for one in said(shared_traces, "pairs/sam_fast_ladder/a73da0*")}
    # In bfloat16 and compiled a later rung has 668 ms less of compute, but a step shorter by 236.
    assert 0.75 * 236_000_000 < found["KRN101"].saving < 300_000_000
    assert found["KRN101"].least <= 236_000_000 <= found["KRN101"].bound
    assert {"KRN104", "KRN107"} <= set(found)
    assert found["KRN104"].count == 144


def test_once_it_is_in_bfloat16_that_is_no_finding(shared_traces):
    assert "KRN101" not in {one.rule for one in said(shared_traces, "pairs/sam_fast_ladder/02c6e0*")}


def test_faster_attention_is_a_guess_where_the_recording_has_none(shared_traces):
    (found,) = (one for one in said(shared_traces, QWEN.format("mi300"), "KRN119") if "attention" in one.scope.ops[0])
    assert (found.least, found.confidence.name) == (0, "LOW")


@pytest.mark.parametrize(
    ("name", "trace", "cost"),
    [
        # 17.18 GFLOP in 730 µs (with a transposition), 29.6 in 2000 and 0.27 in 200; 1307 TFLOPS, 5.3 TB/s.
        ("test04_gemm_mm_vs_linear", 1, 703_700),
        ("test06_conv_gap_exceeds_roofline", 1, 1_954_700),
        ("test05_gemm_identical_runtime_roofline", 1, 199_400),
    ],
)
def test_an_excerpt_shows_operators_far_from_their_roofline(shared_traces, name, trace, cost):
    found = said(shared_traces, f"pairs/tracelens_mi300_vs_h100_unit/{name}/trace{trace}*", "KRN119")
    assert [(one.saving, one.severity.name) for one in found] == [(None, "MEDIUM")]
    assert found[0].cost == pytest.approx(cost, rel=0.001)


def test_an_excerpt_of_a_tenth_of_a_millisecond_is_judged_by_its_own_length(shared_traces):
    """120 µs of attention, operator by operator: little of the step that it prints."""
    found = said(shared_traces, "pairs/tracelens_mi300_vs_h100_unit/test02_attention_both_unfused/trace2*")
    assert [(one.rule, one.saving, one.severity.name) for one in found] == [("KRN104", None, "LOW")]
    assert found[0].cost <= 120_000


def test_its_masks_are_resized_in_float64(shared_traces):
    """`upsample_bilinear2d` of float64 masks; Python numbers, which are float64 on paper, are not counted."""
    (found,) = said(shared_traces, "pairs/sam_fast_ladder/c84af2*", "KRN117")
    assert found.scope.ops[0] == "aten::upsample_bilinear2d"
    # In float32 (a73da0 against 4488ee) these are faster by 21, 23 and 43 %: a replay by hand gains 19.4 ms.
    assert found.saving == pytest.approx(19_400_000, rel=0.1)
    assert found.least < 19_400_000 < found.bound


def test_a_tuned_gpt_waits_for_another_rank_and_has_no_graph_breaks(shared_traces):
    """Its optimizer compiles several functions on purpose. With all ranks recorded, rank 0 waits 7.56 ms a step."""
    (found,) = said(shared_traces, "kineto/modded_nanogpt/*/42f4e7*")
    assert found.rule == "COM120"
    assert 0.75 * 7_560_000 < (found.cost or 0) < 7_560_000


def test_resnet_on_a_v100_multiplies_in_float32_and_gets_no_advice_on_tf32(shared_traces):
    folder = "kineto/kineto_tb/samples/resnet50_num_workers_4"
    (path,) = shared_traces.glob(f"{folder}/worker0.1623212756351*")
    (rule,) = (one for one in every_rule() if one.id == "KRN101")
    (found,) = rule(known(load(path).traces[0]))
    assert found.sentence == "volta"
    assert found.advice == ("autocast_float16",)
    # Its host is late: faster products save nothing there, so that it is not told.
    assert said(shared_traces, f"{folder}/worker0.1623212756351*", "KRN101") == ()


def test_a_convolution_net_changes_its_layout(shared_traces):
    found = said(shared_traces, "kineto/deepview/8d56dc*")
    assert [one.rule for one in found] == ["KRN107", "KRN122"]


@pytest.mark.parametrize("name", ["gpu_healthy", "gpu_sync", "gpu_data_loading", "gpu_2021_layout", "npu_training"])
def test_healthy_kernels_of_the_samples_are_no_finding_above_a_note(name):
    (path,) = [*(SAMPLES / name).glob("trace.json.gz"), *(SAMPLES / name).glob("*_ascend_pt")]
    (source,) = expand([str(path)]).sources
    assert [one.rule for one in judged(read_trace(source), *FAMILIES).findings if one.severity > 0] == []
