"""The model as modules, operators and kernels, with shapes; durations follow from flops and bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.simulate.kernels import kernel_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.workload import Model

SIZES = {"c10::BFloat16": 2, "float": 4, "long int": 8}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and type of an argument."""

    dims: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        return self.elements * SIZES[self.dtype]


Argument = Tensor | str
"""A tensor, or a plain value as the profiler writes it."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Work for the device."""

    kind: str
    """Key of `kernels.NAMES`; also the class of the kernel."""
    name: str
    flops: int
    bytes: int
    blocks: int
    threads: int = 128
    misaligned: bool = False
    """A product with a size that is no multiple of 8."""


@dataclass(frozen=True, slots=True)
class Op:
    """An operator and what it calls, in order."""

    name: str
    inputs: tuple[Argument, ...] = ()
    inside: tuple[Op | Kernel, ...] = ()


@dataclass(frozen=True, slots=True)
class Layer:
    """A differentiable operator with its backward node."""

    forward: Op
    node: str
    backward: tuple[Op, ...]
    parameters: tuple[Tensor, ...] = ()
    keeps: int = 0
    """Bytes kept for the backward pass."""


@dataclass(frozen=True, slots=True)
class Module:
    """An `nn.Module`: its class, the line of its `forward`, and what that calls."""

    kind: str
    source: str
    inside: tuple[Module | Layer, ...]


