"""FLOP and bytes of convolutions.

With output elements O, weight `[c_out, c_in / groups, kernel…]`: forward FLOP = 2·O·(c_in / groups)·Πkernel; the
gradients of input and of weight cost as much each. A transposed convolution has its input in the place of O. The
output's size follows from stride, padding and dilation; the gradient given to a backward call has it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from traceanalyze.model.op_calls import Call, Shape

Amounts = tuple[int | None, int | None]


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
        return _gradient(call, grad=call.shape(1), weight=call.shape(2))
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
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(
            data[2:], weight[2:], *(_each(values, count) for values in (stride, padding, dilation)), strict=True
        )
    ]
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
    return (
        None if flop is None else flop * sum(wanted),
        None if given is None or each is None else given + written * each,
    )


def _gradient(call: Call, *, grad: Shape, weight: Shape) -> Amounts:
    """Gradient of the input alone; the input's own shape is not recorded, hence no bytes."""
    del call
    return _flop(grad, weight), None
