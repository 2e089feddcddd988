"""FLOP and bytes of operator calls from their shapes: what the mathematics needs, not what a kernel happens to do.

Multiply and add count as two. Bytes are those of every input read once and the output written once, as if caches were
perfect; an operator that reads something twice therefore achieves less, never more, than the device's bandwidth.

- matmul `[m, k] × [k, n]`, b of them: FLOP = 2·b·m·n·k.
- elementwise, normalization, softmax: bytes only; FLOP say nothing about operators that wait for memory.
- convolution and attention: `conv_costs`, `attention_costs`.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.frozen import frozen
from traceanalyze.model.attention_costs import attention
from traceanalyze.model.conv_costs import convolution
from traceanalyze.model.kernel_classes import KernelGroup, group_of_op
from traceanalyze.model.op_calls import Call, Shape, outer

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen
class Cost:
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


def _matmul(call: Call, product: _Product) -> tuple[int | None, int | None]:
    """FLOP and bytes of a call."""
    batch, a, b, arguments = product
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        return None, None
    m, k, n = a[-2], a[-1], b[-1]
    given = call.input_bytes(arguments)
    # The result of an 8-bit product is 16 bits wide.
    each = max(call.element(arguments - 1 if call.shape(arguments - 1) else 0) or 0, 2)
    return 2 * batch * m * n * k, None if given is None else given + batch * m * n * each


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


_MATMULS: dict[str, Callable[[Call], _Product]] = {
    "mm": _plain(0),
    "bmm": _plain(0),
    "_int_mm": _plain(0),
    "_scaled_mm": _plain(0),
    "addmm": _plain(1),
    "baddbmm": _plain(1),
    "_addmm_activation": _plain(1),
    "linear": _linear,
    "matmul": _broadcast_matmul,
}

_WRITES_ONLY = frozenset({"fill", "zero", "uniform", "normal", "bernoulli", "random"})
_COMPARES = re.compile(r"(eq|ne|lt|le|gt|ge|logical_\w+)$")
_BINARY = re.compile(
    r"_?(add|sub|rsub|mul|div|pow|masked_fill|\w+_backward|(bitwise|logical)_(and|or|xor)|eq|ne|lt|le|gt|ge)$"
)
_TERNARY = frozenset({"where", "addcmul", "addcdiv", "lerp", "clamp"})
_REDUCING_NORMS = re.compile(r"vector_norm|matrix_norm|^norm$|_foreach")
_MOVING = frozenset({KernelGroup.ELEMENTWISE, KernelGroup.NORMALIZATION, KernelGroup.SOFTMAX})


def _moving(call: Call) -> Cost | None:
    """Bytes of operators bound by memory."""
    if call.op == "copy":
        # The first argument is only written, so that inputs and output are just the two arguments.
        return Cost(KernelGroup.LAYOUT, None, call.input_bytes(), moves_only=True)
    group = group_of_op(f"::{call.op}")
    if group not in _MOVING or not any(call.shapes) or _REDUCING_NORMS.search(call.op):
        return None
    read = _arguments(call.op) if group == KernelGroup.ELEMENTWISE else None
    given = call.input_bytes(read)
    if call.op in _WRITES_ONLY:
        return Cost(group, None, given, moves_only=True)
    tensors = [shape for shape in call.shapes[:read] if shape]
    shape = broadcast(*tensors) if group == KernelGroup.ELEMENTWISE else max(tensors, key=prod)
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
