"""The shared library with what Python is too slow for: scanner, snapshots, call trees, intervals, longest paths.

It lies at the bottom of the package because both the readers and the analyses call it. Whoever calls it has a twin in
Python for where it was not built.
"""

import ctypes
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

_S = TypeVar("_S", bound=ctypes.Structure)
_ABI_VERSION = 12
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


@cache
def library() -> ctypes.CDLL | None:
    """The library, None where it was not built, cannot be loaded, or belongs to another version."""
    try:
        found = ctypes.CDLL(str(LIBRARY))
        return found if found.trace_scan_abi_version() == _ABI_VERSION else None
    except (OSError, AttributeError):
        return None


class Array(ctypes.Structure):
    """An array that the library made, as it hands it over."""

    _fields_ = [("data", ctypes.c_void_p), ("items", ctypes.c_uint64)]


def owned(found: Array, dtype: DTypeLike, *, width: int = 0) -> NDArray[Any]:
    """The array, one-dimensional or `width` columns wide; its memory is freed with it, so that single ones can go."""
    shape, size = (found.items, width) if width else (found.items,), found.items * max(width, 1)
    library_ = library()
    if not size or library_ is None:
        return np.empty(shape, dtype)
    memory = (ctypes.c_ubyte * (size * np.dtype(dtype).itemsize)).from_address(found.data)
    free = library_.trace_scan_free
    free.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    free.restype = None
    weakref.finalize(memory, free, found.data, len(memory)).atexit = False
    return np.frombuffer(memory, dtype).reshape(shape)


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
