"""What becomes of each table of an Ascend database, and of everything odd that real ones hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests import ascend_db_builder as made
from tests.ascend_db_builder import ADDRESS, MAIN, MARK, NONE, OP, PID, PYTHON, QUEUE, QUEUED, START, Builder

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.model.trace import Trace


def rows_of(trace: Trace, cat: str) -> list[int]:
    return [row for row, code in enumerate(trace.events.cat.tolist()) if trace.strings.text(code) == cat]


def name(trace: Trace, row: int) -> str:
    return trace.strings.text(int(trace.events.name[row]))


def names(trace: Trace, cat: str) -> list[str]:
    return [name(trace, row) for row in rows_of(trace, cat)]


def value(trace: Trace, row: int, field: str) -> Any:
    """An argument of an event: text or number, None where it has none."""
    column = trace.events.fields.get(field)
    at = np.flatnonzero(column.row == row) if column is not None else []
    if column is None or len(at) == 0:
        return None
    found = column.value[at[0]]
    return trace.strings.text(int(found)) if column.value.dtype == np.int32 else found.item()


def arrows(trace: Trace, cat: str) -> set[tuple[int, str, int, str]]:
    """(start, thread, end, thread) of the arrows of a category, times after `START`."""
    flows = trace.flows
    ends: dict[tuple[int, str], tuple[int, str]] = {}
    for row in range(len(flows.ts)):
        if trace.strings.text(int(flows.cat[row])) == cat:
            place = trace.base_ns + int(flows.ts[row]) - START, trace.track_text(int(flows.track[row]))[1]
            ends[int(flows.id[row]), chr(flows.phase[row])] = place
    return {(*ends[number, "s"], *ends[number, "f"]) for number, phase in ends if phase == "s"}


def test_times_stored_as_text_are_exact(tmp_path: Path) -> None:
    build = Builder()
    build.api(OP, "aten::mul", 610, 19_720)
    trace = build.read(tmp_path)
    assert trace.base_ns + int(trace.events.ts[0]) == 1_736_410_576_000_000_610
    assert trace.events.dur.tolist() == [19_720]


def test_times_stored_as_integers_are_the_same(tmp_path: Path) -> None:
    build = Builder()
    build.columns["PYTORCH_API"] = build.columns["PYTORCH_API"].replace(
        "startNs TEXT, endNs TEXT", "startNs INTEGER, endNs INTEGER"
    )
    build.api(OP, "aten::mul", 610, 19_720)
    trace = build.read(tmp_path)
    assert trace.base_ns + int(trace.events.ts[0]) == START + 610


@pytest.mark.parametrize("swapped", [True, False])
def test_shapes_and_types_are_told_apart_by_what_they_look_like(tmp_path: Path, *, swapped: bool) -> None:
    shapes, dtypes = "32,3,224,224;\r\n64;\r\n;\r\n", "float;\r\nc10::BFloat16;\r\nScalarList;\r\nScalar"
    build = Builder()
    columns = (shapes, dtypes) if swapped else (dtypes, shapes)
    build.api(OP, "aten::conv2d", 0, 10, dtypes=columns[0], shapes=columns[1])
    only = {"shapes" if swapped else "dtypes": "double"}
    build.api(OP, "aten::item", 20, 10, **only)  # type: ignore[arg-type]
    trace = build.read(tmp_path)
    assert value(trace, 0, "shapes") == "[[32, 3, 224, 224], [64], [], []]"
    assert value(trace, 0, "dtypes") == '["float", "c10::BFloat16", "ScalarList", "Scalar"]'
    assert value(trace, 1, "shapes") == "[[]]"
    assert value(trace, 1, "dtypes") == '["double"]'


def test_framework_events_by_kind(tmp_path: Path) -> None:
    build = Builder()
    build.api(OP, "aten::mul", 0, 100, sequenceNumber=7, fwdThreadId=2)
    build.api(QUEUED, "Enqueue", 10, 5, connection=40, sequenceNumber=None, fwdThreadId=None)
    build.api(QUEUED, "Dequeue@aclnnMul", 30, 50, tid=QUEUE, connection=40, sequenceNumber=None, fwdThreadId=None)
    build.api(PYTHON, "train.py(3): step", 0, 200)
    build.api(MARK, "my range", 0, 300)
    build.api(50099, "something new", 0, 300)
    build.connect(40, 9879)
    trace = build.read(tmp_path)
    assert names(trace, "cpu_op") == ["aten::mul"]
    assert names(trace, "python_function") == ["train.py(3): step"]
    assert names(trace, "user_annotation") == ["my range"]
    assert names(trace, "pytorch_api_50099") == ["something new"]
    queue = rows_of(trace, "task_queue_runtime")
    assert [(name(trace, row), value(trace, row, "queue_id")) for row in queue] == [
        ("Enqueue", 9879),
        ("Dequeue@aclnnMul", 9879),
    ]
    assert [trace.track_text(int(trace.events.track[row])) for row in queue] == [
        (str(PID), str(MAIN)),
        (str(PID), str(QUEUE)),
    ]
    op = rows_of(trace, "cpu_op")[0]
    assert (value(trace, op, "sequence"), value(trace, op, "fwd_thread"), value(trace, op, "queue_id")) == (7, 2, None)


def test_stacks_are_joined_innermost_first_and_shared(tmp_path: Path) -> None:
    build = Builder()
    for key, frames in enumerate([("a.py(1): f", "b.py(2): g"), ("a.py(1): f",), ("a.py(1): f", "b.py(2): g")]):
        build.api(OP, "aten::mul", 10 * key, 5, callchainId=key)
        build.stack(key, *frames)
    build.api(OP, "aten::mul", 90, 5)
    trace = build.read(tmp_path)
    both = "a.py(1): f;\r\nb.py(2): g"
    assert [value(trace, row, "stack") for row in range(4)] == [both, "a.py(1): f", both, None]
    stack = trace.events.fields["stack"].value
    assert stack[0] == stack[2]


def test_cann_calls_are_named_as_in_the_text_export(tmp_path: Path) -> None:
    build = Builder()
    kinds = (20000, 15000, 10000, 5500, 5000)
    for number, kind in enumerate(kinds):
        build.call(kind, "launch", 10 * number, 5, 900 + number)
    for kind, text in zip(kinds, ("acl", "model", "node", "hccl", "runtime"), strict=True):
        build.row("ENUM_API_TYPE", id=kind, name=text)
    trace = build.read(tmp_path)
    prefixes = ("AscendCL", "Model", "Node", "Hccl", "Runtime")
    assert names(trace, "cann_runtime") == [f"{prefix}@launch" for prefix in prefixes]
    assert [value(trace, row, "correlation") for row in range(5)] == [900, 901, 902, 903, 904]
    assert trace.track_text(0) == (str(PID), str(QUEUE))


def test_newer_cann_calls_its_layer_communication(tmp_path: Path) -> None:
    build = Builder()
    build.call(5500, "Launch_Ffts", 0, 5, 900)
    build.row("ENUM_API_TYPE", id=5500, name="communication")
    assert names(build.read(tmp_path), "cann_runtime") == ["Communication@Launch_Ffts"]


def test_one_operator_with_several_kernels_is_one_call(tmp_path: Path) -> None:
    """CONNECTION_IDS has a row a kernel, and one that the backward operator shares."""
    build = Builder()
    build.api(OP, "aten::conv2d", 0, 200, connection=1)
    build.api(OP, "Conv2D", 50, 100, connection=2)
    build.api(OP, "ConvolutionBackward0", 900, 50, tid=QUEUE, connection=1, fwdThreadId=1)
    build.connect(1, 9000)
    build.connect(2, 953, 954, 955)
    for number in range(3):
        build.kernel(f"k{number}", 1000 + 100 * number, 90, 953 + number)
    trace = build.read(tmp_path)
    assert names(trace, "cpu_op") == ["aten::conv2d", "Conv2D", "ConvolutionBackward0"]
    main = str(MAIN)
    assert arrows(trace, "async_npu") == {(50, main, 1000 + 100 * number, "2") for number in range(3)}
    assert arrows(trace, "fwdbwd") == {(0, main, 900, str(QUEUE))}


def test_of_nested_operators_with_one_connection_the_inner_one_launched(tmp_path: Path) -> None:
    build = Builder()
    build.api(OP, "Mul", 20, 50, connection=2)
    build.api(OP, "aten::mul", 0, 100, connection=1)
    build.connect(1, 953)
    build.connect(2, 953)
    build.kernel("k", 1000, 90, 953)
    assert arrows(build.read(tmp_path), "async_npu") == {(20, str(MAIN), 1000, "2")}


def test_kernels_are_the_compute_table_and_nothing_else(tmp_path: Path) -> None:
    """The task's own type is not what counts: KERNEL_AICORE is used for parts of a mixed kernel too."""
    build = Builder()
    kernel = build.kernel("Conv2D1", 0, 314, 955, kind="KERNEL_AICORE", core="AI_CORE", op_type="Conv2D")
    build.task("KERNEL_AICORE", 100, 20, 955)
    build.task("EVENT_WAIT", 400, 9000, 956)
    build.task("PROFILING_ENABLE", 0, 1, NONE, stream=0)
    build.kernel("AllReduceAicpuKernel", 500, 10, 957)
    build.counter(kernel, "aic_total_time", 311_573.4027)
    build.counter(kernel, "aic_mac_time", 162_056)
    build.counter(kernel, "aiv_vec_time", 0)
    build.counter(kernel, "aic_mac_ratio", 0.519)
    trace = build.read(tmp_path)
    assert names(trace, "kernel") == ["Conv2D1"]
    row = rows_of(trace, "kernel")[0]
    expected = {
        "device": 4,
        "stream": 2,
        "correlation": 955,
        "op_type": "Conv2D",
        "core": "AI_CORE",
        "kernel_shapes": "32,64;64",
        "kernel_dtypes": "FLOAT;BF16",
        "block_dim": 16,
        "aicore_time": 311_573,
        "mac_time": 162_056,
        "vec_time": 0,
        "aiv_time": None,
    }
    assert {field: value(trace, row, field) for field in expected} == expected
    assert sorted(names(trace, "npu_control")) == [
        "AllReduceAicpuKernel",
        "EVENT_WAIT",
        "KERNEL_AICORE",
        "PROFILING_ENABLE",
    ]
    assert [
        value(trace, row, "correlation") for row in rows_of(trace, "npu_control") if name(trace, row)[0] == "P"
    ] == [None]


