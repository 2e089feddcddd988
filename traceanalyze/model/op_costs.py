"""FLOP and bytes of operator calls from their shapes: what the mathematics needs, not what a kernel happens to do.

Multiply and add count as two. Bytes are those of every input read once and the output written once, as if caches were
perfect; an operator that reads something twice therefore achieves less, never more, than the device's bandwidth. What a
tensor repeats (a dimension of stride 0) is read once; a tensor given to be written to (`out=`) is not read.

- matmul `[m, k] × [k, n]`, b of them: FLOP = 2·b·m·n·k.
- elementwise, normalization, softmax: bytes only; FLOP say nothing about operators that wait for memory.
- convolution and attention: `conv_costs`, `attention_costs`.
"""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from traceanalyze.model.kernel_classes import KernelGroup, group_of_op
from traceanalyze.model.op_calls import Call, Shape, outer
from traceanalyze.model.patterns import regex

Amounts = tuple[int | None, int | None]


class _Variant(NamedTuple):
    """Where an operator has its arguments."""

    query: int
    """Position of the query; key and value follow."""
    causal: int
    """Position of the causal flag or, for memory-efficient attention, of the mask type (0 none, 1 and 2 causal)."""
    heads_last: bool
    """Layout [b, length, h, d] instead of [b, h, length, d]."""
    ends: int | None = None
    """Position of the ends of sequences one after the other; those of the keys and the longest of both follow."""
    window: int | None = None
    """Position of the number of keys before its own that a query sees; -1 for all."""


_VARIANTS = {
    "_scaled_dot_product_flash_attention": _Variant(0, 4, heads_last=False),
    "_scaled_dot_product_flash_attention_for_cpu": _Variant(0, 4, heads_last=False),
    "_scaled_dot_product_efficient_attention": _Variant(0, 6, heads_last=False),
    "_scaled_dot_product_cudnn_attention": _Variant(0, 6, heads_last=False),
    "_flash_attention_forward": _Variant(0, 8, heads_last=True, ends=3, window=11),
    "_flash_attn_varlen_forward": _Variant(0, 9, heads_last=True, ends=3, window=10),
    "_varlen_attn": _Variant(0, 7, heads_last=True, ends=3),
    "_efficient_attention_forward": _Variant(0, 9, heads_last=True, ends=4),
    "_cudnn_attention_forward": _Variant(0, 10, heads_last=False, ends=4),
    "_scaled_dot_product_flash_attention_backward": _Variant(1, 11, heads_last=False),
    "_scaled_dot_product_efficient_attention_backward": _Variant(1, 11, heads_last=False),
    "_scaled_dot_product_cudnn_attention_backward": _Variant(1, 14, heads_last=False),
    "_flash_attention_backward": _Variant(1, 11, heads_last=True, ends=6, window=15),
    "_flash_attn_varlen_backward": _Variant(1, 15, heads_last=True, ends=9, window=16),
    "_efficient_attention_backward": _Variant(1, 14, heads_last=True, ends=6),
    "_cudnn_attention_backward": _Variant(1, 14, heads_last=False),
}
_BACKWARD = 5
"""Products of a backward call, as against two of a forward one."""


def attention(call: Call) -> Amounts | None:
    """FLOP and bytes of an attention call, None if the call is none."""
    variant = _VARIANTS.get(call.op)
    if variant is None:
        return None
    packed = variant.ends is not None and len(call.shape(variant.ends)) == 1
    sizes = _packed if packed else _sizes
    query, key, value = (sizes(call, variant, i) for i in range(3))
    if query is None or key is None or value is None:
        return None, None
    causal = {"True": True, "1": True, "2": True, "False": False, "0": False}.get(call.value(variant.causal) or "")
    sliding = variant.window is not None and call.value(variant.window) not in {None, "", "-1"}
    scores = None if sliding or min(query[2], key[2]) < 0 else _scores(query[2], key[2], causal)
    backward = variant.query == 1
    flop = None
    if scores is not None:
        forward = 2 * query[0] * query[1] * scores * (query[3] + value[3])
        flop = forward * _BACKWARD // 2 if backward else forward
    return flop, _bytes(call, variant, value[3], backward=backward)


