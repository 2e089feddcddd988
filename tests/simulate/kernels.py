"""Kernel names by kind and vendor, as the libraries spell them."""

from __future__ import annotations

from tests.simulate.npu_kernels import npu_name

_AT = "void at::native::"
_ANON = "void at::native::(anonymous namespace)::"
NAMES = {
    "matmul": {
        "nvidia": "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_stage4_tensor16x8x16_kernel",
        "amd": "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x64_MI16x16x1_SN_LDSB1",
    },
    "attention": {
        "nvidia": "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Flash_fwd_params)",
        "amd": "attn_fwd",
    },
    "attention_backward": {
        "nvidia": "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>"
        "(Flash_bwd_params)",
        "amd": "bwd_kernel_dk_dv",
    },
    "elementwise": {"": _AT + "vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 2ul>>(int)"},
    "reduction": {"": _AT + "reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::{}_functor<float>>>()"},
    "normalization": {"": _ANON + "vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)"},
    "normalization_backward": {"": _ANON + "layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float>(int)"},
    "normalization_weights": {"": _ANON + "GammaBetaBackwardCUDAKernel_32x32<c10::BFloat16, float>(long, long)"},
    "softmax": {"": _ANON + "cunn_SoftMaxForward<8, float, float, float, LogSoftMaxForwardEpilogue>(float*, int)"},
    "softmax_backward": {"": _ANON + "cunn_SoftMaxBackward<8, float, float, float, LogSoftMaxBackward>(float*, int)"},
    "loss": {"": _ANON + "nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, long*)"},
    "loss_backward": {"": _ANON + "nll_loss_backward_reduce_cuda_kernel_2d<float, long>(float*, long*)"},
    "embedding": {"": _ANON + "indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(long)"},
    "embedding_backward": {"": _ANON + "embedding_backward_feature_kernel<c10::BFloat16, float, long>(long*)"},
    "optimizer": {"": _ANON + "multi_tensor_apply_kernel<TensorListMetadata<4>, {}>(int)"},
    "dequantise": {"": "void kDequantizeBlockwise<__half, 512, 64, 8, 2>(float*, unsigned char*, float*, int, int)"},
    "memset": {"": "Memset (Device)"},
    "all_reduce": {"": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
    "reduce_scatter": {"": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
    "all_gather": {"": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
}


_COPIES = {
    "Relayout": _AT + "elementwise_kernel<128, 4, gpu_kernel_impl<at::native::direct_copy_kernel_cuda>>(int)",
    "Cast": _AT + "unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)",
}
"""Element-wise kernels with names of their own."""
SINGLE = {
    "matmul": {"nvidia": "ampere_sgemm_128x64_tn", "amd": "Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT64x64x16_SN"},
    "attention": {"nvidia": "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel::Params)"},
    "attention_backward": {
        "nvidia": "fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwardKernel::Params)"
    },
}
"""Kernels that are others in single precision."""


def kernel_name(kind: str, vendor: str, functor: str = "", dtype: str = "") -> str:
    """Name of a kernel; `functor` fills the template where it has a place for it."""
    if vendor == "ascend":
        return npu_name(kind, functor)
    if functor in _COPIES:
        return _COPIES[functor]
    by_vendor = SINGLE.get(kind, {}) if dtype == "float" and vendor in SINGLE.get(kind, {}) else NAMES[kind]
    return by_vendor.get(vendor, by_vendor.get("", "")).replace("{}", functor)


CLASSES = {
    "matmul": "matmul",
    "attention": "attention",
    "attention_backward": "attention",
    "elementwise": "elementwise",
    "reduction": "reduction",
    "normalization": "normalization",
    "normalization_backward": "normalization",
    "normalization_weights": "normalization",
    "softmax": "softmax",
    "softmax_backward": "softmax",
    "loss": "loss",
    "loss_backward": "loss",
    "embedding": "embedding",
    "embedding_backward": "embedding",
    "optimizer": "optimizer",
    "all_reduce": "communication",
    "reduce_scatter": "communication",
    "all_gather": "communication",
    "HtoD": "copy",
    "DtoH": "copy",
    "memset": "fill",
    "layout": "layout",
    "dequantise": "elementwise",
}
"""What each kind of work is for."""
