"""The two building blocks of every table: dictionary-coded strings and columns that only some rows have."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cache, cached_property
from math import nan
from operator import index
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

import numpy as np
from numpy.typing import DTypeLike, NDArray

from traceanalyze.model import intervals, native
from traceanalyze.model.intervals import chunks, passed
from traceanalyze.model.patterns import by_identity, dataclass

Rows: TypeAlias = NDArray[np.signedinteger[Any]]
"""Numbers of rows, of a thing for each of many others; -1: none. What is kept of them is kept short."""
MISSING = -(2**62)
"""A whole-number argument that the event does not have."""


_SHORT_TEXT = 1 << 20
"""Bytes of a dictionary that are cheap to have twice."""


@dataclass(frozen=True, eq=False)
class Strings:
    """Dictionary of distinct byte strings; code i is `blob[offsets[i]:offsets[i + 1]]`. Code 0 is the empty string."""

    blob: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    _asked: dict[int, tuple[ref[NDArray[Any]], NDArray[np.int64], list[str]]] = field(
        default_factory=dict, init=False, repr=False
    )
    """By the `id` of a column of codes, as long as it is there: the distinct ones and their texts."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def raw(self, code: int) -> bytes:
        """Bytes of one string as decoded from JSON; not necessarily UTF-8."""
        return self.blob[self.offsets[code] : self.offsets[code + 1]].tobytes()

    def may_have(self, text: str) -> bool:
        """Whether a text is part of any string, or of some that follow each other."""
        return text in self._whole if self._whole else text.encode() in self.blob.tobytes()

    def text(self, code: int) -> str:
        """One string for people: undecodable bytes become U+FFFD."""
        return self.raw(code).decode("utf-8", "replace")

    def texts(self, codes: NDArray[np.signedinteger[Any]]) -> Iterator[str]:
        """The strings of many codes, each as `text` has it; what one costs by itself is mostly indexing."""
        bounds = zip(self.offsets[codes].tolist(), self.offsets[codes + 1].tolist(), strict=True)
        if whole := self._whole:
            return (whole[first:last] for first, last in bounds)
        blob = self.blob.data
        return (str(blob[first:last], "utf-8", "replace") for first, last in bounds)

    @cached_property
    def _whole(self) -> str:
        """All strings as one, where they are short and each byte is a character: parts of it take half the time."""
        blob = self.blob.tobytes() if len(self.blob) <= _SHORT_TEXT else b""
        return blob.decode() if blob.isascii() else ""

    def each(self, codes: NDArray[np.signedinteger[Any]]) -> list[str]:
        """The strings of many codes, each distinct one made once."""
        distinct, of = distinct_codes(codes, len(self))
        names = list(self.texts(distinct))
        return [names[at] for at in of.tolist()]

    def lookup(
        self, codes: NDArray[np.int32], value: Callable[[str], int], dtype: DTypeLike = np.int32
    ) -> NDArray[Any]:
        """`value(text)` for each of `codes`, computed once a distinct code. Shape and order of `codes` are kept."""
        distinct, texts = self._distinct(codes)
        table = np.zeros(len(self), dtype)
        table[distinct] = np.fromiter(map(value, texts), dtype, len(distinct))
        return taken(table, codes)

    def matches(self, codes: NDArray[np.int32], test: Callable[[str], object]) -> NDArray[np.bool_]:
        """Whether the text of each of `codes` passes a test, which is made once a distinct code."""
        distinct, texts = self._distinct(codes)
        passing = distinct[[at for at, text in enumerate(texts) if test(text)]]
        if not len(passing):
            return np.zeros(codes.shape, np.bool_)
        if len(passing) <= _FEW:
            return occurs(codes, passing)
        table = np.zeros(len(self), np.bool_)
        table[passing] = True
        return taken(table, codes)

    def _distinct(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.int64], list[str]]:
        """Distinct codes, ascending, and texts: of a column that many rules ask about once. Columns never change."""
        asked, key = self._asked, id(codes)
        if key not in asked:
            found = np.flatnonzero(_present(codes, len(self)))
            asked[key] = ref(codes, lambda _: asked.pop(key, None)), found, list(self.texts(found))
        return asked[key][1:]


def strings_of(texts: Sequence[bytes]) -> Strings:
    """A dictionary of distinct texts, the first of them empty; the position is the code."""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return Strings(np.frombuffer(b"".join(texts), np.uint8), offsets)