@dataclass(frozen=True, slots=True)
class Builder:
    """Makes the operators of one model for one vendor."""

    model: Model
    vendor: str

    @property
    def tokens(self) -> int:
        return self.model.batch * self.model.sequence

    def kernel(self, kind: str, flops: int, moved: int, functor: str = "") -> Kernel:
        """A kernel; its grid follows from the bytes that it moves."""
        name = kernel_name(kind, self.vendor, functor, self.model.dtype)
        return Kernel(kind, name, flops, moved, max(1, moved // 65_536))

    def tensor(self, *dims: int) -> Tensor:
        return Tensor(dims, self.model.dtype)

    def activation(self, width: int) -> Tensor:
        return self.tensor(self.model.batch, self.model.sequence, width)

    def matmul(self, rows: int, inner: int, columns: int, bias: Tensor | None = None) -> Op:
        """Product of (rows, inner) and (inner, columns)."""
        left, right = self.tensor(rows, inner), self.tensor(inner, columns)
        moved = left.bytes + right.bytes + self.tensor(rows, columns).bytes
        kernel = self.kernel("matmul", 2 * rows * inner * columns, moved, "Mm" if bias is None else "Addmm")
        # An NPU needs the axis aligned that is contiguous in memory.
        sizes = (inner, columns) if self.vendor == "ascend" else (rows, inner, columns)
        kernel = replace(kernel, misaligned=any(size % 8 for size in sizes))
        if bias is None:
            return Op("aten::mm", (left, right), (kernel,))
        return Op("aten::addmm", (bias, left, right, "1", "1"), (kernel,))

    def linear(self, wide: int, out: int) -> Module:
        """`nn.Linear`: one addmm forward, two matrix products and a sum backward."""
        x, weight, bias = self.activation(wide), self.tensor(out, wide), self.tensor(out)
        grad = self.tensor(self.tokens, out)
        product = self.matmul(self.tokens, wide, out, bias)
        before = (*preparing(self, x), *dequantised(self, weight))
        forward = Op("aten::linear", (x, weight, bias), (*before, Op("aten::t", (weight,)), product))
        total = Op(
            "aten::sum", (grad, "[0]", "True", ""), (self.kernel("reduction", grad.elements, grad.bytes, "sum"),)
        )
        backward = (
            *dequantised(self, weight),
            self.matmul(self.tokens, out, wide),
            self.matmul(out, self.tokens, wide),
            total,
        )
        layer = Layer(forward, "AddmmBackward0", backward, (weight, bias), self.activation(out).bytes)
        return Module("Linear", "torch/nn/modules/linear.py(125): forward", (layer,))

    def pointwise(self, name: str, node: str, width: int, functor: str, inputs: int = 1) -> Layer:
        """An elementwise operator."""
        x = self.activation(width)
        kernel = self.kernel("elementwise", x.elements, (inputs + 1) * x.bytes, functor)
        back = Op(f"{name}_backward", (x, x), (kernel,)) if inputs == 1 else Op("aten::view", (x,))
        return Layer(Op(name, (x,) * inputs, (kernel,)), node, (back,), (), x.bytes if inputs == 1 else 0)

    def activation_function(self, width: int) -> tuple[Layer, ...]:
        """GELU, or as many operators as it is written out in."""
        if self.model.activation == 1:
            return (self.pointwise("aten::gelu", "GeluBackward0", width, "GeluCUDAKernelImpl"),)
        names = ("aten::tanh", "aten::exp", "aten::sigmoid", "aten::erf")
        return tuple(
            self.pointwise(names[place % 4], "TanhBackward0", width, "GeluCUDAKernelImpl")
            for place in range(self.model.activation)
        )

    def norm(self) -> Module:
        """`nn.LayerNorm`."""
        width = self.model.hidden
        x, weight = self.activation(width), self.tensor(width)
        given = (x, f"[{width}]", weight, weight, "1e-05")
        kernel = self.kernel("normalization", 8 * x.elements, 2 * x.bytes)
        run = Op("aten::native_layer_norm", given, (kernel,))
        kernels = (
            self.kernel("normalization_backward", 12 * x.elements, 3 * x.bytes),
            self.kernel("normalization_weights", 4 * x.elements, x.bytes),
        )
        layer = Layer(
            Op("aten::layer_norm", (*given, "True"), (run,)),
            "NativeLayerNormBackward0",
            (Op("aten::native_layer_norm_backward", (x, x, weight), kernels),),
            (weight, weight),
            x.bytes,
        )
        return Module("LayerNorm", "torch/nn/modules/normalization.py(229): forward", (layer,))

    def attention(self) -> tuple[Layer, ...]:
        """Scaled dot-product attention."""
        return (self._flash(),) if self.model.attention == "fused" else self._plain()

    def _plain(self) -> tuple[Layer, ...]:
        """Scores, scaling, softmax and values, each a kernel that goes through memory."""
        m = self.model
        heads, width = m.batch * m.heads, m.hidden // m.heads
        scores = self.tensor(heads, m.sequence, m.sequence)
        wide, high = self.tensor(heads, m.sequence, width), self.tensor(heads, width, m.sequence)
        moved = scores.bytes + 2 * wide.bytes
        product = self.kernel("matmul", 2 * scores.elements * width, moved, "Mm")
        scale = self.kernel("elementwise", scores.elements, 2 * scores.bytes, "MulFunctor")
        softmax = self.kernel("softmax", 5 * scores.elements, 2 * scores.bytes)
        softmax_back = self.kernel("softmax_backward", 4 * scores.elements, 3 * scores.bytes)

        def bmm(left: Tensor, right: Tensor) -> Op:
            return Op("aten::bmm", (left, right), (product,))

        return (
            Layer(bmm(wide, high), "BmmBackward0", (bmm(high, scores), bmm(scores, wide)), (), scores.bytes),
            Layer(
                Op("aten::mul", (scores, "0.125"), (scale,)),
                "MulBackward0",
                (Op("aten::mul", (scores, "0.125"), (scale,)),),
                (),
                scores.bytes,
            ),
            Layer(
                Op("aten::_softmax", (scores, "-1", "False"), (softmax,)),
                "SoftmaxBackward0",
                (Op("aten::_softmax_backward_data", (scores, scores), (softmax_back,)),),
                (),
                scores.bytes,
            ),
            Layer(bmm(scores, wide), "BmmBackward0", (bmm(scores, wide), bmm(wide, high)), (), wide.bytes),
        )

    def _flash(self) -> Layer:
        """The flash kernel."""
        m = self.model
        q = self.tensor(m.batch, m.heads, m.sequence, m.hidden // m.heads)
        flops, moved = 4 * m.batch * m.sequence**2 * m.hidden, 4 * q.bytes
        kernel = self.kernel("attention", flops, moved)
        length = str(m.sequence)
        given = (q, q, q, "", "", length, length, "0.", "True", "False")
        inner = Op("aten::_flash_attention_forward", given, (kernel,))
        given = (q, q, q, "0.", "True", "False", "")
        middle = Op("aten::_scaled_dot_product_flash_attention", given, (Op("aten::transpose", (q,)), inner))
        back = self.kernel("attention_backward", 5 * flops // 2, 2 * moved)
        return Layer(
            Op("aten::scaled_dot_product_attention", (q, q, q), (middle,)),
            "ScaledDotProductFlashAttentionBackward0",
            (Op("aten::_scaled_dot_product_flash_attention_backward", (q, q, q, q), (back,)),),
            (),
            3 * q.bytes,
        )

    def block(self) -> Module:
        """One transformer block."""
        width = self.model.hidden
        add = self.pointwise("aten::add", "AddBackward0", width, "CUDAFunctor_add", inputs=2)
        gelu = Module(
            "GELU",
            "torch/nn/modules/activation.py(734): forward",
            self.activation_function(4 * width),
        )
        attend = Module(
            "Attention",
            "model.py(38): forward",
            (self.linear(width, 3 * width), *self.attention(), self.linear(width, width)),
        )
        mlp = Module(
            "MLP", "model.py(52): forward", (self.linear(width, 4 * width), gelu, self.linear(4 * width, width))
        )
        return Module("Block", "model.py(66): forward", (self.norm(), attend, add, self.norm(), mlp, add))

    def embedding(self) -> Module:
        """Token embedding."""
        m = self.model
        weight, index = self.tensor(m.vocabulary, m.hidden), Tensor((m.batch, m.sequence), "long int")
        moved = 2 * self.activation(m.hidden).bytes
        pick = Op("aten::index_select", (weight, index), (self.kernel("embedding", 0, moved),))
        grad = Op(
            "aten::embedding_dense_backward",
            (self.activation(m.hidden), index),
            (
                Op("aten::zeros", (weight,), (self.kernel("memset", 0, weight.bytes),)),
                self.kernel("embedding_backward", 0, moved + weight.bytes),
            ),
        )
        layer = Layer(Op("aten::embedding", (weight, index), (pick,)), "EmbeddingBackward0", (grad,), (weight,))
        return Module("Embedding", "torch/nn/modules/sparse.py(190): forward", (layer,))

    def network(self) -> Module:
        """The whole model."""
        m = self.model
        blocks = tuple(self.block() for _ in range(m.layers))
        inside = (self.embedding(), *blocks, self.norm(), self.linear(m.hidden, m.vocabulary))
        return Module("GPT", "model.py(91): forward", inside)

    def loss(self) -> Module:
        """Cross entropy over the vocabulary."""
        logits = self.tensor(self.tokens, self.model.vocabulary)
        target = Tensor((self.tokens,), "long int")
        softmax = Op("aten::_log_softmax", (logits,), (self.kernel("softmax", 5 * logits.elements, 2 * logits.bytes),))
        pick = Op("aten::nll_loss_forward", (logits, target), (self.kernel("loss", 0, target.bytes),))
        back = (
            Op("aten::nll_loss_backward", (logits, target), (self.kernel("loss_backward", 0, logits.bytes),)),
            Op(
                "aten::_log_softmax_backward_data",
                (logits, logits),
                (self.kernel("softmax_backward", 0, 3 * logits.bytes),),
            ),
        )
        layer = Layer(
            Op("aten::cross_entropy_loss", (logits, target), (softmax, pick)),
            "NllLossBackward0",
            back,
            (),
            logits.bytes,
        )
        return Module("CrossEntropyLoss", "torch/nn/modules/loss.py(1297): forward", (layer,))


def preparing(builder: Builder, x: Tensor) -> Iterator[Op]:
    """Conversions and changes of layout that a linear layer could do without."""
    moved = builder.kernel("elementwise", 0, 2 * x.bytes, "Relayout")
    cast = builder.kernel("elementwise", 0, 2 * x.bytes, "Cast")
    for _ in range(builder.model.casts):
        copied = Op("aten::copy_", (x, x), (cast,))
        yield Op("aten::to", (x,), (Op("aten::_to_copy", (x,), (Op("aten::empty_strided"), copied)),))
    for _ in range(builder.model.relayouts):
        copied = Op("aten::copy_", (x, x), (moved,))
        yield Op("aten::contiguous", (x,), (Op("aten::clone", (x,), (Op("aten::empty_like", (x,)), copied)),))


def dequantised(builder: Builder, weight: Tensor) -> tuple[Op, ...]:
    """What a weight of 4 bits goes through before a product: its scales, itself, and a cast; or one kernel for all."""
    if not builder.model.quantized:
        return ()
    decoded = builder.kernel("dequantise", weight.elements, weight.bytes * 5 // 4)
    if builder.model.quantized == "at once":
        return (Op("MatMul4Bit", (weight,), (decoded,)),)
    scales = Tensor((weight.elements // 64,), "float")
    filled = builder.kernel("elementwise", 0, scales.bytes, "FillFunctor")
    read = builder.kernel("dequantise", scales.elements, scales.bytes * 5 // 4)
    add = builder.kernel("elementwise", scales.elements, 2 * scales.bytes, "CUDAFunctor_add")
    cast = builder.kernel("elementwise", 0, 2 * weight.bytes, "Cast")
    inside = (
        Op(
            "aten::zeros_like",
            (scales,),
            (Op("aten::zero_", (scales,), (Op("aten::fill_", (scales, "0"), (filled,)),)),),
        ),
        read,
        Op("aten::add_", (scales, scales), (add,)),
        decoded,
        Op("aten::to", (weight,), (Op("aten::_to_copy", (weight,), (Op("aten::copy_", (weight, weight), (cast,)),)),)),
    )
    return (Op("MatMul4Bit", (weight,), inside),)


def layers_of(module: Module) -> list[Layer]:
    """All layers in the order of the forward pass."""
    found: list[Layer] = []
    for each in module.inside:
        found += layers_of(each) if isinstance(each, Module) else [each]
    return found
