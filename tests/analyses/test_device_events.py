"""Device events: impossible durations, streams and devices from old spellings."""

from itertools import permutations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options


def test_an_impossible_duration_is_clipped_to_the_next_event_and_counted():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 9_000_000)  # 9 s "running" while its stream goes on
    b.launch(2, 1, 300, 20)
    a = b.analyze()
    assert int(a.partitions[0].compute.sum()) == 310_000
    repaired = {c.message: dict(c.values) for c in a.checks}["repaired"]
    assert repaired == {"count": 1, "removed_ns": 9_000_000_000 - 290_000}


def test_the_last_event_cannot_outlive_the_file_by_a_second():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 20)
    b.launch(2, 1, 300, 9_000_000)
    a = b.analyze()
    assert int(a.partitions[0].compute.sum()) == 20_000 + 200_000
    assert int(a.steps.end[0]) == 500_000


def test_small_overlaps_on_one_stream_are_left_alone():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 104)
    b.launch(2, 1, 100, 20)
    a = b.analyze()
    assert "repaired" not in {c.message for c in a.checks}
    assert int(a.partitions[0].compute_dur.sum()) == 124_000


def test_old_traces_name_the_stream_in_the_thread_id():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.api("cudaLaunchKernel", 0, 1, correlation=1)
    b.event("Kernel", "k", 10, 10, pid=3, tid="stream 7", correlation=1)
    a = b.analyze()
    assert a.device == 3
    assert a.tables["launches"].column("linked") == (1,)


def test_rocm_copy_kernels_are_memory_operations():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 1, 10, 20, name="__amd_rocclr_copyBuffer")
    p = b.analyze().partitions[0]
    assert (int(p.compute.sum()), int(p.mem_exposed.sum())) == (0, 20_000)


@pytest.mark.parametrize(("beyond", "left"), [(1_000_000, 1_000_500), (1_000_000.001, 500)])
def test_a_kernel_may_outlive_all_else_by_a_second_also_where_there_is_one_other_event(beyond, left):
    b = TraceBuilder()
    b.op("aten::mm", 0, 500)
    b.device(0, 500 + beyond)
    a = b.analyze()
    assert int(a.partitions[0].compute.sum()) == round(left * 1000)


def test_a_kernel_that_is_alone_has_nothing_to_outlive():
    b = TraceBuilder()
    b.device(0, 9_000_000)
    assert int(b.analyze().partitions[0].compute.sum()) == 9_000_000_000


@pytest.mark.parametrize(
    ("overlap", "stream", "device", "repaired"),
    [(100, 7, 0, 0), (100.001, 7, 0, 1), (100.001, 8, 0, 0), (100.001, 7, 1, 0)],
)
def test_events_of_one_stream_may_overlap_by_a_tenth_of_a_millisecond(overlap, stream, device, repaired):
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 190 + overlap, stream=7)
    b.launch(2, 1, 200, 250, stream=stream, device=device)
    told = {c.message: dict(c.values) for c in b.analyze().checks}
    assert told.get("repaired", {"count": 0})["count"] == repaired


@pytest.mark.parametrize("order", list(permutations(("kernel", "step", "op"))))
def test_what_outlives_all_else_ends_where_the_latest_of_the_others_does(order):
    """Wherever it stands in the file."""
    b = TraceBuilder()
    add = {
        "kernel": lambda: b.device(0, 9_000_000),
        "step": lambda: b.op("aten::mm", 0, 500),
        "op": lambda: b.op("aten::add", 0, 20, tid=2),
    }
    for name in order:
        add[name]()
    assert int(b.analyze().partitions[0].compute.sum()) == 500_000


@pytest.mark.parametrize(
    ("tid", "stream"),
    [("stream 7", 7), ("7 of 12", 12), ("stream " + "1" * 17, int("1" * 17)), ("stream " + "1" * 18, -1), ("main", -1)],
)
def test_the_stream_is_the_last_number_of_the_thread_unless_that_is_absurd(tid, stream):
    b = TraceBuilder()
    b.event("Kernel", "k", 10, 10, pid=3, tid=tid)
    assert Context(b.trace(), Options()).device.stream.tolist() == [stream]


def test_of_several_devices_every_table_says_whose_it_is():
    """Device 1 is busier; work of device 0 ends no gap of it, and is none of its launches."""
    b = TraceBuilder()
    for number in (1, 2):
        at = 1000 * number
        b.step(number, at, 900)
        b.op("aten::mm", at + 10, 40)
        b.launch(at + 20, 5, at + 40, 300, device=0)
        b.launch(at + 80, 5, at + 100, 500, device=1, name="gemm")
        for device in (1, 0):
            b.device(at + 700, 10, device=device, name="Memset (Device)", cat="gpu_memset")
    tables = b.analyze().tables
    said = {key: [str(note.key) for note in table.notes] for key, table in tables.items() if table.rows}
    apart = {key for key, table in tables.items() if {"device", "devices"} & set(table.keys)}
    silent = {key for key, notes in said.items() if not {"of_one_device", "of_devices"} & set(notes)} - apart
    # Of the host, the file, or every device event that there is.
    assert silent <= {"runtime_calls", "annotations", "files"}
    (launches,) = tables["launches"].records()
    assert (launches.linked, launches.late, launches.late_share) == (2, 2, 1.0)
    assert "of_one_device" in said["launches"]
    rows = {row.name: (row.devices, row.count) for row in tables["kernels"].records()}
    assert rows == {"kernel": ("0", 2), "gemm": ("1", 2), "Memset (Device)": ("0, 1", 4)}
    assert {row.name: row.devices for row in tables["classification"].records()} == {
        name: devices for name, (devices, _) in rows.items()
    }
    assert [row.devices for row in tables["copies"].records()] == ["0, 1"]
    assert set(tables["op_kernels"].column("devices")) == {"0"}
    assert {row.work: row.devices for row in tables["kernel_groups"].records()}["work_fill"] == "0, 1"
    assert set(tables["gaps"].column("device")) == {1}
    assert "of_devices" in said["kernels"]


