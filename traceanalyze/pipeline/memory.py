"""Memory post-mortems: snapshots, and what traces say about the allocator."""

import json
import os
import pathlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from traceanalyze.analyses.memory.allocator import difference
from traceanalyze.analyses.memory.device import Device, Patterns
from traceanalyze.analyses.memory.sites import sites
from traceanalyze.analyses.memory.whatif import Asked, answers
from traceanalyze.errors import InputError, Phrase, UsageError, listed
from traceanalyze.model.patterns import regex
from traceanalyze.pipeline import memory_files, reports
from traceanalyze.pipeline.choices import Choices, path_text, path_texts
from traceanalyze.pipeline.gather import ReadProgress, progress_of
from traceanalyze.pipeline.run_report import run_reports
from traceanalyze.readers.memory_sources import holds_memory_file, snapshots_of, stranger
from traceanalyze.readers.remote import is_remote
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import not_found
from traceanalyze.report.contents.snapshot import difference_report, memory_view, whatif_report
from traceanalyze.report.model import Report, remark

Path = str | os.PathLike[str]

__all__ = ["are_snapshots", "hold_memory_files", "memory", "memory_difference", "memory_reports"]

_CAPACITY = regex(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?B?|B)?", re.IGNORECASE)
_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def memory(
    path: Path | Sequence[Path],
    *,
    base: Path | None = None,
    capacity: int | str | None = None,
    categories: str | Sequence[str] = (),
    custom_profile: str = "",
    language: str = "en",
) -> Report:
    """What an allocator snapshot, an exported memory timeline or a trace tells about memory.

    Args:
        path: The file, or a folder with one; with the traces of the run if there are any.
        base: A snapshot to compare it with, by source line at the peaks.
        capacity: Memory of the device: bytes, or text such as `80GiB`.
        categories: `NAME=class` for event categories of traces that the tool does not know.
        custom_profile: Categories of blocks of your own: a JSON object of names and regular expressions, or a file
            with one.
        language: Of verdict and tables: en or zh.

    Raises:
        InputError: It cannot be used.
        UsageError: The folder holds several; `memory_reports` takes them all.
    """
    paths = path_texts(path)
    if base is not None:
        if len(paths) > 1:
            raise UsageError("base: give one snapshot to compare with it")
        return memory_difference(base, paths[0], custom_profile=custom_profile).in_language(language)
    found = memory_reports(
        paths, capacity=capacity, choices=Choices(categories=categories), custom_profile=custom_profile
    )
    if len(found) > 1:
        raise UsageError("{path}: holds {count} snapshots or runs; name one of them", ", ".join(paths), len(found))
    return found[0].in_language(language)


def memory_reports(
    paths: Sequence[str],
    *,
    capacity: int | str | None = None,
    choices: Choices | None = None,
    custom_profile: str = "",
    progress: ReadProgress | None = None,
) -> tuple[Report, ...]:
    """A report for every snapshot and memory timeline under the paths, and for traces of paths with neither.

    A snapshot and a trace of the same rank are read together: see the table `memory_in_trace`.
    """
    choices = choices or Choices()
    room = parse_capacity(capacity) or memory_files.expected_capacity(paths)
    ranks, patterns = memory_files.expected_ranks(paths), block_patterns(custom_profile)
    files, notes = memory_files.memory_files(paths, ranks, capacity=room, patterns=patterns, progress=progress)
    if not files:
        return tuple(report for path in paths for report in _views(path, choices, notes, progress))
    allocators = memory_files.allocators_of_traces(files, paths)
    traces = memory_files.trace_paths(paths)
    views: tuple[Report, ...] = ()
    if traces:
        try:
            views, results = run_reports(
                traces, choices, progress=progress, allocators=allocators, known={file.path for file in files}
            )
            files = memory_files.placed_files(files, tuple(results.values()), allocators)
        except InputError as error:
            notes = (*notes, Phrase("left out: {error}", error))
    named = tuple(path for path in traces if not holds_memory_file(path))
    shown = [
        memory_view(one, beside_snapshot=True)
        for one in views
        if any(rank.path.startswith(named) for rank in one.ranks)
    ]
    first, *others = (*(file.report for file in files), *shown)
    remarks = tuple(map(remark, notes))
    if not shown:
        # What became of traces that could not be used is said with their reports, which are not shown.
        remarks = (*remarks, *(note for one in views for note in one.note_messages if note.key == "run_note"))
    return replace(first, note_messages=(*first.note_messages, *remarks)), *others


