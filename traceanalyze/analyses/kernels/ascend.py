"""Kernels on an Ascend device by its kernel table, else by their names: group, use of the cube unit, what they need."""

import re
from math import prod

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.model.collectives import element_bytes
from traceanalyze.model.columns import Rows, median
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore
from traceanalyze.model.op_calls import listed_shapes
from traceanalyze.model.op_costs import Cost
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


_OF_MINDSPORE = regex(r".*/(?:FusionOp_)?([A-Za-z0-9]+)[^/]*-op\d+\w*")
"""Place in the network, type and number; of operators made one kernel the first one's type, which is most of it."""


def type_of_name(name: str) -> str:
    """Operator type in a kernel's name: `aclnnMm_MatMulV2`, `trans_TransData_3`, `Conv2D1`, `Default/fc/MatMul-op3`."""
    if place := _OF_MINDSPORE.fullmatch(name):
        return place[1]
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


def classify_kernels(trace: Trace, row: Rows, name: NDArray[np.int32]) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """`KernelGroup` (-1 where neither type nor name tells) and `TensorCore` of kernels, by rows and codes of names."""
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


_PRODUCT = regex(r"(Batch)?MatMul(V[23])?")
_BLOCKED = regex(r"FRACTAL|NC1|NDC1")
"""Formats with dimensions that are padded and in another order."""
_ONCE = frozenset(
    {
        *(KernelGroup.ELEMENTWISE, KernelGroup.NORMALIZATION, KernelGroup.SOFTMAX),
        *(KernelGroup.REDUCTION, KernelGroup.OPTIMIZER),
    }
)
_ONCE_TYPES = regex(r"(TransData|Transpose|Cast|Concat|Split|Pack|TensorMove)(D|V\d)?")
"""Layouts changed by reading all of the inputs once; a slice or gather reads a part of them."""


def kernel_cost(op_type: str, shapes: str, dtypes: str, formats: str, outputs: str, output_dtypes: str) -> Cost | None:
    """FLOP and bytes of a kernel by its tensors as the kernel table lists them; None without a formula or a tensor.

    The table does not say which matrix of a product is transposed, but the result is `[…, m, n]` and the first matrix
    has m·k elements.
    """
    group, given, made = group_of_type(op_type), listed_shapes(shapes), listed_shapes(outputs)
    read, written = tensor_bytes(given, dtypes), tensor_bytes(made, output_dtypes)
    if group is None or not read or not written:
        return None
    if _PRODUCT.fullmatch(op_type):
        plain = len(given) > 1 and not any(map(_BLOCKED.match, formats.split(";")))
        return Cost(group, _flop(given[0], given[1], made[0]) if plain else None, read + written)
    once = group in _ONCE or _ONCE_TYPES.fullmatch(op_type)
    return Cost(group, None, read + written, moves_only=True) if once else None


def tensor_bytes(shapes: tuple[tuple[int, ...], ...], dtypes: str) -> int | None:
    """Size of all tensors, None if an element type is unknown; what has no shape is a number or absent."""
    types = dtypes.split(";")
    each = [element_bytes(types[at]) if at < len(types) else None for at in range(len(shapes))]
    sizes = [prod(shape) * (size or 0) for shape, size in zip(shapes, each, strict=True) if shape]
    unknown = any(shape and size is None for shape, size in zip(shapes, each, strict=True))
    return None if unknown else sum(sizes)


def _flop(a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]) -> int | None:
    if len(out) < 2 or not prod(out):
        return None
    *outer, m, n = out
    batch = prod(outer)
    k, rest = divmod(prod(a), batch * m)
    return None if rest or prod(b) not in {k * n, batch * k * n} else 2 * batch * m * n * k


_USED = 5
"""Own: percent of the cube from which three decimals of it are exact enough."""


def matrix_cycles(trace: Trace) -> float | None:
    """10⁶ cycles a second of all matrix units together, as counters of kernels tell; None where they do not.

    The profile's use of the cube is a kernel's cycles over what all cores have in its duration. Without it, the clock
    times the cores, as many as the largest cube kernel has blocks: where the largest vector kernels have twice as many,
    as a core has two vector units; some have more blocks than there are cores.
    """
    events = trace.events
    counted = events.fields.get("aic_cycles")
    if counted is None:
        return None
    busy = counted.value > 0
    row, cycles = counted.row[busy].astype(np.int64), counted.value[busy]
    use = events.fields.get("cube_utilisation")
    if use is not None:
        share = use.take(row, 0)
        exact = (share >= _USED) & (events.dur[row] > 0)
        return median(cycles[exact] / events.dur[row][exact] / share[exact]) * 1e5 if exact.any() else None
    time, blocks = (events.numbers(field, row, 0) for field in ("aicore_time", "block_dim"))
    known = (time > 0) & (blocks > 0)
    vector = events.fields.get("aiv_time")
    if not known.any() or vector is None:
        return None
    clock, cores = median(cycles[known] / time[known] / blocks[known]) * 1e3, int(blocks[known].max())
    of_vector = events.numbers("block_dim", vector.row[vector.value > 0].astype(np.int64), 0)
    twice, more = (int(found.sum()) for found in (of_vector == 2 * cores, of_vector > 2 * cores))
    return clock * cores if twice > more else None