def test_level_0_has_no_types_nor_shapes(tmp_path: Path) -> None:
    build = Builder()
    build.kernel("k", 0, 10, 955, core="N/A", op_type="N/A", shapes="N/A", dtypes="N/A")
    trace = build.read(tmp_path)
    assert names(trace, "kernel") == ["k"]
    assert not {"core", "op_type", "kernel_shapes", "kernel_dtypes"} & set(trace.events.fields)


def test_block_number_by_its_new_name(tmp_path: Path) -> None:
    build = Builder()
    build.columns["COMPUTE_TASK_INFO"] = build.columns["COMPUTE_TASK_INFO"].replace("blockDim", "blockNum", 1)
    build.kernel("k", 0, 10, 955)
    assert value(build.read(tmp_path), 0, "block_dim") == 16


def test_without_the_compute_table_the_type_of_the_task_decides(tmp_path: Path) -> None:
    build = Builder()
    build.task("KERNEL_AIVEC", 0, 10, 955)
    build.task("AI_CORE", 20, 500, 1175)
    build.collective("hcom_allReduce__210_0_1", 20, 500, 1175, 1)
    trace = build.read(tmp_path)
    assert names(trace, "kernel") == ["hcom_allReduce__210_0_1", "KERNEL_AIVEC"]
    assert any("COMPUTE_TASK_INFO is missing" in note for note in trace.read.notes)


