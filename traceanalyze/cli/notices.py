"""Remarks on the installation, on stderr."""

from __future__ import annotations

import sys


def tell_slow_scanner() -> None:
    """Say so when the native scanner is missing, as reading then takes far longer."""
    from traceanalyze.readers.scan import backend

    if backend() == "python":
        sys.stderr.write(
            "note: the native scanner was not built (no C++ compiler at installation?); reading is far slower\n"
        )
