"""Names of one operator in every library, vendor and generation are one."""

from __future__ import annotations

import pytest

from traceanalyze.comparison.names import canonical, is_wrapper, names_backward
from traceanalyze.comparison.side import CompareOptions

NODE = "autograd::engine::evaluate_function: "


def name(text, **mapped):
    return canonical(text, CompareOptions(op_name_map=mapped.pop("map", {})))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["aten::mm", NODE + "MmBackward0", "MmBackward0", "MmBackward", "aclnnMm"], "aten::mm"),
        (["aten::add", "aten::add_", "aten::add.Tensor", "AddBackward0", "aclnnInplaceAdd"], "aten::add"),
        (
            [
                *("aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution"),
                *("aten::miopen_convolution", "npu::npu_conv2d", "CudnnConvolutionBackward", "ConvolutionBackward0"),
                *("aten::convolution_backward", "aten::cudnn_convolution_backward_weight", "aclnnConvolutionBackward"),
            ],
            "aten::convolution",
        ),
        (
            [
                *("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention"),
                *("aten::_flash_attention_forward", "aten::_flash_attention_backward", "npu::npu_fusion_attention"),
                *("npu::npu_fusion_attention_grad", "aclnnFlashAttentionScoreGrad", "flash_attn::_flash_attn_forward"),
                *("NpuFusionAttentionBackward0", "FlashAttnFuncBackward", "aten::_efficient_attention_forward"),
                *("flash_attn_3::fwd", "flash_attn_3::bwd", "flash_attn_3::_flash_attn_backward", "aiter::mha_bwd"),
                *("aiter::mha_fwd", "xformers_flash::flash_bwd", "_vllm_fa3_C::fwd", "_vllm_fa2_C::varlen_fwd"),
            ],
            "aten::scaled_dot_product_attention",
        ),
        (["aten::rms_norm", "npu::npu_rms_norm", "aten::_fused_rms_norm", "aclnnRmsNormGrad"], "aten::rms_norm"),
        (["FusedRMSNormAffineFunction", "LigerRMSNormFunctionBackward", "_C::rms_norm"], "aten::rms_norm"),
        (["ApplyRotaryEmb", NODE + "ApplyRotaryEmbBackward", "_C::rotary_embedding"], "aten::rotary_mul"),
        (["aten::native_layer_norm", "NativeLayerNormBackward0", "aten::layer_norm"], "aten::layer_norm"),
        (["aten::_log_softmax", "aten::_log_softmax_backward_data", "LogSoftmaxBackward"], "aten::log_softmax"),
        (["aten::max_pool2d_with_indices_backward", "MaxPool2DWithIndicesBackward0"], "aten::max_pool2d"),
        (["aten::relu", "aten::threshold_backward", "ReluBackward1"], "aten::relu"),
        (["aten::embedding", "aten::embedding_dense_backward", "EmbeddingBackward0"], "aten::embedding"),
        (["aten::_fused_adamw_", "npu::npu_apply_fused_adamw"], "aten::_fused_adamw"),
        (["npu::npu_swiglu", "aclnnSwiGlu", "npu::npu_swiglu_backward", "LigerSiLUMulFunction"], "aten::swiglu"),
        (["torch::autograd::AccumulateGrad", NODE + "torch::autograd::AccumulateGrad"], "AccumulateGrad"),
        (["CompiledFunction", "CompiledFunctionBackward"], "CompiledFunction"),
        (["triton_poi_fused_add_3", "triton_poi_fused_add_17"], "triton_poi_fused_add"),
        (["## Call CompiledFxGraph fabc123 ##", "## Call CompiledFxGraph f777 ##"], "CompiledFxGraph"),
        (["torch::autograd::CppNode<Lookup_Op>", NODE + "torch::autograd::CppNode<Lookup_Op>"], "Lookup_Op"),
        (["npu::npu_format_cast", "npu::npu_format_cast_"], "npu::npu_format_cast"),
    ],
)
def test_names_of_one_operator(texts, expected):
    assert {text: name(text) for text in texts} == dict.fromkeys(texts, expected)


def test_different_operators_stay_different():
    texts = [
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::__and__",
        "aten::__or__",
        "aten::_foreach_add_",
        "aten::add",
    ]
    assert len({name(text) for text in texts}) == len(texts)


def test_a_canonical_name_is_its_own():
    for text in ("aten::convolution", "aten::scaled_dot_product_attention", "aten::_fused_adamw", "npu::npu_x"):
        assert name(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MmBackward0", True),
        ("CudnnConvolutionBackward", True),
        (NODE + "AccumulateGrad", True),
        ("torch::autograd::AccumulateGrad", True),
        ("aten::convolution_backward", True),
        ("aten::cudnn_convolution_backward_input", True),
        ("npu::npu_fusion_attention_grad", True),
        ("aclnnFlashAttentionScoreGrad", True),
        ("aten::mm", False),
        ("aten::add_", False),
        ("aclnnMatmul", False),
    ],
)
def test_names_that_tell_the_direction(text, expected):
    assert names_backward(text) is expected


def test_operators_are_told_from_what_wraps_them():
    assert not any(map(is_wrapper, ("aten::mm", "npu::npu_swiglu", "fbgemm::lookup")))
    wrappers = (
        NODE + "MmBackward0",
        "MmBackward0",
        "torch::autograd::AccumulateGrad",
        "DistributedDataParallel.forward",
    )
    assert all(map(is_wrapper, wrappers))


def test_the_map_of_the_user_comes_first_and_several_names_may_map_to_one():
    mine = {"npu::my_gemm": "aten::mm", "aten::bmm": "aten::mm", "aten::rms_norm": "aten::layer_norm"}
    texts = ("npu::my_gemm", "aten::bmm", "BmmBackward0", "npu::npu_rms_norm", "aten::add")
    expected = ("aten::mm", "aten::mm", "aten::mm", "aten::layer_norm", "aten::add")
    assert tuple(name(text, map=mine) for text in texts) == expected


def test_the_map_overrides_the_table():
    assert name("npu::npu_swiglu", map={"npu::npu_swiglu": "aten::silu"}) == "aten::silu"
