"""Names that different libraries and vendors give to one operator: plain tables, which a user's map extends.

Keys of `SYNONYMS` and members of `FUSED` are names after the general rules of `names.canonical` (no in-place or
overload suffix, no leading underscore, no `_backward`); `aten::` is left out.
"""

from __future__ import annotations

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

WORDS: dict[str, tuple[str, ...]] = {
    "product": ("matmul", "bmm", "baddbmm", "einsum"),
    "to": ("to", "to_copy", "copy"),
}
"""Words of `FUSED` that stand for several operators; `foreach` stands for all `_foreach_` operators."""
