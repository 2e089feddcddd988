"""Every column of the tables of one small program, worked out on paper.

Each of two steps of 900 µs, 100 µs apart: the loader until 100, a product of 200 (then 300) µs from 130 on, a
collective from 300 to 600, a short kernel from 430 to 438, a copy from 550 to 700; the host waits for all until 790.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builder import TraceBuilder
from traceanalyze import load
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.model import intervals
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis

GEMM, NCCL, COPY = "volta_sgemm_128x64_nn", "ncclDevKernel_AllReduce", "Memcpy HtoD (Pageable -> Device)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NO_OCCUPANCY = NotMeasured("no_occupancy")
ALL = 1416
"""µs of all device events: 500 + 600 + 16 + 300."""


@pytest.fixture(scope="module")
def found() -> RankAnalysis:
    b = TraceBuilder()
    b.header = {"deviceProperties": [{"id": 0, "name": "Example GPU"}]}
    for step in range(2):
        at = 1000 * step
        b.step(step + 1, at, 900)
        b.annotation(LOADER, at, 100)
        b.op("aten::mm", at + 100, 50)
        half = {"blocks per SM": 0.5, "est. achieved occupancy %": 40}
        b.launch(at + 110, 10, at + 130, 200 + 100 * step, name=GEMM, **half)
        b.op("aten::add", at + 160, 30)
        b.memory(at + 165, 1000 * (step + 1), allocated=5000 + 1000 * step, reserved=8000)
        full = {"blocks per SM": 2, "est. achieved occupancy %": 80}
        b.launch(at + 170, 10, at + 430, 8, name=ADD, **full)
        b.launch(at + 185, 5, at + 300, 300, name=NCCL, stream=13)
        b.copy(at + 200, 10, at + 550, 150, stream=20, bytes=3000)
        b.op("aten::item", at + 220, 580)
        b.api("cudaStreamSynchronize", at + 230, 560)
    b.memory(1950, -1000, allocated=5000, reserved=8000)
    return b.analyze()


TABLES: dict[str, list[tuple[Any, ...]]] = {
    "split": [
        ("compute", 258_000, 258 / 900, 516_000),
        # 262 and 162 that no kernel hides.
        ("communication", 212_000, 212 / 900, 424_000),
        ("memory_ops", 100_000, 100 / 900, 200_000),
        ("data_loading", 100_000, 100 / 900, 200_000),
        ("sync", 90_000, 90 / 900, 180_000),
        ("dispatch", 40_000, 40 / 900, 80_000),
        ("idle", 100_000, 100 / 900, 200_000),
    ],
    "totals": [
        ("compute", 258_000, None, None, None, 258_000, 1.0),
        ("communication", 300_000, 212_000, 88_000, 88 / 300, 300_000, 1.0),
        ("memory_ops", 150_000, 100_000, 50_000, 50 / 150, 150_000, 1.0),
        ("busy", 570_000, None, None, None, 708_000, 708 / 570),
    ],
    "idle_causes": [
        ("data_loading", 100_000, 100 / 900, 100 / 330, 200_000),
        ("sync", 90_000, 90 / 900, 90 / 330, 180_000),
        ("peer_wait", 0, 0.0, 0.0, 0),
        ("dispatch_launch", 10_000, 10 / 900, 10 / 330, 20_000),
        *((f"dispatch_{name}", 0, 0.0, 0.0, 0) for name in ("copy", "alloc", "other")),
        ("dispatch_latency", 10_000, 10 / 900, 10 / 330, 20_000),
        # 100 to 110 before the launch, and 790 to 800 after the wait.
        ("host_op", 20_000, 20 / 900, 20 / 330, 40_000),
        *((f"device_{name}", 0, 0.0, 0.0, 0) for name in ("gap", "dependency")),
        ("untraced", 100_000, 100 / 900, 100 / 330, 200_000),
    ],
    "step_idle_causes": [
        (step, 100_000, 90_000, 0, 10_000, 0, 0, 0, 10_000, 20_000, 0, 0, 100_000) for step in ("1", "2")
    ],
    "steps": [
        ("1", 900_000, 208_000, 262_000, 100_000, 100_000, 90_000, 40_000, 100_000, True, True, 0, 4),
        ("2", 900_000, 308_000, 162_000, 100_000, 100_000, 90_000, 40_000, 100_000, True, True, 1_000_000, 4),
    ],
    "step_statistics": [(2, 2, 900_000, 900_000, 900_000, 900_000, 100_000, 0)],
    "devices": [(0, "Example GPU", True, 900_000, 258_000, 212_000, 100_000, 330_000, 330 / 900)],
    # From 130 to 1700.
    "device_spans": [(0, 1_570_000, 516_000, 424_000, 600_000, 200_000, 430_000, 4, 2, 2, 0, 130_000)],
    "sync_points": [
        # Until the next launch: 200 of its own step, 30 of the next after the loader; 100 between them are in no step.
        ("aten::item", "cudaStreamSynchronize", "sync_explicit", 1, 560_000, 230_000, True, False, None),
        (
            "aten::item",
            "cudaStreamSynchronize",
            "sync_explicit",
            1,
            560_000,
            NotMeasured("terminal_sync"),
            True,
            True,
            None,
        ),
    ],
    "runtime_calls": [
        ("cudaStreamSynchronize", "api_sync", 2, 1_120_000, 560_000),
        ("cudaLaunchKernel", "api_launch", 6, 50_000, 8_333),
        ("cudaMemcpyAsync", "api_copy", 2, 20_000, 10_000),
    ],
    "operators": [
        ("aten::add", 616_000, 616 / ALL, 616_000, 60_000, 60_000, 30_000, 2, 4, None),
        ("aten::mm", 500_000, 500 / ALL, 500_000, 100_000, 100_000, 20_000, 2, 2, None),
        ("<outside operators>", 300_000, 300 / ALL, 300_000, None, None, None, None, 2, None),
        ("aten::item", 0, 0.0, 0, 1_160_000, 1_160_000, 1_120_000, 2, 0, None),
    ],
    "operator_steps": [
        *(("aten::add", step, 1, 30_000, 308_000) for step in ("1", "2")),
        ("aten::mm", "1", 1, 50_000, 200_000),
        ("aten::mm", "2", 1, 50_000, 300_000),
        *(("aten::item", step, 1, 580_000, 0) for step in ("1", "2")),
    ],
    "call_paths": [
        ("aten::add", 616_000, 616 / ALL, 60_000, 2, 616_000, 60_000, 4),
        ("aten::mm", 500_000, 500 / ALL, 100_000, 2, 500_000, 100_000, 2),
        ("<outside operators>", 300_000, 300 / ALL, None, None, 300_000, None, 2),
        ("aten::item", 0, 0.0, 1_160_000, 2, 0, 1_160_000, 0),
    ],
    "phases": [
        ("phase_data_loading", 0, 0.0, 100_000, 0),
        ("phase_other", 570_000, 570 / 900, 660_000, 8),
    ],
    "step_phases": [
        row
        for step in ("1", "2")
        for row in ((step, "phase_data_loading", 0, 100_000), (step, "phase_other", 570_000, 660_000))
    ],
    "op_kernels": [
        ("aten::add", NCCL, 2, 600_000, 25_000, 110_000),
        ("aten::mm", GEMM, 2, 500_000, 10_000, 10_000),
        ("aten::add", ADD, 2, 16_000, 10_000, 250_000),
    ],
    "annotations": [(LOADER, 2, 0, 0, 200_000, 100_000, 100_000, 100_000)],
    "kernel_groups": [
        ("work_communication", 2, 600_000, 600 / ALL, 0, 0),
        ("work_matmul", 2, 500_000, 500 / ALL, 0, 0),
        ("work_copy", 2, 300_000, 300 / ALL, 0, 300_000),
        ("work_elementwise", 2, 16_000, 16 / ALL, 0, 0),
    ],
    "kernels": [
        (
            NCCL,
            *("work_communication", 2, 600_000, 600 / ALL, 300_000, 300_000, 300_000),
            *("tensor_core_no", NO_OCCUPANCY, NO_OCCUPANCY, "aten::add", 1, 0),
        ),
        (
            GEMM,
            *("work_matmul", 2, 500_000, 500 / ALL, 250_000, 200_000, 300_000),
            *("tensor_core_no", 0.4, 0.5, "aten::mm", 1, 0),
        ),
        (
            COPY,
            *("work_copy", 2, 300_000, 300 / ALL, 150_000, 150_000, 150_000),
            *("tensor_core_no", NO_OCCUPANCY, NO_OCCUPANCY, None, 0, 300_000),
        ),
        (
            ADD,
            *("work_elementwise", 2, 16_000, 16 / ALL, 8_000, 8_000, 8_000),
            *("tensor_core_no", 0.8, 2.0, "aten::add", 1, 0),
        ),
    ],
    "copies": [("copy_h2d", "memory_pageable", 2, 300_000, 1.0, 150_000, 150_000, 150_000, 6_000, 0.02, 0)],
    # 470 µs of compute or communication in each step; occupancy is weighted by 500 and 16 µs.
    "device_summary": [(940 / 1800, 266 / 1800, (500 * 0.4 + 16 * 0.8) / 516, 0.0, 0.0, 6, 2, 16_000)],
    "device_overlap": [
        ("running_nothing", 660_000, 660 / 1800),
        ("running_compute", 340_000, 340 / 1800),
        ("running_communication", 324_000, 324 / 1800),
        ("running_memory_ops", 200_000, 200 / 1800),
        ("running_compute_and_communication", 176_000, 176 / 1800),
        ("running_communication_and_memory_ops", 100_000, 100 / 1800),
        ("running_compute_and_memory_ops", 0, 0.0),
        ("running_compute_and_communication_and_memory_ops", 0, 0.0),
    ],
    # Pieces of 30 µs; that from 690 on is busy for 10.
    "low_utilisation": [
        ("1", 690_000, 690_000, 210_000, 10 / 210),
        ("2", 690_000, 1_690_000, 210_000, 10 / 210),
        ("1", 0, 0, 120_000, 0.0),
        ("2", 0, 1_000_000, 120_000, 0.0),
    ],
    "memory": [("memory_of_device", 0, 3, 6_000, 8_000, 3_000, 3_000, 1_000)],
    "memory_peak_place": [(0, 6_000, "2", "phase_other", "aten::add", None)],
    "step_memory": [
        ("1", "memory_of_device", 0, 5_000, False),
        ("2", "memory_of_device", 0, 6_000, False),
    ],
    "memory_curve": [
        ("memory_of_device", 0, 165_000, 5_000, 8_000, False),
        ("memory_of_device", 0, 1_165_000, 6_000, 8_000, False),
        ("memory_of_device", 0, 1_950_000, 5_000, 8_000, False),
    ],
    "classification": [
        (NCCL, "class_comm", "name", 2, 600_000, 600 / ALL),
        (GEMM, "class_compute", "kernel", 2, 500_000, 500 / ALL),
        (COPY, "class_mem", "memcpy", 2, 300_000, 300 / ALL),
        (ADD, "class_compute", "kernel", 2, 16_000, 16 / ALL),
    ],
}


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The last digits of a quotient are not meant."""
    return tuple(round(value, 12) if isinstance(value, float) else value for value in row)


