"""The text form of an Ascend profile: the same small step in every spelling, damaged in every usual way."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pytest

from tests.ascend_builder import (
    EIGHT,
    KERNEL_HEADER,
    NEW,
    OLD,
    PID,
    QUEUE_THREAD,
    START,
    AscendBuilder,
    Era,
    analyze,
    load,
    of_category,
    texts,
)
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.errors import InputError
from traceanalyze.model.table import NotMeasured
from traceanalyze.readers.kineto import read_text, read_trace
from traceanalyze.readers.runs import group_runs
from traceanalyze.readers.sources import expand

LEVEL_0 = Era(named_cann=False)


def step(era=EIGHT, **more):
    """One step of 1 ms: a matrix product for 100 µs, a vector kernel for 50, a copy for 30, a collective for 400."""
    built = AscendBuilder(era, **more)
    built.step(1, 0, 1000)
    built.op("aten::mm", 10, 40)
    built.op("aclnnMm", 15, 30)
    number = built.queued("aclnnMm", 20, 30, 40)
    assert number
    built.kernel("aclnnMm_MatMulCommon_MatMulV2", 100, 100, op_type="MatMulV2", launch=35)
    built.op("aten::relu", 60, 30)
    built.queued("aclnnRelu", 70, 80, 10)
    built.kernel("aclnnRelu_ReluAiCore_Relu", 200, 50, op_type="Relu", core="AI_VECTOR_CORE", launch=85)
    built.task("MEMCPY_ASYNC", 260, 30, "PCIE_DMA_SQE", **{"size(B)": 3000, "operation": "host to device"})
    parts = [
        (0, "Notify_Wait", 300, 10, 0),
        (1, "Notify_Wait", 300, 250, 5),
        (1, "Memcpy", 560, 100, 5),
        (2, "Reduce_Inline", 610, 80, 6),
        (2, "Notify_Record", 699, 0, 6),
    ]
    built.collective("hcom_allReduce__586_0_1", 300, 400, parts)
    built.task("EVENT_WAIT", 300, 400, "EVENT_WAIT_SQE")
    built.task("PROFILING_ENABLE", 0, 1, "PLACE_HOLDER_SQE", stream=0)
    return built


def split(analysis):
    (part,) = analysis.partitions
    return {
        "compute": int(part.compute.sum()),
        "comm": int(part.comm_exposed.sum()),
        "mem": int(part.mem_exposed.sum()),
        "total": int(analysis.steps.time.sum()),
    }


EXPECTED = {"compute": 150_000, "comm": 400_000, "mem": 30_000, "total": 1_000_000}


@pytest.mark.parametrize("era", [EIGHT, NEW, OLD, LEVEL_0])
def test_the_step_is_the_same_in_every_era(tmp_path, era):
    assert split(analyze(step(era).write(tmp_path / "a_ascend_pt"))) == EXPECTED


def numeric(text, kind):
    events = json.loads(text)
    for event in events:
        if "ts" in event:
            event["ts"] = kind(event["ts"])
    return json.dumps(events)


DAMAGE = {
    "object": lambda text: '{"traceEvents": ' + text + "}",
    "trailing comma": lambda text: text[:-1] + ",]",
    "unterminated": lambda text: text[:-1],
    "tab after times": lambda text: re.sub(r'("ts": "[0-9.]+)"', r'\1\\t"', text),
    "lines": lambda text: text.replace("}, {", "},\r\n{"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_containers_and_damage(tmp_path, damage):
    built = step()
    folder = built.write(tmp_path / "a_ascend_pt", text=DAMAGE[damage](built.text()))
    assert split(analyze(folder)) == EXPECTED


def test_a_timeline_cut_inside_an_event_keeps_the_complete_ones(tmp_path):
    built = step()
    trace = load(built.write(tmp_path / "a_ascend_pt", text=built.text()[:-20]))
    assert trace.read.truncated
    assert len(trace.events) == len(load(step().write(tmp_path / "b_ascend_pt")).events) - 1


def test_times_may_be_numbers(tmp_path):
    built = step()
    rounded = numeric(built.text(), lambda ts: int(float(ts)))
    trace = load(built.write(tmp_path / "a_ascend_pt", text=rounded))
    assert trace.base_ns == START // 1000 * 1000
    assert split(analyze_trace(trace))["compute"] == 150_000


def test_times_are_exact(tmp_path):
    trace = load(step().write(tmp_path / "a_ascend_pt"))
    assert trace.base_ns == START
    assert trace.resolution_ns == 1


def test_it_is_known_by_its_content_under_any_name(tmp_path):
    path = tmp_path / "whatever.json.gz"
    path.write_bytes(gzip.compress(step().text().encode()))
    trace = load(path)
    assert (trace.origin.format, trace.origin.form, trace.origin.path) == ("ascend", "text", str(path))
    assert split(analyze_trace(trace)) == EXPECTED


def test_it_is_known_when_only_its_end_tells(tmp_path):
    built = step()
    ops = [dict(event, name="aten::mm", cat="cpu_op") for event in built.events if event["name"] == "aten::mm"]
    for event in ops:
        event["ts"] = float(event["ts"])
    padding = numeric(json.dumps(ops * 700), float)[:-1] + ", "
    path = tmp_path / "trace.json"
    path.write_text(padding + numeric(built.text(), float)[1:])
    assert len(padding) > 1 << 16
    assert load(path).origin.format == "ascend"
    assert "Relu" not in path.name


def test_a_kineto_list_is_no_npu_data():
    events = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"stream": 7}}]
    assert read_text(json.dumps(events).encode()).origin.format == "kineto"


def test_device_work_is_traced_to_the_operator_through_the_queue(tmp_path):
    analysis = analyze(step().write(tmp_path / "a_ascend_pt"))
    ops = {op.op: op.device_self_ns for op in analysis.records("operators")}
    assert ops["aclnnMm"] == 100_000
    assert ops["aten::relu"] == 50_000
    totals = {op.op: op.device_total_ns for op in analysis.records("operators")}
    assert totals["aten::mm"] == 100_000


def test_without_cann_calls_the_queue_entry_is_the_launch(tmp_path):
    analysis = analyze(step(LEVEL_0, level="Level0").write(tmp_path / "a_ascend_pt"))
    assert analysis.tables["launches"].column("linked") == (2,)
    assert {op.op: op.device_self_ns for op in analysis.records("operators")}["aclnnMm"] == 100_000
    assert "no_cann_calls" in {check.message for check in analysis.checks}


def test_an_arrow_from_the_operator_helps_where_no_launch_is_recorded():
    built = AscendBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 10, 40)
    built.op("aclnnMm", 15, 30)
    built.task("aclnnMm_MatMulV2", 100, 100, "AI_CORE")
    number = START + 100_000
    assert number > 1 << 53
    built.flow("async_npu", number, (PID, PID, 15), (built.npu, 2, 100))
    built.flow("async_npu", number + 1, (PID, PID, 10), (built.npu, 2, 999))
    analysis = analyze_trace(built.trace())
    assert {op.op: op.device_self_ns for op in analysis.records("operators")}["aclnnMm"] == 100_000
    assert analysis.steps.owned.tolist() == [1]


def test_cann_calls_run_on_the_threads_of_the_program(tmp_path):
    trace = load(step().write(tmp_path / "a_ascend_pt"))
    places = {trace.track_text(track) for track in trace.events.track.tolist()}
    assert (str(PID), str(QUEUE_THREAD)) in places
    assert {pid for pid, tid in places if tid == str(QUEUE_THREAD)} == {str(PID)}


def test_a_synchronising_call_is_a_sync_point():
    built = step()
    built.op("aten::item", 200, 300)
    built.call("AscendCL@aclrtSynchronizeStreamWithTimeout", 210, 280, connection=1)
    built.queued("later", 600, 610, 5)
    built.kernel("later", 800, 10, op_type="Add", launch=611)
    (site,) = analyze_trace(built.trace()).tables["sync_points"].records()
    assert (site.op, site.blocked_ns, site.count) == ("aten::item", 280_000, 1)


def test_parts_of_collectives_are_counted_once_and_tell_waiting_from_transfer(tmp_path):
    analysis = analyze(step().write(tmp_path / "a_ascend_pt"))
    (row,) = analysis.records("collectives")
    # Memcpy 560-660 and Reduce_Inline 610-690 run side by side: 130 µs in which data moves.
    assert (row.collective, row.count, row.device_time_ns) == ("all_reduce", 1, 400_000)
    assert (row.transfer_ns, row.wait_ns, row.exposed_wait_ns) == (130_000, 270_000, 270_000)
    assert row.waited_for == 5
    assert (row.group, row.dtype, row.size_bytes) == ("group 586", "Float", 4000)


def test_waiting_is_not_measured_without_the_parts(tmp_path):
    built = AscendBuilder(LEVEL_0, level="Level0")
    built.step(1, 0, 1000)
    built.collective("hcom_allReduce__586_0_1", 300, 400)
    analysis = analyze(built.write(tmp_path / "a_ascend_pt"))
    (row,) = analysis.records("collectives")
    assert not {"wait_ns", "transfer_ns", "waited_for"} & set(row._fields)


def test_groups_go_by_the_name_the_program_gave_them(tmp_path):
    folder = step(NEW).write(tmp_path / "a_ascend_pt")
    groups = {"group_name_7": {"group_name": "tp", "group_rank": 0, "global_ranks": [0, 2, 4, 6, 8, 10]}}
    told = {"parallel_group_info": groups, "distributed_args": {"world_size": 16, "rank": 0}}
    (folder / "profiler_metadata.json").write_text(json.dumps(told))
    analysis = analyze(folder)
    (row,) = analysis.records("collectives")
    assert (row.group, row.ranks, row.waited_for) == ("tp", 6, 10)
    assert analysis.trace.origin.world_size == 16


def test_addresses_do_not_get_into_the_trace(tmp_path):
    era = Era(group="Group 10.1.2.3%eth0_60000_0_1736410538306028 Communication")
    trace = load(step(era).write(tmp_path / "a_ascend_pt"))
    assert set(texts(trace, "group")) == {"group 586"}


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("Conv2D1", "Other", "kernel"),
        ("aclnnAdd", "AI_VECTOR_CORE", "kernel"),
        ("GenMask", "DSA_SQE", "kernel"),
        ("TopK", "AI_CPU", "kernel"),
        ("allreduceAicpuKernel", "AI_CPU", "npu_control"),
        ("AllReduceAivKernel", "MIX_AIV", "npu_control"),
        ("MEMCPY_ASYNC", "SDMA_SQE", "gpu_memcpy"),
        ("MEMSET_ASYNC", "SDMA_SQE", "gpu_memset"),
        ("SDMA", "SDMA", "npu_control"),
        ("Notify Wait", "Notify Wait", "npu_control"),
        ("Write Value", "Write Value", "npu_control"),
        ("EVENT_RECORD", "EVENT_RECORD_SQE", "npu_control"),
        ("PROFILING_DISABLE", "PLACE_HOLDER_SQE", "npu_control"),
    ],
)
def test_what_a_device_task_is(name, kind, expected):
    built = AscendBuilder()
    built.task(name, 10, 5, kind)
    assert of_category(built.trace(), expected) == [name]


def test_copies_have_size_and_direction(tmp_path):
    (row,) = analyze(step().write(tmp_path / "a_ascend_pt")).records("copies")
    assert (row.direction, row.bytes, row.bandwidth) == ("copy_h2d", 3000, 0.1)


def test_the_kernel_table_names_types_cores_and_counters(tmp_path):
    matmul, relu = analyze(step().write(tmp_path / "a_ascend_pt")).records("kernel_types")
    assert (matmul.op_type, matmul.core, matmul.work) == ("MatMulV2", "AI_CORE", "work_matmul")
    assert (matmul.device_time_ns, matmul.cube_utilisation, matmul.cube_share) == (100_000, 0.5, 0.5)
    assert (relu.op_type, relu.core, relu.work) == ("Relu", "AI_VECTOR_CORE", "work_elementwise")


def test_kernels_have_the_hit_rate_of_the_table_of_the_l2_cache(tmp_path):
    """Of 100 µs at 0.8 and 300 µs at 0.4 it is (80 + 120) / 400; what joins no kernel, two, or is no rate is told."""
    built = AscendBuilder()
    built.step(1, 0, 1000)
    for at, dur, op_type in ((0, 100, "MatMulV2"), (100, 300, "MatMulV2"), (400, 50, "Relu"), (500, 40, "Add")):
        built.kernel(op_type, at, dur, op_type=op_type)
    first, second, relu, add = (row["Task ID"] for row in built.kernels)
    built.number = int(add) - 2
    built.kernel("Add", 600, 60, op_type="Add")
    rows = [
        ["2", first, "0.8", "0.1", "MatMulV2"],
        ["2", second, "0.4", "1.1", "MatMulV2"],
        ["2", relu, "N/A", "0.2", "Relu"],
        # Of two kernels, of none by its name, stream or number, and no rate.
        ["2", add, "0.9", "0.2", "Add"],
        ["2", relu, "0.5", "0.2", "Gelu"],
        ["3", relu, "0.5", "0.2", "Relu"],
        ["2", "99999", "0.5", "0.2", "Relu"],
        ["2", relu, "1.5", "0.2", "Relu"],
        ["2", relu, "much", "0.2", "Relu"],
    ]
    built.tables["l2_cache.csv"] = [["Stream Id", "Task Id", "Hit Rate", "Victim Rate", "Op Name"], *rows]
    found = analyze(built.write(tmp_path / "a_ascend_pt"))
    rates = {row.op_type: row.l2_hit_rate for row in found.records("kernel_types")}
    assert rates.pop("MatMulV2") == pytest.approx(0.5, abs=1e-12)
    assert rates == dict.fromkeys(("Relu", "Add"), NotMeasured("vendor_does_not_say"))
    told = [note for note in found.trace.read.notes if note.startswith("l2_cache.csv")]
    assert told == [
        "l2_cache.csv: 1 number(s) cannot be read (was it saved by a spreadsheet?): hit rate",
        "l2_cache.csv: 5 hit rate(s) left out, of no kernel, of several, or not from 0 to 1",
    ]
    assert not any("passed over" in note for note in found.trace.read.notes)


def test_a_table_of_the_l2_cache_without_a_rate_is_passed_over(tmp_path):
    built = step()
    task = built.kernels[0]["Task ID"]
    header = ["Stream Id", "Task Id", "Hit Rate", "Victim Rate", "Op Name"]
    built.tables["l2_cache.csv"] = [header, ["2", task, "N/A", "0.2", built.kernels[0]["Name"]]]
    found = analyze(built.write(tmp_path / "a_ascend_pt"))
    assert {row.l2_hit_rate for row in found.records("kernel_types")} == {NotMeasured("vendor_does_not_say")}
    assert any(note.startswith("l2_cache.csv: passed over") for note in found.trace.read.notes)


@pytest.mark.parametrize(
    "header",
    [
        KERNEL_HEADER,
        KERNEL_HEADER.replace("Block Dim", "Block Num"),
        KERNEL_HEADER.replace("Step Id,", "Step Id,Device_id,"),
        "Name,Type,Accelerator Core,Start Time(us),Block Dim,Input Data Types",
    ],
)
def test_columns_of_the_kernel_table_are_found_by_name(tmp_path, header):
    built = step()
    for row in built.kernels:
        row["Block Num"] = row["Block Dim"]
    trace = load(built.write(tmp_path / "a_ascend_pt", header=header))
    assert texts(trace, "op_type") == ["MatMulV2", "Relu"]
    assert trace.events.fields["block_dim"].value.tolist() == [16, 16]
    assert set(texts(trace, "kernel_dtypes")) == {"BF16;FLOAT"}


def test_a_damaged_kernel_table_says_what_it_costs(tmp_path):
    built = step()
    built.kernels[0]["Start Time(us)"] = "1.73641E+15"
    folder = built.write(tmp_path / "a_ascend_pt")
    table = folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv"
    table.write_text("\ufeff" + table.read_text() + "1,2\r\n")
    trace = load(folder)
    assert texts(trace, "op_type") == ["Relu"]
    assert any("1 row(s) with too few" in note for note in trace.read.notes)
    assert any("1 number(s) cannot be read (was it saved by a spread" in note for note in trace.read.notes)


def test_a_missing_table_is_named_with_what_is_lost(tmp_path):
    folder = step().write(tmp_path / "a_ascend_pt", rank=None)
    (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").unlink()
    trace = load(folder)
    notes = " ".join(trace.read.notes)
    assert "kernel_details.csv is missing" in notes
    assert "profiler_info.json is missing" in notes
    assert split(analyze_trace(trace)) == EXPECTED
    types = analyze_trace(trace).tables["kernel_types"]
    assert types.absent == NotMeasured("no_kernel_types")


@pytest.mark.parametrize("rank", [3, "3"])
def test_the_rank_is_that_of_profiler_info(tmp_path, rank):
    origin = load(step().write(tmp_path / "rank9_ascend_pt", rank=rank)).origin
    assert (origin.rank, origin.rank_source, origin.level) == (3, "profiler_info", "Level1")


@pytest.mark.parametrize(("era", "device"), [(NEW, 3), (EIGHT, 0)])
def test_the_device_is_that_of_the_label(tmp_path, era, device):
    assert analyze(step(era).write(tmp_path / "a_ascend_pt")).device == device


def test_the_device_of_an_unnumbered_label_is_that_of_the_tables(tmp_path):
    built = step()
    built.tables["memory_record.csv"] = [
        ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type"],
        ["PTA", built.time(5) + "\t", "1.5", "2", "NPU:6"],
    ]
    assert analyze(built.write(tmp_path / "a_ascend_pt")).device == 6


def test_memory_is_that_of_the_tables(tmp_path):
    built = step()
    header = ["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Allocation Total Allocated(MB)"]
    header += ["Release Total Allocated(MB)", "Device Type"]
    built.tables["operator_memory.csv"] = [
        header,
        ["aten::empty", "512", built.time(10) + "\t", built.time(50) + "\t", "2.5", "2", "NPU:0"],
        ["aten::empty", "1024", built.time(30) + "\t", "", "3.5", "", "NPU:0"],
    ]
    built.tables["memory_record.csv"] = [
        ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)", "Device Type"],
        ["PTA", built.time(10) + "\t", "2.5", "8", "2", "NPU:0"],
        ["PTA", built.time(40) + "\t", "4.5", "9", "2", "NPU:0"],
        ["GE", built.time(40) + "\t", "100", "100", "", "NPU:0"],
        ["PTA+GE", built.time(40) + "\t", "104.5", "109", "", "NPU:0"],
        ["APP", built.time(40) + "\t", "", "5000", "", "NPU:0"],
    ]
    (device,) = analyze(built.write(tmp_path / "a_ascend_pt")).records("memory")
    mega = 1 << 20
    assert (device.allocated_bytes, device.freed_bytes) == (3 * mega // 2, mega // 2)
    assert (device.peak_allocated_bytes, device.peak_reserved_bytes) == (9 * mega // 2, 9 * mega)
    assert device.records == 4


STEP_HEADER = ["Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage"]


@pytest.mark.parametrize(("computing", "differs"), [("150.000000001", False), ("170", True)])
def test_the_profiles_own_step_times_are_compared(tmp_path, computing, differs):
    built = step()
    built.tables["step_trace_time.csv"] = [STEP_HEADER, ["1", computing, "400", "0", "400", "50", "600.0"]]
    analysis = analyze(built.write(tmp_path / "a_ascend_pt"))
    (stated,) = analysis.trace.vendor.steps
    assert (stated.step, stated.communication, stated.stage, stated.bubble) == (1, 400_000, 600_000, None)
    found = [dict(check.values) for check in analysis.checks if check.message == "vendor_differs_computing"]
    numbers = [(values["ours_ns"], values["theirs_ns"]) for values in found]
    assert numbers == ([(150_000, 170_000)] if differs else [])


def test_a_launch_after_its_kernel_moves_the_clock_of_the_device(tmp_path):
    built = step()
    built.queued("late", 400, 900, 30)
    built.kernel("late", 880, 10, op_type="Add", launch=905)
    analysis = analyze(built.write(tmp_path / "a_ascend_pt"))
    found = {check.message: dict(check.values) for check in analysis.checks}
    assert found["clock_moved"] == {"device": 0, "count": 1, "share": pytest.approx(1 / 3), "moved_ns": 25_000}
    assert analysis.tables["launches"].column("linked") == (3,)


def test_work_belongs_to_the_step_that_enqueued_it(tmp_path):
    built = AscendBuilder()
    built.step(1, 0, 100)
    built.step(2, 100, 100)
    built.op("aten::mm", 80, 19)
    number = built.queued("aclnnMm", 90, 120, 20)
    assert number
    built.kernel("aclnnMm_MatMulV2", 150, 10, op_type="MatMulV2", launch=125)
    assert analyze(built.write(tmp_path / "a_ascend_pt")).steps.owned.tolist() == [1, 0]


def test_unlinked_work_belongs_to_the_step_the_kernel_table_names(tmp_path):
    built = AscendBuilder()
    built.step(1, 0, 100)
    built.step(2, 100, 100)
    built.kernel("aclnnMm_MatMulV2", 150, 10, op_type="MatMulV2", **{"Step Id": "2"})
    built.kernel("aclnnMm_MatMulV2", 130, 10, op_type="MatMulV2", **{"Step Id": ""})
    assert analyze(built.write(tmp_path / "a_ascend_pt")).steps.owned.tolist() == [0, 1]


def test_unlinked_work_belongs_to_the_step_in_whose_device_window_it_begins(tmp_path):
    built = AscendBuilder()
    built.step(1, 0, 100)
    built.kernel("aclnnMm_MatMulV2", 50, 10, op_type="MatMulV2")
    built.collective("hcom_allReduce__586_0_1", 70, 20)
    built.collective("hcom_allReduce__586_1_1", 20, 20)
    assert analyze(built.write(tmp_path / "a_ascend_pt")).steps.owned.tolist() == [2]


def test_shapes_and_types_read_as_those_of_pytorch():
    built = AscendBuilder()
    shapes = "32,64;\r\n64,8;\r\n;\r\n"
    built.op("aten::mm", 0, 10, **{"Input Dims": shapes, "Input type": "float;\r\nc10::BFloat16;\r\nScalar;\r\nNone"})
    built.task("k", 20, 5, "AI_CORE")
    trace = built.trace()
    assert texts(trace, "shapes") == ["[[32, 64], [64, 8], [], []]"]
    assert texts(trace, "dtypes") == ['["float", "c10::BFloat16", "Scalar", "None"]']


def test_garbage_collection_and_counters_are_no_work():
    built = step()
    built._process(PID + 1, "Python GC", "CPU")
    built.event("GC", PID + 1, 0, 20, 30, "GC")
    built.events.append({"ph": "C", "name": "HBM", "pid": 5, "tid": 0, "ts": "1.000", "args": {"KB": 1.0}})
    trace = built.trace()
    assert of_category(trace, "gc") == ["GC"]
    assert trace.read.phases["C"] == 1
    assert trace.base_ns == START
    assert split(analyze_trace(trace)) == EXPECTED


class TestFolders:
    def test_a_folder_of_ranks_is_one_run_of_one_source_each(self, tmp_path):
        for rank in (1, 0):
            step().write(tmp_path / "job" / f"host_{rank}_20250109_ascend_pt", rank=rank)
        found = expand([str(tmp_path)])
        assert found.skipped == ()
        (run,) = group_runs([read_trace(source) for source in found.sources])
        assert run.ranks == (0, 1)

    def test_folders_of_hosts_are_one_run(self, tmp_path):
        for rank in (0, 1):
            step().write(tmp_path / "job" / f"host{rank}" / "x_ascend_pt", rank=rank)
        (run,) = group_runs([read_trace(source) for source in expand([str(tmp_path)]).sources])
        assert (run.name, run.ranks) == ("job", (0, 1))

    def test_recordings_of_one_rank_are_told_apart(self, tmp_path):
        for number in (1, 2):
            built = step()
            later = built.text().replace("17364088836", f"1736408{number}836")
            built.write(tmp_path / f"host_1_2025010{number}_ascend_pt", text=later)
        runs = group_runs([read_trace(source) for source in expand([str(tmp_path)]).sources])
        assert [run.ranks for run in runs] == [(0,), (0,)]
        assert all("several recordings" in " ".join(run.notes) for run in runs)

    def test_the_output_folder_and_the_bare_timeline_find_the_same(self, tmp_path):
        folder = step().write(tmp_path / "a_ascend_pt", rank=4)
        output = folder / "ASCEND_PROFILER_OUTPUT"
        for path in (folder, output, output / "trace_view.json"):
            trace = load(path)
            assert trace.origin.path == str(path)
            assert trace.origin.rank == 4
            assert texts(trace, "op_type") == ["MatMulV2", "Relu"]

    def test_a_packed_timeline_is_found(self, tmp_path):
        folder = step().write(tmp_path / "a_ascend_pt")
        plain = folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
        plain.with_name("trace_view.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        assert split(analyze(folder)) == EXPECTED

    def test_a_profile_never_analysed_names_the_remedy(self, tmp_path):
        folder = tmp_path / "a_ascend_pt"
        for name in ("FRAMEWORK", "PROF_000001_20250109_ABC"):
            (folder / name).mkdir(parents=True)
        (folder / "profiler_info_0.json").write_text("{}")
        with pytest.raises(InputError, match=r"never analysed; run .*profiler import analyse"):
            load(folder)

    def test_a_profile_never_analysed_does_not_stop_the_others(self, tmp_path):
        from traceanalyze import load_runs

        step().write(tmp_path / "job" / "a_ascend_pt")
        (tmp_path / "job" / "b_ascend_pt" / "FRAMEWORK").mkdir(parents=True)
        (tmp_path / "job" / "b_ascend_pt" / "profiler_info_1.json").write_text("{}")
        (run,) = load_runs(tmp_path / "job")
        assert len(run.traces) == 1
        assert any("never analysed" in note for note in run.notes)

    def test_an_output_folder_without_a_timeline_says_what_it_holds(self, tmp_path):
        folder = step().write(tmp_path / "a_ascend_pt")
        (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").unlink()
        (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").rename(
            folder / "ASCEND_PROFILER_OUTPUT" / "some.csv"
        )
        with pytest.raises(InputError, match=r"neither trace_view\.json nor a database nor kernel_details.*some\.csv"):
            load(folder)

    def test_nothing_is_written_into_the_input(self, tmp_path):
        folder = step().write(tmp_path / "a_ascend_pt")
        before = sorted(path.name for path in folder.rglob("*"))
        analyze(folder)
        assert sorted(path.name for path in folder.rglob("*")) == before


def test_nothing_of_a_converted_timeline_keeps_the_memory_of_the_scanner(tmp_path):
    trace = load(step().write(tmp_path))
    events = trace.events
    whole = [events.ts, events.dur, events.name, events.cat, events.track, trace.tracks, trace.strings.blob]
    arguments = [array for column in events.fields.values() for array in column]
    assert arguments
    for array in (*whole, *trace.flows, *arguments):
        owners = [array]
        while isinstance(owners[-1], np.ndarray):
            owners.append(owners[-1].base)
        assert owners[-1] is None