def _sizes(call: Call, variant: _Variant, at: int) -> Shape | None:
    """Batch, heads, length, head size of the query, key or value."""
    shape = call.shape(variant.query + at)
    if len(shape) != 4:
        return None
    batch, a, b, size = shape
    return (batch, b, a, size) if variant.heads_last else (batch, a, b, size)


def _packed(call: Call, variant: _Variant, at: int) -> Shape | None:
    """The same of sequences one after the other: length -1 unless the longest says that all are equally long."""
    shape, of_keys = call.shape(variant.query + at), int(at > 0)
    if variant.ends is None or not (len(shape) == 3 or (len(shape) == 4 and shape[0] == 1)):
        return None
    tokens, heads, size = shape[-3:]
    ends = call.shape(variant.ends + of_keys) or call.shape(variant.ends)
    count, longest = ends[0] - 1, call.value(variant.ends + 2 + of_keys)
    equal = count > 0 and longest == str(tokens // count) and tokens % count == 0
    return (count, heads, tokens // count if equal else -1, size)


def _scores(queries: int, keys: int, causal: bool | None) -> int | None:
    """Pairs of query and key that attend to each other."""
    if causal is None or (causal and queries != keys):
        return None
    return queries * (queries + 1) // 2 if causal else queries * keys


def _bytes(call: Call, variant: _Variant, value_size: int, *, backward: bool) -> int | None:
    """Query, key and value read, the output written; backward reads output and gradient too and writes three."""
    first = variant.query
    each = call.element(first)
    if each is None:
        return None
    query, key, value = (call.elements(first + i) for i in range(3))
    output = prod(call.shape(first)) // call.shape(first)[-1] * value_size if call.shape(first)[-1] else 0
    given = query + key + value
    return each * (2 * given + 2 * output if backward else given + output)


class _Places(NamedTuple):
    """Positions of the arguments of a forward convolution."""

    stride: int
    padding: int
    dilation: int | None


_FORWARD = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "_convolution"), _Places(3, 4, 5)),
    **dict.fromkeys(("cudnn_convolution_relu", "miopen_convolution_relu"), _Places(3, 4, 5)),
    "cudnn_convolution": _Places(stride=3, padding=2, dilation=4),
    "cudnn_convolution_add_relu": _Places(5, 6, 7),
    **dict.fromkeys(("miopen_convolution", "miopen_depthwise_convolution"), _Places(stride=4, padding=3, dilation=5)),
    "_conv_depthwise2d": _Places(4, 5, 6),
    "_slow_conv2d_forward": _Places(4, 5, None),
}
_TRANSPOSED = frozenset({"cudnn_convolution_transpose", "miopen_convolution_transpose"})
_TRANSPOSED_FLAG = {"convolution": 6, "_convolution": 6}
_OUTPUT_MASK = 10


def convolution(call: Call) -> Amounts | None:
    """FLOP and bytes of a convolution, None if the call is none."""
    if call.op == "convolution_backward":
        return _backward(call)
    if call.op == "cudnn_convolution_backward_input":
        # The shape of the input, which is what it writes, is not recorded.
        return _flop(call.shape(1), call.shape(2)), None
    if call.op in _TRANSPOSED or (call.op in _TRANSPOSED_FLAG and call.flag(_TRANSPOSED_FLAG[call.op])):
        return _flop(call.shape(0), call.shape(1)), None
    return _forward(call, _FORWARD[call.op]) if call.op in _FORWARD else None


def _flop(outputs: Shape, weight: Shape) -> int | None:
    return 2 * prod(outputs) * prod(weight[1:]) if len(weight) > 2 and outputs else None


def _forward(call: Call, places: _Places) -> Amounts:
    data, weight = call.shape(0), call.shape(1)
    output = _output(call, data, weight, places)
    given, each = call.input_bytes(), call.element()
    if output is None:
        return None, None
    return _flop(output, weight), None if given is None or each is None else given + prod(output) * each


