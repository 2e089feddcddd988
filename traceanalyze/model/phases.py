"""Which names belong to which part of a training step (definitions §10)."""

import re
from enum import IntFlag

from traceanalyze.model.patterns import regex

OPTIMIZER_STEP = regex(r"^Optimizer\.step#")
"""The range that torch records around a step of an optimizer."""
_BACKWARD = regex(r"autograd::engine::evaluate_function: |torch::autograd::AccumulateGrad|.*Backward\d*$")
_ZERO_GRAD = regex(r"Optimizer\.zero_grad#")
_FORWARD = regex(r".*\.forward$")
_MODULE_FRAME = "nn.Module: "


class Role(IntFlag):
    """What the name of a host event says about the time inside it; a name may say several things."""

    NONE = 0
    BACKWARD = 1
    CHECKPOINT = 2
    """Runs forward operators again, then their backward pass."""
    NODE = 4
    """A step of the backward pass, also where it lies inside CHECKPOINT."""
    FUSED = 8
    """Updates many parameters at once."""
    OPTIMIZER = 16
    ZERO_GRAD = 32
    FORWARD = 64
    RECOMPUTE = 128
    OPTIMIZER_FRAME = 256


_OPS = (
    (Role.BACKWARD, _BACKWARD),
    (Role.CHECKPOINT, regex(r".*CheckpointFunctionBackward$")),
    (Role.NODE, regex(r"autograd::engine::evaluate_function: (?!.*CheckpointFunctionBackward)")),
    (Role.FUSED, regex(r"aten::_(fused|foreach)_")),
    (Role.FORWARD, _FORWARD),
)
_ANNOTATIONS = ((Role.OPTIMIZER, OPTIMIZER_STEP), (Role.ZERO_GRAD, _ZERO_GRAD), (Role.FORWARD, _FORWARD))
_FRAMES = ((Role.RECOMPUTE, regex(r".*\brecompute_fn$")), (Role.OPTIMIZER_FRAME, regex(r"(.*/)?torch/optim/")))


def op_role(name: str) -> int:
    """Roles of an operator."""
    return _roles(_OPS, name)


def annotation_role(name: str) -> int:
    """Roles of a user annotation."""
    return _roles(_ANNOTATIONS, name)


def frame_role(name: str) -> int:
    """Roles of a Python function."""
    return Role.FORWARD if name.startswith(_MODULE_FRAME) else _roles(_FRAMES, name)


def _roles(known: tuple[tuple[Role, re.Pattern[str]], ...], name: str) -> int:
    return sum(role for role, pattern in known if pattern.match(name))


def module_class(name: str) -> str:
    """Class of a module that is called by its class and a number."""
    return re.sub(r"_\d+$", "", name)


def module_name(event: str) -> str | None:
    """Name of the module that a Python event is a call of."""
    return event[len(_MODULE_FRAME) :] if event.startswith(_MODULE_FRAME) else None


def is_layer_annotation(name: str) -> bool:
    """A user annotation that marks a part of the model, `## name ##`."""
    return re.fullmatch(r"##.*##", name) is not None


def hierarchy(text: str) -> tuple[tuple[str, str], ...]:
    """Names and classes from the root down of `TOP(Net)::forward.conv1(Conv2d)::forward`.

    Of a kernel's `layers.0.attention.wq`, which tells no classes, each is its place without the number of the layer.
    """
    parts = (re.fullmatch(r"\.?([^()]+)\(([^()]*)\)", part.strip()) for part in text.split("::forward"))
    found = tuple((part[1], part[2]) for part in parts if part)
    if found or not re.fullmatch(r"[\w.-]+", text):
        return found
    names = [part for part in text.split(".") if part]
    return tuple((name, re.sub(r"(?<=\.)\d+(?=\.|$)", "*", ".".join(names[: at + 1]))) for at, name in enumerate(names))
