"""One name for an operator, whoever runs it: `aten::`, `npu::`, `aclnn…`, cuDNN, MIOpen and autograd nodes."""

import re
from functools import lru_cache

from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.patterns import regex

_SAME = {
    "convolution": (
        "conv1d conv2d conv3d cudnn_convolution cudnn_convolution_relu cudnn_convolution_add_relu miopen_convolution "
        "miopen_depthwise_convolution mkldnn_convolution slow_conv2d_forward slow_conv2d conv_depthwise2d "
        "convolution_overrideable npu_convolution npu_conv2d conv2_d_backprop_input conv2_d_backprop_filter"
    ),
    "conv_transpose": "miopen_convolution_transpose cudnn_convolution_transpose",
    "batch_norm": (
        "batch_norm_impl_index native_batch_norm native_batch_norm_legit cudnn_batch_norm miopen_batch_norm "
        "batch_norm_with_update"
    ),
    "layer_norm": (
        "native_layer_norm npu_layer_norm_eval FusedLayerNormFunction FusedLayerNormAffineFunction "
        "FusedLayerNormAffineMixedDtypesFunction FastLayerNormFN"
    ),
    "group_norm": "native_group_norm npu_group_norm_silu",
    "rms_norm": (
        "npu_rms_norm _fused_rms_norm FusedRMSNormFunction FusedRMSNormAffineFunction "
        "FusedRMSNormAffineMixedDtypesFunction LigerRMSNormFunction _C::rms_norm"
    ),
    "scaled_dot_product_attention": (
        "scaled_dot_product_flash_attention scaled_dot_product_efficient_attention scaled_dot_product_cudnn_attention "
        "scaled_dot_product_fused_attention_overrideable scaled_dot_product_attention_math flash_attention_forward "
        "efficient_attention_forward cudnn_attention_forward flash_attention efficient_attention cudnn_attention "
        "npu_fusion_attention npu_fusion_attention_v2 npu_fusion_attention_v3 npu_fused_infer_attention_score "
        "npu_prompt_flash_attention npu_incre_flash_attention flash_attention_score flash_attn::flash_attn "
        "flash_attn::flash_attn_forward flash_attn::flash_attn_varlen_forward flash_attn::flash_attn_varlen "
        "flash_attn_3::fwd flash_attn_3::bwd flash_attn_3::flash_attn_forward flash_attn_3::flash_attn "
        "_vllm_fa2_C::varlen_fwd _vllm_fa2_C::fwd_kvcache _vllm_fa3_C::fwd xformers_flash::flash_fwd "
        "xformers_flash::flash aiter::mha_fwd aiter::mha xformers::efficient_attention_forward_cutlass "
        "aiter::flash_attn_forward FlashAttnFunc FlashAttnVarlenFunc FusedAttnFunc"
    ),
    "swiglu": "npu_swiglu swi_glu SwiGLUFunction BiasSwiGLUFunction LigerSiLUMulFunction _C::silu_and_mul",
    "silu": "npu_silu",
    "gelu": "npu_gelu npu_fast_gelu fast_gelu",
    "relu": "threshold_backward",
    "rotary_mul": (
        "npu_rotary_mul npu_apply_rotary_pos_emb rotary_position_embedding ApplyRotaryEmb FusedRoPEFunc "
        "LigerRopeFunction _C::rotary_embedding"
    ),
    "softmax": "softmax_data",
    "log_softmax": "log_softmax_data",
    "scaled_masked_softmax": "npu_scaled_masked_softmax ScaledMaskedSoftmax",
    "nll_loss": "nll_loss_forward nll_loss_nd nll_loss2d_forward nll_loss2d",
    "dropout": "native_dropout npu_dropout npu_dropout_do_mask _fused_dropout",
    "max_pool2d": "max_pool2d_with_indices max_pool2d_with_mask",
    "embedding": "embedding_dense npu_embedding_dense",
    "copy": "npu_dtype_cast cast",
    "transpose": "npu_transpose",
    "linear": "npu_linear",
    "bmm": "npu_bmm_v2 npu_bmmV2",
    "matmul": "mat_mul",
    "index_put": "index_put_impl",
    "detach": "detach",
    "_fused_adamw": (
        "npu_apply_fused_adamw npu_apply_fused_adamw_v2 npu_apply_adam_w apply_adam_w_v2 apply_adam_w npu_fused_adamw"
    ),
    "_fused_adam": "npu_apply_adam",
}
"""Operator of PyTorch → what other libraries, versions and vendors call it."""
SYNONYMS = {name: operator for operator, names in _SAME.items() for name in names.split()}
"""The other way round."""
_LOOP = "((add|mul){0,2} (lerp|mul add) mul? addcmul maximum? sqrt div? add? addcdiv)+"
"""Adam for one parameter after the other."""
FUSED: tuple[tuple[str, str], ...] = (
    ("scaled_dot_product_attention", "product (div|mul)? (add|masked_fill)? to? softmax to? dropout? product"),
    ("rms_norm", "to? pow mean add rsqrt mul to? mul"),
    ("rotary_mul", "mul neg cat mul add"),
    ("swiglu", "silu mul"),
    ("_fused_adamw", f"foreach{{3,}}|{_LOOP}"),
    ("_fused_adam", f"foreach{{3,}}|{_LOOP}"),
)
"""A fused operator and the operators with device work that follow each other where it is not fused.

Words are operators (see `WORDS` for those that stand for several), `?`, `|`, `{n,}` and brackets as in regular
expressions. A row is only used where one side runs the fused operator.
"""

COMPOSED = frozenset({"aten::relu", "aten::adaptive_avg_pool2d"})
"""Operators that CUDA runs as another operator (`clamp_min`, `mean`) and an NPU in a kernel of their own."""
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
    r"|\w*Backward(s|\d*)$|.*::\w+_backward\w*(\.\w+)?$|.*::((\w+_)?bwd|npu_\w+_grad)(\.\w+)?$"
    r"|(AscendCL@)?aclnn\w*(Backward|Grad|Backprop)"
)
_PASS = regex(r"_(backward(_\w+)?|bwd|grad)$")
_WORDS = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KEEP_UNDERSCORE = regex(r"_(foreach|fused)_|__")


def canonical(name: str, options: CompareOptions) -> str:
    """The name under which an operator is compared, without its direction.

    E.g. `aten::convolution` for `autograd::engine::evaluate_function: CudnnConvolutionBackward0`.
    Suffixes of in-place variants and overloads, leading underscores of internal variants and what belongs to the
    backward pass are dropped; autograd nodes are called by their operator, and names of `SYNONYMS` by
    PyTorch's. `options.op_name_map` comes first: its keys are names as recorded or as returned here.
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
