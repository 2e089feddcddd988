"""Who allocated, by the frames of a call stack, innermost first."""

from __future__ import annotations

import pytest

from traceanalyze.analyses.memory.sites import NO_FRAMES, Site, call_stack, sites
from traceanalyze.model.snapshot import Frame, Stacks

USER, LOOP = Frame("forward", "/me/model.py", 41), Frame("train", "/me/train.py", 7)
TORCH = Frame("linear", "/opt/lib/python3.11/site-packages/torch/nn/functional.py", 2000)
PACKAGE = Frame("attend", "/opt/lib/python3.11/site-packages/flash/attn.py", 12)
INNER = Frame("kernel", "/opt/lib/python3.11/site-packages/flash/ops.py", 3)
NATIVE = Frame("at::_ops::mm::call(at::Tensor const&)", "", 0)
CALLS = Frame("_call_impl", "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", 1)
ENGINE = Frame("torch::autograd::Engine::evaluate_function(...)", "", 0)
OPTIM = Frame("step", "/opt/lib/python3.11/site-packages/torch/optim/adam.py", 9)
GRAPH = Frame("backward", "/opt/lib/python3.11/site-packages/torch/autograd/graph.py", 9)


def stacks_of(*frames: Frame) -> Stacks:
    return Stacks(tuple(frames), (tuple(range(len(frames))),))


@pytest.mark.parametrize(
    ("frames", "line", "library", "path"),
    [
        ((USER, LOOP), "model.py:41 forward", None, "/me/model.py"),
        ((LOOP,), "train.py:7 train", None, "/me/train.py"),
        # The innermost frame of a package that the user's line called; torch is none.
        ((NATIVE, TORCH, INNER, PACKAGE, USER, LOOP), "model.py:41 forward", "ops.py:3 kernel", "/me/model.py"),
        ((TORCH, USER, PACKAGE, LOOP), "model.py:41 forward", None, "/me/model.py"),
        # A program that is itself installed.
        ((NATIVE, TORCH, PACKAGE), "attn.py:12 attend", None, PACKAGE.filename),
        ((INNER, PACKAGE), "ops.py:3 kernel", None, INNER.filename),
        ((NATIVE, TORCH), "functional.py:2000 linear", None, None),
        ((ENGINE, NATIVE), "<backward: mm>", None, None),
        ((NATIVE,), "<mm>", None, None),
        ((ENGINE,), "<backward>", None, None),
        ((), NO_FRAMES, None, None),
        ((Frame("main", "C:\\me\\main.py", 1),), "main.py:1 main", None, "C:/me/main.py"),
    ],
)
def test_the_line_is_the_users_and_beside_it_what_it_called(
    frames: tuple[Frame, ...], line: str, library: str | None, path: str | None
) -> None:
    found, nothing = sites(stacks_of(*frames))
    assert (found.line, found.library, found.path) == (line, library, path)
    assert nothing == Site(NO_FRAMES, None, None, *[False] * 5)


@pytest.mark.parametrize(
    ("frames", "kinds"),
    [
        ((LOOP,), set()),
        ((USER,), {"in_module"}),
        ((Frame("forward", "native.cpp", 1),), set()),
        ((CALLS, LOOP), {"in_module"}),
        ((ENGINE,), {"backward"}),
        ((GRAPH, LOOP), {"backward"}),
        ((ENGINE, Frame("torch::autograd::AccumulateGrad::apply(...)", "", 0)), {"backward", "gradient"}),
        ((OPTIM, LOOP), {"optimizer"}),
        ((Frame("update", "/me/sgd.py", 5), Frame("step", "/me/sgd.py", 9), OPTIM, LOOP), {"optimizer"}),
        # What trains is called by the step, as Lightning does.
        ((CALLS, Frame("closure", "/me/train.py", 5), OPTIM, LOOP), {"in_module"}),
        ((TORCH, Frame("closure", "/me/train.py", 5), OPTIM, LOOP), set()),
        ((Frame("empty_cache", "/x/torch/cuda/memory.py", 1), LOOP), {"empties_cache"}),
        ((Frame("c10::cuda::CUDACachingAllocator::emptyCache", "", 0),), {"empties_cache"}),
    ],
)
def test_what_kind_of_work_it_was(frames: tuple[Frame, ...], kinds: set[str]) -> None:
    found = sites(stacks_of(*frames))[0]._asdict()
    assert {key for key in found if found[key] is True} == kinds


def test_a_call_stack_is_what_says_most() -> None:
    def said(*frames: Frame) -> tuple[str, ...]:
        return call_stack(stacks_of(*frames), 0)

    assert said(NATIVE, TORCH, PACKAGE, USER) == (f"{PACKAGE.filename}:12 attend", "/me/model.py:41 forward")
    assert said(NATIVE, TORCH) == (f"{TORCH.filename}:2000 linear",)
    assert said(ENGINE, NATIVE) == ("torch::autograd::Engine::evaluate_function", "at::_ops::mm::call")
    assert call_stack(stacks_of(USER), -1) == ()
