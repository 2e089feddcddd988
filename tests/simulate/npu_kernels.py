"""Kernels of an NPU by kind: what the program calls, how the device names it, its operator type and its core."""

from __future__ import annotations

from typing import NamedTuple


class NpuKernel(NamedTuple):
    """One kernel as the tables describe it."""

    api: str
    """What is put into the task queue, `aclnn…` or the operator type of the older interface."""
    name: str
    type: str
    core: str


def _aclnn(api: str, kind: str, core: str = "AI_VECTOR_CORE", through: str = "") -> NpuKernel:
    return NpuKernel(f"aclnn{api}", f"aclnn{api}_{through or kind + 'AiCore'}_{kind}", kind, core)


_KERNELS = {
    "attention": _aclnn("FlashAttentionScore", "FlashAttentionScore", "MIX_AIC", "FlashAttentionScore"),
    "attention_backward": _aclnn(
        "FlashAttentionScoreGrad", "FlashAttentionScoreGrad", "MIX_AIC", "FlashAttentionScoreGrad"
    ),
    "reduction": _aclnn("ReduceSum", "ReduceSum", through="ReduceSumOpAiCore"),
    "normalization": _aclnn("LayerNorm", "LayerNormV3"),
    "normalization_backward": _aclnn("LayerNormBackward", "LayerNormXBackpropV3"),
    "normalization_weights": _aclnn("LayerNormBackward", "LayerNormBetaGammaBackpropV2", "MIX_AIV"),
    "softmax": _aclnn("LogSoftmax", "LogSoftmaxV2"),
    "softmax_backward": _aclnn("LogSoftmaxBackward", "LogSoftmaxGrad"),
    "loss": _aclnn("NLLLoss", "NLLLoss"),
    "loss_backward": _aclnn("NLLLossBackward", "NLLLossGrad"),
    "embedding": _aclnn("IndexSelect", "GatherV2"),
    "embedding_backward": NpuKernel("EmbeddingDenseGrad", "EmbeddingDenseGrad1", "EmbeddingDenseGrad", "AI_CPU"),
    "dequantise": _aclnn("AscendAntiQuant", "AscendAntiQuant"),
    "memset": _aclnn("InplaceZero", "ZerosLike"),
    "layout": NpuKernel("TransData", "trans_TransData_0", "TransData", "AI_VECTOR_CORE"),
}
_FUNCTORS = {
    "Mm": _aclnn("Mm", "MatMulV2", "AI_CORE", "MatMulCommon"),
    "Addmm": _aclnn("Addmm", "MatMulV2", "AI_CORE", "MatMulCommon"),
    "CUDAFunctor_add": _aclnn("Add", "Add"),
    "GeluCUDAKernelImpl": _aclnn("Gelu", "Gelu"),
    "MulFunctor": _aclnn("InplaceMuls", "Muls"),
    "LerpFunctor": _aclnn("InplaceLerp", "Lerp"),
    "AddcmulFunctor": _aclnn("InplaceAddcmul", "Addcmul"),
    "SqrtFunctor": _aclnn("Sqrt", "Sqrt"),
    "AddcdivFunctor": _aclnn("InplaceAddcdiv", "Addcdiv"),
    "FillFunctor": _aclnn("InplaceFillScalar", "Fill"),
    "Cast": _aclnn("Cast", "Cast"),
    "Relayout": _aclnn("InplaceCopy", "Transpose"),
    "FusedAdamMathFunctor": _aclnn("ApplyAdamWV2", "ApplyAdamWV2"),
    "Foreach_mul_Functor": _aclnn("ForeachMulScalar", "ForeachMulScalar"),
    "Foreach_lerp_Functor": _aclnn("ForeachLerpScalar", "ForeachLerpScalar"),
    "Foreach_addcmul_Functor": _aclnn("ForeachAddcmulScalar", "ForeachAddcmulScalar"),
    "Foreach_sqrtFunctor": _aclnn("ForeachSqrt", "ForeachSqrt"),
    "Foreach_addcdiv_Functor": _aclnn("ForeachAddcdivScalar", "ForeachAddcdivScalar"),
}
COLLECTIVES = {
    "all_reduce": "hcom_allReduce_",
    "reduce_scatter": "hcom_reduceScatter_",
    "all_gather": "hcom_allGather_",
}
HCCL_APIS = {"all_reduce": "HcclAllreduce", "reduce_scatter": "HcclReduceScatter", "all_gather": "HcclAllGather"}
GROUP_HASH = 17522688603477080586
"""The one communication group."""
_BY_NAME = {kernel.name: kernel for kernel in (*_KERNELS.values(), *_FUNCTORS.values())}
LAYOUT_CHANGE = _KERNELS["layout"]


def npu_name(kind: str, functor: str) -> str:
    """Name of a kernel or collective."""
    if kind in COLLECTIVES:
        return COLLECTIVES[kind]
    return (_KERNELS.get(kind) or _FUNCTORS[functor]).name


def described(name: str) -> NpuKernel:
    """The kernel of a name; layout changes are numbered."""
    return LAYOUT_CHANGE if name.startswith("trans_TransData_") else _BY_NAME[name]
