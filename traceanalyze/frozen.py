"""`@frozen`: what `dataclass(frozen=True, slots=True)` makes of a class, at a quarter of its cost.

A run defines two hundred such classes, and the standard decorator compiles six functions for each: a sixth of the time
of a run on a small trace. Here only `__init__` is compiled, and all classes share the other methods.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """The class as a data class with slots whose instances do not change; `dataclasses.replace` and `fields` know it.

    Fields may have a default or a factory. There is no `__post_init__`, no keyword-only field and no inheritance.
    """
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for name, method in _SHARED.items():
        if name not in vars(cls):
            setattr(made, name, method)
    setattr(made, "__init__", _init(made))  # noqa: B010 - a type checker has its own idea of it
    return made


def _init(cls: type[Any]) -> Any:
    """`def __init__(self, a, b=…)`, which stores each argument in its slot."""
    known: dict[str, Any] = {"_no": MISSING}
    parameters, body = ["self"], []
    for each in fields(cls):
        name, value = each.name, each.name
        parameter = name
        known[f"_put_{name}"] = getattr(cls, name).__set__
        if each.default is not MISSING:
            known[f"_default_{name}"] = each.default
            parameter = f"{name}=_default_{name}"
        elif each.default_factory is not MISSING:
            known[f"_make_{name}"] = each.default_factory
            parameter, value = f"{name}=_no", f"_make_{name}() if {name} is _no else {name}"
        parameters.append(parameter)
        body.append(f" _put_{name}(self, {value})")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or [" pass"]), known)  # noqa: S102 - as dataclasses do
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {each.name: each.type for each in fields(cls)} | {"return": None}
    return init


def _values(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _refuse(_self: Any, name: str, _value: Any = None) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _equal(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_values(self)))


@recursive_repr()
def _repr(self: Any) -> str:
    told = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({told})"


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)


_SHARED = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__getstate__": _values,
    "__setstate__": _set_state,
}
