"""Results in an open format: a file of NumPy (npz) whose arrays hold JSON, and behind it the numbers as they are.

A part is an archive of sections, `summary.npy` and the like, which `numpy.load` opens: arrays of bytes. A section is
two lines of JSON, what there is and the value made of it, and then the arrays, one after another by their types: of
each a row of bytes for the lowest byte of all numbers, one for the next, and so on, which compresses better. `numbers`
are the types and how many numbers of each there are, `arrays` what is one of them: `[type, start, shape, own type]`;
where its first value follows, differences to the one before are stored. `texts` are stored once, `classes` named, and
`columns` are what tables declare of theirs.

Of the value, `{"a": place}` is one of the arrays, `{"s": place}` one of the texts, `{"t": […]}` a tuple, `{"m": [keys,
values]}` a mapping, and `{"3": […]}` an object of that class, with values of the first of its fields; the others are as
usual. A tuple of many numbers is `{"n": place}` of an array, of many texts `{"w": place}` of an array of places, of
many objects `{"o": [class, …]}` with a tuple a field. A column is `{"c": [place, values]}`. Nothing in it is code: only
classes that hold data are made.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib import import_module
from math import prod
from operator import attrgetter
from sys import intern
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.table import Between, Column, Kind, Sentence, Word

Json: TypeAlias = Any

_PACKAGES = ("analyses", "causes", "errors", "model", "pipeline", "plugins", "ranks", "readers", "replay", "rules")
"""Of this package, those whose classes may stand in a part."""
_LEVEL = 4
"""Of compression: the next takes a quarter more time for 1.5 %."""
_SMALL = 1 << 15
"""Bytes from which on numbers are stored so that they compress well. A section that stands alone is not compressed
below: of the summary of one of many ranks that would take as long as all the rest."""
_MANY = 8
"""From so many on what is alike is stored together."""
_WHOLE = "|i1", "<i2", "<i4", "<i8"
"""Types of whole numbers."""
_MOST = np.array([2**7 - 1, 2**15 - 1, 2**31 - 1])
"""What is the most that the first of them hold."""
_FIRST = 1 << 11
"""Of so many things that sections hold is looked for what others have, too, whatever it is."""
_LONG = 16
"""Texts from so many characters on are stored once: many tables name the same kernels."""
_PLAIN = frozenset({type(None), bool, int, float, str})
_DECLARED = attrgetter(*(each.name for each in fields(Column) if each.name not in {"backward", "values"}))
_STORED = frozenset("biuf")
"""Kinds of arrays that are stored as numbers; the others are texts and objects."""


class DamagedError(Exception):
    """Bytes that are no part, or only a piece of one."""


def archive(sections: Mapping[str, bytes]) -> bytes:
    """Sections by their names as one file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in sections.items():
            array = io.BytesIO()
            np.save(array, np.frombuffer(content, np.uint8), allow_pickle=False)
            # Without the time of day: the same content is the same bytes.
            alone = len(sections) == 1 and len(content) < _SMALL
            how = zipfile.ZIP_STORED if alone else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), array.getvalue(), how, _LEVEL)
    return out.getvalue()


