"""What a kernel does in the parts of a label, and the words of names for them: types, directions, operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from traceanalyze.model.patterns import regex


class Meaning(NamedTuple):
    """Parts of a label in the order in which they stand; the last ones are left out first."""

    operation: str
    direction: str = ""
    dtype: str = ""
    tile: str = ""
    """Of a matrix product M×N×K; of attention the dimension of a head."""
    layout: str = ""
    marks: Mapping[str, str] = MappingProxyType({})
    """What tells it from others of equal label, by what it is: the most telling first."""
    number: str = ""
    """Always shown: what a compiler counts its kernels by."""
    sure: bool = True
    """Only kernels have such names; else it may be an operator's as well."""


_TYPES = """
f64: double d fp64; f32: float s fp32; tf32: tfloat32_t; f16: half __half half_t Half _Float16 __fp16 h fp16 Fp16;
bf16: BFloat16 bfloat16_t bfloat16 __nv_bfloat16 __hip_bfloat16 hip_bfloat16 __bf16 Bfloat16 BF16 b;
e4m3: Float8_e4m3fn Float8_e4m3fnuz __nv_fp8_e4m3 __nv_fp8x2_e4m3 float_e4m3_t E4m3 fp8e4m3;
e5m2: Float8_e5m2 Float8_e5m2fnuz __nv_fp8_e5m2 float_e5m2_t E5m2 fp8e5m2; i64: long int64_t longlong; i32: int int32_t;
i16: short int16_t; i8: int8_t char signedchar s8; u64: unsignedlong uint64_t; u32: unsignedint uint32_t;
u8: unsignedchar uint8_t; b8: bool; c64: complex<float> float2 c; c128: complex<double> double2 z"""
DTYPES = {word: each.split(":")[0].strip() for each in _TYPES.split(";") for word in each.replace(":", "").split()}
"""Type as names spell it → as labels do: f float, bf brain float, i and u integers, b8 boolean, c complex."""
_FLOATS = frozenset({"f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2"})
_QUALIFIED = regex(r"\b(?:const|volatile)\b|[&*\s]|(?:\w+::)+")
_OPAQUE = regex(r"OpaqueType<(\d+)u?l?>$")
_RUN = regex(r"bf16|tf32|f16|f32|f64|e4m3|e5m2|i8|i32|s8")


@lru_cache(maxsize=1 << 12)
def dtype_of(text: str) -> str:
    """Type of elements that a template argument names; empty where it is none."""
    if len(text) > 80:
        return ""
    bare = _QUALIFIED.sub("", text)
    opaque = _OPAQUE.match(bare)
    # PyTorch moves elements of any type by their size.
    return f"{opaque[1]}B" if opaque else "" if len(bare) == 1 else DTYPES.get(bare, "")


def first_dtype(args: Sequence[str], *, floats: bool = False) -> str:
    """The first type among arguments; a condition (bool), and with `floats` an index, only where there is no other."""
    found = [dtype for dtype in map(dtype_of, args) if dtype]
    wanted = (dtype for dtype in found if (dtype in _FLOATS if floats else dtype != "b8"))
    return next(wanted, next(iter(found), ""))


def run_dtype(text: str) -> str:
    """The first of types written in a row, such as `bf16bf16`."""
    found = _RUN.match(text)
    return DTYPES[found[0]] if found else ""


_SNAKE = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BACKWARD = regex(r"_(?:backward|bwd|bw|grad_input|grad_weight|grad_gamma_beta|gamma_beta|grad)(?=_)")
_FORWARD = regex(r"_(?:forward|fwd|fw|fprop)(?=_)")
_CONV = regex(r"_(wgrad|dgrad|wrw)(?=_)")
_PLACE = regex(r"_(nchw|nhwc|ncdhw|ndhwc)(?=_)")
_NOISE = regex(
    r"_(?:kernel\d*|kernels|cuda|gpu|hip|impl|internal|device|launch|vectorized|vec|functor|ops?|cunn|out|frame|codegen"
    r"|split(?=_embedding)|dev|main|aligned\d*|v\d|sm\d+|g|k(?=_dequantize)|fn|new|tr|1c11)(?=_)"
)
_HEADS = regex(r"^(?:triton__|CUDAFunctor(?:OnSelf|OnOther)?_|cunn_|_+|k(?=[A-Z])|cu(?=[A-Z][a-z]))")
_TAILS = regex(r"(?<=.)(?:(?:_tensor)?_scalar|_and_transform)$|(?<=cat)_array_batched_copy\w*")
_SPECIALISED = regex(r"_0[cde]*1\w*$")
_SAME = (
    "direct_copy copy, copy_to copy, compare_scalar compare, norm_two norm, welford var, arg_max argmax, arg_min "
    "argmin, index_select_large_index index_select, index_select_small_index index_select, max_nan max, min_nan min, "
    "soft_max softmax, rowwise_moments layer_norm moments, class_nll_criterion_update nll_loss, "
    "class_nll_criterion_update_output nll_loss, compare_eq eq, compare_ne ne, compare_ge ge, compare_gt gt, "
    "compare_le le, compare_lt lt"
)
_CALLED = {words[0]: words[2] for pair in _SAME.split(", ") for words in [pair.partition(" ")]}
"""Operation as identifiers spell it → as labels do."""


@lru_cache(maxsize=1 << 12)
def plain(identifier: str) -> tuple[str, str, str]:
    """Operation, direction and layout that an identifier of C++ or Triton tells."""
    text = _HEADS.sub("", _SPECIALISED.sub("", identifier))
    text = f"_{_SNAKE.sub('_', text).lower()}_".replace("cudakernel", "cuda_kernel")
    conv, place = _CONV.search(text), _PLACE.search(text)
    direction = "bwd" if _BACKWARD.search(text) else "fwd" if _FORWARD.search(text) else ""
    for pattern in (_CONV, _BACKWARD, _FORWARD, _PLACE, _NOISE):
        text = pattern.sub("", text)
    operation = _TAILS.sub("", text.strip("_").replace("__", "_"))
    direction = conv[1].replace("wrw", "wgrad") if conv else direction
    return _CALLED.get(operation, operation), direction, place[1] if place else ""
