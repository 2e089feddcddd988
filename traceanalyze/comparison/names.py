"""One name for an operator, whoever runs it: `aten::`, `npu::`, `aclnn…`, cuDNN, MIOpen and autograd nodes."""

from __future__ import annotations

import re
from functools import lru_cache

from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.patterns import regex

SYNONYMS: dict[str, str] = {
    # Convolution, as PyTorch, cuDNN, MIOpen and CANN call it.
    "conv1d": "convolution",
    "conv2d": "convolution",
    "conv3d": "convolution",
    "cudnn_convolution": "convolution",
    "cudnn_convolution_relu": "convolution",
    "cudnn_convolution_add_relu": "convolution",
    "miopen_convolution": "convolution",
    "miopen_depthwise_convolution": "convolution",
    "miopen_convolution_transpose": "conv_transpose",
    "cudnn_convolution_transpose": "conv_transpose",
    "mkldnn_convolution": "convolution",
    "slow_conv2d_forward": "convolution",
    "slow_conv2d": "convolution",
    "conv_depthwise2d": "convolution",
    "convolution_overrideable": "convolution",
    "npu_convolution": "convolution",
    "npu_conv2d": "convolution",
    "conv2_d_backprop_input": "convolution",
    "conv2_d_backprop_filter": "convolution",
    # Normalization.
    "batch_norm_impl_index": "batch_norm",
    "native_batch_norm": "batch_norm",
    "native_batch_norm_legit": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "miopen_batch_norm": "batch_norm",
    "batch_norm_with_update": "batch_norm",
    "native_layer_norm": "layer_norm",
    "npu_layer_norm_eval": "layer_norm",
    "native_group_norm": "group_norm",
    "npu_group_norm_silu": "group_norm",
    "npu_rms_norm": "rms_norm",
    "_fused_rms_norm": "rms_norm",
    # Attention, forward, all libraries.
    "scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "scaled_dot_product_cudnn_attention": "scaled_dot_product_attention",
    "scaled_dot_product_fused_attention_overrideable": "scaled_dot_product_attention",
    "scaled_dot_product_attention_math": "scaled_dot_product_attention",
    "flash_attention_forward": "scaled_dot_product_attention",
    "efficient_attention_forward": "scaled_dot_product_attention",
    "cudnn_attention_forward": "scaled_dot_product_attention",
    "flash_attention": "scaled_dot_product_attention",
    "efficient_attention": "scaled_dot_product_attention",
    "npu_fusion_attention": "scaled_dot_product_attention",
    "npu_fusion_attention_v2": "scaled_dot_product_attention",
    "npu_fusion_attention_v3": "scaled_dot_product_attention",
    "npu_fused_infer_attention_score": "scaled_dot_product_attention",
    "npu_prompt_flash_attention": "scaled_dot_product_attention",
    "npu_incre_flash_attention": "scaled_dot_product_attention",
    "flash_attention_score": "scaled_dot_product_attention",
    "flash_attn::flash_attn": "scaled_dot_product_attention",
    "flash_attn::flash_attn_forward": "scaled_dot_product_attention",
    "flash_attn::flash_attn_varlen_forward": "scaled_dot_product_attention",
    "flash_attn::flash_attn_varlen": "scaled_dot_product_attention",
    "xformers_flash::flash_fwd": "scaled_dot_product_attention",
    "xformers_flash::flash_bwd": "scaled_dot_product_attention",
    "xformers::efficient_attention_forward_cutlass": "scaled_dot_product_attention",
    "aiter::mha_fwd": "scaled_dot_product_attention",
    "aiter::mha_bwd": "scaled_dot_product_attention",
    "aiter::flash_attn_forward": "scaled_dot_product_attention",
    "FlashAttnFunc": "scaled_dot_product_attention",
    "FlashAttnVarlenFunc": "scaled_dot_product_attention",
    # Activations.
    "npu_swiglu": "swiglu",
    "swi_glu": "swiglu",
    "npu_silu": "silu",
    "npu_gelu": "gelu",
    "npu_fast_gelu": "gelu",
    "fast_gelu": "gelu",
    "threshold_backward": "relu",
    "npu_rotary_mul": "rotary_mul",
    "npu_apply_rotary_pos_emb": "rotary_mul",
    "rotary_position_embedding": "rotary_mul",
    # Softmax, losses, dropout, pooling, embedding.
    "softmax_data": "softmax",
    "log_softmax_data": "log_softmax",
    "npu_scaled_masked_softmax": "scaled_masked_softmax",
    "nll_loss_forward": "nll_loss",
    "nll_loss_nd": "nll_loss",
    "nll_loss2d_forward": "nll_loss",
    "nll_loss2d": "nll_loss",
    "native_dropout": "dropout",
    "npu_dropout": "dropout",
    "npu_dropout_do_mask": "dropout",
    "_fused_dropout": "dropout",
    "max_pool2d_with_indices": "max_pool2d",
    "embedding_dense": "embedding",
    "npu_embedding_dense": "embedding",
    # Copies and casts.
    "npu_dtype_cast": "copy",
    "npu_transpose": "transpose",
    "npu_linear": "linear",
    "npu_bmm_v2": "bmm",
    "npu_bmmV2": "bmm",
    "mat_mul": "matmul",
    "cast": "copy",
    "index_put_impl": "index_put",
    "detach": "detach",
    # Optimizers.
    "npu_apply_fused_adamw": "_fused_adamw",
    "npu_apply_fused_adamw_v2": "_fused_adamw",
    "npu_apply_adam_w": "_fused_adamw",
    "apply_adam_w_v2": "_fused_adamw",
    "apply_adam_w": "_fused_adamw",
    "npu_apply_adam": "_fused_adam",
    "npu_fused_adamw": "_fused_adamw",
}
"""Name → name of the operator in PyTorch, for one operator on one operator."""

