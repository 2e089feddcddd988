"""The shared library with what Python is too slow for: scanner, snapshots, call trees, intervals, longest paths.

It lies at the bottom of the package because both the readers and the analyses call it. Whoever calls it has a twin in
Python for where it was not built.
"""

import ctypes
import math
import mmap
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

_S = TypeVar("_S", bound=ctypes.Structure)
_ABI_VERSION = 14
"""As in scan.h."""
LIBRARY = (
    Path(__file__).parents[1]
    / "readers"
    / "scan"
    / ("libtrace_scan.dylib" if sys.platform == "darwin" else "libtrace_scan.so")
)


def give_back() -> None:
    """Give freed memory back to the system where the C library can (glibc): by itself it keeps most of it."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


_TRIM, _MAP, _ROOM = -1, -3, 32 << 20
"""What `mallopt` sets: from how much free memory on at the end it is given back, and what is got by itself."""


def keep_freed() -> None:
    """Leave what is freed to this process, for good, where the C library can (glibc): new pages take a tenth of a job.

    In large pages, which the processor finds in less time: 5 % of a job. For processes that do one job after another,
    and nothing else.
    """
    with suppress(OSError, AttributeError, TypeError):
        own, page = ctypes.CDLL(None), mmap.PAGESIZE
        for setting in (_TRIM, _MAP):
            own.mallopt(setting, _ROOM)
        own.malloc.restype = ctypes.c_void_p
        room = own.malloc(ctypes.c_size_t(_ROOM - page))
        first = ctypes.c_void_p(-(-room // page) * page)
        own.madvise(first, ctypes.c_size_t(_ROOM - 3 * page), mmap.MADV_HUGEPAGE)
        own.free(ctypes.c_void_p(room))


@cache
def library() -> ctypes.CDLL | None:
    """The library, None where it was not built, cannot be loaded, or belongs to another version."""
    try:
        found = ctypes.CDLL(str(LIBRARY))
        found.trace_scan_free.argtypes, found.trace_scan_free.restype = [ctypes.c_void_p, ctypes.c_uint64], None
        return found if found.trace_scan_abi_version() == _ABI_VERSION else None
    except (OSError, AttributeError):
        return None


class Array(ctypes.Structure):
    """An array that the library made, as it hands it over."""

    _fields_ = [("data", ctypes.c_void_p), ("items", ctypes.c_uint64)]


class _Memory:
    """Of an array that the library made: freed with it. A `ctypes` array would need a class of its own, 20 µs."""

    __slots__ = ("__array_interface__", "__weakref__", "_free", "_given")

    def __init__(self, library_: ctypes.CDLL, data: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.__array_interface__ = {"data": (data, False), "shape": shape, "typestr": dtype.str, "version": 3}
        self._free, self._given = library_.trace_scan_free, (data, math.prod(shape) * dtype.itemsize)

    def __del__(self) -> None:
        self._free(*self._given)


def owned(found: Array, dtype: DTypeLike, *, width: int = 0) -> NDArray[Any]:
    """The array, one-dimensional or `width` columns wide; its memory is freed with it, so that single ones can go."""
    items, library_ = found.items, library()
    shape = (items, width) if width else (items,)
    if not items or library_ is None:
        return np.empty(shape, dtype)
    return np.asarray(_Memory(library_, found.data, shape, np.dtype(dtype)))


_Bytes = ctypes.c_char * 0


def address(column: Any) -> int:
    """Where a column lies: `ctypes.data` takes four times as long, which hundreds of calls a recording would pay."""
    try:
        return ctypes.addressof(_Bytes.from_buffer(column))
    except (TypeError, ValueError):  # it is not to be written to
        return int(column.ctypes.data)


def given(kind: type[_S], columns: Mapping[str, NDArray[Any]], **numbers: float) -> _S:
    """A structure of pointers to columns and of numbers; as long as it is there the columns are."""
    kept = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    found = kind(**{name: address(column) for name, column in kept.items()}, **numbers)
    found.given = kept
    return found


def pointers(*names: str) -> list[tuple[str, Any]]:
    """Members of a structure that are columns."""
    return [(name, ctypes.c_void_p) for name in names]


class Stretches(ctypes.Structure):
    """Starts and ends, as the library reads them."""

    _fields_ = [("start", ctypes.c_void_p), ("end", ctypes.c_void_p), ("size", ctypes.c_uint64)]


def stretches(start: NDArray[np.int64], end: NDArray[np.int64]) -> Stretches:
    """Stretches of time; as long as it is there the arrays are. Called so often that `given` is too slow."""
    start, end = np.ascontiguousarray(start, np.int64), np.ascontiguousarray(end, np.int64)
    found = Stretches(address(start), address(end), len(start))
    found.given = start, end
    return found
