"""Kernels of Inductor: which of their operators to name, as the list is in alphabetical order and says no weight."""

from __future__ import annotations

import re
from functools import cache

from traceanalyze.model.kernel_names.words import Meaning

_HEAVY = (
    "convolution_backward convolution _scaled_mm _int_mm addmm baddbmm bmm mm _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention scaled_dot_product_attention "
    "_flash_attn_backward _flash_attn_forward _native_multi_head_attention fmha_v3_fwd moe_forward flex_attention "
    "native_layer_norm_backward native_layer_norm _fused_rms_norm_backward _fused_rms_norm native_group_norm_backward "
    "native_group_norm native_batch_norm_backward _native_batch_norm_legit_functional native_batch_norm "
    "_log_softmax_backward_data _log_softmax _softmax_backward_data _softmax nll_loss_backward nll_loss_forward "
    "embedding_dense_backward embedding max_pool2d_with_indices_backward max_pool2d_with_indices avg_pool2d "
    "_adaptive_avg_pool2d native_dropout_backward native_dropout linalg_vector_norm index_put index_add scatter_add "
    "scatter gather topk sort cumsum gelu_backward gelu silu_backward silu sigmoid_backward sigmoid tanh_backward tanh "
    "threshold_backward relu hardtanh_backward hardtanh leaky_relu mse_loss argmax argmin amax amin mean sum var_mean "
    "var std prod any all cat stack constant_pad_nd upsample_nearest2d _unsafe_index index flip roll where masked_fill "
    "clamp_min clamp_max clamp exp log sqrt rsqrt pow reciprocal cos sin erf floor round bitwise_and bitwise_or "
    "bitwise_xor bitwise_not logical_and logical_or logical_not div mul sub add rsub neg abs maximum minimum lerp "
    "remainder gt ge lt le eq ne"
)
"""Operators that say what a kernel is about, most telling first."""
_LIGHT = (
    "_to_copy copy_ copy clone expand permute transpose t view _unsafe_view unsafe_view reshape slice_backward slice "
    "select_backward select split_with_sizes split squeeze unsqueeze unbind as_strided alias detach lift_fresh "
    "empty_like empty zeros_like zeros new_zeros ones_like ones full_like full scalar_tensor arange __lshift__ "
    "__rshift__ floor_divide slice_scatter select_scatter"
)
"""Named only where there is nothing else: they shape or move what others compute."""
_SHORT = {
    "_to_copy": "copy",
    "linalg_vector_norm": "norm",
    "constant_pad_nd": "pad",
    "embedding_dense_backward": "embedding bwd",
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_efficient_attention": "fmha",
}
_ROOM = 29
"""Letters of a label but for its spaces and the sign of the number."""


@cache
def _weights() -> dict[str, int]:
    return {op: weight for weight, op in enumerate(f"{_HEAVY} {_LIGHT}".split())}


@cache
def _operator() -> re.Pattern[str]:
    """An operator of several words where one stands, else the next word."""
    known = sorted((op for op in _weights() if "_" in op), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(map(re.escape, known))})(?=_|$)|[^_]+")


def _short(op: str) -> str:
    text = (_SHORT.get(op) or op.strip("_")).removeprefix("native_").removeprefix("fused_").removeprefix("unsafe_")
    return text.replace("_backward_data", " bwd").replace("_backward", " bwd").replace("_forward", "")


def read_triton(found: re.Match[str]) -> Meaning:
    """`triton red layer_norm+gelu #10`: pointwise, reduction, persistent or template; operators; number."""
    weights, ops = _weights(), _operator().findall(found["ops"])
    light = weights["_to_copy"]
    ordered = sorted(ops, key=lambda op: weights.get(op, light - 1))
    told = [op for op in ordered if weights.get(op, 0) < light] or ordered
    head = f"triton {found['kind']}"
    named, room = "", _ROOM - len(head) - len(found["number"])
    for op in dict.fromkeys(map(_short, told)):
        if not named or len(named) + len(op) < room:
            named = f"{named}+{op}" if named else op
    return Meaning(f"{head} {named}", number=f"#{found['number']}")
