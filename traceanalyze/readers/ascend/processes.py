"""What each process and thread of a trace_view.json is: host threads, CANN, hardware streams, communication planes."""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.patterns import regex
from traceanalyze.readers.header import process_names, thread_names
from traceanalyze.readers.scan.result import Scan


class Process(IntEnum):
    """What the rows of a process are."""

    HOST = 0
    GC = 1
    CANN = 2
    HARDWARE = 3
    COMMUNICATION = 4
    OVERLAP = 5
    COUNTERS = 6
    STEPS = 7
    """The iterations that msprof of 2023 draws, and their phases: no work."""


_BY_NAME = {
    "Python GC": Process.GC,
    "CANN": Process.CANN,
    "Ascend Hardware": Process.HARDWARE,
    "HCCL": Process.COMMUNICATION,
    "Communication": Process.COMMUNICATION,
    "Overlap Analysis": Process.OVERLAP,
    "Step Trace": Process.STEPS,
    "Scope Layer": Process.COUNTERS,  # MindSpore: names of modules above their kernels, on no thread
    "traceanalyze": Process.COUNTERS,  # what this tool added: no thread of the program
}
_COUNTERS = regex(
    r"AI Core Freq|HBM|LLC|DDR|NPU[ _]MEM|Stars Soc Info|Acc PMU|QoS|PCIe|HCCS|NIC|RoCE|SIO|Biu", re.IGNORECASE
)
_DEVICE_LABEL = regex(r"NPU (\d+)")
_GROUP = regex(r"(?:Group )?(?P<group>.*?)\s*Communication")
_PROGRAMS = ("Python", "MindSpore")
"""Names of the program's own process; others of the host are parts of it that have numbers of their own."""
_PLANE = regex(r"Plane (\d+)")
_STEPS = regex(r"Step Trace\b.*")
_ITERATION = regex(r"Iteration (\d{1,18})")
_MOST_DEVICE = 30
"""Last device number of the low five bits of a process id; 31 stands for the host."""
_PLACE_IN_PID = frozenset({13, 14, 15, 16, 23, 31})
"""The five bits above those, of the device's processes; ids of 2023 have neither."""


class Places(NamedTuple):
    """What every track of a scan is; arrays over its tracks unless stated otherwise."""

    process: NDArray[np.int64]
    """`Process`"""
    device: NDArray[np.int64]
    """Device number, -1 on the host."""
    number: NDArray[np.int64]
    """The thread id as a number, -1 for any other text."""
    plane: NDArray[np.int64]
    """Number of the plane, -1 for what is none."""
    group: Mapping[int, str]
    """Tracks of group-level collectives → what the group goes by there, possibly nothing."""
    host: int | None
    """Process id of the program."""
    tracks: NDArray[np.int32]
    """Tracks of the trace: those of the scan, then host threads that only CANN shows."""
    track_map: NDArray[np.int32]
    """Track of the trace for each track of the scan: CANN's threads are those of the program."""


def places(found: Scan, only_device: int | None) -> Places:
    """Understand the processes and threads of a scan; `only_device` is the number that the tables name, if just one."""
    names, threads = process_names(found.metadata), thread_names(found.metadata)
    text = found.strings.text
    ids = [(text(pid), text(tid)) for pid, tid in found.tracks.tolist()]
    titles = [threads.get(place, "") for place in ids]
    process = np.array([_process(names.get(pid), title) for (pid, _), title in zip(ids, titles, strict=True)], np.int64)
    on_device = np.isin(process, list(_ON_DEVICE)).tolist()
    made = all(
        (_number(pid) or 0) >> 5 & 31 in _PLACE_IN_PID
        for (pid, _), on in zip(ids, on_device, strict=True)
        if on and not _DEVICE_LABEL.search(names.get(pid, ""))
    )
    device = [
        _device(pid, names.get(pid, ""), only_device, made=made) if on else -1
        for (pid, _), on in zip(ids, on_device, strict=True)
    ]
    planes = [_PLANE.fullmatch(title) for title in titles]
    group = {}
    for track, (title, plane) in enumerate(zip(titles, planes, strict=True)):
        if process[track] == Process.COMMUNICATION and plane is None:
            named = _GROUP.fullmatch(title)
            group[track] = named["group"] if named else ""
    own = np.array([(names.get(pid) or "").partition(" [")[0] in _PROGRAMS for pid, _ in ids], np.bool_)
    host = _host_code(found, process, own)
    tracks, track_map = _host_threads(found.tracks, process, host)
    return Places(
        process=process,
        device=np.array(device, np.int64),
        number=np.array([-1 if (number := _number(tid)) is None else number for _, tid in ids], np.int64),
        plane=np.array([int(plane[1]) if plane else -1 for plane in planes], np.int64),
        group=group,
        host=_number(found.strings.text(host)) if host is not None else None,
        tracks=tracks,
        track_map=track_map,
    )


