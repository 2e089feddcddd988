"""The shared library with what Python is too slow for: the scanner, call trees and longest paths (`replay/longest`).

It lies at the bottom of the package because both the readers and the analyses call it. Whoever calls it has a twin in
Python for where it was not built.
"""

import ctypes
import sys
from functools import cache
from pathlib import Path

_ABI_VERSION = 4
"""As in scan.h."""
LIBRARY = (
    Path(__file__).parents[1]
    / "readers"
    / "scan"
    / ("libtrace_scan.dylib" if sys.platform == "darwin" else "libtrace_scan.so")
)


@cache
def library() -> ctypes.CDLL | None:
    """The library, None where it was not built, cannot be loaded, or belongs to another version."""
    try:
        found = ctypes.CDLL(str(LIBRARY))
        return found if found.trace_scan_abi_version() == _ABI_VERSION else None
    except (OSError, AttributeError):
        return None
