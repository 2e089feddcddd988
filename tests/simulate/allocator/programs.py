"""Training loops on the simulated allocator, healthy ones and ones with a known fault of a known size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulate.allocator.pool import KIB, MIB, Allocator, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulate.allocator.pool import Frames

TRAIN, MODEL = "/home/me/train.py", "/home/me/model.py"
LEAK_LINE, CACHE_LINE, LOAD_LINE, STEP_LINE, ZERO_LINE = 31, 35, 20, 25, 27


@dataclass(frozen=True)
class Loop:
    """A loop of a small model; bytes a layer."""

    steps: int = 8
    layers: int = 6
    activation: int = 3 * MIB
    parameter: int = 2 * MIB
    batch: int = 4 * MIB
    temporaries: int = 6
    """Small blocks that come and go in each layer."""
    annotated: bool = True
    leak: int = 0
    """Bytes kept by every step."""
    empty_cache: bool = False
    """After every step."""
    growing: int = 0
    """Bytes by which each step's activations are larger than the last one's."""
    spike: int = 0
    """Bytes of a block freed at once, at the end of the forward pass."""
    keep_gradients: bool = False
    """Through the next forward pass."""


def frame(name: str, filename: str, line: int) -> dict[str, Any]:
    return {"name": name, "filename": filename, "line": line}


def user(line: int, *inner: dict[str, Any]) -> Frames:
    """A stack of the training script."""
    return [*inner, frame("train", TRAIN, line), frame("<module>", TRAIN, 99)]


def module(line: int) -> Frames:
    """A stack inside the model."""
    torch = "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py"
    called = [frame("forward", MODEL, line), frame("_call_impl", torch, 1750)]
    return user(22, *called)


def engine(operator: str, *, accumulates: bool = False) -> Frames:
    """A stack of the backward thread: C++ only."""
    names = [f"at::_ops::{operator}::call(at::Tensor const&)", "torch::autograd::Engine::thread_main()"]
    if accumulates:
        names.insert(1, "torch::autograd::AccumulateGrad::apply()")
    return [frame(name, "??", 0) for name in names]


def empty_cache() -> Frames:
    return user(CACHE_LINE, frame("empty_cache", "/usr/lib/python3.12/site-packages/torch/cuda/memory.py", 170))


def train(loop: Loop, allocator: Allocator) -> Allocator:
    """Run the loop; it ends early when memory does."""
    optimizer = "/usr/lib/python3.12/site-packages/torch/optim/adamw.py"
    for _ in range(loop.layers):
        allocator.malloc(loop.parameter, user(10))
    state: list[int] = []
    kept: list[int] = []
    gradients: list[int] = []
    try:
        for step in range(loop.steps):
            if loop.annotated:
                allocator.note(f"ProfilerStep#{step}")
            batch = allocator.malloc(loop.batch, user(LOAD_LINE))
            target = allocator.malloc(8 * KIB, user(LOAD_LINE + 1))
            if not loop.keep_gradients:
                _free_all(allocator, gradients)
            size = loop.activation + step * loop.growing
            activations = []
            for index in range(loop.layers):
                _chatter(allocator, loop, module(39))
                activations.append(allocator.malloc(size + 512 * index, module(40)))
            loss = allocator.malloc(512, user(23))
            if loop.spike:
                allocator.free(allocator.malloc(loop.spike, user(24)))
            if loop.keep_gradients:
                _free_all(allocator, gradients)
            for activation in reversed(activations):
                _chatter(allocator, loop, engine("mul"))
                temporary = allocator.malloc(size, engine("mm"))
                gradients.append(allocator.malloc(loop.parameter, engine("empty_strided", accumulates=True)))
                allocator.free(activation)
                allocator.free(temporary)
            inner = user(STEP_LINE, frame("step", optimizer, 220))
            if not state:
                state = [allocator.malloc(2 * loop.parameter, inner) for _ in range(loop.layers)]
            allocator.free(allocator.malloc(loop.parameter, inner))
            if loop.leak:
                kept.append(allocator.malloc(loop.leak, user(LEAK_LINE)))
            for address in (loss, target, batch):
                allocator.free(address)
            if loop.empty_cache:
                allocator.empty_cache(empty_cache())
            if loop.annotated:
                allocator.note(f"ProfilerStep#{step}", "END")
    except OutOfMemoryError:
        pass
    return allocator


def _chatter(allocator: Allocator, loop: Loop, frames: Frames) -> None:
    """The many small blocks that come and go within a layer."""
    for _ in range(loop.temporaries):
        allocator.free(allocator.malloc(64 * KIB, frames))


def _free_all(allocator: Allocator, addresses: list[int]) -> None:
    while addresses:
        allocator.free(addresses.pop())


def shred(allocator: Allocator, *, pieces: int, size: int, line: int = 60) -> Sequence[int]:
    """Fill memory with blocks and free two of every four: half of it is free.

    In pieces of one block where each has a segment of its own; where segments expand, in pieces of two.
    """
    blocks = [allocator.malloc(size, user(line)) for _ in range(pieces)]
    freed = {address for at, address in enumerate(blocks) if at % 4 in {1, 2}}
    for address in blocks:
        if address in freed:
            allocator.free(address)
    return [address for address in blocks if address not in freed]
