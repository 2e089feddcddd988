"""Error texts for paths that lead nowhere: what was found instead, and what to do."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES_SHOWN = 3


def not_found(path: str) -> InputError:
    """A path that does not exist: names the nearest one that does."""
    folder, name = os.path.split(path.rstrip("/"))
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return InputError(f"{path}: no such file, nor is there a folder {folder}")
    near = difflib.get_close_matches(name, names, 1)
    return InputError(f"{path}: no such file or folder" + (f"; did you mean {os.path.join(folder, near[0])}?" if near else ""))


def nothing_found(path: str, place: str, ignored: Sequence[str]) -> InputError:
    """A folder, archive or glob without a trace: says what it holds instead."""
    if not ignored:
        return InputError(f"{path}: this {place} is empty; give the trace export_chrome_trace wrote")
    names = ", ".join(ignored[:_NAMES_SHOWN]) + (", …" if len(ignored) > _NAMES_SHOWN else "")
    files = "1 file, not a trace" if len(ignored) == 1 else f"{len(ignored):,} files, none of them a trace"
    ascend = "; Ascend profiles are not supported in this version yet" if _looks_ascend(path, ignored) else ""
    return InputError(f"{path}: no trace in this {place}: {files}: {names}{ascend}")


def _looks_ascend(path: str, ignored: Sequence[str]) -> bool:
    return any("ascend" in name.lower() for name in (path, *ignored))
