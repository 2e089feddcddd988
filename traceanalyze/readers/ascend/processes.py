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


_BY_NAME = {
    "Python GC": Process.GC,
    "CANN": Process.CANN,
    "Ascend Hardware": Process.HARDWARE,
    "HCCL": Process.COMMUNICATION,
    "Communication": Process.COMMUNICATION,
    "Overlap Analysis": Process.OVERLAP,
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
_MOST_DEVICE = 30
"""Last device number of the low five bits of a process id; 31 stands for the host."""


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
    process = np.array([_process(names.get(pid)) for pid, _ in ids], np.int64)
    device = [
        _device(pid, names.get(pid, ""), only_device) if kind in _ON_DEVICE else -1
        for (pid, _), kind in zip(ids, process.tolist(), strict=True)
    ]
    titles = [threads.get(place, "") for place in ids]
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


def _process(name: str | None) -> Process:
    """A process by its name. At level 0 the CANN process has labels and threads but no name."""
    plain, _, label = (name or "").partition(" [")
    plain = plain.strip()
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    if name is not None and (not plain or plain.startswith("[")) and (plain or label).strip("[]") == "CPU":
        return Process.CANN
    return Process.COUNTERS if _COUNTERS.match(plain) else Process.HOST


def _device(pid: str, name: str, only_device: int | None) -> int:
    """Number of a device: from the label, else from the tables, else from the low bits of the process id."""
    label = _DEVICE_LABEL.search(name)
    if label:
        return int(label[1])
    if only_device is not None:
        return only_device
    low = int(pid) & 31 if pid.isdecimal() and int(pid) > 1 << 10 else 0
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


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 19 else None
