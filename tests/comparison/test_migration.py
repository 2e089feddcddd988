"""From a GPU to an NPU: what there is to win, what binds it, and what to do."""

from __future__ import annotations

import csv
import gzip
import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import traceanalyze
from tests.ascend_builder import QUEUE_THREAD, AscendBuilder, analyze
from tests.builder import TraceBuilder
from tests.examples import TIMES
from tests.make_samples.cases import PAIR as PAIR_WORKLOAD
from tests.make_samples.cases import PAIR_DIFFERENCES
from tests.real import SHARED
from tests.simulate.faults import FAULTS
from tests.simulate.more_faults import MORE
from tests.simulate.pair import BASE, DIFFERENCES, by_part, pair
from tests.simulate.simulate import simulate
from tests.simulate.workload import MS, US, Model, Ranks, Script, Workload
from tests.simulate.writers.ascend import write_ascend
from tests.simulate.writers.ascend_layouts import ERAS, AscendLayout
from tests.simulate.writers.kineto import write
from traceanalyze.comparison.migrated_operators import _faster_type
from traceanalyze.model.table import NotMeasured

PAIR = Path(__file__).resolve().parents[2] / "sample_traces" / "gpu_npu_pair"
_NORM = (("pow", "Pow"), ("mean", "ReduceMean"), ("add", "Add"), ("rsqrt", "Rsqrt"), ("mul", "Mul"), ("mul", "Mul"))
"""What an operator that is not fused does, and the types of its kernels."""