def sections(part: bytes) -> dict[str, bytes]:
    """The sections of a file, each with the checksum that it was written with.

    Raises:
        DamagedError: Something is missing or changed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(part)) as file:
            arrays = {name.removesuffix(".npy"): file.read(name) for name in file.namelist()}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DamagedError(str(error)) from error
    # `np.load` takes longer than all the rest.
    return {name: array[10 + int.from_bytes(array[8:10], "little") :] for name, array in arrays.items()}


def dumps(value: object) -> bytes:
    """A section.

    Raises:
        TypeError: It holds something that is no data of this package.
    """
    writer = _Writer()
    made = writer.plain(value)
    numbers, arrays, rows = _stored(writer.arrays)
    once = {"classes": [*map(_name, writer.classes)], "texts": [*writer.texts], "columns": [*writer.columns]}
    about = once | {"numbers": numbers, "arrays": arrays}
    return b"\n".join((_json(about), _json(made), rows))


_JSON = json.JSONEncoder(check_circular=False, separators=(",", ":"))


def _json(value: Json) -> bytes:
    return _JSON.encode(value).encode()


def loads(section: bytes, known: dict[Any, Any] | None = None) -> Any:
    """What a section holds.

    Sections with the same `known` share what they have in common, such as the names of steps and kernels of ranks.

    Raises:
        DamagedError: It cannot be read.
    """
    try:
        about, value, rows = section.split(b"\n", 2)
        return json.loads(value.decode(), object_hook=_Reader(json.loads(about), rows, known).made)
    # What is wrong with it may show anywhere, and does not matter.
    except (Exception, RecursionError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}") from error


class _Writer:
    """Values as JSON, and the arrays they hold."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.classes: dict[Any, str] = {}
        self.texts: dict[str, int] = {}
        self.columns: dict[tuple[Any, ...], int] = {}
        """By what tables declare of them."""
        self._known: dict[tuple[np.dtype[Any], tuple[int, ...], bytes], int] = {}
        """Arrays by what they are: many parts of many steps are none."""

    def plain(self, value: Any) -> Json:
        way = _WAYS[type(value)]
        return value if way is None else way(self, value)

    def text(self, value: str) -> Json:
        return {"s": self.texts.setdefault(value, len(self.texts))} if len(value) >= _LONG else value

    def several(self, value: tuple[Any, ...]) -> Json:
        found = self._each(value)
        return {"t": found} if type(found) is list else found

    def numbers(self, value: NDArray[Any]) -> Json:
        return {"a": self._array(value)} if value.dtype.kind in _STORED else self.other(value)

    def named(self, value: Mapping[Any, Any]) -> Json:
        return {"m": [self._each((*value,)), self._each((*value.values(),))]}

    def fielded(self, value: Any) -> Json:
        kind: Any = type(value)
        names, usual = _fields(kind)
        values = [getattr(value, name) for name in names]
        while values and _same(values[-1], usual[len(values) - 1]):
            values.pop()
        return {self._class(kind): [*map(self.plain, values)]}

    def column(self, value: Column) -> Json:
        if value.backward:
            return self.fielded(value)
        return {"c": [self.columns.setdefault(_DECLARED(value), len(self.columns)), self.plain(value.values)]}

    def other(self, value: Any) -> Json:
        kind: Any = type(value)
        return {self._class(kind): self._each((*_taken(kind)(value),))}

    def _each(self, value: tuple[Any, ...]) -> Json:
        found = self._alike(value) if len(value) >= _MANY else None
        return [*map(self.plain, value)] if found is None else found

    def _alike(self, value: tuple[Any, ...]) -> Json | None:
        """Many numbers or texts as an array, many objects of one class by their fields; None for any others."""
        kind: Any
        kind, *others = {*map(type, value)}
        if others:
            return None
        if kind is str:
            texts = self.texts
            return {"w": self._array(np.array([texts.setdefault(each, len(texts)) for each in value]))}
        if kind in {int, float}:
            array = np.array(value)
            # Whole numbers too large for 64 bits would become others.
            return {"n": self._array(array)} if array.dtype == np.dtype(kind) else None
        names, _ = _fields(kind)
        if not names or kind is Column:
            return None
        columns = (self.several(tuple(getattr(each, name) for each in value)) for name in names)
        return {"o": [self._class(kind), *columns]}

    def _class(self, kind: type) -> str:
        if kind not in self.classes:
            self.classes[kind] = str(len(self.classes))
        return self.classes[kind]

    def _array(self, value: NDArray[Any]) -> int:
        at = self._known.setdefault((value.dtype, value.shape, value.tobytes()), len(self.arrays))
        if at == len(self.arrays):
            self.arrays.append(value)
        return at


class _Ways(dict[Any, "Callable[[_Writer, Any], Json] | None"]):
    """What makes JSON of the values of a class; None for those that are."""

    def __missing__(self, kind: Any) -> Callable[[_Writer, Any], Json]:
        if issubclass(kind, Mapping):
            self[kind] = found = _Writer.named
        else:
            found = _Writer.fielded if issubclass(kind, tuple) or is_dataclass(kind) else _Writer.other
        self[kind] = found
        return found


_WAYS = _Ways(dict.fromkeys(_PLAIN))
_WAYS |= {str: _Writer.text, tuple: _Writer.several, np.ndarray: _Writer.numbers, Column: _Writer.column}


def _stored(arrays: Sequence[NDArray[Any]]) -> tuple[dict[str, int], list[Json], bytes]:
    """How many numbers of each type there are, where each array is among them, and their bytes."""
    length: dict[str, int] = {}
    about: list[Json] = []
    found: dict[str, list[NDArray[Any]]] = {}
    small = sum(each.nbytes for each in arrays) < _SMALL
    as_is = ((each.dtype.str, each.ravel()) for each in arrays)
    for array, (name, values, *first) in zip(arrays, as_is if small else _narrow(arrays), strict=True):
        start = length.get(name, 0)
        length[name] = start + len(values)
        found.setdefault(name, []).append(values)
        about.append((name, start, array.shape, array.dtype.str, *first))
    rows = (np.concatenate(each).astype(name, copy=False) for name, each in found.items())
    return length, about, b"".join(each.view(np.uint8).reshape(len(each), each.itemsize).T.tobytes() for each in rows)


