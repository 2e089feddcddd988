"""What a kernel computes, told from its name, else from the operator that launched it.

Works on one text at a time and is applied once a distinct name.
"""

import re
from functools import lru_cache

from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Code

_NAMES = 4096
"""Names that are known, once looked at: those of many ranks are the same."""


class KernelGroup(Code):
    """What device work is for; the order is that of reports when times are equal."""

    MATMUL = 0
    ATTENTION = 1
    CONVOLUTION = 2
    NORMALIZATION = 3
    SOFTMAX = 4
    ELEMENTWISE = 5
    REDUCTION = 6
    EMBEDDING = 7
    INDEXING = 8
    """Gather, scatter, sort, scan, unique."""
    POOLING = 9
    OPTIMIZER = 10
    LAYOUT = 11
    """Copies by kernel: transpose, cast, quantise, unpack, concatenate, make contiguous."""
    COMPILED = 12
    """Fused by a compiler (Triton and the like), so that the name covers several operators."""
    COMMUNICATION = 13
    COPY = 14
    FILL = 15
    OTHER = 16


def _any_case(pattern: str) -> re.Pattern[str]:
    """For a text in lower case: three times as fast as a search that ignores case."""
    return regex(pattern.lower())


_BY_NAME = (
    (KernelGroup.COMPILED, regex(r"triton_(poi|red|per|for)_|triton__\d")),
    (
        KernelGroup.ATTENTION,
        _any_case(r"flash|fmha|attention|\battn|_attn|attn_|sdpa|\bmha_|aiter::.*mha|bwd_kernel_d[kqv]"),
    ),
    (KernelGroup.EMBEDDING, _any_case(r"(?<!rotary_)embedding")),
    (KernelGroup.OPTIMIZER, _any_case(r"multi_tensor_apply|adam|\blamb(?!da)|adagrad|lion_|FusedOptimizer|sgd_")),
    (
        KernelGroup.NORMALIZATION,
        _any_case(
            r"(batch|layer|group|instance|rms)_?norm|\bbn_(fw|bw)|RowwiseMoments|GroupNorm|welford|GammaBeta"
            r"|ComputeFusedParams|ComputeInternalGradients"
        ),
    ),
    (
        KernelGroup.CONVOLUTION,
        _any_case(
            r"conv(?!ert)|[fwd](prop|grad)_|_(fprop|wgrad|dgrad)|wgrad_|dgrad_|winograd|scudnn|implicit_gemm"
            r"|miopen.*(igemm|Sp3|gcnAsm|naive_conv)|igemm_(fwd|bwd|wrw)|Im2[cd]|col2im|im2col|nchwTo|nhwcTo"
            r"|cask_cudnn|cudnn::(cnn|engines)"
        ),
    ),
    (
        KernelGroup.MATMUL,
        _any_case(
            r"(?<!fb)gemm|gemv|nvjet|Cijk_|matmul|splitK_?reduce|_mm_|_mm\b|\bb?mm_|cublas|wgmma|xdlops?"
            r"|dot_kernel|triton_tem_fused_(add)?mm|moe_stage[12]_kernel|fused_moe|cutlass.*tensorop"
        ),
    ),
    (KernelGroup.SOFTMAX, _any_case(r"softmax")),
    (KernelGroup.POOLING, _any_case(r"max_?pool|avg_?pool|adaptive_.*pool|pooling")),
    (
        KernelGroup.LAYOUT,
        _any_case(
            r"direct_copy_kernel|copy_kernel_cuda|CatArray|transpose|permute|_to_copy\b|copy_device_to_device"
            r"|LoadWithCast|chunk_cat|recat_copy|(?<!fake_)(?<!fake)quantiz|dequant|\bunpack"
        ),
    ),
    (
        KernelGroup.INDEXING,
        _any_case(
            r"index|gather|scatter|sort|topk|\bcub::|rocprim|hipcub|cuda_detail::cub|thrust::|unique|masked_select"
            r"|searchsorted|\bscan_|kernel_scan|triu_tril"
        ),
    ),
    (KernelGroup.COMPILED, regex(r"^triton_|^Triton")),
    (KernelGroup.REDUCTION, _any_case(r"reduce|reduction|nll_loss|cunn_.*Criterion|\bnorm_kernel")),
    (
        KernelGroup.ELEMENTWISE,
        _any_case(
            r"elementwise|distribution_|dropout|activation|FillFunctor|silu|gelu|relu|swiglu|act_and_mul"
            r"|CUDAFunctor|rope|rotary"
        ),
    ),
)
"""First match decides. Names of cuBLAS, cuDNN, CUTLASS, nvjet, PyTorch (ATen), FlashAttention, FBGEMM on CUDA; of
Tensile and hipBLASLt (`Cijk_`), MIOpen, Composable Kernel and aiter on ROCm; of Inductor (`triton_poi_` pointwise,
`red` and `per` reductions, `tem` templates)."""


@lru_cache(_NAMES)
def group_of_kernel(name: str) -> KernelGroup | None:
    """What a kernel computes by its name, None where the name does not tell."""
    lower = name.lower()
    sought = ((group, pattern, name if group is KernelGroup.COMPILED else lower) for group, pattern in _BY_NAME)
    return next((group for group, pattern, text in sought if pattern.search(text)), None)