def _gpu(path: Path) -> Path:
    """A step in bf16 on an A100: products of 100 and 50 µs, a fused norm of 10, and kernels of 20 and 30."""
    trace = TraceBuilder()
    trace.header["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]
    trace.step(1, 0, 1200)
    at = 0.0
    for name, kernel, dur in (
        ("aten::mm", "ampere_bf16_s16816gemm_bf16_128x128_tn", 100),
        ("aten::rms_norm", "rms_norm_kernel", 10),
        ("aten::topk", "gatherTopK", 20),
        ("aten::bmm", "ampere_bf16_s16816gemm_bf16_64x64_tn", 50),
        ("aten::gelu", "GeluCUDAKernelImpl", 30),
        ("aten::nonzero", "DeviceSelectSweepKernel", 25),
    ):
        types = ["c10::BFloat16", "c10::BFloat16"]
        trace.op(name, at, 40, **{"Input Dims": [[64, 64], [64, 64]], "Input type": types})
        trace.launch(at + 5, 5, at + 50, dur, name=kernel)
        at += 200
    return trace.write(path)


def _npu(path: Path) -> Path:
    """The same: products of 400 µs with a change of layout of 60, and of 300 in fp32; six kernels for the norm, 90 µs
    on the AI CPU, 200 on 4 of 20 cores, and a kernel of 10 that the other side has not.
    """
    made = AscendBuilder()
    made.step(1, 0, 2400)

    def launch(op: float, at: float, dur: float, kind: str, core: str = "AI_VECTOR_CORE", **row: Any) -> None:
        made.queued(f"aclnn{kind}", op, op + 3, 4)
        made.kernel(f"aclnn{kind}_{kind}", at, dur, op_type=kind, core=core, launch=op + 4, **row)

    shapes = {"Input Dims": "64,64;64,64", "Input type": "c10::BFloat16;c10::BFloat16"}
    # Cycles of 20 cores at 1800 MHz, half of which are busy: a 910B3.
    cube = {
        "OP State": "static",
        "aic_total_cycles": "7200000",
        "aicore_time(us)": "200",
        "Block Dim": "20",
        "Input Data Types": "DT_BF16;DT_BF16",
    }
    made.op("aten::mm", 0, 40, **shapes)
    launch(5, 100, 400, "MatMulV2", "AI_CORE", **cube)
    # Other cores have a clock of their own: 900 MHz.
    vector = {"aic_total_cycles": "540000", "aicore_time(us)": "30", "Block Dim": "20"}
    changed = {"OP State": "dynamic", "Input Shapes": '"64,64"', "Input Data Types": "DT_BF16"}
    launch(15, 510, 60, "TransData", **vector, **changed)
    for number, (name, kind) in enumerate(_NORM):
        at = 600 + number * 60
        made.op(f"aten::{name}", at, 30)
        launch(at + 5, at + 40, 15, kind)
    made.op("aten::topk", 1100, 40)
    launch(1105, 1150, 90, "TopK", "AI_CPU", **{"Block Dim": "1"})
    made.op("aten::bmm", 1300, 40, **{"Input Dims": "64,64;64,64", "Input type": "float;float"})
    full = {"Block Dim": "20", "Input Data Types": "FLOAT;FLOAT", "HF32 Eligible": "NO", "aic_mac_time(us)": "270"}
    launch(1305, 1350, 300, "BatchMatMulV2", "AI_CORE", **full)
    made.op("aten::gelu", 1700, 40)
    launch(1705, 1750, 200, "Gelu", **{"Block Dim": "4", "aiv_vec_time(us)": "20"})
    made.op("aten::zeros", 1900, 40)
    launch(1905, 1960, 10, "ZerosLike", **{"Block Dim": "20", "aiv_vec_time(us)": "8"})
    # The host takes what it needs from the device, and computes.
    made.op("aten::nonzero", 1985, 300)
    made.op("aten::copy_", 1990, 100)
    number = made.queued("aclrtMemcpyAsync", 1991, 1992, 4)
    made.call("AscendCL@aclrtMemcpyAsync", 1993, 2, tid=QUEUE_THREAD, connection=5000 + number)
    begin = (made.cann, QUEUE_THREAD, 1993.5)
    made.flow("HostToDevice", str((2 << 64) | 5000 + number), begin, (made.npu, 2, 2010))
    direction = {"memcpy direction": "device to host", "data size(Byte)": 4096, "connection_id": 5000 + number}
    made.task("MEMCPY_ASYNC", 2010, 30, "MEMCPY_ASYNC", **direction)
    output = made.write(path / "rank0_ascend_pt")
    stated = {"ENV_VARIABLES": {"TASK_QUEUE_ENABLE": "1", "CPU_AFFINITY_CONF": "0"}}
    (path / "rank0_ascend_pt" / "profiler_metadata.json").write_text(json.dumps(stated))
    return output


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("pair")
    report = traceanalyze.compare(_gpu(folder / "gpu.json"), _npu(folder))
    assert report.comparison is not None
    return {row.op: row for row in report.comparison.tables["migration"].records()}


def _said(row: Any) -> list[str]:
    return [message.key for message in row.to_do]


def test_a_product_may_take_as_much_longer_as_peaks_differ(rows: dict[str, Any]) -> None:
    product = rows["aten::mm"]
    assert (product.base_time_ns, product.candidate_time_ns) == (100_000, 460_000)
    # 312 TFLOP/s of an A100 over 2 × 4096 × 36 · 10⁹ of a 910B3.
    assert product.peak_ratio == pytest.approx(312 / 294.912)
    assert product.win_ns == round(460_000 - 100_000 * 312 / 294.912)
    # Half of the time of the product, which alone has counters for it, and none of the layout change.
    assert (product.bound, product.bound_share) == ("unit_cube", pytest.approx(200 / 400))
    assert product.layout_ns == 60_000
    assert (product.core, product.blocks, product.cores) == ("AI_CORE, AI_VECTOR_CORE", 20, 20)
    assert product.layout_bytes == 64 * 64 * 2
    assert (product.base_precision, product.candidate_precision) == ("bf16", "bf16")
    # Two kernels a call, but one of them changes the layout; what that leaves to win is the slower product.
    assert _said(product) == ["to_layout", "to_kernel"]
    assert [message.values[0][2] for message in product.to_do] == [60_000, product.win_ns - 60_000]


def test_full_precision_is_held_against_what_the_device_does_in_the_base_s(rows: dict[str, Any]) -> None:
    product = rows["aten::bmm"]
    assert (product.base_precision, product.candidate_precision) == ("bf16", "fp32")
    assert product.peak_ratio == pytest.approx(312 / 294.912)
    assert product.win_ns == round(300_000 - 50_000 * 312 / 294.912)
    assert _said(product) == ["to_autocast", "to_kernel"]
    assert (product.bound, product.bound_share) == ("unit_cube", 0.9)


def test_few_cores_and_what_only_one_side_runs_are_said(rows: dict[str, Any]) -> None:
    few = rows["aten::gelu"]
    assert _said(few) == ["to_fill", "to_kernel"]
    assert [value for _, _, value in few.to_do[0].values] == [4, 20]
    assert (few.bound, few.bound_share) == ("unit_vector", 0.1)
    alone = rows["aten::zeros"]
    assert (alone.base_time_ns, alone.win_ns, _said(alone)) == (0, 10_000, ["to_only", "to_bound"])
    assert [value for _, _, value in alone.to_do[1].values] == ["unit_vector", 0.8, ""]


def _one_op(folder: Path, work: str) -> Any:
    """The row of an operator for which the candidate has a kernel of 40 µs, and the base 30 µs of this work."""
    made = AscendBuilder()
    made.step(1, 0, 400)
    made.op("aten::zeros", 0, 40)
    made.queued("aclnnZeros", 5, 8, 4)
    made.kernel("aclnnZeros_ZerosLike", 100, 40, op_type="ZerosLike", core="AI_VECTOR_CORE", launch=9)
    made.task(
        "MEMCPY_ASYNC", 200, 20, "MEMCPY_ASYNC", **{"memcpy direction": "host to device", "data size(Byte)": 4096}
    )
    trace = TraceBuilder()
    trace.step(1, 0, 300)
    if work != "other":
        trace.op("aten::zeros", 0, 40)
    names = {
        "fill": "Memset (Device)",
        "inside": "Memcpy DtoD (Device -> Device)",
        "across": "Memcpy HtoD (x -> Device)",
    }
    if work in names:
        cat = "gpu_memset" if work == "fill" else "gpu_memcpy"
        trace.copy(5, 5, 50, 30, cat=cat, name=names[work])
    trace.launch(60, 5, 100, 20, name="gelu")
    trace.copy(80, 5, 150, 10)
    sides = traceanalyze.compare(trace.write(folder / "gpu.json"), made.write(folder / "rank0_ascend_pt")).comparison
    assert sides is not None
    rows = {row.op: row for row in sides.tables["migration"].records()}
    # Of the base 10 µs are copies that no operator launched, and what copies do for both sides stays one of them.
    copied = rows["memory_ops"]
    assert (copied.base_time_ns, copied.candidate_time_ns) == (10_000 + 30_000 * (work == "across"), 20_000)
    return rows["aten::zeros"]


@pytest.mark.parametrize(
    ("work", "base", "said"),
    [
        ("fill", 30, ["to_record"]),
        ("inside", 30, ["to_record"]),
        ("across", 0, ["to_across"]),
        ("none", 0, ["to_unused"]),
        ("other", 0, ["to_only"]),
    ],
)
def test_fills_and_copies_inside_the_device_are_the_same_work(
    tmp_path: Path, work: str, base: int, said: list[str]
) -> None:
    row = _one_op(tmp_path, work)
    assert (row.base_time_ns, row.candidate_time_ns, row.win_ns) == (base * 1000, 40_000, (40 - base) * 1000)
    assert _said(row) == said


def test_the_rows_have_all_kernels_of_the_candidate(rows: dict[str, Any]) -> None:
    of_kernels = [row for row in rows.values() if row.kernels is not None]
    assert sum(row.candidate_time_ns for row in of_kernels) == (400 + 60 + 6 * 15 + 90 + 300 + 200 + 10) * 1000
    # Largest first.
    wins = [row.win_ns for row in rows.values()]
    assert wins == sorted(wins, reverse=True)


def test_what_the_host_computes_instead_of_the_device_is_named(rows: dict[str, Any]) -> None:
    said = [message for row in rows.values() for message in row.to_do if message.key == "to_host"]
    assert {message.values[0][2] for message in said} == {"aten::nonzero"}


def test_both_sides_show_the_tensors_of_one_call_where_both_have_it(tmp_path: Path) -> None:
    """What takes the NPU longest takes the GPU less than another size; an optimizer has no tensors to show."""
    times = {64: (100, 50), 32: (90, 400)}
    gpu, npu = TraceBuilder(), AscendBuilder()
    gpu.step(1, 0, 1500)
    npu.step(1, 0, 1500)
    for at, (size, (before, after)) in enumerate(times.items()):
        dims, begin = [[size, 8], [8, size]], 500 * at
        gpu.op("aten::mm", begin, 40, **{"Input Dims": dims, "Input type": ["float", "float"]})
        gpu.launch(begin + 5, 5, begin + 50, before, name="sgemm")
        npu.op("aten::mm", begin, 40, **{"Input Dims": f"{size},8;8,{size}", "Input type": "float;float"})
        npu.queued("aclnnMm", begin + 5, begin + 8, 4)
        none = {"Input Shapes": "N/A", "Input Data Types": "N/A"}
        npu.kernel("aclnnMm_MatMul", begin + 50, after, op_type="MatMul", core="AI_CORE", launch=begin + 9, **none)
    gpu.op("aten::_fused_adamw_", 1100, 40)
    gpu.launch(1105, 5, 1150, 20, name="fused_adam")
    npu.op("aten::_fused_adamw_", 1100, 40)
    npu.queued("aclnnApplyAdamW", 1105, 1108, 4)
    adamw = {"op_type": "ApplyAdamW", "core": "AI_VECTOR_CORE", "launch": 1109}
    npu.kernel("aclnnApplyAdamW_ApplyAdamW", 1150, 200, **adamw, **none)
    report = traceanalyze.compare(gpu.write(tmp_path / "gpu.json"), npu.write(tmp_path / "rank0_ascend_pt"))
    row = next(row for row in report.tables["migration"].records() if row.op == "aten::mm")
    assert row.base_shapes == row.candidate_shapes == "[[32, 8], [8, 32]]"
    product, optimizer = report.advice
    assert "Base 32×8, 8×32 fp32; candidate 32×8, 8×32 fp32, MatMul ×1 on AI_CORE" in product
    assert optimizer.endswith("a recording of level 1 with aic_metrics. ApplyAdamW ×1 on AI_VECTOR_CORE.")


@pytest.mark.parametrize("first", ["gpu", "npu"])
def test_where_no_task_of_a_collective_is_recorded_the_level_to_record_is_told(first: str, tmp_path: Path) -> None:
    made = Workload(model=Model(layers=1), ranks=Ranks(2), steps=2)
    (tmp_path / "gpu").write_bytes(write(simulate(made)[0]))
    npu = replace(made, device=replace(made.device, vendor="ascend"))
    slower = replace(npu, ranks=replace(npu.ranks, extra=3 * MS))
    layout = AscendLayout("8.3", 0)
    write_ascend(tmp_path / "npu", simulate(npu)[0], layout)
    home = write_ascend(tmp_path / "slower", simulate(slower)[0], layout)
    told = traceanalyze.compare(tmp_path / first, home).advice[0]
    assert "all_reduce" in told
    assert told.endswith(
        "record Ascend profiles at level 1 or above, or the other ranks that it communicates with, too, "
        "as these tell waiting from transfer, then compare sizes and numbers of the collectives."
    )


def test_on_which_cores_a_kernel_ran_that_the_profile_does_not_say_is_left_open(tmp_path: Path) -> None:
    """Level 0 has blocks of all kernels, and of some the cores; products take 24 blocks, others 48."""
    made = Workload(model=Model(layers=1), steps=2)
    (tmp_path / "gpu.json").write_bytes(write(simulate(made)[0]))
    npu = simulate(replace(made, device=replace(made.device, vendor="ascend")))[0]
    report = traceanalyze.compare(tmp_path / "gpu.json", write_ascend(tmp_path, npu, AscendLayout("2026", 0)))
    rows = {row.op: row for row in report.tables["migration"].records()}
    assert (rows["aten::addmm"].blocks, rows["aten::addmm"].cores) == (24, NotMeasured("no_kernel_types"))
    assert rows["aten::gelu"].cores == 48


def test_without_types_of_kernels_changes_of_layout_are_not_measured(tmp_path: Path) -> None:
    candidate = _npu(tmp_path)
    (table,) = candidate.rglob("kernel_details.csv")
    table.unlink()
    report = traceanalyze.compare(_gpu(tmp_path / "gpu.json"), candidate)
    assert report.comparison is not None
    found = {row.op: row for row in report.comparison.tables["migration"].records()}["aten::mm"]
    assert found.candidate_time_ns == 460_000
    assert found.layout_ns == found.layout_bytes == NotMeasured("no_kernel_types")


def test_how_near_the_roof_with_shapes_that_vary_and_the_clock(rows: dict[str, Any]) -> None:
    product = rows["aten::mm"]
    # 64 × 64 in bf16, twice read and once written: memory binds both, at 2,039 and 1,638.4 GB/s.
    least = 3 * 64 * 64 * 2
    assert product.base_roof == pytest.approx(least / 2039 / 100_000, rel=1e-3)
    assert product.candidate_roof == pytest.approx(least / 1638.4 / 460_000, rel=1e-3)
    # Of the product, not of the change of layout on other cores: 7.2 · 10⁶ cycles of 20 cores in 200 µs.
    assert product.clock == pytest.approx(1800)
    assert product.dynamic == 0.5
    assert rows["aten::gelu"].clock == NotMeasured("no_core_counters")


def test_shapes_of_the_operator_around_a_launch_tell_the_roofline() -> None:
    """Ascend's profiles have shapes of PyTorch's operators, and none of the aclnn call inside that launches."""
    report = traceanalyze.compare(PAIR / "gpu", PAIR / "npu")
    assert report.comparison is not None
    rows = {row.op: row for row in report.comparison.tables["migration"].records()}
    model = PAIR_WORKLOAD.model
    width, tokens = model.hidden, model.batch * model.sequence
    # Query, key and value; projection; both of the perceptron; and the head; on 24 cores at 1.8 GHz.
    flop = 2 * tokens * width * (model.layers * (3 + 1 + 4 + 4) * width + model.vocabulary)
    least = flop / (24 * 1.8 * 2 * 16**3 / 1e3)
    for name, passes in (("aten::addmm", 1), ("aten::mm (backward)", 2)):
        assert rows[name].candidate_roof == pytest.approx(passes * least / rows[name].candidate_time_ns / 1e3, rel=1e-3)


def test_collectives_have_their_links_and_rates() -> None:
    report = traceanalyze.compare(PAIR / "gpu", PAIR / "npu")
    assert report.comparison is not None
    rows = {row.op: row for row in report.comparison.tables["migration"].records()}
    found = rows["all_reduce"]
    of_all = report.comparison.tables["communication_compare"].records()
    own = [row for row in of_all if row.collective == "all_reduce"]
    moved = sum(row.size_bytes * row.base_calls for row in own)
    assert found.base_rate == pytest.approx(moved / sum(row.base_total_ns for row in own), rel=1e-3)
    # Nothing of it is waiting: the other rank is as fast.
    (said,) = found.to_do
    values = {name: value for name, _, value in said.values}
    assert values["time"] == pytest.approx(found.candidate_time_ns, rel=0.01)
    (link,) = report.comparison.tables["link_rates"].records()
    assert found.links == f"{link.link} {link.candidate_rate_gbs:.3g} GB/s"
    # Three planes share it, where each could be as fast as that.
    assert (said.key, values["expected"]) == ("to_move_slow", 18)
    assert values["rate"] == pytest.approx(link.candidate_rate_gbs / 3, rel=0.01)


def test_links_that_are_as_fast_as_usual_are_not_to_be_looked_at(tmp_path: Path) -> None:
    side = shutil.copytree(PAIR / "npu", tmp_path / "npu")
    (timeline,) = side.rglob("trace_view.json.gz")
    tasks = json.loads(gzip.decompress(timeline.read_bytes()))
    for task in tasks:
        if task.get("name") in {"Memcpy", "Reduce_Inline"} and task["args"].get("size(Byte)"):
            task["args"]["size(Byte)"] *= 3
    timeline.write_bytes(gzip.compress(json.dumps(tasks).encode()))
    report = traceanalyze.compare(PAIR / "gpu", side)
    assert report.comparison is not None
    (found,) = (row for row in report.comparison.tables["migration"].records() if row.op == "all_reduce")
    assert [message.key for message in found.to_do] == ["to_move_fast"]


def test_what_the_environment_leaves_off_is_said_of_dispatch(rows: dict[str, Any]) -> None:
    said = {key for row in rows.values() for key in _said(row)}
    assert {"to_queue", "to_bind"} <= said


def test_what_runs_on_the_host_processors_is_said(rows: dict[str, Any]) -> None:
    found = rows["aten::topk"]
    # Memory bandwidth: 2,039 and 1,638 GB/s.
    assert found.win_ns == pytest.approx(90_000 - 20_000 * 2039 / 1638.4, abs=200)
    # Not that few cores are used, as none is; these processors have no counters.
    assert (_said(found), found.bound, found.bound_share) == (["to_cores"], "unit_ai_cpu", 1)
    assert found.to_do[0].values[0][2] == 90_000


def test_a_fused_operator_has_the_name_of_what_replaces_it(rows: dict[str, Any]) -> None:
    found = rows["aten::rms_norm"]
    assert (found.base_time_ns, found.candidate_time_ns) == (10_000, 90_000)
    (said,) = (message for message in found.to_do if message.key == "to_fused")
    assert said.values[0][2] == "torch_npu.npu_rms_norm"


def test_what_is_fused_already_is_not_to_be_fused(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 500)
    trace.op("FusedRMSNormAffineFunction", 0, 40)
    trace.launch(5, 5, 50, 10, name="cuApplyRMSNorm")
    made = AscendBuilder()
    made.step(1, 0, 500)
    made.op("npu::npu_rms_norm", 0, 60)
    for at, kind in ((4, "Cast"), (24, "RmsNorm")):
        made.queued(f"aclnn{kind}", at, at + 2, 4)
        made.kernel(f"aclnn{kind}_{kind}", 100 + at, 15, op_type=kind, core="AI_VECTOR_CORE", launch=at + 3)
    report = traceanalyze.compare(trace.write(tmp_path / "gpu.json"), made.write(tmp_path / "rank0_ascend_pt"))
    assert report.comparison is not None
    found = {row.op: row for row in report.comparison.tables["migration"].records()}["aten::rms_norm"]
    assert (found.base_time_ns, found.candidate_time_ns) == (10_000, 30_000)
    assert _said(found) == ["to_layout", "to_record"]


def test_both_sides_show_the_tensors_of_one_call(tmp_path: Path) -> None:
    """On one side the one of two products is a little longer, on the other the other."""
    trace, made = TraceBuilder(), AscendBuilder()
    for side in (trace, made):
        side.step(1, 0, 1000)
    for at, shapes, gpu, npu in ((0, ((64, 32), (32, 8)), 101, 200), (300, ((8, 32), (32, 64)), 100, 201)):
        types = ["float", "float"]
        trace.op("aten::mm", at, 40, **{"Input Dims": [list(shape) for shape in shapes], "Input type": types})
        trace.launch(at + 5, 5, at + 50, gpu, name="gemm")
        listed = ";".join(",".join(map(str, shape)) for shape in shapes)
        made.op("aten::mm", at, 40, **{"Input Dims": listed, "Input type": ";".join(types)})
        made.queued("aclnnMm", at + 3, at + 6, 4)
        made.kernel("MatMul", at + 50, npu, op_type="MatMulV2", core="AI_CORE", launch=at + 7)
    report = traceanalyze.compare(trace.write(tmp_path / "gpu.json"), made.write(tmp_path / "rank0_ascend_pt"))
    assert report.comparison is not None
    found = {row.op: row for row in report.comparison.tables["migration"].records()}["aten::mm"]
    assert found.base_shapes == found.candidate_shapes == "[[8, 32], [32, 64]]"


def test_the_sample_begins_with_what_to_do_first() -> None:
    report = traceanalyze.compare(PAIR / "gpu", PAIR / "npu")
    sides = report.comparison
    assert sides is not None
    found = list(sides.tables["migration"].records())
    assert [row.op for row in found[:3]] == ["data_loading", "aten::mm (backward)", "all_reduce"]
    # Nothing is left out: operators have all compute, the other rows all else that a step is made of.
    work = sum(row.candidate_sum_ns for row in found if row.kernels is not None)
    assert work == 26_105_020
    assert work + sum(row.candidate_sum_ns for row in found if row.kernels is None) == sides.candidate.step_time


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("kind", ["text", "db"])
def test_nearly_all_compute_of_level_1_has_a_bound(kind: str, rank: int) -> None:
    path = SHARED / f"ascend/msinsight_2rank_torch/{kind}/level1/rank{rank}_ascend_pt"
    table = analyze(path).tables["kernel_types"]
    rows = [row for row in table.records() if row.core in {"AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV"}]
    known = sum(row.device_time_ns for row in rows if isinstance(row.busiest, str))
    assert known >= 0.95 * sum(row.device_time_ns for row in rows)


def _queued(folder: Path, gap: float) -> Path:
    """Six kernels of 100 µs that are launched at once and begin `gap` µs after one another; one is a relu."""
    made = AscendBuilder()
    made.step(1, 0, 1500)
    made.op("aten::gelu", 0, 60)
    made.op("aten::relu", 70, 10)
    for number in range(6):
        made.queued("aclnnGelu", 5 + 13 * number, 6 + 13 * number, 4)
        made.kernel(
            "aclnnGelu_Gelu",
            120 + number * (100 + gap),
            100,
            op_type="Gelu",
            core="AI_VECTOR_CORE",
            launch=7 + 13 * number,
        )
    return made.write(folder / "rank0_ascend_pt")


def test_gaps_between_queued_kernels_are_counted_and_what_one_side_composes_is_one(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.header["deviceProperties"] = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]
    trace.step(1, 0, 1500)
    # As CUDA does it: the kernel is of an operator inside.
    trace.op("aten::relu", 0, 40)
    trace.op("aten::clamp_min", 2, 30)
    trace.launch(5, 5, 50, 30, name="clamp_kernel")
    found = traceanalyze.compare(trace.write(tmp_path / "gpu.json"), _queued(tmp_path, 90)).comparison
    assert found is not None
    rows = {row.op: row for row in found.tables["migration"].records()}
    assert (rows["aten::relu"].base_time_ns, rows["aten::relu"].candidate_time_ns) == (30_000, 100_000)
    (said,) = rows["device_side"].to_do
    assert said.key == "to_gaps"
    assert {name: value for name, _, value in said.values} == {"count": 5, "time": 90_000}


def test_where_the_step_idles_longer_is_named_with_its_line() -> None:
    report = traceanalyze.compare(PAIR / "gpu", PAIR / "npu")
    assert report.comparison is not None
    row = next(row for row in report.comparison.tables["migration"].records() if row.op == "untraced")
    said = row.to_do[0]
    # What the reading of the loss adds, by the simulation's own account, over three steps.
    assert {name: value for name, _, value in said.values} == {
        "time": round(2_652_770 / 3),
        "op": "aten::local_scalar_dense",
        "line": " (train.py(22): log_loss)",
    }
    assert (said.key, row.frame) == ("to_in", "train.py(22): log_loss")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_types_that_a_profile_does_not_state_are_left_open_and_cores_are_of_the_kernel_s_kind() -> None:
    # Without a column for HF32.
    home = SHARED / "ascend/msinsight_2rank_torch/db/level1/rank0_ascend_pt"
    report = traceanalyze.compare(SHARED / "kineto/hta/trace_diff/control/control.json.gz", home)
    assert report.comparison is not None
    rows = {row.op: row for row in report.comparison.tables["migration"].records()}
    assert rows["aten::mm (backward)"].candidate_precision == "fp32/hf32"
    # 24 cube cores, and two vector cores to each.
    assert rows["aten::mm (backward)"].cores == 24
    assert (rows["aten::_foreach_add"].blocks, rows["aten::_foreach_add"].cores) == (48, 48)


@pytest.mark.parametrize("name", sorted(DIFFERENCES))
def test_each_difference_of_simulated_pairs_has_its_row_and_its_cost(name: str, tmp_path: Path) -> None:
    (difference,) = (each for each in PAIR_DIFFERENCES if each.name == name)
    made = pair(PAIR_WORKLOAD, (difference,))
    (tmp_path / "gpu.json").write_bytes(write(made.gpu[0]))
    npu = write_ascend(tmp_path, made.npu[0], AscendLayout("8.3", 2))
    sides = traceanalyze.compare(tmp_path / "gpu.json", npu).comparison
    assert sides is not None
    rows, steps = list(sides.tables["migration"].records()), 3
    said = [message for row in rows for message in row.to_do]
    told = {
        key: sum(message.values[0][2] for message in said if message.key == key) for key in ("to_layout", "to_kernel")
    }
    of = {row.op: row.candidate_sum_ns - row.base_sum_ns for row in rows}
    added = made.moved[name]
    expected = {
        "slower_matmul": (told["to_kernel"] * steps, added.get("compute")),
        "layout_changes": (told["to_layout"] * steps, added.get("compute")),
        "slower_loader": (of.get("data_loading"), added.get("data_loading")),
        "slower_all_reduce": (of.get("all_reduce"), added.get("comm_exposed")),
        "extra_sync": (of["sync"] + of["untraced"], added.get("sync", 0) + added.get("untraced", 0)),
    }
    found, truth = expected[name]
    # The other device by itself differs by some microseconds.
    assert found == pytest.approx(truth, abs=2 * sum(map(abs, made.moved[BASE].values())))
    # What is nearly all of the difference comes first.
    first = (
        "aten::mm (backward)"
        if name in {"slower_matmul", "layout_changes"}
        else {"slower_loader": "data_loading", "slower_all_reduce": "all_reduce", "extra_sync": "untraced"}[name]
    )
    assert rows[0].op == first
    both = sum(row.candidate_sum_ns for row in rows if row.kernels and row.base_sum_ns)
    assert both >= 0.95 * sum(row.candidate_sum_ns for row in rows if row.kernels)


_PROGRAM = Workload(
    model=Model(layers=2, hidden=1024, sequence=512, batch=4, vocabulary=8192),
    script=Script(log=200 * US),
    ranks=Ranks(2),
    steps=3,
    seed=11,
)


def _seldom_sent(workload: Workload, _: float) -> Workload:
    """Gradients of a narrow model are reduced piece by piece, each of which takes its time."""
    return replace(workload, ranks=replace(workload.ranks, bucket=1 << 16, bandwidth=1e12, extra=300 * US))


def _sent_again(workload: Workload, _: float) -> Workload:
    return replace(workload, ranks=replace(workload.ranks, extra=4_100 * MS))


WRONG: tuple[tuple[str, float, str, set[str]], ...] = (
    ("fp32", 2, "aten::mm (backward)", {"to_autocast", "to_kernel"}),
    ("layout_changes", 80, "aten::mm (backward)", {"to_layout"}),
    ("scalar_kernel", 1500, "aten::embedding (backward)", {"to_cores"}),
    ("plain_attention", 512, "aten::scaled_dot_product_attention", {"to_fused", "to_split"}),
    ("loop_optimizer", 2, "aten::_fused_adamw", {"to_fused", "to_split"}),
    ("written_out", 10, "aten::gelu (backward)", {"to_split", "to_kernel"}),
    ("host_slow", 8, "dispatch", {"check_host_op", "to_queue", "to_static"}),
    ("empty_cache", 2, "dispatch", {"check_dispatch_alloc", "to_in"}),
    ("slow_launches", 40, "dispatch", {"check_dispatch_longer", "to_queue", "to_static"}),
    ("item_sync", 4, "untraced", {"check_sync", "to_in"}),
    ("gc_pause", 8, "untraced", {"check_untraced", "to_before"}),
    ("pageable_copy", 0.2, "memory_ops", {"check_memory_ops"}),
    ("slow_loader", 30, "data_loading", {"check_data_loading"}),
    ("straggler", 2.5, "all_reduce", {"to_wait_for", "to_move_fast"}),
    ("exposed_comm", 20, "all_reduce", {"to_move_slow"}),
    ("seldom_sent", 0, "all_reduce", {"to_join"}),
    ("sent_again", 0, "all_reduce", {"to_resend", "to_move"}),
    ("sent_near", 0, "all_reduce", {"to_move_slow"}),
)
"""Fault, its size, the row that comes first, and what it says."""
_KINDS = {name: kind.apply for name, kind in FAULTS.items()} | MORE
_KINDS |= {"seldom_sent": _seldom_sent, "sent_again": _sent_again, "sent_near": _sent_again}
_KINDS["slow_launches"] = lambda made, by: replace(made, host=replace(made.host, launch=round(by * made.host.launch)))


@pytest.mark.parametrize(("fault", "size", "op", "to_do"), WRONG)
def test_what_is_wrong_on_the_npu_comes_first_with_what_to_do(
    fault: str, size: float, op: str, to_do: set[str], tmp_path: Path
) -> None:
    narrow = replace(_PROGRAM.model, hidden=256, vocabulary=1024)
    program = replace(_PROGRAM, model=narrow) if fault == "seldom_sent" else _PROGRAM
    (tmp_path / "gpu.json").write_bytes(write(simulate(program)[0]))
    npu = replace(program, device=replace(program.device, vendor="ascend"))
    home = write_ascend(tmp_path, simulate(_KINDS[fault](npu, size))[0], AscendLayout("8.3", 2))
    timeline = home / "ASCEND_PROFILER_OUTPUT/trace_view.json"
    if fault == "sent_again":
        timeline.write_text(timeline.read_text().replace('"HCCS"', '"ROCE"').replace('"SDMA"', '"RDMA"'))
    if fault == "sent_near":
        # The shortest transfer goes over the network; those of over 4 s in all do not.
        events = json.loads(timeline.read_text())
        tasks = [each for each in events if each.get("args", {}).get("transport type") == "SDMA"]
        min(tasks, key=lambda each: each["dur"])["args"] |= {"transport type": "RDMA", "link type": "ROCE"}
        timeline.write_text(json.dumps(events))
    sides = traceanalyze.compare(tmp_path / "gpu.json", home).comparison
    assert sides is not None
    first = next(sides.tables["migration"].records())
    said = {message.key: message.values for message in first.to_do}
    said |= {said.pop("to_check")[0][2]: ()} if "to_check" in said else {}
    assert (first.op, said.keys() - {"to_before", "to_in"} | to_do & said.keys()) == (op, to_do)
    if fault == "fp32":
        assert said["to_kernel"][-1][2] == " (1800 MHz)"


@pytest.mark.parametrize("slower", [1.0, 1.5])
def test_what_an_operator_takes_by_running_more_often_is_not_told_of_its_kernels(slower: float, tmp_path: Path) -> None:
    """Twice the layers, each as before, or faster than the base's: then no more is by their number than is to win."""
    deeper = replace(_PROGRAM, model=replace(_PROGRAM.model, layers=2 * _PROGRAM.model.layers))
    recorded = json.loads(write(simulate(_PROGRAM)[0]))
    for event in recorded["traceEvents"]:
        if event.get("cat") == "kernel" and "gelu" in event["name"].lower():
            event["dur"] *= slower
    (tmp_path / "gpu.json").write_text(json.dumps(recorded))
    npu = replace(deeper, device=replace(deeper.device, vendor="ascend"))
    home = write_ascend(tmp_path, simulate(npu)[0], AscendLayout("8.3", 1))
    report = traceanalyze.compare(tmp_path / "gpu.json", home)
    assert report.comparison is not None
    found = {row.op: row for row in report.comparison.tables["migration"].records()}["aten::gelu"]
    (said,) = found.to_do
    values = {name: value for name, _, value in said.values}
    layers = _PROGRAM.model.layers
    assert (said.key, values["base"], values["candidate"]) == ("to_often", layers, 2 * layers)
    assert (found.win_ns < 0.9 * found.candidate_time_ns / 2) == (slower > 1)
    assert values["time"] == pytest.approx(min(found.candidate_time_ns / 2, found.win_ns), abs=1)


_ALONE = {"seldom_sent", "sent_again", "sent_near", "straggler"}
"""Faults that need a program or files of their own, or change what the others cost."""


@pytest.mark.parametrize("seed", range(round(10 * max(TIMES, 0.6))))
def test_of_two_faults_each_is_among_the_first_rows_with_what_binds_it(seed: int, tmp_path: Path) -> None:
    """What each adds to the step is known: the step with both, less the step with the other alone."""
    chance = random.Random(seed)
    faults = [one for one in WRONG if one[0] not in _ALONE]
    both = chance.sample(faults, 2)
    model = replace(_PROGRAM.model, hidden=chance.choice([512, 1024]), batch=chance.choice([2, 4]))
    program = replace(_PROGRAM, model=model, seed=seed)
    (tmp_path / "gpu.json").write_bytes(write(simulate(program)[0]))
    npu = replace(program, device=replace(program.device, vendor="ascend"))
    made = [_KINDS[name](npu, size) for name, size, *_ in both]
    second, size, *_ = both[1]
    schedule = simulate(_KINDS[second](made[0], size))[0]
    era, level, form = chance.choice(ERAS), chance.choice([1, 2]), chance.choice(["text", "db"])
    home = write_ascend(tmp_path, schedule, AscendLayout(era, level), form)
    sides = traceanalyze.compare(tmp_path / "gpu.json", home).comparison
    assert sides is not None
    rows = list(sides.tables["migration"].records())
    of_kernels = [row for row in rows if row.kernels]
    whole = sum(row.candidate_sum_ns for row in of_kernels)
    assert sum(row.candidate_sum_ns for row in of_kernels if row.base_sum_ns) >= 0.95 * whole
    assert sum(row.candidate_sum_ns for row in of_kernels if isinstance(row.bound, str)) >= 0.95 * whole
    step = sum(by_part(schedule).values())
    costs = [step - sum(by_part(simulate(other)[0]).values()) for other in made[::-1]]
    for (name, _, op, to_do), cost in zip(both, costs, strict=True):
        shared = op == "dispatch" and both[0][2] == both[1][2]
        if cost < 0.05 * step or (shared and cost < max(costs)):
            # The other hides it, or dispatch is told by what costs most there.
            continue
        # Products and attention are two rows, forward and backward, of each.
        place, found = next(
            (at, row) for at, row in enumerate(rows) if row.op.startswith(op.removesuffix(" (backward)"))
        )
        assert place <= 3, (name, place)
        said = {message.key for message in found.to_do}
        checks = {f"{message.values[0][2]}" for message in found.to_do if message.key == "to_check"}
        assert to_do & (said | checks), (name, said)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared traces are not here")
def test_who_moves_to_the_shared_profile_reads_first_for_which_rank_it_waits() -> None:
    home = SHARED / "ascend/msinsight_2rank_torch/text/level1/rank0_ascend_pt"
    report = traceanalyze.compare(SHARED / "kineto/hta/trace_diff/control/control.json.gz", home)
    assert report.comparison is not None
    rows = list(report.comparison.tables["migration"].records())
    (said,) = rows[0].to_do
    assert (rows[0].op, said.key) == ("all_reduce", "to_wait_for")
    values = {name: value for name, _, value in said.values}
    # Of 101.963 ms that nothing hides; the longest Notify_Wait is for rank 5.
    assert values == {"time": pytest.approx(98_027_300, abs=100), "rank": 5}
    # The base does not tell the sizes of its collectives; the candidate does: 4 and float.
    assert (rows[0].base_rate, rows[0].links) == (NotMeasured("no_bytes"), "HCCS 107 GB/s")
    assert rows[0].candidate_rate == pytest.approx(244_403_360 / 105_991_878, rel=1e-6)
    # What only the candidate computes is held against the base's peak in its type: HF32 of 24 cores at 1.8 GHz.
    (convolution,) = (row for row in rows if row.op == "aten::convolution")
    assert convolution.peak_ratio == pytest.approx(156 / (24 * 1.8 * 2 * 16**3 / 1e3 / 2))
    # All kernels of the table, and what binds them.
    with (home / "ASCEND_PROFILER_OUTPUT/kernel_details.csv").open(newline="") as file:
        kernels = [row for row in csv.DictReader(file) if row["Accelerator Core"] not in {"HCCL", "COMMUNICATION"}]
    of_kernels = [row for row in rows if row.kernels]
    took = sum(round(1000 * float(row["Duration(us)"])) for row in kernels)
    assert sum(row.candidate_sum_ns for row in of_kernels) == pytest.approx(took, abs=len(kernels))
    assert sum(row.candidate_sum_ns for row in of_kernels if isinstance(row.bound, str)) >= 0.95 * took
    # Cube cores alone tell their clock in this form.
    clocks = [row.clock for row in of_kernels if isinstance(row.clock, float)]
    assert clocks
    assert all(clock == pytest.approx(1800, abs=1) for clock in clocks)


def test_work_that_nobody_knows_the_operators_of_is_nothing_to_win(tmp_path: Path) -> None:
    """The sample without its timeline: kernels of the table alone, of operators that the base has under their names."""
    shutil.copytree(PAIR / "npu", tmp_path / "npu")
    for timeline in tmp_path.rglob("trace_view.json*"):
        timeline.unlink()
    report = traceanalyze.compare(PAIR / "gpu", tmp_path / "npu")
    assert report.comparison is not None
    rows = {row.op: row for row in report.comparison.tables["migration"].records()}
    assert rows["<unlinked>"].win_ns == NotMeasured("operator_unknown")
    assert rows["<unlinked>"].to_do == ()


@pytest.mark.parametrize(
    ("base", "candidate", "says"),
    [
        ("bf16", "hf32", "to_autocast"),
        ("fp8", "fp32", "to_autocast"),
        ("fp8", "bf16", "to_precision"),
        ("tf32", "fp32", "to_hf32"),
        ("fp32/tf32", "fp32", "to_hf32"),
        ("fp32", "fp64", "to_precision"),
        ("bf16", "fp16", None),
        ("hf32", "bf16", None),
        (None, "fp32", None),
    ],
)
def test_a_faster_type_is_named_with_what_leads_to_it(base: str | None, candidate: str, says: str | None) -> None:
    assert _faster_type(base, candidate) == says


def test_where_a_profile_lists_no_outputs_of_kernels_no_formula_is_blamed() -> None:
    """The sample's NPU is known by its cycles; its kernels' outputs are N/A, and the optimizer has no tensors."""
    table = traceanalyze.compare(PAIR / "gpu", PAIR / "npu").tables["migration"]
    adam = next(row for row in table.records() if row.op == "aten::_fused_adamw")
    assert (adam.base_roof, adam.candidate_roof) == (NotMeasured("unknown_device"), NotMeasured("no_shapes"))