def _views(path: str, choices: Choices, notes: Sequence[Phrase], progress: ReadProgress | None) -> tuple[Report, ...]:
    """What the traces of a path say about memory."""
    try:
        return tuple(map(memory_view, reports([path], choices, progress=progress)))
    except InputError as error:
        # What a snapshot lacks is what the user wants to know, not that it is no trace.
        fault = next((note for note in notes if note.startswith(f"left out: {path}")), None)
        raise (InputError("{error}", fault.values["error"]) if fault else stranger(path) or error) from None


def memory_difference(
    base: Path, candidate: Path, *, custom_profile: str = "", progress: ReadProgress | None = None
) -> Report:
    """What two snapshots hold at their peaks, by source line."""
    sides, patterns = [], block_patterns(custom_profile)
    for path in (base, candidate):
        found = snapshots_of(path_text(path))
        if not is_remote(path_text(path)) and not (place := pathlib.Path(path)).exists():
            raise not_found(place)
        if len(found) != 1:
            raise UsageError(
                "{path}: holds {count} snapshots; two snapshots are compared, name one file each", path, len(found)
            )
        snapshot = memory_files.not_empty(read_snapshot(found[0], progress_of(progress, found[0])))
        known = sites(snapshot.stacks)
        sides.append((snapshot, [Device(snapshot, each, known, patterns=patterns) for each in snapshot.devices]))
    (first, before), (second, after) = sides
    return difference_report(first, second, *difference(before, after))


def hold_memory_files(paths: Sequence[str]) -> bool:
    """Whether every path is a snapshot or a memory timeline, or a folder with one."""
    return bool(paths) and all(map(holds_memory_file, paths))


def are_snapshots(paths: Sequence[str]) -> bool:
    """Whether every path is a snapshot file, or an archive with one."""
    return bool(paths) and all(os.path.isfile(path) and len(snapshots_of(path)) == 1 for path in paths)  # noqa: PTH113  texts


_SETTING = regex(r"(?P<key>\w+):(?P<value>\[[^\]]*\]|[^,\[\]]+)(?:,|$)")
_FRACTION = "per_process_memory_fraction"
_SIZES = {"max_split_size_mb": "max_split", "max_non_split_rounding_mb": "oversize"}
"""More than 20 MiB, or the allocator refuses them."""
_PARTS = {"garbage_collection_threshold": "collect", _FRACTION: _FRACTION}
Number = TypeVar("Number", int, float)
_INTERVALS = 16
"""Sizes whose rounding can be set, from 1 MiB on, each twice the one before."""


def alloc_conf(text: str) -> dict[str, Any]:
    """What a value of PYTORCH_ALLOC_CONF sets, by the names of `Rules`; the memory fraction by its own."""
    settings = text.replace(" ", "")
    found = [*_SETTING.finditer(settings)]
    if not found or sum(len(one[0]) for one in found) != len(settings):
        raise UsageError("--alloc-conf {text}: write it as PYTORCH_ALLOC_CONF, such as {example}", text, _EXAMPLE)
    return dict(_setting(one["key"], one["value"]) for one in found)


_EXAMPLE = "expandable_segments:True"


def _setting(key: str, value: str) -> tuple[str, Any]:
    try:
        if key == "expandable_segments":
            return "expandable", {"true": True, "false": False}[value.lower()]
        if key in _SIZES:
            return _SIZES[key], _among(int(value), 21, 1 << 20) << 20
        if key in _PARTS:
            return _PARTS[key], _among(float(value), 0, 1)
        if key == "roundup_power2_divisions":
            return "divisions", _divisions(value)
    except (KeyError, ValueError):
        raise UsageError("--alloc-conf {key}:{value}: this setting has no such value", key, value) from None
    known = "expandable_segments", *_SIZES, "roundup_power2_divisions", *_PARTS
    raise UsageError("--alloc-conf {key}: the settings that can be replayed are {known}", key, listed(known))


