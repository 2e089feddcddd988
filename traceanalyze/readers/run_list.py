"""`run.json`, which `traceanalyze record` leaves beside what it wrote: of which rank which files are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NAME = re.compile(r"run(_rank\d+)?\.json")
_SCHEMA = "traceanalyze.run/"
_MOST = 1 << 20
"""Bytes: such a list is a few kB."""


class RunList(NamedTuple):
    """What a list tells."""

    rank: int | None
    files: tuple[str, ...]


def read_run_list(path: Path) -> RunList | None:
    """The list; None for a file of another program that is only called so.

    Raises:
        InputError: It cannot be read; says why, without its name.
    """
    try:
        # A pipe that is called so would be waited for.
        if not path.is_file() or path.stat().st_size > _MOST:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError("no JSON: damaged or cut short") from error
    if not isinstance(content, dict) or not str(content.get("schema", "")).startswith(_SCHEMA):
        return None
    files, rank = content.get("files"), content.get("rank")
    if not isinstance(files, list):
        raise InputError("lists no files")
    known = rank if type(rank) is int and rank >= 0 else None
    return RunList(known, tuple(each for each in files if isinstance(each, str)))
