"""Who allocated: the user's source line of a call stack, the library line beside it, and what kind of work it was."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from traceanalyze.model.patterns import regex
from traceanalyze.model.snapshot import Frame, Stacks

NO_FRAMES = "<no frames>"
"""In place of a line: the block's stack was not recorded."""

_PYTHON = regex(r"\.py$|^<(frozen|eval_with_key|ipython|string)|/ipykernel_")
_FRAMEWORK = regex(
    r"(^|/)(torch|torch_npu|functorch)/|/lib(64)?/python3[^/]*/(?!(site|dist)-packages/)|^<frozen|^<string"
    r"|(^|/)(runpy|threading|contextlib|selectors|queue)\.py$"
)
_PACKAGES = regex(r"(^|/)(site-packages|dist-packages)/")
_OPERATOR = regex(r"at::_ops::(?P<op>\w+)::(call|redispatch)")
_NATIVE = regex(r"at::_ops::\w+::\w+|torch::autograd::[\w:]*\w")
_MODULE_CALL = frozenset({"_call_impl", "_wrapped_call_impl"})
_COLLECTIVE = regex(r"(^|/)torch/distributed/(?!tensor/|_tensor/|run\b|launcher/|elastic/)|/deepspeed/runtime/zero/")
_LOSS = regex(r"cross_entropy|nll_loss|log_softmax|logsumexp")
_AGAIN = frozenset({"recompute_fn", "unpack_hook", "inner_unpack", "backward"})
"""Functions of torch's checkpointing that run in the backward pass."""


class Site(NamedTuple):
    """What one call stack says."""

    line: str
    """User's line `model.py:41 forward`; without a Python frame the operator of the C++ frames, else `NO_FRAMES`."""
    library: str | None
    """Innermost frame of an installed package, when the user's line called it."""
    path: str | None
    """File of `line`, whole."""
    in_module: bool
    """Under a call of an nn.Module: work of the model, not of the training loop."""
    backward: bool
    """On the autograd engine."""
    gradient: bool
    """Kept as a gradient by AccumulateGrad."""
    optimizer: bool
    """Under a step of torch.optim, and not under its closure."""
    empties_cache: bool
    """Under torch's `empty_cache`."""
    communication: bool = False
    """A buffer of collectives: of buckets, gathered parameters."""
    loss: bool = False
    """Under a function of the loss."""
    calls: tuple["ModuleCall", ...] = ()
    """The calls of modules around it, outermost first."""


class ModuleCall(NamedTuple):
    """Where a module is called: the same from the same lines."""

    id: int
    frame: int
    """Index of the frame that calls it."""


def sites(stacks: Stacks) -> tuple[Site, ...]:
    """One site a stack, in the order of `Stacks.stacks`; the last one is for rows without a stack (index -1)."""
    known: dict[tuple[int, ...], int] = {}
    found = [_site(stack, [stacks.frames[index] for index in stack], known) for stack in stacks.stacks]
    return (*found, _site((), [], known))


def call_stack(stacks: Stacks, stack: int) -> tuple[str, ...]:
    """Frames of the user's code in a call stack, `path:line name`, innermost first.

    Without any: the Python frames; without these the operators and autograd's functions of the C++ frames.
    """
    frames = [stacks.frames[index] for index in stacks.stacks[stack]] if stack >= 0 else []
    python = [frame for frame in frames if _PYTHON.search(frame.filename.replace("\\", "/"))]
    own = [frame for frame in python if not _FRAMEWORK.search(frame.filename.replace("\\", "/"))]
    named = own or python
    if named:
        return tuple(map(frame_text, named))
    return tuple(found[0] for frame in frames if (found := _NATIVE.search(frame.name)))


def frame_line(frame: Frame) -> str:
    """File, line and function of a frame."""
    return _line(frame, frame.filename.replace("\\", "/"))


def frame_text(frame: Frame) -> str:
    """A frame as one line."""
    return f"{frame.filename}:{frame.line} {frame.name}"


def _site(stack: Sequence[int], frames: Sequence[Frame], known: dict[tuple[int, ...], int]) -> Site:
    names = [frame.name for frame in frames]
    paths = [frame.filename.replace("\\", "/") for frame in frames]
    python = [index for index, path in enumerate(paths) if _PYTHON.search(path)]
    own = [index for index in python if not _FRAMEWORK.search(paths[index])]
    user = next((index for index in own if not _PACKAGES.search(paths[index])), own[0] if own else None)
    library = next((index for index in own if user is not None and index < user), None)
    engine = any("torch::autograd::Engine" in name for name in names)
    if user is not None:
        line = _line(frames[user], paths[user])
    elif python:
        line = _line(frames[python[0]], paths[python[0]])
    else:
        line = _native_line(names, backward=engine)
    return Site(
        line=line,
        library=None if library is None else _line(frames[library], paths[library]),
        path=None if user is None else paths[user],
        in_module=any(names[i] in _MODULE_CALL or (names[i] == "forward" and i in python) for i in range(len(names))),
        backward=engine or any(map(_runs_backward, names, paths)),
        gradient=any("AccumulateGrad" in name for name in names),
        optimizer=_in_step(names, paths, own),
        empties_cache=any(name == "empty_cache" or name.endswith("emptyCache") for name in names),
        communication=any(_COLLECTIVE.search(path) or name.startswith("c10d::") for name, path in _own(names, paths)),
        loss=any(map(_LOSS.search, names)),
        calls=tuple(_module_calls(stack, names, python, known)),
    )


def _runs_backward(name: str, path: str) -> bool:
    return path.endswith("torch/autograd/graph.py") or (name in _AGAIN and path.endswith("torch/utils/checkpoint.py"))


def _in_step(names: Sequence[str], paths: Sequence[str], own: Sequence[int]) -> bool:
    """Whether a step of torch.optim is at work, and not the closure it calls, which trains."""
    step = next((at for at, (_, path) in enumerate(_own(names, paths)) if "/torch/optim/" in path), None)
    return step is not None and [names[at] for at in own if at < step][-1:] in ([], ["step"])


def _own(names: Sequence[str], paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The frames inside the innermost call of a module: others run the model, such as one that is sharded."""
    return takewhile(lambda frame: frame[0] not in _MODULE_CALL, zip(names, paths, strict=True))


def _module_calls(
    stack: Sequence[int], names: Sequence[str], python: Sequence[int], known: dict[tuple[int, ...], int]
) -> Iterator[ModuleCall]:
    """Calls from the outside in; `known` numbers them by the call around each and the frames between the two."""
    between = [-1]
    for at in reversed(python):
        if names[at] == "_call_impl" and len(between) > 1:
            found = known.setdefault(tuple(between), len(known))
            yield ModuleCall(found, between[-1])
            between = [found]
        elif names[at] not in _MODULE_CALL:
            between.append(stack[at])


def _line(frame: Frame, path: str) -> str:
    return f"{path.rsplit('/', 1)[-1]}:{frame.line} {frame.name}"


def _native_line(names: Sequence[str], *, backward: bool) -> str:
    """Operator of a stack without Python frames, as of the threads of the backward pass."""
    found = next((match for name in names if (match := _OPERATOR.search(name))), None)
    if found is None:
        return "<backward>" if backward else NO_FRAMES
    return f"<backward: {found['op']}>" if backward else f"<{found['op']}>"
