"""What modules declare by the hundred, cheap at start: expressions compiled when first used, and classes of data."""

import dataclasses
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, AnyStr, TypeVar, cast

T = TypeVar("T")


class _Regex:
    """Stands for a compiled expression and becomes one when anything of it is asked for."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self._text, self._flags)
        for method in ("match", "search", "fullmatch", "sub", "split", "findall", "finditer"):
            # Found on the instance from now on, at no cost.
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The expression, for a module's own level; elsewhere, and for what users write, there is `re.compile`."""
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  for others to import
else:

    def dataclass(*, frozen: bool, eq: bool, repr: bool = True) -> Callable[[type[T]], type[T]]:  # noqa: A002  as there
        """The standard one of frozen classes that compare by identity, without code compiled for each class.

        That of the standard library was a tenth of a short run.
        """
        if not frozen or eq:
            raise TypeError("only frozen classes that compare by identity")
        return lambda made: _immutable(dataclasses.dataclass(init=False, repr=False, eq=False)(made), shown=repr)


def _immutable(made: Any, *, shown: bool) -> Any:
    fields = [each for each in dataclasses.fields(made) if each.init]
    names, needed = tuple(each.name for each in fields), set[str]()
    every = set(names)
    given: dict[str, Any] = {}
    fresh: list[tuple[str, Callable[[], Any]]] = []
    for each in dataclasses.fields(made):
        given[each.name] = each.default
        if each.default_factory is not dataclasses.MISSING:
            fresh.append((each.name, each.default_factory))
        elif each.default is dataclasses.MISSING:
            needed.add(each.name)

    def start(self: Any, /, *values: Any, **named: Any) -> None:
        known = dict(zip(names, values, strict=False), **named)
        if not needed <= known.keys() or not known.keys() <= every or len(known) != len(values) + len(named):
            raise TypeError(f"{made.__name__}({', '.join(names)}): given {len(values)} values and {', '.join(named)}")
        own = self.__dict__
        own.update(given)
        own.update(known)
        for name, make in fresh:
            if name not in known:
                own[name] = make()

    made.__init__, made.__setattr__, made.__delattr__ = start, _refused, _refused
    if shown and "__repr__" not in vars(made):
        made.__repr__ = _told
    return made


def _refused(self: object, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")


def _told(self: Any) -> str:
    fields = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(fields)})"


def by_identity(made: type[T]) -> type[T]:
    """A class of which only what is the same is equal: arrays have no single answer."""
    for name in ("__eq__", "__ne__", "__hash__"):
        setattr(made, name, getattr(object, name))
    return made
