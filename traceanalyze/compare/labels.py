"""Names of both sides that mean the same although they are written differently, where only they can be meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Simplify = Callable[[str], str]

_COUNTER = re.compile(r"_?(?<![Vv\d])\d+$")
_ACLNN = re.compile(r"^(?:aclnn\w+?|te_\w+?)_(?=[A-Z])(?:\w+_)?(?=[A-Z])")
_HCCL = re.compile(r"^(hcom_[A-Za-z]+)__.*")
_API = re.compile(r"^(?:AscendCL@)?(?:cuda|hip|aclrt|cu(?=[A-Z]))(?:Module|ExtModule|Ext)?(?=[A-Z])")
_SUFFIX = re.compile(r"(ExC|Ex)?(_v\d+|_ptsz)*$")
_SYNC = {
    "SynchronizeStream": "StreamSynchronize",
    "SynchronizeDevice": "DeviceSynchronize",
    "SynchronizeEvent": "EventSynchronize",
    "SynchronizeStreamWithTimeout": "StreamSynchronize",
    "SynchronizeDeviceWithTimeout": "DeviceSynchronize",
}
"""CANN's names and those of CUDA and HIP."""


def common_labels(base: Iterable[str], candidate: Iterable[str], *ways: tuple[Simplify, bool]) -> dict[str, str]:
    """What each name of either side is called in a comparison.

    Equal names are. Of the rest, names that one way of simplifying makes equal are called by the simple name, if both
    sides have some; then the next way is tried. A way that may join only single names is passed over where several
    names of a side have the same simple name.

    Args:
        base: names of one side.
        candidate: names of the other.
        ways: a function that simplifies a name, and whether it may join several names of a side.
    """
    rest = set(base), set(candidate)
    same = rest[0] & rest[1]
    label = {name: name for name in rest[0] | rest[1]}
    rest = rest[0] - same, rest[1] - same
    for simplify, several in ways:
        found = [_by_simple(names, simplify) for names in rest]
        for simple in found[0].keys() & found[1].keys():
            names = [side[simple] for side in found]
            if several or all(len(own) == 1 for own in names):
                label.update(dict.fromkeys((*names[0], *names[1]), simple))
                rest = rest[0] - set(names[0]), rest[1] - set(names[1])
    return label


def _by_simple(names: Iterable[str], simplify: Simplify) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(simplify(name), []).append(name)
    return found


def plain_collective(name: str) -> str:
    """A collective of HCCL without the numbers of its group and call; other names as they are."""
    return _HCCL.sub(r"\1", name)


def plain_kernel(name: str) -> str:
    """A kernel's name without return type, parameters and trailing counter; of CANN's the operator that it runs."""
    return _COUNTER.sub("", _ACLNN.sub("", _without_parameters(name.removeprefix("void "))))


def untemplated(name: str) -> str:
    """The same without template arguments."""
    plain, depth = [], 0
    for letter in plain_kernel(name).replace("->", ""):
        depth += letter == "<"
        if depth == 0:
            plain.append(letter)
        depth -= letter == ">"
    return "".join(plain)


def _without_parameters(name: str) -> str:
    """The name up to the bracket that its last one closes."""
    depth = 0
    for at in range(len(name) - 1 if name.endswith(")") else -1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at].rstrip()
    return name


def plain_api(name: str) -> str:
    """A runtime call whatever the vendor: `cudaStreamSynchronize` and `aclrtSynchronizeStream` as one."""
    if not _API.match(name):
        return name
    text = _SUFFIX.sub("", _API.sub("", name))
    return _SYNC.get(text, text)