@pytest.mark.parametrize("key", TABLES)
def test_every_column_is_the_answer_on_paper(found: RankAnalysis, key: str) -> None:
    assert [plain(row) for row in found.tables[key].rows] == [plain(row) for row in TABLES[key]]


def test_sums_stand_below_the_rows(found: RankAnalysis) -> None:
    split, steps, causes = (found.tables[key].totals for key in ("split", "steps", "idle_causes"))
    assert split == {"part": "step", "mean_ns": 900_000, "share": 1.0, "sum_ns": 1_800_000}
    assert causes is not None
    assert (causes["mean_ns"], causes["sum_ns"], causes["share_of_idle"]) == (330_000, 660_000, 1.0)
    assert steps is not None
    assert [steps[key] for key in ("time_ns", "compute_ns", "idle_ns")] == [900_000, 258_000, 100_000]


def test_gaps_begin_with_the_longest_and_say_what_they_are_made_of(found: RankAnalysis) -> None:
    ends = (("untraced", 100_000), ("sync", 90_000), ("host_op", 10_000))
    begins = (("data_loading", 100_000), ("dispatch_launch", 10_000), ("dispatch_latency", 10_000), ("host_op", 10_000))
    product = GEMM, "aten::mm", None
    assert found.tables["gaps"].rows == (
        ("1", 700_000, 200_000, ends, None, "sync_drained", *product),
        ("2", 700_000, 200_000, ends, None, "no_next_event", None, None, None),
        ("1", 0, 130_000, begins, None, "launched_late", *product),
        ("2", 0, 130_000, begins, None, "sync_drained", *product),
    )