def test_copies_have_sizes_where_the_database_says(tmp_path: Path) -> None:
    build = Builder()
    first = build.task("MEMCPY_ASYNC", 0, 10, 936)
    build.task("MEMCPY_ASYNC", 20, 10, 938)
    build.row("MEMCPY_INFO", globalTaskId=first, size=4096, memcpyOperation=1)
    build.row("ENUM_MEMCPY_OPERATION", id=1, name="host to device")
    trace = build.read(tmp_path)
    rows = rows_of(trace, "gpu_memcpy")
    assert [(value(trace, row, "bytes"), value(trace, row, "copy_kind")) for row in rows] == [
        (4096, "HtoD"),
        (None, None),
    ]


def collective(build: Builder) -> None:
    """One collective of two planes: its tasks share its connection."""
    build.task("AI_CORE", 0, 1000, 1175, stream=9)
    build.collective("hcom_allReduce__210_0_1", 5, 990, 1175, 7)
    build.part("Notify_Wait", 10, 900, 1175, 7, plane=1)
    build.part("Memcpy", 910, 50, 1175, 7, plane=0, size=2_064_384, transportType=0, linkType=1, dstRank=NONE)


def test_a_collective_is_one_event_and_its_parts_name_it(tmp_path: Path) -> None:
    build = Builder()
    collective(build)
    build.collective("hcom_broadcast__210_1_1", 2000, 100, 1204, 8, dataType=11, count=5)
    build.part("Reduce_Inline", 2010, 10, 1204, 8, plane=0, size=64, transportType=1, linkType=3)
    trace = build.read(tmp_path)
    rows = rows_of(trace, "kernel")
    assert [name(trace, row) for row in rows] == ["hcom_allReduce__210_0_1", "hcom_broadcast__210_1_1"]
    described = [
        [value(trace, row, field) for field in ("collective", "dtype", "in_elements", "algorithm", "device", "stream")]
        for row in rows
    ]
    assert described == [
        ["hcom_allReduce", "Float", 1000, "MESH-RING", 4, -1000],
        ["hcom_broadcast", "BFloat16", 5, "MESH-RING", 4, -1000],
    ]
    parts = rows_of(trace, "hccl_task")
    fields = ("part_of", "plane", "bytes", "transport", "link_type", "src_rank", "dst_rank")
    assert [(name(trace, row), *(value(trace, row, field) for field in fields)) for row in parts] == [
        ("Notify_Wait", rows[0], 1, 0, "LOCAL", None, 1, 6),
        ("Memcpy", rows[0], 0, 2_064_384, "SDMA", "HCCS", 1, None),
        ("Reduce_Inline", rows[1], 0, 64, "RDMA", "ROCE", 1, 6),
    ]
    assert (trace.base_ns + trace.events.ts[parts] - START).tolist() == [10, 910, 2010]
    assert sorted(names(trace, "npu_control")) == ["AI_CORE", "Notify Wait", "SDMA", "SDMA"]