FUSED: tuple[tuple[str, str], ...] = (
    ("scaled_dot_product_attention", "product (div|mul)? (add|masked_fill)? to? softmax to? dropout? product"),
    ("rms_norm", "to? pow mean add rsqrt mul to? mul"),
    ("rotary_mul", "mul neg cat mul add"),
    ("swiglu", "silu mul"),
    ("_fused_adamw", "foreach{3,}"),
    ("_fused_adam", "foreach{3,}"),
)
"""A fused operator and the operators with device work that follow each other where it is not fused.

Words are operators (see `WORDS` for those that stand for several), `?`, `|`, `{n,}` and brackets as in regular
expressions. A row is only used where one side runs the fused operator.
"""

WORDS: dict[str, tuple[str, ...]] = {"product": ("matmul", "bmm", "baddbmm", "einsum"), "to": ("to", "to_copy", "copy")}
"""Words of `FUSED` that stand for several operators; `foreach` stands for all `_foreach_` operators."""


BACKWARD_SUFFIX = " (backward)"
"""Appended to the name of an operator that runs in the backward pass."""

_WRAPPER = regex(r"autograd::engine::evaluate_function: ")
_NODE = regex(r"(?P<op>\w+?)Backward(s|\d*)$")
_CPP_NODE = regex(r"torch::autograd::CppNode<(.*)>$")
_ACLNN = regex(r"(?:AscendCL@)?aclnn(?:Inplace)?(?P<op>\w+?)(?:V\d+)?(?:GetWorkspaceSize)?$")
_COMPILED = regex(r"## Call CompiledFxGraph \w+ ##|CompiledFxGraph\b.*")
_COUNTED = regex(r"(triton_\w*?)_\d+$")
_BACKWARD = regex(
    r"autograd::engine::evaluate_function: |torch::autograd::(AccumulateGrad|CppNode<|CopySlices)"
    r"|\w*Backward(s|\d*)$|.*::\w+_backward\w*(\.\w+)?$|.*::(\w+_bwd|npu_\w+_grad)(\.\w+)?$"
    r"|(AscendCL@)?aclnn\w*(Backward|Grad|Backprop)"
)
_PASS = regex(r"_(backward(_\w+)?|bwd|grad)$")
_WORDS = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KEEP_UNDERSCORE = regex(r"_(foreach|fused)_|__")


def canonical(name: str, options: CompareOptions) -> str:
    """The name under which an operator is compared, without its direction.

    Suffixes of in-place variants and overloads, leading underscores of internal variants and what belongs to the
    backward pass are dropped; autograd nodes are called by their operator, and names of `name_tables.SYNONYMS` by
    PyTorch's. `options.op_name_map` comes first: its keys are names as recorded or as returned here.

    Args:
        name: as recorded, e.g. `autograd::engine::evaluate_function: CudnnConvolutionBackward0`.
        options: for the map of the user.

    Returns:
        e.g. `aten::convolution`.
    """
    mapped = options.op_name_map.get(name)
    if mapped is not None:
        return _known(mapped)
    found = _known(name)
    mapped = options.op_name_map.get(found)
    return found if mapped is None else _known(mapped)


def names_backward(name: str) -> bool:
    """Whether the name alone says that an operator belongs to the backward pass."""
    return _BACKWARD.match(name) is not None


def is_wrapper(name: str) -> bool:
    """Whether an operator only holds others: an autograd node, a module or compiled function that records itself.

    PyTorch's operators, and those that libraries register, are written `library::name`.
    """
    return "::" not in name or name.startswith(("autograd::", "torch::autograd::"))


@lru_cache(maxsize=1 << 14)
def _known(name: str) -> str:
    text = _WRAPPER.sub("", name)
    if text.startswith("torch::autograd::"):
        inner = _CPP_NODE.match(text)
        return inner[1] if inner else text.removeprefix("torch::autograd::")
    return "CompiledFxGraph" if _COMPILED.match(text) else _plain(text)


def _plain(text: str) -> str:
    """Canonical name of an operator or a node without its wrapper."""
    space, separator, own = text.rpartition("::")
    if separator:
        return _operator(space, own)
    aclnn, node, counted = _ACLNN.match(text), _NODE.match(text), _COUNTED.match(text)
    if aclnn:
        return _operator("aten", _snake(aclnn["op"]))
    if counted:
        return counted[1]
    synonym = SYNONYMS.get(text.rstrip("_"))
    if node:
        return _node(node["op"])
    return text if synonym is None else f"aten::{synonym}"


def _node(op: str) -> str:
    """Operator of an autograd node; functions written in Python keep their name."""
    synonym = SYNONYMS.get(op)
    if synonym is not None:
        return f"aten::{synonym}"
    return op if op.endswith(("Function", "Func", "Fn")) else _operator("aten", _snake(op))


def _operator(space: str, own: str) -> str:
    own = own.partition(".")[0]
    if own not in SYNONYMS and not own.startswith("__"):
        own = _PASS.sub("", own.rstrip("_"))
        own = own if _KEEP_UNDERSCORE.match(own) else own.lstrip("_")
    if space == "aten" or (space in {"npu", "torch_npu"} and own in SYNONYMS):
        return f"aten::{SYNONYMS.get(own, own)}"
    if space in {"npu", "torch_npu"}:
        return f"npu::{own}"
    synonym = SYNONYMS.get(f"{space}::{own}")
    return f"{space}::{own}" if synonym is None else f"aten::{synonym}"


def _snake(name: str) -> str:
    """`MaxPool2DWithIndices` as `max_pool2d_with_indices`."""
    return _WORDS.sub("_", re.sub(r"(\d)D(?=[A-Z]|$)", r"\1d", name)).lower()