def test_launches_wait_from_their_return_to_the_begin_of_their_work(found: RankAnalysis) -> None:
    """10, 110, 250 and 340 µs in each step; the product comes when the queue is empty."""
    (row,) = found.records("launches")
    assert (row.linked, row.unlinked, row.unlinked_ns, row.late, row.late_share) == (8, 0, 0, 2, 0.25)
    assert (row.delay_p50_ns, row.delay_p90_ns, row.negative_latency) == (250_000, 340_000, 0)
    steps = [(one.step, one.late_launches, one.wait_p50_ns, one.wait_p90_ns) for one in found.records("step_launches")]
    assert steps == [("1", 1, 250_000, 340_000), ("2", 1, 250_000, 340_000)]


def test_kernels_follow_each_other_as_a_sequence(found: RankAnalysis) -> None:
    (row,) = found.records("kernel_sequences")
    assert (row.kernels_each, row.count, row.fewer_launches, row.device_time_ns) == (2, 2, 2, 516_000)
    # From 330 to 430 in the first step, at once in the second.
    assert (row.between_ns, row.mean_kernel_ns, row.all_short) == (100_000, 129_000, False)


def test_chunks_of_a_step(found: RankAnalysis) -> None:
    chunks = [one for one in found.records("utilisation") if one.step == "1"]
    assert [one.length_ns for one in chunks] == [30_000] * 30
    assert [one.chunk for one in chunks] == list(range(1, 31))
    busy = [0.0] * 4 + [2 / 3] + [1.0] * 18 + [1 / 3] + [0.0] * 6
    assert [one.busy_share for one in chunks] == pytest.approx(busy)
    # The product until 330, and 8 µs of the piece from 420 on.
    compute = [0.0] * 4 + [2 / 3] + [1.0] * 6 + [0.0] * 3 + [8 / 30] + [0.0] * 15
    assert [one.compute_share for one in chunks] == pytest.approx(compute)
    communication = [0.0] * 11 + [1.0] * 3 + [22 / 30] + [1.0] * 5 + [0.0] * 10
    assert [one.communication_share for one in chunks] == pytest.approx(communication)