def _among(value: Number, least: float, most: float) -> Number:
    """The value, where the allocator itself takes it."""
    if not least <= value <= most:
        raise ValueError
    return value


def _parts(text: str) -> int:
    """Into how many parts a power of 2 is divided: another one, or 0."""
    number = _among(int(text), 0, 1 << 20)
    return _among(number, 0, number & -number)


def _divisions(value: str) -> tuple[int, ...]:
    """`4`, or `[256:1,512:2,>:4]`: by sizes in MiB, `>` for all above."""
    if not value.startswith("["):
        return (_parts(value),) * _INTERVALS
    found, last = [0] * _INTERVALS, 0
    for at, (size, parts) in enumerate(one.split(":") for one in value[1:-1].split(",")):
        index = last + 1 if size == ">" else min(int(size).bit_length() - 1, _INTERVALS - 1)
        first, end = (index, _INTERVALS) if size == ">" else (0 if at == 0 else index, index + 1)
        found[first:end] = [_parts(parts)] * (end - first)
        last = index
    return tuple(found)


def memory_whatif_reports(
    paths: Sequence[str],
    *,
    alloc_confs: Sequence[str] = (),
    capacity: int | str | None = None,
    empties: bool = True,
    progress: ReadProgress | None = None,
) -> tuple[Report, ...]:
    """What the allocator of every snapshot under the paths would do with other settings, or on another device.

    Each of `alloc_confs` is a question of its own. `capacity`, in bytes or as `40GiB`, is what the process may take
    from the device. `empties`: calls of empty_cache stay.
    """
    settings, notes, room = [], set[Phrase](), parse_capacity(capacity)
    for text in alloc_confs:
        changed = alloc_conf(text)
        own = changed.pop(_FRACTION, None)
        if own is not None and room is None:
            raise UsageError("--alloc-conf {key}: of which device? say --capacity, too", _FRACTION)
        if "collect" in changed and own is None:
            # As the allocator itself: without a fraction it never collects.
            del changed["collect"]
            notes.add(Phrase("garbage_collection_threshold has no effect without {key}", _FRACTION))
        settings.append((text, changed, 1.0 if own is None else own))
    asked = Asked(tuple(settings), room, empties)
    reports = []
    for source in (one for path in paths for one in snapshots_of(path)):
        snapshot = memory_files.not_empty(read_snapshot(source, progress_of(progress, source)))
        known = sites(snapshot.stacks)
        devices = [Device(snapshot, each, known, room) for each in snapshot.devices]
        found = whatif_report(snapshot, [(each, answers(each, asked)) for each in devices])
        reports.append(replace(found, note_messages=(*found.note_messages, *map(remark, notes))))
    return tuple(reports)


def block_patterns(text: str) -> Patterns:
    """Names of categories and what their stacks hold: a JSON object, or a file with one, as mosaic's."""
    if not text:
        return {}
    try:
        inline = text.lstrip().startswith("{")
        found = json.loads(text if inline else pathlib.Path(text).read_text(encoding="utf-8-sig"))
        return {name: re.compile(pattern) for name, pattern in found.items()}
    except (OSError, ValueError, AttributeError, TypeError, OverflowError, RecursionError, re.error) as error:
        advice = Phrase("write a JSON object of names and regular expressions, such as {example}", _PROFILE)
        raise UsageError("--custom-profile {text}: {error}; {advice}", text, error, advice) from None


_PROFILE = '{"experts": "moe\\.py"}'


def parse_capacity(text: int | str | None) -> int | None:
    """Bytes; units are binary, as devices count: `80GB` and `80GiB` are the same."""
    if text is None or isinstance(text, int):
        return text
    found = _CAPACITY.fullmatch(text.strip())
    if not found:
        raise UsageError("--capacity {text}: write a number and a unit, such as 80GiB", text)
    unit = (found["unit"] or "").upper()[:1]
    return int(float(found["number"]) * 1024 ** _POWERS[unit])
