"""A schedule as an Ascend directory: text tables and timeline, or the databases, of one rank."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.simulate.recorded import as_recorded
from tests.simulate.truth.vendor import vendor_steps
from tests.simulate.writers.ascend_comm import communication, communication_matrix, step_trace_time
from tests.simulate.writers.ascend_db import write_analysis, write_profiler
from tests.simulate.writers.ascend_layouts import AscendLayout
from tests.simulate.writers.ascend_memory import memory_record, npu_module_mem, operator_memory
from tests.simulate.writers.ascend_rank import Rank
from tests.simulate.writers.ascend_steps import Overlap
from tests.simulate.writers.ascend_tables import (
    api_statistic,
    kernel_details,
    op_statistic,
    op_summary,
    operator_details,
)
from tests.simulate.writers.ascend_timeline import iteration, trace_view

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.simulate.schedule import Schedule

OUTPUT = "ASCEND_PROFILER_OUTPUT"


def write_ascend(folder: Path, schedule: Schedule, layout: AscendLayout | None = None, form: str = "text") -> Path:
    """Write the directory of one rank.

    Args:
        folder: where the directory is made.
        schedule: of an NPU workload.
        layout: how it is written.
        form: `text`, `db` or `both`.

    Returns:
        The directory, `rank<r>_ascend_pt`.
    """
    schedule = as_recorded(schedule)
    rank = Rank(schedule, layout or AscendLayout())
    home = folder / f"rank{schedule.rank}_ascend_pt"
    output = home / OUTPUT
    output.mkdir(parents=True)
    suffix = f"_{schedule.rank}" if rank.world > 1 else ""
    (home / f"profiler_info{suffix}.json").write_text(json.dumps(_info(rank, form), indent=4), encoding="utf-8")
    (home / "profiler_metadata.json").write_text(json.dumps(_metadata(rank), indent=4), encoding="utf-8")
    overlap = Overlap(rank)
    if form != "db":
        for name, text in _texts(rank, overlap):
            (output / name).write_bytes(text.encode())
    if form != "text":
        write_profiler(output / f"ascend_pytorch_profiler{suffix}.db", rank, overlap)
        write_analysis(output / "analysis.db", rank, overlap)
    return home


def write_msprof(folder: Path, schedule: Schedule) -> Path:
    """What msprof exported in 2023: of the device alone, a timeline and a table of kernels for each iteration."""
    rank = Rank(as_recorded(schedule), AscendLayout("2023"))
    home, steps = folder / "PROF_000001_20230818142704322_ABC" / "device_0", vendor_steps(rank.schedule)
    for kind in ("timeline", "summary"):
        (home / kind).mkdir(parents=True)
    for step in steps:
        name = f"0_2_{step.number}"
        (home / "timeline" / f"msprof_{name}.json").write_text(json.dumps(list(iteration(rank, steps, step))))
        (home / "summary" / f"op_summary_{name}.csv").write_text(op_summary(rank, steps, step))
    return home.parent


def _texts(rank: Rank, overlap: Overlap) -> Iterator[tuple[str, str]]:
    layout = rank.layout
    yield "trace_view.json", trace_view(rank, overlap)
    yield "kernel_details.csv", kernel_details(rank)
    yield "operator_details.csv", operator_details(rank)
    yield "step_trace_time.csv", step_trace_time(rank, overlap)
    if layout.level:
        yield "op_statistic.csv", op_statistic(rank)
        yield "api_statistic.csv", api_statistic(rank)
    if layout.level and rank.collectives:
        yield "communication.json", communication(rank)
        yield "communication_matrix.json", communication_matrix(rank)
    if layout.memory:
        yield "operator_memory.csv", operator_memory(rank)
        yield "memory_record.csv", memory_record(rank)
        yield "npu_module_mem.csv", npu_module_mem(rank)


def _info(rank: Rank, form: str) -> dict[str, Any]:
    layout, stacks = rank.layout, rank.schedule.workload.recording.stacks
    kinds = {"text": "text", "db": "db", "both": ["text", "db"]}[form]
    steps = len(rank.schedule.steps)
    schedule = {"wait": 0, "active": steps, "warmup": 1, "repeat": 1, "skip_first": 0}
    common = {
        "activities": ["ProfilerActivity.CPU", "ProfilerActivity.NPU"],
        "schedule": {(f"_{key}" if layout.era == "2023" else key): value for key, value in schedule.items()},
        "record_shapes": layout.shapes,
        "profile_memory": layout.memory,
        "with_stack": stacks,
        "with_flops": False,
        "with_modules": stacks,
    }
    experimental = {
        "_profiler_level": f"Level{layout.level}",
        "_aic_metrics": "ACL_AICORE_PIPE_UTILIZATION",
        "_l2_cache": False,
        "_msprof_tx": False,
        "_data_simplification": True,
        "record_op_args": False,
        "_export_type": [kinds] if layout.number > 1 and isinstance(kinds, str) else kinds,
    }
    end = rank.base + max(call.end for call in rank.schedule.calls)
    found: dict[str, Any] = {"config": {"common_config": common, "experimental_config": experimental}}
    found["start_info"] = {"syscnt_enable": True, "freq": 100, "start_cnt": 17238197612056, "start_monotonic": 1}
    found["end_info"] = {"collectionTimeEnd": end, "MonotonicTimeEnd": 2}
    if rank.world > 1:
        found["rank_id"] = str(rank.schedule.rank) if layout.number > 1 else rank.schedule.rank
    if layout.number > 1:
        versions = {"8.3": ("2.7.1", "8.3.RC1"), "2026": ("2.9.0", "9.0.RC1")}
        found["torch_npu_version"], found["cann_version"] = versions[layout.era]
    return found


def _metadata(rank: Rank) -> dict[str, Any]:
    queue = "1" if rank.schedule.workload.queue.on else "0"
    found: dict[str, Any] = {"ENV_VARIABLES": {"ASCEND_GLOBAL_LOG_LEVEL": "3", "TASK_QUEUE_ENABLE": queue}}
    if rank.layout.number > 1 and rank.world > 1:
        ranks = list(range(rank.world))
        group = {"group_name": "default_group", "group_rank": rank.schedule.rank, "global_ranks": ranks}
        found["parallel_group_info"] = {"group_name_0": group}
    return found
