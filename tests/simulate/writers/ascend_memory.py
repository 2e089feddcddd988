"""The memory tables: blocks with their operators, the pool's totals, and what each part of the software reserves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.simulate.writers.ascend_rank import innermost
from tests.simulate.writers.ascend_tables import table

if TYPE_CHECKING:
    from tests.simulate.schedule import Memory
    from tests.simulate.writers.ascend_rank import Rank

STREAM_PTR = 897357296
GE_BYTES = 51_511_296
"""The graph engine's own pool does not change."""
MODULES = {3: "HCCL", 7: "RUNTIME", 33: "APP"}
"""Numbers that the database gives the parts of the software."""
_SIZES = ("Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)")


class Block(NamedTuple):
    """Memory from its allocation to its release, None when that was not recorded."""

    name: str
    allocated: Memory
    released: Memory | None


def blocks(rank: Rank) -> list[Block]:
    """Blocks allocated while recording, in the order of time."""
    records = rank.schedule.memory
    released = {record.address: record for record in records if record.bytes < 0}
    found = []
    for record in records:
        if record.bytes > 0:
            op = innermost(rank.schedule.ops, record.thread, record.time)
            found.append(Block(op.name if op else "", record, released.get(record.address)))
    return found


def mb(size: int) -> float:
    """Mebibytes, as the tables write them."""
    return size / 2**20


def operator_memory(rank: Rank) -> str:
    """One row a block."""
    layout = rank.layout
    old = layout.era == "2023"
    rows = []
    for name, taken, given in blocks(rank):
        begin, end = layout.csv_time(rank.us(taken.time)), layout.csv_time(rank.us(given.time)) if given else ""
        length = layout.csv_time(f"{(given.time - taken.time) / 1000:.3f}") if given else ""
        first = [mb(taken.allocated), mb(taken.reserved)]
        last: list[Any] = [mb(given.allocated), mb(given.reserved)] if given else ["", ""]
        row = [name, taken.bytes / 1024, begin, end]
        device = f"NPU:{layout.device}"
        if old:
            rows.append([*row, length, *first, *last, device])
        else:
            times = [end, length, length]
            rows.append([*row, *times, *first, first[0], *last, last[0], STREAM_PTR, device])
    return table(rank, _columns(old=old), rows)


def _columns(*, old: bool) -> list[str]:
    header = ["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)"]
    sizes = _SIZES[:2] if old else _SIZES
    totals = [f"{when} {size}" for when in ("Allocation", "Release") for size in sizes]
    if old:
        return [*header, "Duration(us)", *totals, "Device Type"]
    return [
        *header,
        "Active Release Time(us)",
        "Duration(us)",
        "Active Duration(us)",
        *totals,
        "Stream Ptr",
        "Device Type",
    ]


def totals(rank: Rank) -> list[tuple[str, int, int | None, int]]:
    """Component, time, allocated and reserved bytes, in the order of time."""
    found: list[tuple[str, int, int | None, int]] = []
    begin, end = rank.schedule.begin, max(call.end for call in rank.schedule.calls)
    found += [("APP", time, None, 2_212_077_568) for time in range(begin - 100_000_000, end, 20_000_000)]
    for record in rank.schedule.memory:
        found.append(("PTA", record.time, record.allocated, record.reserved))
        found.append(("PTA+GE", record.time, record.allocated + GE_BYTES, record.reserved + GE_BYTES))
    found.append(("GE", begin, GE_BYTES, GE_BYTES))
    return sorted(found, key=lambda row: row[1])


def memory_record(rank: Rank) -> str:
    """Totals after each change; the whole process has its own."""
    layout = rank.layout
    old = layout.era == "2023"
    rows = []
    for component, time, allocated, reserved in totals(rank):
        size = "" if allocated is None else mb(allocated)
        active = [size if component.startswith("PTA") else "", STREAM_PTR if component == "PTA" else ""]
        row = [component, layout.csv_time(rank.us(time)), size, mb(reserved)]
        rows.append([*row, *(() if old else active), f"NPU:{layout.device}"])
    more = () if old else ("Total Active(MB)", "Stream Ptr")
    return table(rank, ["Component", "Timestamp(us)", *_SIZES[:2], *more, "Device Type"], rows)


def module_samples(rank: Rank) -> list[tuple[str, int, int]]:
    """Part of the software, time and bytes that it reserves; here `APP` is the framework's pool."""
    reserved = rank.schedule.memory[-1].reserved if rank.schedule.memory else 0
    return [
        (module, rank.schedule.begin + 20_000_000 * sample, size)
        for sample in range(3)
        for module, size in (("HCCL", 423_690_240), ("RUNTIME", 13_107_200), ("APP", reserved))
    ]


def npu_module_mem(rank: Rank) -> str:
    """The samples as a table."""
    rows = []
    for module, at, size in module_samples(rank):
        time = rank.layout.csv_time(rank.us(at))
        rows.append(rank.layout.with_device([module, time, mb(size), f"NPU:{rank.layout.device}"]))
    header = ["Component", "Timestamp(us)", "Total Reserved(MB)", "Device"]
    return table(rank, rank.layout.with_device(header, "Device_id"), rows)
