"""AdamW in the three ways that PyTorch has: a loop over parameters, grouped, and fused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.model import Op, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulate.model import Builder, Kernel

_CHUNK = 24
"""Tensors that one grouped kernel takes."""
_LOOP = (("aten::mul_", "MulFunctor"), ("aten::lerp_", "LerpFunctor"), ("aten::addcmul_", "AddcmulFunctor"))
_LOOP_END = (("aten::sqrt", "SqrtFunctor"), ("aten::addcdiv_", "AddcdivFunctor"))
_GROUPED = ("mul_", "lerp_", "addcmul_", "sqrt", "addcdiv_")


def _for_loop(builder: Builder, parameters: list[Tensor]) -> list[Op]:
    return [
        Op(name, (each, each), (builder.kernel("elementwise", each.elements, 3 * each.bytes, functor),))
        for each in parameters
        for name, functor in (*_LOOP, *_LOOP_END)
    ]


def _foreach(builder: Builder, parameters: list[Tensor]) -> list[Op]:
    return [
        Op(f"aten::_foreach_{name}", (), tuple(_grouped(builder, parameters, 3, f"Foreach_{name}Functor")))
        for name in _GROUPED
    ]


def _fused(builder: Builder, parameters: list[Tensor]) -> list[Op]:
    kernels = tuple(_grouped(builder, parameters, 7, "FusedAdamMathFunctor"))
    return [Op("aten::_fused_adamw_", (), kernels)]


def _grouped(builder: Builder, parameters: list[Tensor], passes: int, functor: str) -> Iterator[Kernel]:
    for first in range(0, len(parameters), _CHUNK):
        chunk = parameters[first : first + _CHUNK]
        elements, moved = sum(each.elements for each in chunk), sum(each.bytes for each in chunk)
        yield builder.kernel("optimizer", passes * elements, passes * moved, functor)


OPTIMIZERS: dict[str, Callable[[Builder, list[Tensor]], list[Op]]] = {
    "for_loop": _for_loop,
    "foreach": _foreach,
    "fused": _fused,
}
