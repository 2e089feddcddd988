"""Packages that recording needs beside this one, and how to get them."""

from __future__ import annotations

import importlib.util
import sys

from traceanalyze.errors import UsageError


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


def require_torch() -> None:
    """Raise in one line what to install where torch is missing.

    Raises:
        UsageError: torch is missing.
    """
    if not installed("torch"):
        raise UsageError(
            f"recording needs torch, and {sys.executable} has none: pip install 'traceanalyze[torch]' into it"
        )