def test_the_operator_of_a_collective_points_at_the_collective_not_at_its_tasks(tmp_path: Path) -> None:
    build = Builder()
    collective(build)
    build.api(OP, "HcclAllreduce", 0, 100, connection=5)
    build.connect(5, 1175)
    assert arrows(build.read(tmp_path), "async_npu") == {(0, str(MAIN), 5, "0")}


def test_addresses_and_host_names_stay_out(tmp_path: Path) -> None:
    build = Builder()
    collective(build)
    build.row("HOST_INFO", hostUid="123", hostName="secret-host")
    build.text("secret text that nothing uses but group names")
    trace = build.read(tmp_path)
    assert value(trace, rows_of(trace, "kernel")[0], "group") == "group 210"
    held = trace.strings.blob.tobytes()
    assert ADDRESS.encode() not in held
    assert b"10.20.30.40" not in held
    assert b"secret-host" not in held
    assert trace.origin.host is None


def test_a_group_has_its_name_in_the_program(tmp_path: Path) -> None:
    build = Builder()
    collective(build)
    build.write(tmp_path)
    groups = {ADDRESS: {"group_name": "dp", "global_ranks": [0, 2]}}
    (tmp_path / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": groups}))
    trace = made.read_profile(tmp_path)
    assert value(trace, rows_of(trace, "kernel")[0], "group") == "dp"
    assert trace.groups == {"dp": (0, 2)}


def test_allocations_and_releases(tmp_path: Path) -> None:
    build = Builder()
    build.row(
        "OP_MEMORY",
        name=build.text("aten::empty"),
        size=512,
        allocationTime=START + 100,
        releaseTime=START + 300,
        allocationTotalAllocated=1512,
        allocationTotalReserved=4096,
        releaseTotalAllocated=1000,
        releaseTotalReserved=4096,
        deviceId=4,
    )
    build.row("OP_MEMORY", name=0, size=64, allocationTime=START + 400, allocationTotalAllocated=1064, deviceId=4)
    # The graph engine's own pool, which is another curve: no name tells it, but that pool's record does; at the same
    # time there is a record of PyTorch's pool, with its totals.
    own = {"allocationTotalAllocated": 1512, "allocationTotalReserved": 8192, "releaseTotalAllocated": 0, "deviceId": 4}
    build.row("OP_MEMORY", name=0, size=32, allocationTime=START + 250, allocationTotalAllocated=1544, deviceId=4)
    name = build.text("trans_TransData_0")
    build.row("OP_MEMORY", name=name, size=6_000_000, allocationTime=START + 250, releaseTime=START + 260, **own)
    for component, at in (("PTA", 100), ("PTA", 200), ("PTA+GE", 200), ("GE", 250)):
        record = {"timestamp": START + at, "totalAllocated": 1512, "totalReserved": 8192, "deviceId": 4}
        build.row("MEMORY_RECORD", component=build.text(component), **record)
    trace = build.read(tmp_path)
    fields = trace.instants.fields
    assert (trace.base_ns + trace.instants.ts - START).tolist() == [100, 200, 250, 300, 400]
    assert fields["bytes"].value.tolist() == [512, 0, 32, -512, 64]
    assert fields["allocated"].value.tolist() == [1512, 1512, 1544, 1000, 1064]
    assert (fields["reserved"].row.tolist(), fields["reserved"].value.tolist()) == ([0, 1, 3], [4096, 8192, 4096])
    assert set(fields["device"].value.tolist()) == {4}
    assert set(fields["device_type"].value.tolist()) == {1}


def test_step_markers_from_the_step_table_only_when_there_are_none(tmp_path: Path) -> None:
    build = Builder()
    build.api(OP, "aten::mul", 10, 5)
    build.row("STEP_TIME", id=50, startNs=START, endNs=START + 900)
    trace = build.read(tmp_path / "without")
    assert names(trace, "user_annotation") == ["ProfilerStep#50"]
    row = rows_of(trace, "user_annotation")[0]
    assert trace.track_text(int(trace.events.track[row])) == (str(PID), str(MAIN))
    assert trace.events.dur[row] == 900
    build.api(OP, "ProfilerStep#50", 0, 900)
    trace = build.read(tmp_path / "with")
    assert names(trace, "cpu_op") == ["aten::mul", "ProfilerStep#50"]
    assert names(trace, "user_annotation") == []


def test_marks_and_garbage_collections(tmp_path: Path) -> None:
    build = Builder()
    mark = {"eventType": 0, "message": build.text("epoch"), "globalTid": made.thread(MAIN)}
    build.row("MSTX_EVENTS", startNs=START + 5, endNs=None, **mark)
    build.row("GC_RECORD", startNs=START + 7, endNs=START + 20, globalTid=made.thread(MAIN))
    trace = build.read(tmp_path)
    assert names(trace, "user_annotation") == ["epoch"]
    assert trace.events.dur[rows_of(trace, "user_annotation")].tolist() == [0]
    assert trace.events.dur[rows_of(trace, "gc")].tolist() == [13]


def test_columns_and_tables_that_a_viewer_added_do_not_matter(tmp_path: Path) -> None:
    build = Builder()
    build.columns["TASK"] = f"depth INTEGER, {build.columns['TASK']}, waitNs INTEGER"
    build.columns["OVERLAP_ANALYSIS"] = "id INTEGER, startNs INTEGER, endNs INTEGER, type INTEGER"
    build.columns["status_info"] = "key TEXT"
    build.row("OVERLAP_ANALYSIS", id=1, startNs=1, endNs=2, type=0)
    build.row("status_info", key="FINISH")
    build.kernel("k", 10, 20, 955)
    trace = build.read(tmp_path)
    assert names(trace, "kernel") == ["k"]
    assert trace.base_ns + int(trace.events.ts[0]) == START + 10


def test_rows_without_usable_times_are_counted(tmp_path: Path) -> None:
    build = Builder()
    for start, end in ((None, START), (0, 5), (START, None), (START + 5, START), (START, START)):
        times = {"startNs": start, "endNs": end}
        build.row("PYTORCH_API", globalTid=made.thread(MAIN), name=build.text("aten::mul"), type=OP, **times)
    trace = build.read(tmp_path)
    assert trace.read.counts == {"no_ts": 1, "bad_ts": 1, "no_dur": 1, "negative_dur": 1}
    assert len(trace.events) == 1


def test_kernels_and_parts_without_a_task_are_said(tmp_path: Path) -> None:
    build = Builder()
    # Parts that have theirs, the very first task among them, are not meant.
    build.collective("hcom_allReduce__1", 10, 90, 7, 1)
    build.part("Memcpy", 10, 20, 7, 1, plane=0)
    build.kernel("k", 10, 20, 955)
    whole = build.read(tmp_path / "whole")
    assert not [note for note in whole.read.notes if "no task" in note]
    assert names(whole, "hccl_task") == ["Memcpy"]
    build.row("COMPUTE_TASK_INFO", name=build.text("lost"), globalTaskId=777)
    build.row("COMMUNICATION_TASK_INFO", globalTaskId=778, taskType=build.text("Memcpy"), groupName=build.text(ADDRESS))
    notes = build.read(tmp_path).read.notes
    assert [note for note in notes if note.startswith("1 ")] == [
        "1 rows of COMPUTE_TASK_INFO have no task with times and were left out",
        "1 parts of collectives have no task with times and were left out",
    ]


def test_tables_that_are_not_there_are_said(tmp_path: Path) -> None:
    build = Builder()
    build.kernel("k", 10, 20, 955)
    notes = build.read(tmp_path).read.notes
    assert [note.partition(": ")[2] for note in notes if "not in the database" in note] == [
        "PYTORCH_API (operators), CANN_API (launch calls), CONNECTION_IDS (which operator launched what)"
    ]


def test_device_rank_and_vendor_numbers(tmp_path: Path) -> None:
    build = Builder()
    build.kernel("k", 10, 20, 955)
    build.row("NPU_INFO", id=4, name="Ascend910B")
    build.row("NPU_INFO", id=5, name="Ascend910B")
    build.row("RANK_DEVICE_MAP", rankId=12, deviceId=4)
    build.write(tmp_path, "ascend_pytorch_profiler.db")
    made.write_totals(
        tmp_path,
        "CREATE TABLE StepTraceTime (step TEXT, computing NUMERIC, communication NUMERIC, preparing NUMERIC);"
        "INSERT INTO StepTraceTime VALUES ('50', 8903.431, 102108.1, NULL);",
    )
    trace = made.read_profile(tmp_path)
    assert [(device.id, device.name) for device in trace.devices] == [(4, "Ascend910B")]
    assert (trace.origin.rank, trace.origin.rank_source) == (12, "RANK_DEVICE_MAP")
    assert trace.vendor is not None
    step = trace.vendor.steps[0]
    assert (step.step, step.computing, step.communication, step.preparing, step.free) == (
        50,
        8_903_431,
        102_108_100,
        None,
        None,
    )
    made.write_info(tmp_path)
    trace = made.read_profile(tmp_path)
    assert (trace.origin.rank, trace.origin.level, trace.origin.form) == (3, "Level1", "db")
    assert trace.options == {"record_shapes": True}