def test_a_table_is_measured_where_it_is_there_and_has_no_reason_to_be_empty():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20)
    found = b.analyze()
    assert [found.measured(key) for key in ("kernels", "launches", "no_such_table")] == [True, False, False]
    assert [len(list(found.records(key))) for key in ("kernels", "launches", "no_such_table")] == [1, 0, 0]


def test_an_incomplete_step_is_in_no_sum():
    """Three steps of five kernels, a copy and a wait, and one of two kernels: each table counts the three."""
    b = TraceBuilder()
    for number in (1, 2, 3, 4):
        at = 1000 * number
        b.step(number, at, 900)
        for place in range(5 if number < 4 else 2):
            b.op("aten::mm", at + 10 + 100 * place, 50)
            b.launch(at + 20 + 100 * place, 5, at + 40 + 100 * place, 60)
        b.copy(at + 630, 20, at + 640, 50)
        b.api("cudaStreamSynchronize", at + 660, 60)
    tables = b.analyze().tables
    counts = {
        key: sum(getattr(row, column) for row in tables[key].records())
        for key, column in {
            "kernels": "count",
            "kernel_groups": "count",
            "copies": "count",
            "op_kernels": "count",
            "operators": "launched",
            "kernel_durations": "count",
            "runtime_calls": "count",
            "sync_points": "count",
            "phases": "device_events",
            "launches": "linked",
        }.items()
    }
    assert counts == {
        **dict.fromkeys(("kernels", "kernel_groups", "operators", "phases", "launches"), 18),
        "copies": 3,
        "op_kernels": 15,
        "kernel_durations": 15,
        "runtime_calls": 21,
        "sync_points": 3,
    }
    (launches,) = tables["launches"].records()
    # Each event ends an idle interval; the one before the fourth step's first ends outside of the others.
    assert (launches.late, launches.late_share) == (18, 1.0)
    assert sum(row.sum_ns for row in tables["split"].records() if row.part == "compute") == 15 * 60_000


def test_columns_looked_at_in_stretches_give_the_same_tables(monkeypatch):
    samples = Path(__file__).parents[2] / "sample_traces"
    traces = [load(samples / name / "trace.json.gz").traces[0] for name in ("cpu_slow_loader", "gpu_launch_bound")]

    def tables() -> list[Any]:
        return [(key, table.rows) for one in traces for key, table in analyze_trace(one).tables.items()]

    whole = tables()
    monkeypatch.setattr(intervals, "CHUNK", 1000)
    assert tables() == whole
