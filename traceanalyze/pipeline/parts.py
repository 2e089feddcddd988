"""Results in an open format: JSON for what has names, NumPy's own files for the numbers, in a zip archive.

A part is an archive of sections, `summary.npz` and the like. A section has `part.json` and `numbers.npy`, in which the
arrays lie one after another by their types: of each a row of bytes for the lowest byte of all numbers, one for the
next, and so on, which compresses better. `numbers` are the types and how many numbers of each there are, `arrays` what
is one of them: `[type, start, shape, own type]`; where its first value follows, differences to the one before are
stored. `{"a": array}` is one of these, `{"k": fields, "c": class}` and `{"v": …, "c": class}` are objects of this
package, `{"m": …}` a mapping, `{"s": place}` one of the texts that are stored once. A list is a tuple; one of many
numbers is `{"t": array}`, of many texts `{"w": array}` of their places, of many objects `{"n": columns, "c": class}`, a
tuple a field. Nothing in it is code: only classes that hold data are made.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, singledispatch
from importlib import import_module
from math import prod
from sys import intern
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.columns import width
from traceanalyze.model.table import Between, Sentence, Word

Json: TypeAlias = Any

_PACKAGES = ("analyses", "causes", "errors", "model", "pipeline", "plugins", "ranks", "readers", "replay", "rules")
"""Of this package, those whose classes may stand in a part."""
_NAMES, _NUMBERS = "part.json", "numbers.npy"
_LEVEL = 5
"""Of compression: the next takes twice the time for 3 %."""
_MANY = 8
"""From so many on what is alike is stored together."""
_LONG = 16
"""Texts from so many characters on are stored once: many tables name the same kernels."""
_PLAIN = frozenset({type(None), bool, int, float, str})
_STORED = frozenset("biuf")
"""Kinds of arrays that are stored as numbers; the others are texts and objects."""


class DamagedError(Exception):
    """Bytes that are no part, or only a piece of one."""


def archive(sections: Mapping[str, bytes]) -> bytes:
    """Sections by their names as one file; they are compressed already."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in sections.items():
            file.writestr(zipfile.ZipInfo(f"{name}.npz"), content)
    return out.getvalue()


def sections(part: bytes) -> dict[str, bytes]:
    """The sections of a file, each with the checksum that it was written with.

    Raises:
        DamagedError: Something is missing or changed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(part)) as file:
            return {name.removesuffix(".npz"): file.read(name) for name in file.namelist()}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DamagedError(str(error)) from error


def dumps(value: object) -> bytes:
    """A section.

    Raises:
        TypeError: It holds something that is no data of this package.
    """
    writer = _Writer()
    document = {"value": writer.plain(value), "classes": [*writer.classes], "texts": [*writer.texts]}
    document |= {"arrays": writer.about, "numbers": writer.length}
    rows = [_rows(np.concatenate(each)) for each in writer.arrays.values()]
    numbers, out = io.BytesIO(), io.BytesIO()
    np.save(numbers, np.concatenate(rows or [np.zeros(0, np.uint8)]), allow_pickle=False)
    with zipfile.ZipFile(out, "w") as file:
        _add(file, _NUMBERS, numbers.getvalue())
        _add(file, _NAMES, json.dumps(document, check_circular=False, separators=(",", ":")).encode())
    return out.getvalue()


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    # Without the time of day: the same content is the same bytes.
    file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, _LEVEL)


def loads(section: bytes, known: dict[Any, Any] | None = None) -> Any:
    """What a section holds.

    Sections with the same `known` share what they have in common, such as the names of steps and kernels of ranks.

    Raises:
        DamagedError: It cannot be read.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(section)) as file:
            document, numbers = json.loads(file.read(_NAMES)), file.read(_NUMBERS)
        return _Reader(document, numbers, known).made(document["value"])
    # What is wrong with it may show anywhere, and does not matter.
    except (Exception, RecursionError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}") from error


def _rows(values: NDArray[Any]) -> NDArray[np.uint8]:
    """All lowest bytes, then all next ones."""
    return values.view(np.uint8).reshape(len(values), values.itemsize).T.ravel()


def _numbers(content: bytes, length: Mapping[str, int]) -> Iterator[tuple[str, NDArray[Any]]]:
    """What `_rows` made rows of, from their file; `np.load` takes longer than all the rest."""
    start = 10 + int.from_bytes(content[8:10], "little")
    for name, count in length.items():
        kind = np.dtype(name)
        rows = np.frombuffer(content, np.uint8, count * kind.itemsize, start)
        yield name, rows.reshape(kind.itemsize, count).T.ravel().view(kind)
        start += len(rows)


