"""The recorded arguments of an operator call, understood: shapes, element types, plain values."""

import json
from math import prod
from typing import Any, NamedTuple

from traceanalyze.model.collectives import element_bytes

Shape = tuple[int, ...]

MOST_ELEMENTS = 1 << 38
"""A larger tensor fits no device; its shape is damaged."""


class Call(NamedTuple):
    """One call of an operator; positions are those of its arguments."""

    op: str
    """Name without namespace and without the underscore of in-place variants."""
    shapes: tuple[Shape | None, ...]
    """None for what is not a tensor, and for lists of tensors; `()` also stands for scalars."""
    dtypes: tuple[str, ...]
    values: tuple[str, ...] | None
    """Plain arguments as text, empty for tensors; None when they were not recorded."""
    strides: tuple[Shape | None, ...] = ()
    """Of the tensors, in elements; fewer, or None, where they were not recorded."""

    def shape(self, position: int) -> Shape:
        """Shape of an argument, `()` if it has none."""
        found = self.shapes[position] if position < len(self.shapes) else None
        return found or ()

    def value(self, position: int) -> str | None:
        """Text of a plain argument, None if not recorded."""
        return self.values[position] if self.values is not None and position < len(self.values) else None

    def integers(self, position: int) -> tuple[int, ...] | None:
        """A list of integers such as a stride, None if not recorded."""
        parsed = _parsed(self.value(position) or "")
        items: list[Any] = parsed if isinstance(parsed, list) else [parsed]
        return tuple(items) if all(isinstance(item, int) for item in items) else None

    def flag(self, position: int) -> bool | None:
        """A truth value, None if not recorded."""
        return {"True": True, "true": True, "False": False, "false": False}.get(self.value(position) or "")

    def element(self, position: int = 0) -> int | None:
        """Bytes of an element of an argument."""
        return element_bytes(self.dtypes[position]) if position < len(self.dtypes) else None

    def elements(self, position: int) -> int:
        """Elements of a tensor that are there to be read: along a dimension of stride 0 all are one and the same."""
        return prod(size for size, repeats in self.dimensions(position) if not repeats)

    def dimensions(self, position: int) -> list[tuple[int, bool]]:
        """Sizes of a tensor, and whether all elements along each are one and the same."""
        shape = self.shape(position)
        strides = self.strides[position] if position < len(self.strides) else None
        known = strides if strides is not None and len(strides) == len(shape) else (1,) * len(shape)
        return [(size, not stride and size > 0) for size, stride in zip(shape, known, strict=True)]

    def input_bytes(self, arguments: int | None = None) -> int | None:
        """Size of the tensors among the first arguments (all when None), None if an element type is unknown."""
        total = 0
        for position, shape in enumerate(self.shapes[:arguments]):
            if shape:
                each = self.element(position)
                if each is None:
                    return None
                total += self.elements(position) * each
        return total


def parse_call(op: str, shapes: str, dtypes: str, values: str | None, strides: str | None = None) -> Call | None:
    """Understand the JSON texts of a call's shapes, types, values and strides; None if its shapes are not usable."""
    dims, types, plain, steps = _parsed(shapes), _parsed(dtypes), _parsed(values or ""), _parsed(strides or "")
    if not isinstance(dims, list) or not isinstance(types, list):
        return None
    return Call(
        op=op.rpartition("::")[2].rstrip("_"),
        shapes=tuple(_shape(entry) for entry in dims),
        dtypes=tuple(str(entry) for entry in types),
        values=tuple(str(entry) for entry in plain) if isinstance(plain, list) else None,
        strides=tuple(_shape(entry) for entry in steps) if isinstance(steps, list) else (),
    )


def _parsed(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _shape(entry: object) -> Shape | None:
    if not isinstance(entry, list) or not all(isinstance(size, int) and size >= 0 for size in entry):
        return None
    return tuple(entry) if prod(entry) <= MOST_ELEMENTS else None


def listed_shapes(text: str) -> tuple[Shape, ...]:
    """Shapes as a table of kernels lists them, `32,4096;4096`; `()` for scalars, nothing where one is damaged."""
    try:
        return tuple(tuple(int(size) for size in item.split(",") if size.strip()) for item in text.split(";"))
    except ValueError:
        return ()


def outer(shape: Shape) -> int:
    """Product of all dimensions but the last two."""
    return prod(shape[:-2])
