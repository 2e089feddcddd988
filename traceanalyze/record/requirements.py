"""Packages that recording needs beside this one, and how to get them."""

from __future__ import annotations

import importlib.util
import subprocess
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


def require_this_package(python: str) -> None:
    """Raise in one line where a Python is another one than this and cannot import this package.

    So it is where the command is called by its path, without activating its environment.

    Raises:
        UsageError: `python` does not have this package.
    """
    if python == sys.executable:
        return
    looks = "import importlib.util as u, sys; sys.exit(u.find_spec('traceanalyze') is None)"
    if subprocess.run([python, "-c", looks], stderr=subprocess.DEVNULL, check=False).returncode == 1:  # noqa: S603
        raise UsageError(
            f"record: {python} does not have traceanalyze: install it there, or write {sys.executable} in its place"
        )
