"""Whether a kernel runs on matrix units (tensor cores, MFMA), told from its name (definitions §13)."""

from __future__ import annotations

import re
from enum import IntEnum

from traceanalyze.model.kernel_classes import KernelGroup


class TensorCore(IntEnum):
    """Whether a kernel uses matrix units: tensor cores, MFMA."""

    NO = 0
    YES = 1
    UNKNOWN = 2


_SCALAR_UNITS = re.compile(
    r"ffma|simt|(?<![a-z0-9])[sdcz]gemm|gcgemm|gemmk1|gemmSN|gemv|splitK_?reduce|scudnn|convolve_sgemm|at::native::"
    r"|[dw]grad_\w*engine<float|winograd_nonfused|winogradForward|cudnn::(bn|ops)|nchwTo|nhwcTo|cask_cudnn::compute|\bcub::"
    r"|multi_tensor_apply|^triton_(poi|red|per|for)_|fmha_\w*_f32_\w*_sm[567]"
)
_MATRIX_UNITS = re.compile(
    # HMMA and IMMA instruction shapes that cuBLAS, cuDNN and CUTLASS put into kernel names.
    r"(?<!\d)(884|1688|16816|16832|16864|161616|8816|8832|161632|168256)(?!\d)"
    r"|hmma|imma(?!g)|xmma|tensorop(?!with)|wgmma|gmma|wmma|nvjet|tcgen05|umma"
    r"|cutlass.*sm(90|100)|cutlass3x|enable_sm(90|100)|FlashAttn(Fwd|Bwd)Sm"
    r"|flash_(fwd|bwd)(?!.*(preprocess|convert))|fmha_cutlass\w*_(bf16|f16)_\w*_sm(75|80)|cudnn_generated.*sdpa"
    r"|mfma|xdl|Cijk_|_MI\d+x\d+",
    re.IGNORECASE,
)
_SCALAR_VARIANT = re.compile(r"ffma|simt")
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


def tensor_core_use(name: str, group: KernelGroup) -> TensorCore:
    """Whether a kernel uses matrix units, by its name; a name the lists cannot judge is unknown, never "no"."""
    if _MATRIX_UNITS.search(name):
        return TensorCore.NO if _scalar_variant(name) else TensorCore.YES
    if _SCALAR_UNITS.search(name) or group in _NEVER_MATRIX:
        return TensorCore.NO
    return TensorCore.UNKNOWN


def _scalar_variant(name: str) -> bool:
    """The scalar members of families that otherwise use matrix units (xmma with FFMA, CUTLASS SIMT)."""
    return _SCALAR_VARIANT.search(name) is not None