def _narrow(arrays: Sequence[NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """Types and numbers: whole ones in as few bytes as they need; times and positions as differences, and the first."""
    # Together: of a summary most are short.
    whole = [each.ravel() for each in arrays if each.dtype.kind == "i" and each.size]
    start = np.cumsum([0, *map(len, whole)])
    together = np.concatenate([*whole, np.zeros(1, np.int64)], dtype=np.int64)
    steps = np.diff(together, prepend=0)
    steps[start] = 0
    told = zip(start.tolist(), _sizes(together, start), _sizes(steps, start), strict=True)
    for each in arrays:
        if each.dtype.kind != "i" or not each.size:
            yield each.dtype.str, each.ravel()
            continue
        at, size, less = next(told)
        if less < size:
            yield _WHOLE[less], steps[at : at + each.size], int(together[at])
        else:
            yield _WHOLE[size], together[at : at + each.size]


def _sizes(values: NDArray[np.int64], start: NDArray[np.int64]) -> list[int]:
    """Bytes that the numbers from each start on need, as places of their types."""
    found: list[int] = np.searchsorted(_MOST, np.bitwise_or.reduceat(values ^ (values >> 63), start)).tolist()
    return found


def _read(rows: bytes, length: Mapping[str, int]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Numbers of each type from their bytes."""
    start = 0
    for name, count in length.items():
        kind = np.dtype(name)
        found = np.frombuffer(rows, np.uint8, count * kind.itemsize, start)
        yield name, found.reshape(kind.itemsize, count).T.ravel().view(kind)
        start += len(found)


@cache
def _fields(kind: Any) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Names of what an object is made of, and what each usually is."""
    if is_dataclass(kind):
        made = [each for each in fields(kind) if each.init]
        return tuple(each.name for each in made), tuple(each.default for each in made)
    names, usual = getattr(kind, "_fields", ()), getattr(kind, "_field_defaults", {})
    return names, tuple(usual.get(name, NO_DEFAULT) for name in names)


def _same(value: object, usual: object) -> bool:
    kind = type(value)
    alike = value == usual if kind in _PLAIN else kind is tuple and not value and not usual
    return value is usual or (kind is type(usual) and alike)


_TAKEN: dict[type, Callable[[Any], Any]] = {
    list: lambda value: value,
    range: lambda value: (value.start, value.stop, value.step),
    # Sets of texts come in another order in every process.
    set: lambda value: sorted(value, key=repr),
    frozenset: lambda value: sorted(value, key=repr),
    bytes: lambda value: (value.decode("latin-1"),),
    np.ndarray: lambda value: (value.ravel().tolist(), value.shape, value.dtype.str),
    np.generic: lambda value: (np.array(value),),
    Enum: lambda value: (value.value,),
    Phrase: lambda value: (value.template, *value.values.values()),
    Sentence: lambda value: (str.__str__(value), value.english),
    Word: lambda value: (str.__str__(value),),
    Between: lambda value: (int(value), value.low, value.high),
    InputError: lambda value: (value.phrase,),
}
"""Of classes that are not made of their fields, what makes a value anew."""


@cache
def _taken(kind: type) -> Callable[[Any], Any]:
    for each in kind.__mro__:
        if each in _TAKEN:
            return _TAKEN[each]
    raise TypeError(f"{kind.__qualname__} is no data of traceanalyze")


@cache
def _name(kind: type) -> str:
    """What a class is called in a part."""
    own = next((each.__name__ for each in _TAKEN if issubclass(kind, each) and each.__name__ in _MAKERS), "")
    name = own or f"{kind.__module__}:{kind.__qualname__}"
    _class(name)
    return name


_NONE: frozenset[object] = frozenset()
_MAKERS: dict[str, Callable[..., Any]] = {
    "list": lambda *each: [*each],
    "range": range,
    "set": lambda *each: {*each},
    "frozenset": lambda *each: frozenset(each) if each else _NONE,
    "bytes": lambda text: text.encode("latin-1"),
    "ndarray": lambda values, shape, kind: np.array(values, kind).reshape(shape),
    "generic": lambda array: array[()],
}


@cache
def _maker(name: str) -> Callable[[Json], Any]:
    """What makes an object of a class from its values."""
    make = _class(name)
    return lambda values: make(*_shared(values))


def _shared(values: Sequence[Any]) -> list[Any]:
    """Names are the same on all ranks."""
    return [intern(each) if type(each) is str else each for each in values]


@cache
def _class(name: str) -> Callable[..., Any]:
    """What is called so in a part.

    Raises:
        TypeError: It is no class that only holds data.
    """
    if name in _MAKERS:
        return _MAKERS[name]
    module, _, own = name.partition(":")
    if module.split(".")[:1] != ["traceanalyze"] or module.split(".")[1:2][0] not in _PACKAGES:
        raise TypeError(f"{name}: no class of traceanalyze")
    found = getattr(import_module(module), own, None)
    if found is Between:
        return Between.of
    data = (Enum, Phrase, Sentence, Word, InputError)
    if isinstance(found, type) and (is_dataclass(found) or hasattr(found, "_fields") or issubclass(found, data)):
        return found
    raise TypeError(f"{name}: no class that holds data")


@lru_cache(1 << 12)
def _declared(key: str, kind: str, *more: Any) -> Column:
    """A column without values."""
    return Column(key, Kind(kind), *more)


def _one(stored: NDArray[Any], shape: Sequence[int], own: str, *first: int) -> NDArray[Any]:
    """An array from its numbers."""
    if first:
        found = np.add.accumulate(stored, 0, np.int64)
        found += first[0]
    else:
        found = stored
    # Of thousands of ranks views take as much as what they are of.
    found = found.astype(own, copy=not first)
    return found if len(shape) == 1 else found.reshape(shape)


class _Reader:
    """Values from JSON and arrays."""

    def __init__(self, about: Json, rows: bytes, known: dict[Any, Any] | None) -> None:
        self._shared = known
        self._texts, self._columns = [*map(intern, about["texts"])], about["columns"]
        stored = dict(_read(rows, about["numbers"]))
        self._arrays = [self._array(stored[name], *each) for name, *each in about["arrays"]]
        self._makers: dict[str, Callable[[Json], Any]] = {
            "a": self._arrays.__getitem__,
            "s": self._texts.__getitem__,
            "t": lambda values: tuple(_shared(values)),
            "m": self._mapping,
            "n": self._several,
            "w": self._names,
            "o": self._alike,
            "c": self._column,
        }
        self._makers |= {str(at): _maker(name) for at, name in enumerate(about["classes"])}

    def made(self, found: dict[str, Json]) -> Any:
        """What an object of JSON stands for; what is in it was made before."""
        what, value = found.popitem()
        return self._makers[what](value)

    def _names(self, place: int) -> Any:
        found = tuple(map(self._texts.__getitem__, self._arrays[place].tolist()))
        return self._once(found, found)

    def _several(self, place: int) -> Any:
        array = self._arrays[place]
        return self._once(("n", array.dtype.kind, array.tobytes()), tuple(array.tolist()))

    def _mapping(self, value: Json) -> Any:
        keys, values = map(_shared, value)
        found, kinds = dict(zip(keys, values, strict=True)), (*map(type, values),)
        return self._once(("m", *keys, *values, *kinds), found) if _PLAIN.issuperset(kinds) else found

    def _alike(self, value: Json) -> Any:
        at, *columns = value
        return tuple(map(self._makers[at], zip(*columns, strict=True)))

    def _column(self, value: Json) -> Column:
        at, values = value
        return _declared(*self._columns[at]).of(values)

    def _array(self, stored: NDArray[Any], start: int, shape: list[int], own: str, *first: int) -> NDArray[Any]:
        stored, shared = stored[start : start + prod(shape)], self._shared
        if shared is None:
            return _one(stored, shape, own, *first)
        key = (own, tuple(shape), *first, stored.tobytes())
        found: NDArray[Any] | None = shared.get(key)
        if found is None:
            found = _one(stored, shape, own, *first)
            # Most ranks have the same steps and collectives as the first, and no two the same times.
            if stored.itemsize == 1 or len(shared) < _FIRST:
                shared[key] = found
        return found

    def _once(self, key: Any, found: Any) -> Any:
        """What was made of the same before, where that is shared."""
        return found if self._shared is None else self._shared.setdefault(key, found)


class Late(Mapping[Any, Any]):
    """A mapping whose keys are at hand, and whose values are read when one is first asked for."""

    def __init__(self, keys: tuple[Any, ...], section: Callable[[], bytes], known: Mapping[Any, Any]) -> None:
        self._keys, self._section, self._known = keys, section, known

    def __getitem__(self, key: Any) -> Any:
        """A value; reads them all unless it is known."""
        if key not in self._known:
            if key not in self._keys:
                raise KeyError(key)
            # In the order of the keys, as they were before.
            found = {**loads(self._section()), **self._known}
            self._known = {each: found[each] for each in self._keys}
        return self._known[key]

    def __contains__(self, key: object) -> bool:
        """Whether it is one of the keys; reads nothing."""
        return key in self._keys

    def __iter__(self) -> Iterator[Any]:
        """The keys, in their order."""
        return iter(self._keys)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._keys)

    def __reduce__(self) -> tuple[type, tuple[dict[Any, Any]]]:
        """Copies, and what another process is sent, have it all."""
        return dict, (dict(self),)