class _Writer:
    """Values as JSON, and the arrays they hold."""

    def __init__(self) -> None:
        self.arrays: dict[str, list[NDArray[Any]]] = {}
        self.length: dict[str, int] = {}
        self.about: list[Json] = []
        self.classes: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        """Arrays by what they are: many parts of many steps are none."""

    def plain(self, value: Any) -> Json:
        kind: Any = type(value)
        if kind not in _PLAIN:
            return _way(kind)(self, value)
        return {"s": self._text(value)} if kind is str and len(value) >= _LONG else value

    def several(self, value: tuple[Any, ...]) -> Json:
        found = self._alike(value) if len(value) >= _MANY else None
        return [*map(self.plain, value)] if found is None else found

    def numbers(self, value: NDArray[Any]) -> Json:
        return {"a": self._array(value)} if value.dtype.kind in _STORED else self.other(value)

    def named(self, value: Mapping[Any, Any]) -> Json:
        if all(type(key) is str for key in value):
            return {"m": {key: self.plain(each) for key, each in value.items()}}
        return self.other(value)

    def fielded(self, value: Any) -> Json:
        kind: Any = type(value)
        told = ((name, getattr(value, name), usual) for name, usual in _fields(kind))
        kept = {name: self.plain(each) for name, each, usual in told if not _same(each, usual)}
        return {"k": kept, "c": self._class(kind)}

    def other(self, value: Any) -> Json:
        return {"v": self.plain(tuple(_arguments(value))), "c": self._class(type(value))}

    def _alike(self, value: tuple[Any, ...]) -> Json | None:
        """Many numbers or texts as an array, many objects of one class by their fields; None for any others."""
        kind: Any
        kind, *others = {*map(type, value)}
        if others:
            return None
        if kind is str:
            return {"w": self._array(np.array([*map(self._text, value)]))}
        if kind in {int, float}:
            array = np.array(value)
            # Whole numbers too large for 64 bits would become others.
            return {"t": self._array(array)} if array.dtype == np.dtype(kind) else None
        if not _fields(kind):
            return None
        columns = {name: tuple(getattr(each, name) for each in value) for name, _ in _fields(kind)}
        return {"n": {name: self.plain(each) for name, each in columns.items()}, "c": self._class(kind)}

    def _class(self, kind: type) -> int:
        return self.classes.setdefault(_name(kind), len(self.classes))

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _array(self, value: NDArray[Any]) -> int:
        key = value.dtype.str, value.shape, value.tobytes()
        if key not in self._known:
            stored, first = _narrow(value.ravel())
            name = stored.dtype.str
            start = self.length.get(name, 0)
            self.length[name] = start + len(stored)
            self.arrays.setdefault(name, []).append(stored)
            self._known[key] = len(self.about)
            self.about.append([name, start, value.shape, value.dtype.str, *first])
        return self._known[key]


@cache
def _way(kind: Any) -> Callable[[_Writer, Any], Json]:
    """What makes JSON of the values of a class."""
    if kind is tuple:
        return _Writer.several
    if kind is np.ndarray:
        return _Writer.numbers
    if issubclass(kind, Mapping):
        return _Writer.named
    return _Writer.fielded if issubclass(kind, tuple) or is_dataclass(kind) else _Writer.other


def _narrow(values: NDArray[Any]) -> tuple[NDArray[Any], list[int]]:
    """Whole numbers in as few bytes as they need; times and positions as differences, with the first of them."""
    if values.dtype.kind != "i" or values.itemsize == 1 or not len(values):
        return values, []
    kind, steps = width(values), np.zeros(len(values), np.int64)
    if kind.itemsize > 1:
        np.subtract(values[1:], values[:-1], out=steps[1:], dtype=np.int64)
    small = width(steps) if kind.itemsize > 1 else kind
    return (steps.astype(small), [int(values[0])]) if small.itemsize < kind.itemsize else (values.astype(kind), [])


@cache
def _fields(kind: Any) -> tuple[tuple[str, object], ...]:
    """Names of what an object is made of, and what each usually is."""
    if is_dataclass(kind):
        return tuple((each.name, each.default) for each in fields(kind) if each.init)
    usual: Mapping[str, object] = getattr(kind, "_field_defaults", {})
    return tuple((name, usual.get(name, NO_DEFAULT)) for name in getattr(kind, "_fields", ()))


def _same(value: object, usual: object) -> bool:
    kind = type(value)
    alike = value == usual if kind in _PLAIN else kind is tuple and not value and not usual
    return value is usual or (kind is type(usual) and alike)


