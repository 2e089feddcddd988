"""Training steps of a GPT on the simulated allocator: every tensor of blocks, loss and optimizer, by its bytes.

The order of allocations is that of eager PyTorch: activations are kept until their backward pass, gradients are made
there, states in the first step. Options are what people do to need less memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulate.allocator.programs import engine, frame, user

if TYPE_CHECKING:
    from tests.simulate.allocator.pool import Allocator, Frames

_TORCH = "/usr/lib/python3.12/site-packages/torch"
_MODEL = "/home/me/gpt.py"
BLOCK_LINE = 61
"""Where the blocks are called."""


@dataclass(frozen=True)
class Gpt:
    """GPT-2's sizes and what the run does; bytes follow."""

    layers: int = 24
    width: int = 1024
    heads: int = 16
    vocabulary: int = 50304
    batch: int = 8
    length: int = 1024
    steps: int = 3
    checkpointed: bool = False
    eight_bit: bool = False
    chunks: int = 1
    """Pieces that the loss is computed in."""
    ranks: int = 1
    """That share the optimizer's states."""
    half_gradients: bool = False
    fused: bool = False

    @property
    def tokens(self) -> int:
        return self.batch * self.length

    @property
    def parameters(self) -> list[int]:
        """Bytes of each, in 32 bits."""
        w = self.width
        block = [w, w, 3 * w * w, 3 * w, w * w, w, w, w, 4 * w * w, 4 * w, 4 * w * w, w]
        return [4 * size for size in (self.vocabulary * w, self.length * w, *block * self.layers, w, w)]

    @property
    def kept(self) -> list[tuple[str, int, int]]:
        """What a block keeps for its backward pass, 16 bits each: function, line, bytes; the last is its output."""
        half = 2 * self.tokens * self.width
        scores = 2 * self.batch * self.heads * self.length**2
        return [
            ("layer_norm", 40, half),
            ("attend", 41, 3 * half),
            ("attend", 42, scores),
            ("attend", 43, half),
            ("layer_norm", 44, half),
            ("mlp", 45, 4 * half),
            ("mlp", 46, 4 * half),
            ("mlp", 47, half),
            ("forward", 48, half),
        ]


def _called(*inner: Frames) -> Frames:
    call = frame("_call_impl", f"{_TORCH}/nn/modules/module.py", 1750)
    return user(22, *(one for frames in inner for one in (*frames, call)))


def _in_block(name: str, line: int) -> Frames:
    return _called([frame(name, _MODEL, line)], [frame("forward", _MODEL, BLOCK_LINE)])


def train(gpt: Gpt, allocator: Allocator) -> Allocator:
    """Run the steps."""
    for size in gpt.parameters:
        allocator.malloc(size, user(10))
    states: list[int] = []
    embedded = 2 * gpt.tokens * gpt.width
    logits = 4 * gpt.tokens * gpt.vocabulary // gpt.chunks
    for step in range(gpt.steps):
        allocator.note(f"ProfilerStep#{step}")
        batch = allocator.malloc(8 * gpt.tokens, user(20))
        stream = [allocator.malloc(embedded, _called([frame("forward", _MODEL, 60)]))]
        kept = [_forward(gpt, allocator, stream) for _ in range(gpt.layers)]
        gradients: list[int] = []
        head = [frame("cross_entropy", f"{_TORCH}/nn/functional.py", 3494)]
        for _ in range(gpt.chunks):
            # Logits, their logarithms, then the gradient of both; a piece is done before the next one begins.
            pieces = [allocator.malloc(logits // 2, user(23, frame("head", _MODEL, 70)))]
            pieces += [allocator.malloc(logits, user(24, *head)) for _ in range(2)]
            pieces.append(allocator.malloc(logits, engine("_log_softmax_backward_data")))
            for one in pieces:
                allocator.free(one)
        sizes = [size // (2 if gpt.half_gradients else 1) for size in gpt.parameters]
        gradients.append(allocator.malloc(sizes[-1], engine("native_layer_norm_backward")))
        for index in reversed(range(gpt.layers)):
            again = _recomputed(gpt, allocator) if gpt.checkpointed else kept[index]
            for at, one in enumerate(reversed(again)):
                work = allocator.malloc(embedded, engine("mm"))
                for size in sizes[2 + 12 * index : 14 + 12 * index] if at == len(again) - 1 else ():
                    gradients.append(allocator.malloc(size, engine("mm", accumulates=True)))
                allocator.free(one)
                allocator.free(work)
            if gpt.checkpointed:
                for one in kept[index]:
                    allocator.free(one)
        gradients += [allocator.malloc(size, engine("embedding_dense_backward")) for size in (*sizes[:2], sizes[-2])]
        allocator.free(stream[0])
        inner = user(25, frame("step", f"{_TORCH}/optim/adamw.py", 220))
        if not states:
            share = (4 if gpt.eight_bit else 1) * gpt.ranks
            states = [allocator.malloc(max(size // share, 1), inner) for size in gpt.parameters for _ in range(2)]
        copies = [] if gpt.fused else [allocator.malloc(size, inner) for size in gpt.parameters]
        for one in (*copies, *gradients, batch):
            allocator.free(one)
        allocator.note(f"ProfilerStep#{step}", "END")
    return allocator


def _forward(gpt: Gpt, allocator: Allocator, stream: list[int]) -> list[int]:
    """A block; where it is checkpointed, only its output stays."""
    made = [allocator.malloc(size, _in_block(name, line)) for name, line, size in gpt.kept]
    if not gpt.checkpointed:
        return made
    for one in made[:-1]:
        allocator.free(one)
    return made[-1:]


def _recomputed(gpt: Gpt, allocator: Allocator) -> list[int]:
    inner = [frame("recompute_fn", f"{_TORCH}/utils/checkpoint.py", 1500)]
    return [
        allocator.malloc(size, [frame(name, _MODEL, line), *inner, *engine("recompute")])
        for name, line, size in gpt.kept[:-1]
    ]
