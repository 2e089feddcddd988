"""The tables of an Ascend export that list kernels, calls and operators."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from statistics import pvariance
from typing import TYPE_CHECKING, Any

from tests.simulate.truth.vendor import step_of, vendor_steps
from tests.simulate.writers.ascend_host import dims, user_ranges
from tests.simulate.writers.ascend_layouts import NONE
from tests.simulate.writers.ascend_rank import STREAMS, is_cann, kernel_of
from tests.simulate.writers.ascend_steps import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tests.simulate.model import Argument
    from tests.simulate.schedule import OpCall, Work
    from tests.simulate.truth.vendor import VendorStep
    from tests.simulate.writers.ascend_rank import Rank

_LEVEL0 = ("Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)", "Block Dim")
_STATE = ("OP State",)
_HF32 = ("HF32 Eligible",)
_SHAPES = ("Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats")
_AIC = ("mac", "scalar", "mte1", "mte2", "fixpipe")
_AIV = ("vec", "scalar", "mte2", "mte3")
_PMU = (
    *("aicore_time(us)", "aic_total_cycles"),
    *(f"aic_{unit}_{kind}" for unit in _AIC for kind in ("time(us)", "ratio")),
    *("aic_icache_miss_rate", "aiv_time(us)", "aiv_total_cycles"),
    *(f"aiv_{unit}_{kind}" for unit in _AIV for kind in ("time(us)", "ratio")),
    *("aiv_icache_miss_rate", "cube_utilization(%)"),
)
_NOT_SIMULATED = dict.fromkeys((name for name in _PMU if name.startswith(("aic_", "aiv_"))), "0.0")
_DTYPES = {"c10::BFloat16": "DT_BF16", "float": "FLOAT", "long int": "INT64"}
_AT_NONE = "N/A"
CORES, _GHZ = 24, 1.8
"""Cube cores of an Ascend 910B2, and their clock."""
_CUBE = {"AI_CORE", "MIX_AIC"}


def table(rank: Rank, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n" if rank.layout.crlf else "\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def us(ns: int) -> str:
    """A duration as the tables write it."""
    return f"{ns / 1000:.3f}"


def kernel_details(rank: Rank) -> str:
    """One row a kernel and a collective. `Wait Time` is the gap before it, whatever stream was busy."""
    layout, steps = rank.layout, vendor_steps(rank.schedule)
    if not layout.level:
        header = ["Step Id", *_LEVEL0]
    else:
        blocks = ("Block Num", "Mix Block Num") if layout.era == "2026" else ("Block Dim", "Mix Block Dim")
        old = layout.era == "2023"
        ids, times = ("Model ID", "Task ID", "Stream ID", "Name", "Type"), ("Start Time(us)", "Duration(us)")
        columns = [*ids, *(() if old else _STATE), "Accelerator Core", *times, "Wait Time(us)", *blocks]
        header = layout.columns("Step Id", *columns, *(() if old else _HF32), *_SHAPES, "Context ID", *_PMU)
    rows, free = [], None
    for work in rank.rows:
        wait = 0 if free is None else max(0, work.start - free)
        free = work.end
        values = _kernel(rank, work, wait, steps)
        rows.append([values.get(column, _AT_NONE) for column in header])
    return table(rank, header, rows)


def _kernel(rank: Rank, work: Work, wait: int, steps: list[VendorStep]) -> dict[str, Any]:
    layout, step = rank.layout, step_of(steps, work.start)
    times = {"Start Time(us)": layout.csv_time(rank.us(work.start)), "Duration(us)": us(duration(work))}
    row = {"Step Id": step.number if step else "", "Wait Time(us)": us(wait), "Device_id": layout.device, **times}
    row |= {"Model ID": NONE, "Stream ID": STREAMS[work.stream], "Task ID": rank.task_numbers[id(work)]}
    if work.kind == "comm":
        name = rank.collective_name(work)
        row |= {"Name": name, "Type": name.split("__")[0] + "_", "Accelerator Core": layout.comm_core, "Block Dim": 0}
        row |= {"Block Num": 0, "Stream ID": _AT_NONE, "Task ID": _AT_NONE}
    else:
        kernel = kernel_of(work)
        row |= {"Name": work.name, "Type": kernel.type, "OP State": "dynamic", "Accelerator Core": kernel.core}
        blocks = blocks_of(work)
        row |= {"Block Dim": blocks, "Block Num": blocks, "HF32 Eligible": "NO"}
        row |= {"Mix Block Dim": 0, "Mix Block Num": 0, **kernel_shapes(rank, work), **_counters(work)}
    if not layout.level:
        row |= {"Type": _AT_NONE}
        row["Accelerator Core"] = layout.comm_core if work.kind == "comm" else _AT_NONE
    return row


def kernel_shapes(rank: Rank, work: Work) -> dict[str, str]:
    """Shapes and types of a kernel: those of the operator around its own; an empty item for plain values."""
    given = _inputs(work.op) if rank.layout.level else ()
    shapes = ";".join(dims(each) for each in given)
    types = ";".join(_DTYPES.get(getattr(each, "dtype", ""), "") for each in given)
    quoted = f'"{shapes}"' if given else _AT_NONE
    formats = ";".join("ND" for _ in given) or _AT_NONE
    names = ("Input Shapes", "Input Data Types", "Input Formats")
    return dict(zip(names, (quoted, types or _AT_NONE, formats), strict=True))


def _inputs(op: OpCall | None) -> tuple[Argument, ...]:
    while op is not None and not op.inputs:
        op = op.parent
    return op.inputs if op else ()


def pmu(work: Work) -> dict[str, int]:
    """Times that the cores counted, ns: matrix units for cube kernels, vector units for the rest."""
    length, core = duration(work), kernel_of(work).core
    cube, vector = core in _CUBE, core in {"AI_VECTOR_CORE", "MIX_AIV", "MIX_AIC"}
    return {
        "aic_total_time": length * 98 // 100 if cube else 0,
        "aic_mac_time": length * 60 // 100 if cube else 0,
        "aiv_total_time": length * 97 // 100 if vector else 0,
        "aiv_vec_time": length * 40 // 100 if vector else 0,
    }


def blocks_of(work: Work) -> int:
    """Blocks of a kernel: as many at most as there are cores of its kind, two vector cores to each cube core."""
    return min(work.blocks, CORES if kernel_of(work).core in _CUBE else 2 * CORES)


def cycles_of(work: Work) -> dict[str, int]:
    """Cycles of all blocks; times are those of one."""
    return {
        f"{core}_total_cycles": round(pmu(work)[f"{core}_total_time"] * blocks_of(work) * _GHZ)
        for core in ("aic", "aiv")
    }


def _counters(work: Work) -> dict[str, Any]:
    times, cycles, length = pmu(work), cycles_of(work), max(1, duration(work))
    return _NOT_SIMULATED | {
        "aicore_time(us)": us(times["aic_total_time"]),
        "aic_total_cycles": cycles["aic_total_cycles"],
        "aic_mac_time(us)": us(times["aic_mac_time"]),
        "aic_mac_ratio": round(times["aic_mac_time"] / length, 3),
        "aiv_time(us)": us(times["aiv_total_time"]),
        "aiv_total_cycles": cycles["aiv_total_cycles"],
        "aiv_vec_time(us)": us(times["aiv_vec_time"]),
        "aiv_vec_ratio": round(times["aiv_vec_time"] / length, 3),
        "cube_utilization(%)": round(100 * cycles["aic_total_cycles"] / (length * CORES * _GHZ), 3),
    }


def op_summary(rank: Rank, steps: list[VendorStep], step: VendorStep) -> str:
    """The kernels of a step as msprof lists them."""
    header = ("Task ID", "Stream ID", "Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(us)")
    works = [work for work in rank.rows if work.kind == "compute" and step_of(steps, work.start) is step]
    known = ((work, kernel_of(work), rank.task_numbers[id(work)]) for work in works)
    return table(
        rank,
        header,
        (
            (task, STREAMS[work.stream], work.name, kernel.type, kernel.core, rank.us(work.start), us(duration(work)))
            for work, kernel, task in known
        ),
    )


def op_statistic(rank: Rank) -> str:
    """Kernels by type and core."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for work in rank.rows:
        if work.kind != "comm":
            kernel = kernel_of(work)
            groups[kernel.type, kernel.core].append(duration(work))
    whole = sum(sum(times) for times in groups.values()) or 1
    rows = [
        rank.layout.with_device([*key, len(each), *_spread(each), round(100 * sum(each) / whole, 3)])
        for key, each in sorted(groups.items(), key=lambda item: -sum(item[1]))
    ]
    columns = ("OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)")
    return table(rank, rank.layout.with_device([*columns, "Ratio(%)"], "Device_id"), rows)


