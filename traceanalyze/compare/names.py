"""One name for an operator, whoever runs it: `aten::`, `npu::`, `aclnn…`, cuDNN, MIOpen and autograd nodes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from traceanalyze.compare.name_tables import SYNONYMS

if TYPE_CHECKING:
    from traceanalyze.compare.options import CompareOptions

BACKWARD_SUFFIX = " (backward)"
"""Appended to the name of an operator that runs in the backward pass."""

_WRAPPER = re.compile(r"autograd::engine::evaluate_function: ")
_NODE = re.compile(r"(?P<op>\w+?)Backward(s|\d*)$")
_CPP_NODE = re.compile(r"torch::autograd::CppNode<(.*)>$")
_ACLNN = re.compile(r"(?:AscendCL@)?aclnn(?:Inplace)?(?P<op>\w+?)(?:V\d+)?(?:GetWorkspaceSize)?$")
_COMPILED = re.compile(r"## Call CompiledFxGraph \w+ ##|CompiledFxGraph\b.*")
_COUNTED = re.compile(r"(triton_\w*?)_\d+$")
_BACKWARD = re.compile(
    r"autograd::engine::evaluate_function: |torch::autograd::(AccumulateGrad|CppNode<|CopySlices)"
    r"|\w*Backward(s|\d*)$|.*::\w+_backward\w*(\.\w+)?$|.*::(\w+_bwd|npu_\w+_grad)(\.\w+)?$"
    r"|(AscendCL@)?aclnn\w*(Backward|Grad|Backprop)"
)
_PASS = re.compile(r"_(backward(_\w+)?|bwd|grad)$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KEEP_UNDERSCORE = re.compile(r"_(foreach|fused)_|__")


def canonical(name: str, options: CompareOptions) -> str:
    """The name under which an operator is compared, without its direction.

    Suffixes of in-place variants and overloads, leading underscores of internal variants and what belongs to the
    backward pass are dropped; autograd nodes are called by their operator, and names of `name_tables.SYNONYMS` by
    PyTorch's. `options.op_name_map` comes first: its keys are names as recorded or as returned here.

    Args:
        name: as recorded, e.g. `autograd::engine::evaluate_function: CudnnConvolutionBackward0`.
        options: for the map of the user.

    Returns:
        e.g. `aten::convolution`.
    """
    mapped = options.op_name_map.get(name)
    if mapped is not None:
        return _known(mapped)
    found = _known(name)
    mapped = options.op_name_map.get(found)
    return found if mapped is None else _known(mapped)


def names_backward(name: str) -> bool:
    """Whether the name alone says that an operator belongs to the backward pass."""
    return _BACKWARD.match(name) is not None


def is_wrapper(name: str) -> bool:
    """Whether an operator only holds others: an autograd node, a module or compiled function that records itself.

    PyTorch's operators, and those that libraries register, are written `library::name`.
    """
    return "::" not in name or name.startswith(("autograd::", "torch::autograd::"))


@lru_cache(maxsize=1 << 14)
def _known(name: str) -> str:
    text = _WRAPPER.sub("", name)
    if text.startswith("torch::autograd::"):
        inner = _CPP_NODE.match(text)
        return inner[1] if inner else text.removeprefix("torch::autograd::")
    return "CompiledFxGraph" if _COMPILED.match(text) else _plain(text)


def _plain(text: str) -> str:
    """Canonical name of an operator or a node without its wrapper."""
    space, separator, own = text.rpartition("::")
    if separator:
        return _operator(space, own)
    aclnn, node, counted = _ACLNN.match(text), _NODE.match(text), _COUNTED.match(text)
    if aclnn:
        return _operator("aten", _snake(aclnn["op"]))
    if counted:
        return counted[1]
    synonym = SYNONYMS.get(text.rstrip("_"))
    if node:
        return _node(node["op"])
    return text if synonym is None else f"aten::{synonym}"


def _node(op: str) -> str:
    """Operator of an autograd node; functions written in Python keep their name."""
    synonym = SYNONYMS.get(op)
    if synonym is not None:
        return f"aten::{synonym}"
    return op if op.endswith(("Function", "Func", "Fn")) else _operator("aten", _snake(op))


def _operator(space: str, own: str) -> str:
    own = own.partition(".")[0]
    if own not in SYNONYMS and not own.startswith("__"):
        own = _PASS.sub("", own.rstrip("_"))
        own = own if _KEEP_UNDERSCORE.match(own) else own.lstrip("_")
    if space == "aten" or (space in {"npu", "torch_npu"} and own in SYNONYMS):
        return f"aten::{SYNONYMS.get(own, own)}"
    if space in {"npu", "torch_npu"}:
        return f"npu::{own}"
    synonym = SYNONYMS.get(f"{space}::{own}")
    return f"{space}::{own}" if synonym is None else f"aten::{synonym}"


def _snake(name: str) -> str:
    """`MaxPool2DWithIndices` as `max_pool2d_with_indices`."""
    return _WORDS.sub("_", re.sub(r"(\d)D(?=[A-Z]|$)", r"\1d", name)).lower()
