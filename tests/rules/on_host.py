"""Small programs that compute on the host: what their steps do one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from tests.builder import TraceBuilder
from tests.rules.make import STEP


@dataclass(frozen=True)
class Op:
    """An operator of some µs; `inside` are the operators it calls, one after the other from its start."""

    name: str
    time: float
    inside: tuple[Op, ...] = ()
    args: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Range:
    """An annotation around operators, which may end later than the last of them."""

    name: str
    ops: tuple[Op, ...]
    time: float | None = None


Part = Op | Range | float
"""A number is time in which nothing is recorded, µs."""


def steps(*parts: Part, count: int = 4, length: float = STEP) -> TraceBuilder:
    """Steps that all do the same; what is left of a step is an operator of the model."""
    b = TraceBuilder()
    for number in range(count):
        at = number * length
        b.step(number, at, length)
        for part in parts:
            at = _add(b, part, at)
        left = (number + 1) * length - at
        if left > 0:
            b.op("aten::addmm", at, left)
    return b


def _add(b: TraceBuilder, part: Part, at: float) -> float:
    if isinstance(part, int | float):
        return at + part
    if isinstance(part, Range):
        begin = at
        for op in part.ops:
            at = _add(b, op, at)
        end = at if part.time is None else begin + part.time
        b.annotation(part.name, begin, end - begin)
        return end
    b.op(part.name, at, part.time, **dict(part.args))
    inner = at
    for op in part.inside:
        inner = _add(b, op, inner)
    return at + part.time
