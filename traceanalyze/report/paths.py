"""Paths as short as they may be and still be told apart."""

from __future__ import annotations

from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def common_folder(paths: Sequence[str]) -> str:
    """The folder, with the mark at its end, that several paths all lie in; empty where there is none, or one path."""
    if len(paths) < 2:
        return ""
    parents = (PurePath(path).parts[:-1] for path in paths)
    shared = list(takewhile(lambda parts: len(set(parts)) == 1, zip(*parents, strict=False)))
    folder = str(PurePath(*(parts[0] for parts in shared))) if shared else ""
    return folder if not folder or folder.endswith("/") else f"{folder}/"


def told_apart(first: str, second: str) -> tuple[str, str]:
    """Names of two files; with as many of their folders as it takes to differ, where that is possible."""
    parts = PurePath(first).parts, PurePath(second).parts
    if parts[0] == parts[1]:
        return PurePath(first).name or first, PurePath(second).name or second
    count = 1
    while parts[0][-count:] == parts[1][-count:]:
        count += 1
    return str(PurePath(*parts[0][-count:])), str(PurePath(*parts[1][-count:]))
