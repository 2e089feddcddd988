"""Paths as short as they may be and still be told apart."""

from __future__ import annotations

from pathlib import PurePath


def told_apart(first: str, second: str) -> tuple[str, str]:
    """Names of two files; with as many of their folders as it takes to differ, where that is possible."""
    parts = PurePath(first).parts, PurePath(second).parts
    if parts[0] == parts[1]:
        return PurePath(first).name or first, PurePath(second).name or second
    count = 1
    while parts[0][-count:] == parts[1][-count:]:
        count += 1
    return str(PurePath(*parts[0][-count:])), str(PurePath(*parts[1][-count:]))