def _output(call: Call, data: Shape, weight: Shape, places: _Places) -> Shape | None:
    """Shape of the result: per dimension (n + 2·padding - dilation·(kernel - 1) - 1) // stride + 1."""
    count = len(weight) - 2
    stride, padding = call.integers(places.stride), call.integers(places.padding)
    dilation = (1,) if places.dilation is None else call.integers(places.dilation)
    if count < 1 or len(data) != len(weight) or not stride or not padding or not dilation or min(stride) < 1:
        return None
    each = zip(data[2:], weight[2:], *(_each(values, count) for values in (stride, padding, dilation)), strict=True)
    sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each]
    return (data[0], weight[0], *sizes) if min(sizes) > 0 else None


def _each(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    """One value stands for all dimensions."""
    return values * count if len(values) == 1 else (*values, *(1,) * count)[:count]


def _backward(call: Call) -> Amounts:
    """As many products as gradients are wanted; the output mask tells which."""
    grad, data, weight = (call.shape(position) for position in range(3))
    mask = call.value(_OUTPUT_MASK)
    if mask is None:
        return None, None
    wanted = [word.strip() in {"True", "true", "1"} for word in mask.strip("[]").split(",")][:2]
    flop = _flop(data if call.flag(7) else grad, weight)
    given, each = call.input_bytes(), call.element()
    written = sum(prod(shape) for shape, want in zip((data, weight), wanted, strict=False) if want)
    moved = None if given is None or each is None else given + written * each
    return None if flop is None else flop * sum(wanted), moved


class Cost(NamedTuple):
    """What a call needs; None where its arguments do not tell."""

    group: KernelGroup
    flop: int | None
    bytes: int | None
    moves_only: bool = False
    """Counted in bytes alone."""


def cost_of(call: Call) -> Cost | None:
    """FLOP and bytes of a call, None for operators without a formula."""
    if call.op in _MATMULS:
        return Cost(KernelGroup.MATMUL, *_matmul(call, _MATMULS[call.op](call)))
    if (found := convolution(call)) is not None:
        return Cost(KernelGroup.CONVOLUTION, *found)
    if (found := attention(call)) is not None:
        return Cost(KernelGroup.ATTENTION, *found)
    return _moving(call)


class _Product(NamedTuple):
    """Products of `a` [m, k] and `b` [k, n]."""

    batch: int
    a: Shape
    b: Shape
    arguments: int
    """Arguments read; a tensor after them is the one to write to."""
    results: int = 1
    """Matrices written by each."""


def _matmul(call: Call, product: _Product) -> tuple[int | None, int | None]:
    """FLOP and bytes of a call."""
    batch, a, b, arguments, results = product
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        return None, None
    m, k, n = a[-2], a[-1], b[-1]
    given = call.input_bytes(arguments)
    # The result of an 8-bit product is 16 bits wide.
    each = max(call.element(arguments - 1 if call.shape(arguments - 1) else 0) or 0, 2)
    return 2 * batch * m * n * k, None if given is None else given + batch * results * m * n * each


def _plain(first: int) -> Callable[[Call], _Product]:
    """Arguments `first` and the next are the matrices, with equal leading dimensions."""
    return lambda call: _Product(outer(call.shape(first)), call.shape(first), call.shape(first + 1), first + 2)


def _linear(call: Call) -> _Product:
    """`x [..., k]` and the weight `[n, k]`."""
    x, weight = call.shape(0), call.shape(1)
    return _Product(1, (prod(x[:-1]), *x[-1:]), weight[::-1], 3)


def _broadcast_matmul(call: Call) -> _Product:
    """Leading dimensions are broadcast; a vector is a matrix of one row or column."""
    a, b = call.shape(0), call.shape(1)
    a, b = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    batch = broadcast(a[:-2], b[:-2])
    return _Product(prod(batch or ()), a, b if batch is not None else (), 2)


def _vector(first: int) -> Callable[[Call], _Product]:
    """A matrix, argument `first`, and a vector."""
    return lambda call: _Product(1, call.shape(first), (*call.shape(first + 1), 1), first + 2)


def _summed(call: Call) -> _Product:
    """`addbmm`: the sum of products is one of longer rows and columns."""
    a, b = call.shape(1), call.shape(2)
    if len(a) != 3 or len(b) != 3 or (a[0], a[2]) != b[:2]:
        return _Product(1, (), (), 3)
    return _Product(1, (a[1], a[0] * a[2]), (b[0] * b[1], b[2]), 3)


def _grouped(offsets: int) -> Callable[[Call], _Product]:
    """Argument `offsets` cuts rows of the one matrix, or columns of the other, or both along what is summed over."""

    def product(call: Call) -> _Product:
        a, b = call.shape(0), call.shape(1)
        if len(a) == len(b) == 3:
            return _Product(a[0], a, b if a[0] == b[0] else (), 2)
        groups = prod(call.shape(offsets)) if len(a) == len(b) == 2 else 1
        return _Product(1, a[-2:], b[-2:], 2, groups)

    return product


_MATMULS: dict[str, Callable[[Call], _Product]] = {
    "mm": _plain(0),
    "bmm": _plain(0),
    "_int_mm": _plain(0),
    "_scaled_mm": _plain(0),
    "addmm": _plain(1),
    "baddbmm": _plain(1),
    "_addmm_activation": _plain(1),
    "mv": _vector(0),
    "addmv": _vector(1),
    "addbmm": _summed,
    "_grouped_mm": _grouped(2),
    "_scaled_grouped_mm": _grouped(4),
    "linear": _linear,
    "matmul": _broadcast_matmul,
}

_WRITES_ONLY = frozenset({"fill", "zero", "uniform", "normal", "bernoulli", "random"})
_COMPARES = regex(r"(eq|ne|lt|le|gt|ge|logical_\w+)$")
_BINARY = regex(
    r"_?(add|sub|rsub|mul|div|pow|masked_fill|\w+_backward|(bitwise|logical)_(and|or|xor)|eq|ne|lt|le|gt|ge)$"
)
_TERNARY = frozenset({"where", "addcmul", "addcdiv", "lerp", "clamp"})
_READ = {
    **dict.fromkeys(("softmax", "log_softmax", "_softmax", "_log_softmax"), 3),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), 4),
    "native_layer_norm": 5,
    "native_group_norm": 8,
    "native_batch_norm": 8,
}
"""Arguments of normalizations; tensors after them are those to write to."""
_REDUCING_NORMS = regex(r"vector_norm|matrix_norm|^norm$|_foreach")
_MOVING = frozenset({KernelGroup.ELEMENTWISE, KernelGroup.NORMALIZATION, KernelGroup.SOFTMAX})


