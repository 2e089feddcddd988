"""What a kernel does in the parts of a label, the words of names for them, and names as text.

A name has one spelling for all compilers and is read by bracket depth into name, template and lambda.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
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
    literal: bool = True
    """All words of the name are true."""
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


_MOST = 4000
"""Letters that are read: what tells a name stands before its call arguments. The longest name seen has 5,160."""
_CLONE = regex(r"(?: \[clone [^\]]*\]|\.kd)+$")
_LLVM_LAMBDA = regex(r"'lambda(\d{0,9})'\(([^()]*)\)")
_LAMBDA = regex(r"\{lambda\(([^{}]*?)\)#(\d+)\}")
_ENUM = regex(r"\([A-Za-z_][\w:]*\)(?=-?\d)")
_BRACKET = regex(r"[<>(){}\[\],]")
_LENGTH = regex(r"(?:[NKVrLS]|St)*?(\d{1,4})(?=[A-Za-z_])")
_LATER = regex(r"(?<=[A-Z_])(\d{1,4})(?=[A-Za-z]{3})")
_LITERAL = regex(r"L[a-z](\d+)E")
_INNERMOST = regex(r"\{([^{}#]*)#\d+\}$")
_NUMBERS = regex(r"#(\d+)\}")


class Call(NamedTuple):
    """One template instance: the kernel itself, or one of its arguments."""

    space: str
    """Namespaces and what else stands before the name, with `::`."""
    name: str
    args: list[str]
    """Template arguments."""
    rest: str
    """From the call's arguments on: of a lambda also where in its host function it is."""

    @property
    def lambda_types(self) -> list[str]:
        """Types of the arguments of the innermost lambda, where it is one."""
        found = _INNERMOST.search(self.rest)
        return read(f"_<{found[1]}>").args if found else []

    @property
    def lambda_numbers(self) -> str:
        """Which lambda of the host function, from the outermost inwards; the last is nearly always the first."""
        numbers = _NUMBERS.findall(self.rest)
        return "λ" + ".".join(numbers[:-1] or numbers) if numbers else ""


def normal(name: str) -> str:
    """The name in one spelling, in which parentheses are only those of calls.

    GNU's `{lambda(float)#1}` and LLVM's `'lambda'(float)` are `{float#1}`; anonymous namespaces and casts to
    enumerations go. A mangled name becomes the identifiers and numbers that it holds.
    """
    name = name[:_MOST]
    if name.endswith((".kd", "]")):
        name = _CLONE.sub("", name)
    if name.startswith("_Z"):
        return _identifiers(name)
    if "(" not in name:
        return name
    if "'lambda" in name:
        name = _LLVM_LAMBDA.sub(lambda found: f"{{lambda({found[2]})#{int(found[1] or -1) + 2}}}", name)
    name = name.replace("(anonymous namespace)::", "").replace("operator()", "operator").replace("->", "→")
    return _ENUM.sub("", _LAMBDA.sub(r"{\1#\2}", name))


def _identifiers(name: str) -> str:
    """Nested name of a mangled one, with numbers and the first identifier of its template; the rest stays unread."""
    path, at = [], 2
    while found := _LENGTH.match(name, at):
        at = found.end() + int(found[1])
        path.append(name[found.end() : at])
    plain = "::".join(part for part in path if not part.startswith("_GLOBAL__"))
    inner = _LATER.search(name, at) if plain else None
    args = _LITERAL.findall(name, at) + ([name[inner.end() : inner.end() + int(inner[1])]] if inner else [])
    return f"{plain}<{', '.join(args)}>" if args else plain or name


def read(text: str) -> Call:
    """The outermost name of a normalised text; what does not balance ends it."""
    text, depth, end, last, cuts = text.strip(), 0, 0, 0, [0]
    for found in _BRACKET.finditer(text):
        mark, at = found[0], found.start()
        if mark == "," and depth == 1:
            cuts.append(at)
        elif mark in "<({[":
            if depth == 0:
                if mark == "(":
                    end = at
                    break
                last, cuts = cuts[-1] + (cuts[-1] > 0), [at]
            depth += 1
        elif mark != ",":
            depth -= 1
            if depth <= 0:
                cuts.append(at)
    end = end or len(text)
    whole = depth == 0 and len(cuts) > 1 and cuts[-1] + 1 == end and text[cuts[0]] == "<"
    begin, stop = (last, cuts[0]) if whole or depth > 0 else (cuts[-1] + (len(cuts) > 1), end)
    own = max(text.rfind(":", begin, stop), text.rfind(" ", begin, stop), begin - 1) + 1
    args = [text[left + 1 : right].strip() for left, right in pairwise(cuts)] if whole else []
    call = Call(text[:own], text[own:stop], args, text[end:])
    if call.name == "operator" and call.space:
        # `sum_functor<float>::operator()(…)`: the class is the name.
        outer = read(call.space.removesuffix("::"))
        return Call(outer.space, outer.name, outer.args + args, call.rest)
    return call


_PIECE = regex(r"[A-Za-z0-9]+")
_DIGITS = regex(r"\d+")


_DULL = frozenset({"true", "false", "const", "void", "cuda", "native", "detail", "kernel", "Kernel", "Type"})
"""Words that say little, which come last."""
_TELLING = 3
"""Letters of a word that says something."""


def pieces(name: str) -> dict[str, str]:
    """Words of a name by what they are about: those that are written apart, types, and what capitals divide."""
    written = [word for word in _PIECE.findall(name[:_MOST]) if len(word) >= _TELLING and word[0].isalpha()]
    inner = [part for word in written for part in _SNAKE.split(word) if len(part) >= _TELLING]
    words, parts = ([word for word in each if not dtype_of(word) and word not in _DULL] for each in (written, inner))
    found = dict[str, str]()
    for word in (*words, *filter(None, map(dtype_of, written)), *parts, *_DULL.intersection(written)):
        found.setdefault(word if word in DTYPES else _DIGITS.sub("", word), word)
    return found