_BY_OP = (
    (KernelGroup.ATTENTION, regex(r"attention|attn")),
    (KernelGroup.OPTIMIZER, regex(r"_fused_(adam|adamw|sgd|adagrad)|_foreach_|[Oo]ptimizer")),
    (KernelGroup.EMBEDDING, regex(r"embedding")),
    (KernelGroup.NORMALIZATION, regex(r"norm(?!al)")),
    (KernelGroup.CONVOLUTION, regex(r"[Cc]onv(?!ert)")),
    (
        KernelGroup.MATMUL,
        regex(
            r"::(_?\w*mm_?|(add)?mv_?|dot|linear|matmul|einsum|bilinear|_scaled_mm\w*|\w*addmm\w*)$|(^|aclnn)(Batch)?Mat[Mm]ul"
        ),
    ),
    (KernelGroup.SOFTMAX, regex(r"softmax")),
    (KernelGroup.POOLING, regex(r"pool")),
    (KernelGroup.LAYOUT, regex(r"::(copy_|_to_copy|cat|_cat|stack|contiguous|clone|transpose\w*|permute|to)$")),
    (
        KernelGroup.INDEXING,
        regex(r"::_?(index\w*|gather\w*|scatter\w*|sort|topk|unique\w*|nonzero|masked_\w+|cumsum|roll|flip)$"),
    ),
    (KernelGroup.REDUCTION, regex(r"::_?(sum|mean|max|min|amax|amin|any|all|prod|var\w*|std\w*|nll_loss\w*)$")),
    (
        KernelGroup.ELEMENTWISE,
        regex(
            r"::_?(add|sub|mul|div|rsub|neg|exp|log|sqrt|rsqrt|pow|abs|relu|gelu|silu|sigmoid|tanh|where|clamp\w*|fill|"
            r"zero|eq|ne|lt|le|gt|ge|sin|cos|threshold_backward|gelu_backward|silu_backward|dropout|native_dropout|"
            r"bernoulli|uniform|normal|lerp|addcmul|addcdiv|masked_fill|bitwise_\w+|logical_\w+)_?$"
        ),
    ),
)


@lru_cache(_NAMES)
def group_of_op(op: str) -> KernelGroup:
    """What the kernels of an operator are for, for kernels whose own name does not tell."""
    return next((group for group, pattern in _BY_OP if pattern.search(op)), KernelGroup.OTHER)


class TensorCore(Code):
    """Whether a kernel uses matrix units: tensor cores, MFMA."""

    NO = 0
    YES = 1
    UNKNOWN = 2


_SCALAR_UNITS = regex(
    r"ffma|simt|(?<![a-z0-9])[sdcz]gemm|gcgemm|gemmk1|gemmSN|gemv|splitK_?reduce|scudnn|convolve_sgemm|at::native::"
    r"|[dw]grad_\w*engine<float|winograd_nonfused|winogradForward|cudnn::(bn|ops)|nchwTo|nhwcTo|cask_cudnn::compute|\bcub::"
    r"|multi_tensor_apply|^triton_(poi|red|per|for)_|fmha_\w*_f32_\w*_sm[567]"
)
_MATRIX_UNITS = regex(
    # HMMA and IMMA instruction shapes that cuBLAS, cuDNN and CUTLASS put into kernel names.
    r"(?<!\d)(884|1688|16816|16832|16864|161616|8816|8832|161632|168256)(?!\d)"
    r"|hmma|imma(?!g)|xmma|tensorop(?!with)|wgmma|gmma|wmma|nvjet|tcgen05|umma"
    r"|cutlass.*sm(90|100)|cutlass3x|enable_sm(90|100)|FlashAttn(Fwd|Bwd)Sm"
    r"|flash_(fwd|bwd)(?!.*(preprocess|convert))|fmha_cutlass\w*_(bf16|f16)_\w*_sm(75|80)|cudnn_generated.*sdpa"
    r"|mfma|xdl|Cijk_|_MI\d+x\d+",
    re.IGNORECASE,
)
_SCALAR_VARIANT = regex(r"ffma|simt")
FULL_FLOAT = r"Cijk_\w*?_S_?B_"
"""Tensile, whose letters are the types of data and of arithmetic: its products of float32 in XF32 are `S_MX_B`."""
_NEVER_MATRIX = frozenset(
    {
        KernelGroup.NORMALIZATION,
        KernelGroup.SOFTMAX,
        KernelGroup.ELEMENTWISE,
        KernelGroup.REDUCTION,
        KernelGroup.EMBEDDING,
        KernelGroup.INDEXING,
        KernelGroup.POOLING,
        KernelGroup.OPTIMIZER,
        KernelGroup.LAYOUT,
    }
)


@lru_cache(_NAMES)
def tensor_core_use(name: str, group: KernelGroup) -> TensorCore:
    """Whether a kernel uses matrix units, by its name; a name the lists cannot judge is unknown, never "no"."""
    if _MATRIX_UNITS.search(name):
        # Families that use matrix units have scalar members: xmma with FFMA, CUTLASS SIMT.
        return TensorCore.NO if _SCALAR_VARIANT.search(name) else TensorCore.YES
    if _SCALAR_UNITS.search(name) or group in _NEVER_MATRIX:
        return TensorCore.NO
    return TensorCore.UNKNOWN