def _spread(times: list[int]) -> tuple[float, float, float, float]:
    return sum(times) / 1000, min(times) / 1000, round(sum(times) / len(times) / 1000, 3), max(times) / 1000


def api_statistic(rank: Rank) -> str:
    """CANN calls by name."""
    levels = {"AscendCL": "acl", "Node": "node", "Hccl": rank.layout.comm_api[:-1].lower()}
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for call in rank.schedule.calls:
        if is_cann(call):
            group, name = call.name.split("@")
            groups[levels[group], name].append(call.end - call.start)
    rows = []
    for key, each in groups.items():
        total, least, mean, most = _spread(each)
        variance = round(pvariance([time / 1000 for time in each]), 3)
        rows.append(rank.layout.with_device([*key, total, len(each), mean, least, most, variance], "host"))
    columns = ("Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance")
    return table(rank, rank.layout.with_device(columns, "Device_id"), rows)


def operator_details(rank: Rank) -> str:
    """One row a call of an operator."""
    children: dict[int, int] = defaultdict(int)
    device: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for op in rank.schedule.ops:
        if op.parent is not None:
            children[id(op.parent)] += op.end - op.start
    for works in rank.launched.values():
        for work in works:
            cube = duration(work) if work.kind == "compute" and kernel_of(work).core == "AI_CORE" else 0
            for around in _around(work.op):
                device[id(around)][0] += duration(work)
                device[id(around)][1] += cube
    rows = []
    for op in user_ranges(rank):
        own = rank.launched.get(id(op), [])
        self_time = sum(duration(work) for work in own)
        cube = sum(duration(work) for work in own if work.kind == "compute" and kernel_of(work).core == "AI_CORE")
        shapes = ";\n".join(dims(each) for each in getattr(op, "inputs", ())) if rank.layout.shapes else ""
        stack = ";\n".join(getattr(op, "frames", ()))
        total, cubes = device[id(op)]
        host = op.end - op.start
        times = [host - children[id(op)], host, self_time, total, cube, cubes]
        rows.append([op.name, shapes, stack, *(time / 1000 for time in times)])
    part = [f"{kind}(us)" for kind in ("Host Self Duration", "Host Total Duration")]
    part += [f"Device {kind} Duration{core}(us)" for core in ("", " With AICore") for kind in ("Self", "Total")]
    return table(rank, ["Name", "Input Shapes", "Call Stack", *part], rows)


def _around(op: OpCall | None) -> Iterator[OpCall]:
    while op is not None:
        yield op
        op = op.parent