def _moving(call: Call) -> Cost | None:
    """Bytes of operators bound by memory."""
    if call.op == "copy":
        # The first argument is only written, so that inputs and output are just the two arguments.
        return Cost(KernelGroup.LAYOUT, None, call.input_bytes(), moves_only=True)
    group = group_of_op(f"::{call.op}")
    if group not in _MOVING or not any(call.shapes) or _REDUCING_NORMS.search(call.op):
        return None
    read = _arguments(call.op) if group == KernelGroup.ELEMENTWISE else _READ.get(call.op)
    given = call.input_bytes(read)
    if call.op in _WRITES_ONLY:
        return Cost(group, None, given, moves_only=True)
    tensors = [shape for shape in call.shapes[:read] if shape]
    shape = broadcast(*tensors) if group == KernelGroup.ELEMENTWISE else max(tensors, key=prod, default=None)
    width = 1 if _COMPARES.match(call.op) else next(call.element(i) or 0 for i, each in enumerate(call.shapes) if each)
    whole = None if given is None or shape is None else given + prod(shape) * width
    return Cost(group, None, whole, moves_only=True)


def _arguments(op: str) -> int:
    """Arguments an elementwise operator reads; a tensor after them is the one to write to."""
    return 3 if op in _TERNARY else 2 if _BINARY.match(op) else 1


def broadcast(*shapes: Shape) -> Shape | None:
    """Common shape of tensors that are broadcast together, None if they do not fit."""
    length = max((len(shape) for shape in shapes), default=0)
    out = []
    for position in range(length):
        sizes = {shape[position - length] for shape in shapes if len(shape) >= length - position} - {1}
        if len(sizes) > 1:
            return None
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)
