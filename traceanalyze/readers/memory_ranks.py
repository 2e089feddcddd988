"""Of which rank a snapshot or a memory timeline is: neither says it itself, but what lies around it may."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.readers.ascend.folder import rank_of_name
from traceanalyze.readers.filenames import explicit_rank, numbered_ranks
from traceanalyze.readers.run_list import read_run_list
from traceanalyze.readers.streams import read_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.readers.source import Source

_DISTRIBUTED = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,6})\b')
_MEMORY = re.compile(rb'"totalGlobalMem"\s*:\s*(\d{9,15})\b')
_PROFILE_INFO = "profiler_info_*.json"
_RUN_FILES = ("run.json", "run_rank*.json")
_SHORT = re.compile(r"(?:^|[_.-])r(\d{1,6})(?=[_.-]|$)", re.IGNORECASE)
_NUMBERED = re.compile(r"[_.-](\d{1,6})\.(?:pickle|pkl|json)(?:\.gz|\.zst)?$", re.IGNORECASE)

Told = tuple[int | None, str]
"""Rank, and what tells it: "run.json", "file name", "folder", "only one", or nothing."""


def memory_ranks(paths: Sequence[str], traces: Sequence[int | None]) -> tuple[Told, ...]:
    """The rank of each file.

    Args:
        paths: Snapshots and timelines of one run.
        traces: Ranks of the traces found beside them, None where a trace does not tell.
    """
    told = [_told(path) for path in paths]
    unknown = [index for index, (rank, _) in enumerate(told) if rank is None]
    numbers = _numbers([paths[index] for index in unknown], traces)
    if numbers is not None:
        for index, number in zip(unknown, numbers, strict=True):
            told[index] = number, "file name"
    elif len(traces) == 1 and len(paths) == 1 and unknown:
        told[0] = traces[0], "only one"
    return tuple(told)


def trace_ranks(sources: Sequence[Source]) -> tuple[int | None, ...]:
    """Ranks of traces as far as their beginnings, and what lies around them, tell; before any is read."""
    stated = [_stated(source) for source in sources]
    told = [_told(source.name)[0] if rank is None else rank for source, rank in zip(sources, stated, strict=True)]
    numbers = numbered_ranks([source.name for source in sources]) if told and set(told) == {None} else None
    return tuple(told) if numbers is None else tuple(numbers)


def _stated(source: Source) -> int | None:
    """What the recording itself says of its rank: in its header, or as the name of a file of the profile (Ascend)."""
    if source.folder:
        return rank_of_name(file.name for file in Path(source.folder).glob(_PROFILE_INFO))
    found = _DISTRIBUTED.search(_head(source))
    return int(found[1]) if found else None


def _head(source: Source) -> bytes:
    """Beginning of the text of a file; empty where it cannot be read, or not twice."""
    try:
        return read_head(source) if Path(source.path).is_file() else b""
    except InputError:
        return b""


def device_memory(sources: Sequence[Source]) -> int | None:
    """Bytes of memory of the devices, if the beginnings of the traces tell it and all devices have the same."""
    found = {int(size) for source in sources for size in _MEMORY.findall(_head(source))}
    return found.pop() if len(found) == 1 else None


def named_rank(path: str) -> int | None:
    """The rank that a file's own surroundings tell, whatever else is there."""
    return _told(path)[0]


def rank_in_name(path: str) -> int | None:
    """The rank a file is named after: `rank3`, `rank_3`, `_r3`."""
    name = PurePath(path).name
    rank = explicit_rank(name)
    short = _SHORT.search(name)
    return int(short[1]) if rank is None and short else rank


def _told(path: str) -> Told:
    """By the list of files that `traceanalyze record` leaves, the name of the file, that of a folder around it."""
    listed = _listed(PurePath(path))
    if listed is not None:
        return listed, "run.json"
    named = rank_in_name(path)
    if named is not None:
        return named, "file name"
    found = explicit_rank(path)
    return (found, "folder") if found is not None else (None, "")


def _listed(path: PurePath) -> int | None:
    """Rank of the recording that lists this file among those it wrote."""
    folder = Path(path.parent)
    for file in sorted(file for pattern in _RUN_FILES for file in folder.glob(pattern)):
        try:
            found = read_run_list(file)
        except InputError:
            continue
        if found is not None and found.rank is not None and path.name in found.files:
            return found.rank
    return None


def _numbers(paths: Sequence[str], traces: Sequence[int | None]) -> list[int] | None:
    """Numbers at the end of the names, if they are all different and all of them are ranks of traces."""
    found = [_NUMBERED.search(PurePath(path).name) for path in paths]
    numbers = [int(match[1]) for match in found if match]
    alike = paths and len(numbers) == len(paths) == len(set(numbers))
    return numbers if alike and set(numbers) <= set(traces) else None
