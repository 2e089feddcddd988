"""Group and use of the cube unit of kernels on an Ascend device, from its kernel table, else from kernel names."""

import re

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import Trace

_TYPES = (
    (KernelGroup.ATTENTION, r"\w*(Attention|FlashAttn)|Mla(?=[A-Z]|$)"),
    (KernelGroup.NORMALIZATION, r"\w*((Batch|Layer|Rms|Group|Instance|Sync)Norm|BNTraining|BNInfer)"),
    (KernelGroup.MATMUL, r"\w*(Mat[Mm]ul|Gemm|FullyConnection|GroupedMM)|Gmm|Dot$"),
    (KernelGroup.CONVOLUTION, r"(Depthwise|Deformable|Fixpipe)?Conv(?!ert)|\w*(Im2col|Col2im)|\w*Conv[123]D"),
    (KernelGroup.SOFTMAX, r"\w*Softmax(?!CrossEntropy)"),
    (KernelGroup.POOLING, r"\w*Pool"),
    (KernelGroup.EMBEDDING, r"\w*Embedding"),
    (KernelGroup.OPTIMIZER, r"Foreach|(Npu)?(Fused|Resource)?Apply(?!Rotary)|\w*(Adam|Momentum|Lamb(?!da)|SGD|Sgd)"),
    (KernelGroup.FILL, r"MemSet|Memset"),
    (
        KernelGroup.LAYOUT,
        (
            r"TransData|Transpose|TensorMove|Cast|Concat|Split|Pack|Unpack|Slice|StridedSlice|AsStrided|ViewCopy|Identity"
            r"|Reshape|Pad|Tile|Broadcast|Expand|Permute|Reverse|Roll|Contiguous|MemcpyAsync|Confusion|Copy|Stack|Repeat"
        ),
    ),
    (
        KernelGroup.INDEXING,
        (
            r"\w*(Gather|Scatter|Index|Sort|TopK|NonZero|Masked|Unique|Cumsum|CumSum|OneHot|SearchSorted|MoeInit|MoeFinalize"
            r"|TokenPermute|TokenUnpermute|Bincount|Histogram)|Range|Arange|Tril|Triu|Eye|Linspace"
        ),
    ),
    (KernelGroup.REDUCTION, r"Reduce|Arg(Max|Min)|\w*(Loss|CrossEntropy)|LpNorm|L2Norm|ClipByNorm|Square[Ss]um|Norm"),
    (
        KernelGroup.ELEMENTWISE,
        (
            r"Add|Sub|Mul|Div|RealDiv|Axpy|Neg|Exp|Log|Sqrt|Rsqrt|Pow|Abs|\w*Relu|\w*[Gg]e[Ll][Uu]|\w*Si[Ll]u|\w*Swi(sh|[Gg]lu)"
            r"|Sigmoid|Tanh|Erf|Equal|NotEqual|Less|Greater|Maximum|Minimum|Logical|Bitwise|Select|Fill|ZerosLike|OnesLike"
            r"|Zeros|Ones|Drop[Oo]ut|DSA|Stateless|Random|Square|Reciprocal|Inv|Floor|Ceil|Round|Sign|Clip|Clamp|Hard|Elu"
            r"|Softplus|\w*Rotary|\w*Rope|IsFinite|IsNan|IsInf|NanToNum|Sin|Cos|Mod|Lerp|Threshold|Where|BiasAdd|Quant|Dequant"
            r"|DynamicQuant|AscendQuant|AscendDequant"
        ),
    ),
)
_COMPILED = tuple((group, regex(pattern)) for group, pattern in _TYPES)
_ON_CUBE = frozenset({KernelGroup.MATMUL, KernelGroup.CONVOLUTION, KernelGroup.ATTENTION})
_CUBE_CORES = frozenset({"AI_CORE", "MIX_AIC"})


def group_of_type(op_type: str) -> KernelGroup | None:
    """What a type of operator is for, None where the type does not tell."""
    return next((group for group, pattern in _COMPILED if pattern.match(op_type)), None)


def type_of_name(name: str) -> str:
    """Operator type in a kernel's name: `aclnnMm_MatMulV2`, `trans_TransData_3`, `Conv2D1`."""
    last = name.rpartition("_")[2]
    text = name.removesuffix(f"_{last}") if last.isdecimal() else name
    found = text.rpartition("_")[2]
    # A number at the end counts the kernel, but some types end in one: Conv2D1 is the second Conv2D, MatMulV2 a type.
    return found if re.search(r"[VD]\d$", found) else re.sub(r"\d+$", "", found)


def cube_use(core: str, group: KernelGroup | None, mac_time: int | None) -> TensorCore:
    """Whether a kernel uses the cube unit: by its core and the time that its matrix unit worked (ns), else its group.

    On devices without a vector core of its own everything runs on `AI_CORE`, so that the core alone does not tell.
    """
    if core and core not in _CUBE_CORES:
        return TensorCore.NO
    if core and mac_time is not None:
        return TensorCore.YES if mac_time > 0 else TensorCore.NO
    if group is None:
        return TensorCore.UNKNOWN
    return TensorCore.YES if group in _ON_CUBE else TensorCore.NO


_UNTIMED, _BUSY = 0, 2
"""Whether the matrix unit worked: not measured, and yes; 1 is no."""


def classify_kernels(
    trace: Trace, row: NDArray[np.int64], name: NDArray[np.int32]
) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """`KernelGroup` (-1 where neither type nor name tells) and `TensorCore` of kernels.

    Args:
        trace: The trace.
        row: Rows of the kernels in its events.
        name: Codes of their names.
    """
    op_type, core, mac = (trace.events.numbers(field, row, -1) for field in ("op_type", "core", "mac_time"))
    worked = np.clip(mac, -1, 1) + 1
    keys = group(op_type, np.where(op_type >= 0, -1, name), core, worked)
    groups, cube = np.full(len(keys), -1, np.int16), np.zeros(len(keys), np.uint8)
    text = trace.strings.text
    for index, first in enumerate(keys.first.tolist()):
        known = text(int(op_type[first])) if op_type[first] >= 0 else type_of_name(text(int(name[first])))
        found = group_of_type(known)
        groups[index] = -1 if found is None else found
        time = None if worked[first] == _UNTIMED else int(worked[first] == _BUSY)
        cube[index] = cube_use(text(int(core[first])) if core[first] >= 0 else "", found, time)
    return groups[keys.of], cube[keys.of]
