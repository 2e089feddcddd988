"""step_trace_time.csv, communication.json and communication_matrix.json: sums as the vendor makes them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from tests.simulate.npu_kernels import GROUP_HASH
from tests.simulate.truth.vendor import step_of, vendor_steps
from tests.simulate.writers.ascend_steps import Overlap, duration, step_times
from tests.simulate.writers.ascend_tables import table

if TYPE_CHECKING:
    from tests.simulate.schedule import Task, Work
    from tests.simulate.writers.ascend_rank import Rank

_COLUMNS = (
    "Computing",
    "Communication(Not Overlapped)",
    "Overlapped",
    "Communication",
    "Free",
    "Stage",
    "Bubble",
    "Communication(Not Overlapped and Exclude Receive)",
    "Preparing",
)
_LINKS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
_PLANE = 1
"""The plane that the vendor takes the waiting time from."""
_MB = 1_000_000


def step_trace_time(rank: Rank, overlap: Overlap) -> str:
    """One row a step."""
    columns = _COLUMNS[:-1] if rank.layout.era == "2023" else _COLUMNS
    header = rank.layout.with_device(["Step", *columns], "Device_id")
    rows = [rank.layout.with_device([number, *numbers]) for number, numbers in step_times(rank, overlap)]
    return table(rank, header, rows)


def communication(rank: Rank) -> str:
    """Times and bandwidths of each collective. Waiting is that of one plane, the rest is called idle."""
    steps = vendor_steps(rank.schedule)
    found: dict[str, dict[str, Any]] = {f"step{step.number}": {"p2p": {}, "collective": {}} for step in steps}
    for work in rank.collectives:
        step = step_of(steps, work.start)
        if step is not None:
            name = f"{rank.collective_name(work)}@{GROUP_HASH}"
            found[f"step{step.number}"]["collective"][name] = {
                "Communication Time Info": _times(rank, work),
                "Communication Bandwidth Info": _bandwidths(rank, work),
            }
    return json.dumps(found)


def _times(rank: Rank, work: Work) -> dict[str, float]:
    plane = [part for part in work.tasks if part.plane == _PLANE]
    moving = sum(part.end - part.start for part in plane if part.moves) / 1e6
    waiting = sum(part.end - part.start for part in plane if part.name == "Notify_Wait") / 1e6
    whole = duration(work) / 1e6
    return {
        "Start Timestamp(us)": float(round((rank.base + work.start) / 1000, 1)),
        "Elapse Time(ms)": whole,
        "Transit Time(ms)": moving,
        "Wait Time(ms)": waiting,
        "Synchronization Time(ms)": 0.0,
        "Idle Time(ms)": whole - moving - waiting,
        "Wait Time Ratio": round(waiting / (waiting + moving), 4) if waiting + moving else 0.0,
        "Synchronization Time Ratio": 0.0,
    }


def _remote(rank: Rank, work: Work) -> list[Task]:
    return [part for part in work.tasks if part.moves and part.peer != rank.schedule.rank]


def _bandwidths(rank: Rank, work: Work) -> dict[str, Any]:
    parts = _remote(rank, work)
    size, time = sum(part.bytes for part in parts) / _MB, sum(part.end - part.start for part in parts) / 1e6
    packets: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for part in parts:
        packets[str(part.bytes / _MB)][0] += 1
        packets[str(part.bytes / _MB)][1] += (part.end - part.start) / 1e6
    none = _link(0, 0, {})
    links = {"HCCS": _link(size, time, packets), "SDMA": _link(size, time, {})}
    return {name: links.get(name, none) for name in _LINKS}


def _link(size: float, time: float, packets: dict[str, list[float]]) -> dict[str, Any]:
    rate = round(size / time, 4) if time else 0
    names = ("Transit Size(MB)", "Transit Time(ms)", "Bandwidth(GB/s)", "Large Packet Ratio", "Size Distribution")
    return dict(zip(names, (size, time, rate, 0, packets), strict=True))


def communication_matrix(rank: Rank) -> str:
    """Bytes and times between pairs of ranks."""
    steps = vendor_steps(rank.schedule)
    found: dict[str, dict[str, Any]] = {f"step{step.number}": {"p2p": {}, "collective": {}} for step in steps}
    order: Counter[int] = Counter()
    for work in rank.collectives:
        step = step_of(steps, work.start)
        if step is None:
            continue
        order[step.number] += 1
        pairs: dict[str, list[Task]] = defaultdict(list)
        for part in work.tasks:
            if part.moves:
                pairs[f"{rank.schedule.rank}-{part.peer}"].append(part)
        kind = (work.collective.type if work.collective else "").replace("_", "")
        rows = {pair: _pair(rank, work, parts) for pair, parts in pairs.items()}
        entries = found[f"step{step.number}"]["collective"]
        entries[f"{kind}-top{order[step.number]}@{GROUP_HASH}"] = rows
        _add(entries.setdefault(f"{kind}-total@{GROUP_HASH}", {}), rows)
    return json.dumps(found)


def _add(total: dict[str, Any], rows: dict[str, Any]) -> None:
    """Sums of a type, a row a pair; they name no operation."""
    for pair, row in rows.items():
        sums = total.setdefault(pair, {"Transport Type": row["Transport Type"]})
        for name in ("Transit Size(MB)", "Transit Time(ms)"):
            sums[name] = sums.get(name, 0) + row[name]
        size, time = sums["Transit Size(MB)"], sums["Transit Time(ms)"]
        sums["Bandwidth(GB/s)"] = round(size / time, 4) if time else 0


def _pair(rank: Rank, work: Work, parts: list[Task]) -> dict[str, Any]:
    size, time = sum(part.bytes for part in parts) / _MB, sum(part.end - part.start for part in parts) / 1e6
    return {
        "Transport Type": "LOCAL" if parts[0].peer == rank.schedule.rank else "HCCS",
        "Transit Size(MB)": size,
        "Transit Time(ms)": time,
        "Bandwidth(GB/s)": round(size / time, 4) if time else 0,
        "Op Name": rank.collective_name(work),
    }
