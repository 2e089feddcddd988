"""Memory post-mortems: snapshots, and what traces say about the allocator."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze import __version__
from traceanalyze.analyses.allocator.analyze import analyze_snapshot
from traceanalyze.analyses.allocator.difference import difference
from traceanalyze.api import reports
from traceanalyze.api.choices import Choices
from traceanalyze.api.gather import told
from traceanalyze.errors import InputError, UsageError
from traceanalyze.readers.memory_stats import statistics_beside
from traceanalyze.readers.memory_timeline import read_memory_timeline
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.snapshot.find import candidates, is_snapshot, is_timeline, snapshots_of
from traceanalyze.report.build.allocator import build_difference_report, build_memory_report
from traceanalyze.report.build.allocator.of_trace import memory_view
from traceanalyze.report.build.allocator.timeline import build_timeline_report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.api.gather import ReadProgress
    from traceanalyze.model.snapshot import Snapshot
    from traceanalyze.report.model import Report

    Path = str | os.PathLike[str]

__all__ = ["are_snapshots", "hold_snapshots", "memory", "memory_difference", "memory_reports"]

_CAPACITY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?B?|B)?", re.IGNORECASE)
_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def memory(path: Path, *, capacity: int | str | None = None) -> Report:
    """What an allocator snapshot, an exported memory timeline or a trace tells about memory.

    Args:
        path: The file, or a folder with one.
        capacity: Memory of the device: bytes, or text such as `80GiB`.

    Raises:
        InputError: It cannot be used.
        UsageError: The folder holds several; `memory_reports` takes them all.
    """
    found = memory_reports([os.fspath(path)], capacity=capacity)
    if len(found) > 1:
        raise UsageError(f"{os.fspath(path)}: holds {len(found)} snapshots or runs; name one of them")
    return found[0]


def memory_reports(
    paths: Sequence[str], *, capacity: int | str | None = None, progress: ReadProgress | None = None
) -> tuple[Report, ...]:
    """A report for every snapshot and memory timeline under the paths, and for traces where there is neither."""
    room = parse_capacity(capacity)
    return tuple(report for path in paths for report in _reports(path, room, progress))


def _reports(path: str, room: int | None, progress: ReadProgress | None) -> Iterator[Report]:
    """Snapshots and timelines of a path; where there is neither, what its traces say."""
    found = 0
    for source in candidates(path):
        tell = told(progress, source)
        if is_snapshot(source):
            snapshot = _not_empty(read_snapshot(source, tell))
            snapshot = replace(snapshot, statistics=statistics_beside(source.path))
            yield build_memory_report(snapshot, analyze_snapshot(snapshot, room), version=__version__)
        elif is_timeline(source):
            yield build_timeline_report(read_memory_timeline(source, tell), version=__version__)
        else:
            continue
        found += 1
    if not found:
        yield from map(memory_view, reports([path], Choices(), progress=progress))


def memory_difference(base: Path, candidate: Path, *, progress: ReadProgress | None = None) -> Report:
    """What two snapshots hold at their peaks, by source line."""
    sides = []
    for path in (base, candidate):
        found = snapshots_of(os.fspath(path))
        if len(found) != 1:
            raise UsageError(f"{path}: holds {len(found)} snapshots; two snapshots are compared, name one file each")
        snapshot = _not_empty(read_snapshot(found[0], told(progress, found[0])))
        sides.append((snapshot, analyze_snapshot(snapshot)))
    (first, before), (second, after) = sides
    return build_difference_report(first, second, difference(before, after), version=__version__)


def hold_snapshots(paths: Sequence[str]) -> bool:
    """Whether every path is a snapshot or a folder with one."""
    return bool(paths) and all(snapshots_of(path) for path in paths)


def are_snapshots(paths: Sequence[str]) -> bool:
    """Whether every path is a snapshot file."""
    return bool(paths) and all(os.path.isfile(path) and snapshots_of(path) for path in paths)  # noqa: PTH113  texts


def _not_empty(snapshot: Snapshot) -> Snapshot:
    if not snapshot.devices:
        raise InputError(f"{snapshot.path}: the snapshot is empty: no device had memory, nothing was recorded")
    return snapshot


def parse_capacity(text: int | str | None) -> int | None:
    """Bytes; units are binary, as devices count: `80GB` and `80GiB` are the same."""
    if text is None or isinstance(text, int):
        return text
    found = _CAPACITY.fullmatch(text.strip())
    if not found:
        raise UsageError(f"--capacity {text}: write a number and a unit, such as 80GiB")
    unit = (found["unit"] or "").upper()[:1]
    return int(float(found["number"]) * 1024 ** _POWERS[unit])
