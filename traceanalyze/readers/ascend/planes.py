"""Collectives of a trace_view.json: operations on the group threads, and their tasks on the planes below each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.readers.ascend.collective_names import collective_fields
from traceanalyze.readers.ascend.processes import Process
from traceanalyze.readers.ascend.shared import ABSENT, NONE_32

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.readers.ascend.info import About
    from traceanalyze.readers.ascend.processes import Places
    from traceanalyze.readers.ascend.shared import Columns, Texts
    from traceanalyze.readers.scan import Scan

FIRST_STREAM = -1000
"""Stream of the first group thread; each further one is one less, so that they share none with hardware streams."""
_SLACK_NS = 2
"""How far a task may begin outside its operation: both are rounded to ns by themselves."""


def operations(found: Scan, place: Places) -> NDArray[np.int64]:
    """Rows of group-level collectives: on a communication process, on no plane."""
    track = found.events.track
    here = place.process[track] == Process.COMMUNICATION
    return np.flatnonzero(here & (place.plane[track] < 0))


def tasks(found: Scan, place: Places) -> NDArray[np.int64]:
    """Rows of the tasks that collectives consist of."""
    return np.flatnonzero(place.plane[found.events.track] >= 0)


def put_operations(found: Scan, place: Places, texts: Texts, about: About, columns: Columns) -> None:
    """Fill in what is known of each group-level collective."""
    rows = operations(found, place)
    if len(rows) == 0:
        return
    track = found.events.track[rows]
    streams = {one: FIRST_STREAM - index for index, one in enumerate(sorted(place.group))}
    columns.put("stream", rows, np.array([streams[one] for one in track.tolist()], np.int64))
    text = found.strings.text
    dtype = taken(found, "data_type", rows, -1)
    described = collective_fields(
        texts,
        about,
        names=[text(code) for code in found.events.name[rows].tolist()],
        groups=[place.group[one] for one in track.tolist()],
        dtypes=[text(code) if code >= 0 else None for code in dtype.tolist()],
        count=taken(found, "count", rows),
        ranks=taken(found, "rank_size", rows),
    )
    for name, values in described.items():
        columns.put(name, rows, values)
    columns.put("algorithm", rows, taken(found, "algorithm", rows, -1))


def put_tasks(found: Scan, place: Places, columns: Columns) -> None:
    """Fill in what is known of each task, and which collective it is part of."""
    rows = tasks(found, place)
    if len(rows) == 0:
        return
    columns.put("part_of", rows, _owners(found, place, rows))
    columns.put("plane", rows, place.plane[found.events.track[rows]])
    columns.put("stream", rows, taken(found, "task_stream", rows))
    columns.put("bytes", rows, taken(found, "task_bytes", rows))
    for name in ("src_rank", "dst_rank"):
        rank = taken(found, name, rows)
        columns.put(name, rows, np.where(rank == NONE_32, ABSENT, rank))
    for name, source in (("link_type", "link_type"), ("transport", "transport")):
        columns.put(name, rows, taken(found, source, rows, -1))


def _owners(found: Scan, place: Places, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the collective that each task is part of: of the nearest group thread below the plane's thread number."""
    events = found.events
    ops = operations(found, place)
    pid = found.tracks[:, 0]
    owner_track = np.full(len(place.process), -1, np.int64)
    heads = sorted(place.group, key=lambda one: (int(pid[one]), int(place.number[one])))
    for one in np.flatnonzero(place.plane >= 0).tolist():
        below = [head for head in heads if pid[head] == pid[one] and place.number[head] < place.number[one]]
        owner_track[one] = below[-1] if below else -1
    owner = np.full(len(rows), ABSENT, np.int64)
    of_task = owner_track[events.track[rows]]
    for head in heads:
        mine = ops[events.track[ops] == head]
        mine = mine[np.argsort(events.ts[mine], kind="stable")]
        here = np.flatnonzero(of_task == head)
        if len(mine) == 0 or len(here) == 0:
            continue
        start = events.ts[rows[here]]
        at = np.searchsorted(events.ts[mine], start + _SLACK_NS, "right") - 1
        op = mine[np.maximum(at, 0)]
        inside = (at >= 0) & (start <= events.ts[op] + events.dur[op] + _SLACK_NS)
        owner[here[inside]] = op[inside]
    return owner


def taken(found: Scan, name: str, rows: NDArray[np.int64], missing: int = ABSENT) -> NDArray[np.int64]:
    """A scanned argument of some rows."""
    return found.events.fields[name].take(rows, missing)
