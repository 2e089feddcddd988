"""The shared library with what Python is too slow for: the scanner, call trees, intervals, longest paths of replays.

It lies at the bottom of the package because both the readers and the analyses call it. Whoever calls it has a twin in
Python for where it was not built.
"""

import ctypes
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_ABI_VERSION = 7
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


class Stretches(ctypes.Structure):
    """Starts and ends, as the library reads them."""

    _fields_ = [("start", ctypes.c_void_p), ("end", ctypes.c_void_p), ("size", ctypes.c_uint64)]


def stretches(start: NDArray[np.int64], end: NDArray[np.int64]) -> Stretches:
    """Stretches of time; as long as it is there the arrays are."""
    given = [np.ascontiguousarray(each, np.int64) for each in (start, end)]
    found = Stretches(*(each.ctypes.data for each in given), len(start))
    found.given = given
    return found