def distinct_codes(codes: NDArray[np.signedinteger[Any]], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct codes (ascending) and the index of each row's code among them; linear where `np.unique` would sort."""
    distinct = np.flatnonzero(_present(codes, size))
    position = np.empty(size, np.int64)
    position[distinct] = np.arange(len(distinct))
    return distinct, taken(position, codes)


def short(places: Rows) -> NDArray[np.int32]:
    """In four bytes each: no table has more rows, as `Sparse` numbers them so, too."""
    return places.astype(np.int32, copy=False)


def narrow(codes: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
    """Codes in two bytes each, where they fit: short numbers are sorted in a fifth of the time."""
    return codes.astype(np.uint16, copy=False) if codes.max(initial=0) <= np.iinfo(np.uint16).max else codes


_INTEGERS = [np.dtype(f"<i{size}") for size in (1, 2, *[4] * 2, *[8] * 4) for _ in range(8)]
"""Types of whole numbers, by the bits of the largest beside its sign."""


def width(values: NDArray[np.signedinteger[Any]]) -> np.dtype[Any]:
    """The type in which whole numbers take least."""
    # Thousands of short columns are asked for it: to look for the smallest and the largest takes twice the time.
    return _INTEGERS[int(np.bitwise_or.reduce(values ^ (values >> 63), axis=None)).bit_length()]


def narrowed(values: NDArray[np.signedinteger[Any]]) -> NDArray[Any]:
    """The same numbers in as few bytes as they need."""
    return values.astype(width(values))


_SHORT = 1024
"""Fewer rows are not worth a call of the library."""
_EVERY = 255
"""Up to here the library takes numbers of one byte."""


def _present(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.bool_]:
    present, library = np.zeros(size, np.bool_), _library()
    if library is not None and len(codes) >= _SHORT and codes.dtype in _CODES and codes.flags.c_contiguous:
        given = native.address(codes), codes.itemsize, codes.size
        if not library.trace_mark(*given, native.address(present), size):
            return present
    return _present_twin(codes, size)


def _present_twin(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.bool_]:
    """The same in NumPy: the specification of the native function."""
    present = np.zeros(size, np.bool_)
    for part in chunks(len(codes)):
        present[codes[part].astype(np.intp, copy=False)] = True
    return present


_CODES = (np.dtype(np.int32), np.dtype(np.int64))
"""As the library reads them."""


def taken(table: NDArray[Any], codes: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """`table[codes]`, of codes that are in it. As indices: NumPy would convert them more slowly."""
    if len(codes) <= intervals.CHUNK:
        return table.take(codes.astype(np.intp, copy=False), mode="clip")
    found = np.empty(codes.shape, table.dtype)
    for part in chunks(len(codes)):
        table.take(codes[part].astype(np.intp, copy=False), out=found[part], mode="clip")
    return found


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Distinct values, ascending; `np.unique` would import `numpy.ma`, 10 ms of every run."""
    ordered = np.sort(values, kind="stable")  # Mostly sorted, which the default takes no notice of.
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


_TABLE = 16
"""Values are looked up in a table when it has at most this many places a row asked for, else by search."""


def ascending(rows: NDArray[np.integer[Any]], size: int) -> NDArray[np.int64]:
    """Distinct rows of a table of a size, ascending; linear unless they are few."""
    return np.flatnonzero(_present(rows, size)) if _TABLE * len(rows) > size else distinct(rows)


def rows_of(values: NDArray[Any], first: int, last: int | None = None) -> NDArray[np.int64]:
    """Rows in which a column has a number, or one from this to another; they may be members of an enumeration."""
    # As plain numbers: NumPy compares such members as ones of 64 bits, in ten times the time.
    first, last, library = index(first), index(first if last is None else last), _library()
    of_bytes = values.dtype == np.uint8 and values.flags.c_contiguous and 0 <= first <= last < _EVERY
    if library is None or len(values) < _SHORT or not of_bytes:
        return _rows_of_twin(values, first, last)
    room = np.empty(len(values), np.int64)
    found = library.trace_rows_of(native.address(values), len(values), first, last, native.address(room))
    return room[:found].copy() if 2 * found < len(room) else room[:found]


def _rows_of_twin(values: NDArray[Any], first: int, last: int) -> NDArray[np.int64]:
    """The same in NumPy: the specification of the native function."""
    found: NDArray[np.int64] = (values == first if first == last else (values >= first) & (values <= last)).nonzero()[0]
    return found


_FEW = 8
"""Values to be found that are compared one by one."""


def occurs(values: NDArray[Any], among: NDArray[Any] | Sequence[int]) -> NDArray[np.bool_]:
    """Whether each value is one of many others; `np.isin` would find the distinct ones of both first."""
    if len(among) == 0:
        return np.zeros(len(values), np.bool_)
    if len(among) <= _FEW:
        first, *others = map(index, among)
        found: NDArray[np.bool_] = values == first
        for one in others:
            found |= values == one
        return found
    if values.dtype == np.uint8:
        table = np.zeros(256, np.bool_)
        table[np.asarray(among)] = True
        return taken(table, values)
    low, high = int(np.min(among)), int(np.max(among))
    if high - low < len(values) + len(among):
        # Positions of rows lie close together.
        table = np.zeros(high - low + 1, np.bool_)
        table[np.subtract(among, low, dtype=np.int64)] = True
        found = table.take(np.subtract(values, low, dtype=np.int64), mode="clip") & (values >= low) & (values <= high)
    else:
        ordered = np.sort(among, kind="stable")
        at = passed(ordered, values) - 1
        found = (ordered[at] == values) & (at >= 0)
    return found


def find(wanted: NDArray[Any], among: NDArray[Any]) -> NDArray[np.int64]:
    """Position of each value among some others, of several equal ones the first; -1 where it is none of them."""
    if len(among) == 0 or len(wanted) == 0:
        return np.full(len(wanted), -1, np.int64)
    # From the last on: of equal ones the first is the last of them that is passed.
    order = len(among) - 1 - np.argsort(among[::-1], kind="stable")
    ordered = among[order]
    at = passed(ordered, wanted) - 1
    return np.where((ordered[at] == wanted) & (at >= 0), order[at], -1)


def quantile(values: NDArray[np.int64], part: float) -> float:
    """The value below which this part of many lies, linear between two; `np.percentile` would import `numpy.ma`."""
    at, last = part * (len(values) - 1), len(values) - 1
    low = int(at)
    first, second = np.partition(values, (low, min(low + 1, last)))[[low, min(low + 1, last)]].tolist()
    return float(first + (second - first) * (at - low))


def median(values: NDArray[Any]) -> float:
    """The middle value, of an even number the mean of the two middle ones; `np.median` would import `numpy.ma`."""
    if not len(values):
        return nan
    low, high = (len(values) - 1) // 2, len(values) // 2
    first, second = np.partition(values, (low, high))[[low, high]].tolist()
    return (float(first) + float(second)) / 2


class _Column(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("values", ctypes.c_void_p), ("size", ctypes.c_uint64)]


@cache
def _library() -> ctypes.CDLL | None:
    library = native.library()
    if library is not None:
        pointer = ctypes.c_void_p
        for take, number in ((library.trace_take_wide, ctypes.c_int64), (library.trace_take_narrow, ctypes.c_int32)):
            take.restype, take.argtypes = None, (pointer, pointer, ctypes.c_uint64, number, pointer)
        library.trace_mark.argtypes = (pointer, ctypes.c_uint32, ctypes.c_uint64, pointer, ctypes.c_uint64)
        library.trace_rows_of.restype = ctypes.c_int64
        library.trace_rows_of.argtypes = (pointer, ctypes.c_uint64, ctypes.c_uint8, ctypes.c_uint8, pointer)
    return library


@by_identity
class Sparse(NamedTuple):
    """A column that only some rows have: `row` (uint32, ascending) and `value` (int64, float64, or int32 codes)."""

    row: NDArray[np.uint32]
    value: NDArray[Any]

    def take(self, rows: Rows, missing: int) -> NDArray[Any]:
        """Values at `rows` (any order; -1 stands for none), `missing` where a row has none."""
        if len(self.row) == 0 or len(rows) == 0:
            return np.full(len(rows), missing, self.value.dtype)
        library = _library()
        return self._take_twin(rows, missing) if library is None else self._take(rows, missing, library)

    def _take(self, rows: NDArray[np.int64], missing: int, library: ctypes.CDLL) -> NDArray[Any]:
        row, value = np.ascontiguousarray(self.row, np.uint32), np.ascontiguousarray(self.value)
        rows = np.ascontiguousarray(rows, np.int64)
        found, column = np.empty(len(rows), value.dtype), _Column(*map(native.address, (row, value)), len(row))
        take, number = (
            (library.trace_take_wide, np.int64) if value.itemsize == 8 else (library.trace_take_narrow, np.int32)
        )
        given = missing if value.dtype.kind == "i" else int(np.array([missing], value.dtype).view(number)[0])
        places = native.address(rows), len(rows), given, native.address(found)
        take(ctypes.byref(column), *places)
        return found

    def _take_twin(self, rows: NDArray[np.int64], missing: int) -> NDArray[Any]:
        """The same in NumPy: the specification of the native functions."""
        last = int(self.row[-1])
        if last < _TABLE * len(rows):
            table = np.full(last + 2, missing, self.value.dtype)
            table[self.row] = self.value
            return table[np.minimum(rows.astype(np.uint32), last + 1)]
        at = np.searchsorted(self.row, rows.astype(np.uint32))
        at[at == len(self.row)] = 0
        found = self.row[at] == rows
        out = np.full(len(rows), missing, self.value.dtype)
        out[found] = self.value[at[found]]
        return out