_ON_DEVICE = frozenset({Process.HARDWARE, Process.COMMUNICATION, Process.OVERLAP})


def _process(name: str | None, title: str) -> Process:
    """A process by its name and the thread's. At level 0 the CANN process has labels and threads but no name."""
    plain, _, label = (name or "").partition(" [")
    plain = plain.strip()
    if plain == "Ascend Hardware" and _STEPS.fullmatch(title):
        return Process.STEPS
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    if name is not None and (not plain or plain.startswith("[")) and (plain or label).strip("[]") == "CPU":
        return Process.CANN
    return Process.COUNTERS if _COUNTERS.match(plain) else Process.HOST


def _device(pid: str, name: str, only_device: int | None, *, made: bool) -> int:
    """Number of a device: from the label, else from the tables, else from the low bits of a process id `made` so."""
    label = _DEVICE_LABEL.search(name)
    if label:
        return int(label[1])
    if only_device is not None:
        return only_device
    low = int(pid) & 31 if made else 0
    return low if low <= _MOST_DEVICE else 0


def _host_code(found: Scan, process: NDArray[np.int64], own: NDArray[np.bool_]) -> int | None:
    """String code of the program's process id: the host process with most events, if `own` by name; None without."""
    host = process == Process.HOST
    on_host = (host & own if (host & own).any() else host)[found.events.track]
    pids = found.tracks[found.events.track[on_host], 0]
    return int(np.bincount(pids).argmax()) if len(pids) else None


def _host_threads(
    tracks: NDArray[np.int32], process: NDArray[np.int64], host: int | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """CANN's threads as threads of the program: the tracks, and where each of the scan's tracks went.

    CANN writes the thread's own number as thread id, under a process id made up for it.
    """
    known = {(int(pid), int(tid)): number for number, (pid, tid) in enumerate(tracks)}
    mapped = np.arange(len(tracks), dtype=np.int32)
    for track in np.flatnonzero(process == Process.CANN).tolist() if host is not None else ():
        mapped[track] = known.setdefault((host or 0, int(tracks[track, 1])), len(known))
    return np.array(list(known), np.int32).reshape(-1, 2), mapped


def iterations(found: Scan, process: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the iterations that msprof draws, in order of time, and their numbers; none where the program has steps.

    `process` is that of each row. Of several models those of the one with most.
    """
    events, strings = found.events, found.strings
    rows = np.flatnonzero(process == Process.STEPS)
    drawn = {code: _ITERATION.fullmatch(strings.text(code)) for code in np.unique(events.name[rows]).tolist()}
    number = np.array([int(one[1]) if (one := drawn[code]) else -1 for code in events.name[rows].tolist()], np.int64)
    rows, number = rows[number >= 0], number[number >= 0]
    used = np.unique(events.name) if len(rows) else rows
    if len(rows) == 0 or any(text.startswith("ProfilerStep#") for text in strings.texts(used)):
        return rows[:0], number[:0]
    track = events.track[rows]
    kept = np.flatnonzero(track == np.bincount(track).argmax())
    kept = kept[np.argsort(events.ts[rows[kept]], kind="stable")]
    return rows[kept], number[kept]


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None