def test_one_device_needs_no_word():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 190)
    tables = b.analyze().tables
    assert not {note.key for table in tables.values() for note in table.notes} & {"of_one_device", "of_devices"}
    assert not [table.key for table in tables.values() if table.absent is None and "devices" in table.keys]
    assert "device" not in tables["gaps"].keys


def test_work_of_a_graph_on_one_lane_ran_on_the_streams_it_names():
    """torch ≥ 2.13 draws a graph's nodes on lanes: an all-reduce of 1,000 µs beside two products is whole."""
    b = TraceBuilder()
    b.step(1, 0, 2_000)
    b.api("cudaGraphLaunch", 10, 5, correlation=7)
    b.device(100, 1_000, name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL", correlation=7, original_stream=20)
    b.device(200, 300, name="gemm", correlation=7, original_stream=21)
    b.device(500, 600, name="gemm", correlation=7, original_stream=21)
    b.event("graph_event_node", "EventRecord", 1_100, 0, pid=0, tid=7, device=0, stream=7, correlation=7)
    a = b.analyze()
    assert {"repaired", "unknown_categories"}.isdisjoint(check.message for check in a.checks)
    totals = {row.part: row.device_time_ns for row in a.tables["totals"].records()}
    assert totals["communication"] == 1_000_000
    assert totals["compute"] == 900_000


def test_counters_that_the_profiler_of_xpu_draws_around_kernels_are_none():
    b = TraceBuilder()
    b.step(1, 0, 1_000)
    for at in (50, 150):
        b.event("xpu_runtime", "urEnqueueKernelLaunch", at - 40, 5, correlation=at)
        b.event("kernel", "gemm", at, 50, pid=0, tid=3, device=0, correlation=at)
        b.event("kernel", "metrics: gemm", at - 0.001, 50.002, pid=0, tid=3, kernel_id=at)
    a = b.analyze()
    assert [(row.name, row.count, row.device_time_ns) for row in a.tables["kernels"].records()] == [
        ("gemm", 2, 100_000)
    ]
    (launches,) = a.tables["launches"].records()
    assert (launches.linked, launches.unlinked, launches.late) == (2, 0, 2)


@pytest.mark.parametrize("count", [1024, 1026])
def test_numbers_of_more_devices_than_there_can_be_tell_none_and_are_counted(count):
    b = TraceBuilder()
    for number in range(count):
        b.device(number * 10, 5, device=number)
    a = b.analyze()
    told = [dict(check.values)["count"] for check in a.checks if check.message == "many_devices"]
    assert told == [1026] * (count > 1024)


@pytest.mark.parametrize(("at", "told"), [(0, "impossible_start"), (9_000e6, "impossible_late")])
@pytest.mark.parametrize("spanned", [False, True])
def test_a_kernel_at_a_time_that_was_never_set_is_in_no_span(at, told, spanned):
    """Also where the profiler draws its own span around all there is, as exporters of torch ≥ 2.13 do."""
    b = TraceBuilder()
    b.launch(3_000e6, 2, 3_000e6 + 10, 20)
    b.launch(3_000e6 + 40, 2, 3_000e6 + 50, 30)
    b.device(at, 5)
    if spanned:
        b.event("Trace", "PyTorch Profiler (0)", min(at, 3_000e6), max(at, 3_000e6) + 80, pid="Spans", tid="x")
    a = b.analyze()
    (row,) = a.tables["device_spans"].records()
    assert (row.span_ns, row.compute_ns, row.idle_ns) == (70_000, 50_000, 20_000)
    checks = {check.message: dict(check.values) for check in a.checks}
    assert checks.get(told), checks
    assert checks.get("impossible_late", {"after_ns": 6_000_000_000_000 - 80_000})["after_ns"] == 5_999_999_920_000


def test_an_impossible_duration_is_clipped_also_inside_the_span_of_the_profiler():
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 20)
    b.launch(2, 1, 300, 9_000_000)
    b.event("Trace", "PyTorch Profiler (0)", 0, 9_000_300, pid="Spans", tid="x")
    a = b.analyze()
    assert int(a.partitions[0].compute.sum()) == 20_000 + 200_000


def test_a_device_and_a_stream_below_zero_are_none():
    """Then the process and the thread tell."""
    b = TraceBuilder()
    b.step(1, 0, 500)
    b.launch(0, 1, 10, 20)
    b.event("kernel", "k", 40, 30, pid=0, tid=7, device=-1, stream=-1)
    (row,) = b.rows("devices")
    assert (row.device, row.compute_ns) == (0, 50_000)
