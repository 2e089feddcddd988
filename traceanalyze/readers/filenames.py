"""What file names tell: rank, host and process of the recording."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceanalyze.readers.source import ARCHIVE_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

_HANDLER = re.compile(r"(?P<worker>.+)\.\d{10,}\.pt\.trace\.json(?:\.gz)?")
_HOST_AND_PID = re.compile(r"(?P<host>.+)_(?P<pid>\d{1,18})")
_EXPLICIT = (
    re.compile(r"(?:^|[^a-z])rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])worker[_-]?(\d{1,6})(?!\d)", re.IGNORECASE),
)
_ASCEND_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_ENDINGS = re.compile(r"(?:\.pt\.trace)?\.json(?:\.gz)?$|\.gz$", re.IGNORECASE)
_NUMBERED = re.compile(r"[_.-](\d{1,6})\.(?:pt\.trace\.)?json(?:\.gz)?$", re.IGNORECASE)


def host_and_pid(path: str) -> tuple[str | None, int | None]:
    """Host and process from the name torch's tensorboard_trace_handler gives: `host_pid.time.pt.trace.json`."""
    handler = _HANDLER.fullmatch(PurePath(path).name)
    found = _HOST_AND_PID.fullmatch(handler["worker"]) if handler else None
    return (found["host"], int(found["pid"])) if found else (None, None)


def explicit_rank(path: str) -> int | None:
    """The rank a file or its folder is named after: `rank_3`, `-rank3-`, `worker3.`; None if it is not."""
    pure = PurePath(path.replace(ARCHIVE_MARK, "/"))
    for text in (pure.name, pure.parent.name):
        for pattern in _EXPLICIT:
            found = pattern.search(text)
            if found:
                return int(found[1])
    return None


def numbered_ranks(paths: Sequence[str]) -> list[int] | None:
    """Ranks of files that are numbered at the end of their names, `trace_3.json`.

    A number alone says little, so all files must be numbered alike, from 0 to the number of files without a gap.
    """
    found = [_NUMBERED.search(PurePath(path).name) for path in paths]
    numbers = [int(match[1]) for match in found if match]
    return numbers if len(paths) > 1 and sorted(numbers) == list(range(len(paths))) else None


def run_folder(path: str) -> str:
    """The folder a run is told by: that of the file, or the one above if that is named after a rank."""
    parent = PurePath(path.replace(ARCHIVE_MARK, "/")).parent
    while any(pattern.search(parent.name) for pattern in _EXPLICIT):
        parent = parent.parent
    return str(parent)


def short_name(path: str) -> str:
    """File name without the endings every trace has; an Ascend profile's output folder goes by the one above."""
    return _ENDINGS.sub("", PurePath(profile_path(path)).name)


def profile_path(path: str) -> str:
    """Path of a recording, also within an archive; an Ascend profile's output folder goes by the one above."""
    pure = PurePath(path.replace(ARCHIVE_MARK, "/"))
    return str(pure.parent if pure.name == _ASCEND_OUTPUT and pure.parent.name else pure)


def names_apart(names: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Names, those that occur more than once with as many of the folders of their paths as tell them apart.

    In one folder the endings of the files do.
    """
    same: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        same.setdefault(name, []).append(row)
    found = list(names)
    for name, rows in same.items():
        if len(rows) == 1:
            continue
        above = [PurePath(paths[row]).parent.parts for row in rows]
        depths = range(1, max(map(len, above)) + 1)
        longer = [[str(PurePath(*parts[-depth:], name)) for parts in above] for depth in depths]
        whole = [PurePath(paths[row]).name for row in rows]
        for row, one in zip(rows, next((those for those in (*longer, whole) if _all_differ(those)), ()), strict=False):
            found[row] = one
    return found


def _all_differ(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)