@singledispatch
def _arguments(value: Any) -> Any:
    """What makes a value anew."""
    raise TypeError(f"{type(value).__qualname__} is no data of traceanalyze")


_TAKEN: dict[type, Callable[[Any], Any]] = {
    list: lambda value: value,
    range: lambda value: (value.start, value.stop, value.step),
    # Sets of texts come in another order in every process.
    set: lambda value: sorted(value, key=repr),
    frozenset: lambda value: sorted(value, key=repr),
    Mapping: lambda value: value.items(),
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
for _kind, _take in _TAKEN.items():
    _arguments.register(_kind, _take)


@cache
def _name(kind: type) -> str:
    """What a class is called in a part."""
    own = next((each.__name__ for each in _TAKEN if issubclass(kind, each) and each.__name__ in _MAKERS), "")
    name = own or f"{kind.__module__}:{kind.__qualname__}"
    _maker(name)
    return name


_MAKERS: dict[str, Callable[..., Any]] = {
    "list": lambda *each: [*each],
    "range": range,
    "set": lambda *each: {*each},
    "frozenset": lambda *each: frozenset(each),
    "Mapping": lambda *pairs: dict(pairs),
    "bytes": lambda text: text.encode("latin-1"),
    "ndarray": lambda values, shape, kind: np.array(values, kind).reshape(shape),
    "generic": lambda array: array[()],
}


@cache
def _maker(name: str) -> Callable[..., Any]:
    """What makes an object of a class.

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


class _Reader:
    """Values from JSON and arrays."""

    def __init__(self, document: Json, numbers: bytes, known: dict[Any, Any] | None) -> None:
        self._shared = known
        self._makers = [*map(_maker, document["classes"])]
        self._texts = [*map(intern, document["texts"])]
        stored = dict(_numbers(numbers, document["numbers"]))
        self._arrays = [self._array(stored[name], *about) for name, *about in document["arrays"]]

    def made(self, value: Json) -> Any:
        kind = type(value)
        if kind is str:
            # Names are the same on all ranks.
            return intern(value)
        if kind is list:
            return tuple(map(self.made, value))
        if kind is not dict:
            return value
        what = next(iter(value))
        if what == "a":
            return self._arrays[value[what]]
        return self._texts[value[what]] if what == "s" else _MADE[what](self, *value.values())

    def texts(self, place: int) -> Any:
        found = tuple(self._texts[each] for each in self._arrays[place].tolist())
        return self._once(found, found)

    def several(self, place: int) -> Any:
        array = self._arrays[place]
        return self._once(("t", array.dtype.kind, array.tobytes()), tuple(array.tolist()))

    def named(self, values: Mapping[str, Json]) -> Any:
        found = {intern(key): self.made(each) for key, each in values.items()}
        if all(type(each) in _PLAIN for each in found.values()):
            return self._once(("m", *((key, type(each), each) for key, each in found.items())), found)
        return found

    def alike(self, columns: Mapping[str, Json], at: int) -> Any:
        make, names = self._makers[at], [*columns]
        rows = zip(*map(self.made, columns.values()), strict=True)
        return tuple(make(**dict(zip(names, each, strict=True))) for each in rows)

    def fielded(self, kept: Mapping[str, Json], at: int) -> Any:
        return self._makers[at](**{name: self.made(each) for name, each in kept.items()})

    def other(self, values: Json, at: int) -> Any:
        return self._makers[at](*self.made(values))

    def _array(self, stored: NDArray[Any], start: int, shape: list[int], own: str, *first: int) -> NDArray[Any]:
        stored = stored[start : start + prod(shape)]
        found = (stored.cumsum(dtype=np.int64) + first[0] if first else stored).astype(own, copy=not first)
        # Of thousands of ranks views take as much as what they are of.
        found = found if len(shape) == 1 else found.reshape(shape)
        # All ranks have the same few kinds of collectives, in the same steps; no two have the same times.
        few = self._shared is not None and stored.itemsize == 1
        return self._once((own, *shape, *first, stored.tobytes()), found) if few else found

    def _once(self, key: Any, found: Any) -> Any:
        """What was made of the same before, where that is shared."""
        return found if self._shared is None else self._shared.setdefault(key, found)


_MADE: dict[str, Callable[..., Any]] = {
    "w": _Reader.texts,
    "t": _Reader.several,
    "m": _Reader.named,
    "n": _Reader.alike,
    "k": _Reader.fielded,
    "v": _Reader.other,
}


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
