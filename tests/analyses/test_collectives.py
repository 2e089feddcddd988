"""Collectives of one rank on hand-made traces."""

import pytest

from tests.ascend_builder import AscendBuilder
from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.analyses.communication.collectives import ranks_label
from traceanalyze.model.table import NotMeasured

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
ARGS = {
    "Collective name": "allreduce",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 4,
    "dtype": "Float",
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1, 2, 3]",
}
MISSING = NotMeasured("no_collective_metadata")


def collectives(b):
    return b.rows("collectives")


def one(**args):
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, name="ncclDevKernel_Generic", **(ARGS | args))
    (row,) = collectives(b)
    return row


def test_bytes_and_bandwidths_of_an_all_reduce():
    row = one()
    assert (row.group, row.collective, row.dtype, row.size_bytes, row.ranks) == ("0-3", "all_reduce", "Float", 4000, 4)
    assert row.algbw == pytest.approx(4000 / 20_000)
    assert row.busbw == pytest.approx(4000 / 20_000 * 2 * 3 / 4)


def test_an_all_gather_counts_its_output_and_a_reduce_scatter_its_input():
    gather = one(**{"Collective name": "_allgather_base", "Out msg nelems": 4000})
    scatter = one(**{"Collective name": "_reduce_scatter_base", "In msg nelems": 8000, "dtype": "BFloat16"})
    assert (gather.collective, gather.size_bytes, gather.busbw) == ("all_gather", 16_000, pytest.approx(0.8 * 3 / 4))
    assert (scatter.collective, scatter.size_bytes) == ("reduce_scatter", 16_000)


def test_a_barrier_has_no_bus_bandwidth():
    assert one(**{"Collective name": "barrier"}).busbw == NotMeasured("no_bus_bandwidth")
    assert one(**{"Group size": 1}).busbw == NotMeasured("no_bus_bandwidth")


def test_what_was_not_recorded_is_not_measured():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, name=KERNEL)
    (row,) = collectives(b)
    assert row.collective == "all_reduce"
    assert row.group == row.dtype == row.size_bytes == row.ranks == row.algbw == row.busbw == MISSING


def test_equal_times_stand_by_the_number_of_elements():
    """Not by the type of the elements, whose number is that of its first appearance in the file."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 20, name="ncclDevKernel_Generic", **ARGS)
    b.device(40, 20, name="ncclDevKernel_Generic", **(ARGS | {"dtype": "BFloat16", "In msg nelems": 8}))
    assert [row.dtype for row in collectives(b)] == ["BFloat16", "Float"]


def test_an_unknown_element_type_gives_no_size():
    assert one(dtype="Mystery").size_bytes == MISSING


def test_the_record_around_the_launch_describes_it():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("record_param_comms", 0, 10, **ARGS)
    b.launch(2, 1, 20, 10, name="ncclDevKernel_SendRecv")
    (row,) = collectives(b)
    assert (row.collective, row.size_bytes) == ("all_reduce", 4000)


def test_an_all_to_all_is_told_by_its_range_not_by_its_kernel():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.annotation("nccl:all_to_all", 0, 10)
    b.op("record_param_comms", 1, 8)
    b.launch(2, 1, 20, 10, name="ncclDevKernel_SendRecv")
    b.launch(40, 1, 50, 5, name="ncclDevKernel_SendRecv")
    assert [(row.collective, row.device_time_ns) for row in collectives(b)] == [
        ("all_to_all", 10_000),
        ("send_recv", 5_000),
    ]


def test_exposed_time_of_concurrent_collectives_is_the_first_ones():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(0, 30, name="void at::native::compute")
    b.device(10, 40, name=KERNEL, stream=8)  # 10 to 50, of it 20 under compute
    b.device(40, 40, name="ncclDevKernel_AllGather_RING_LL", stream=9)  # 40 to 80, its own from 50 on
    a = b.analyze()
    found = {row.collective: (row.exposed_ns, row.overlapped_ns) for row in a.records("collectives")}
    assert found == {"all_reduce": (20_000, 20_000), "all_gather": (30_000, 0)}
    assert sum(exposed for exposed, _ in found.values()) == int(a.partitions[0].comm_exposed.sum())


def test_one_inside_another_has_nothing_exposed():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(10, 50, name=KERNEL, stream=8)
    b.device(20, 10, name="ncclDevKernel_AllGather_RING_LL", stream=9)
    b.device(50, 20, name="ncclDevKernel_Broadcast", stream=10)
    assert {row.collective: row.exposed_ns for row in collectives(b)} == {
        "all_reduce": 50_000,
        "all_gather": 0,
        "broadcast": 10_000,
    }


def test_sizes_are_told_apart():
    b = TraceBuilder()
    b.step(1, 0, 200)
    for at in (0, 20):
        b.device(at, 10, name=KERNEL, **ARGS)
    b.device(40, 10, name=KERNEL, **(ARGS | {"In msg nelems": 5}))
    assert [(row.size_bytes, row.count) for row in collectives(b)] == [(4000, 2), (20, 1)]


def test_the_size_of_a_group_may_come_from_its_ranks_or_the_header():
    b = TraceBuilder()
    b.header["distributedInfo"] = {"pg_config": [{"pg_name": "dp", "ranks": [0, 2]}]}
    b.step(1, 0, 200)
    few = {key: ARGS[key] for key in ("Collective name", "In msg nelems", "dtype")}
    b.device(10, 10, name=KERNEL, **few, **{"Process Group Name": "dp"})
    b.device(30, 20, name=KERNEL, **few, **{"Process Group Ranks": "[1, 3, 5]"})
    found = [(row.group, row.ranks) for row in collectives(b)]
    assert found == [("1, 3, 5", 3), ("dp", 2)]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("[0, 1, 2]", "0-2"),
        ("[4]", "4"),
        ("[0, 2]", "0, 2"),
        ("[0, 1, 4, 5]", "0, 1, 4, 5"),
        (str([*range(13)]), "0-12"),
        (str([*range(5, 101, 8)]), "5, 13, 21, 29, 37, 45, 53, 61, 69, 77, 85, 93"),
        (str([*range(5, 102, 8)]), "5, 13, …, 101"),
        (str([*range(5, 102, 8), 103]), "5, 13, 21, 29, 37, 45, 53, 61, 69, 77, 85, 93, 101, 103"),
        (str([*range(8), *range(16, 24)]), "0-7, 16-23"),
        (str([at for at in range(128) if at // 8 % 2]), "8-15, 24-31, …, 120-127"),
        (
            str([at for at in range(128) if at // 8 % 2][:-1]),
            "8-15, 24-31, 40-47, 56-63, 72-79, 88-95, 104-111, 120-126",
        ),
        ("default_pg", "default_pg"),
        ("7", "7"),
        # As many ranks as from one to the other have no room in any memory.
        ("[0, 999999999]", "0, 999999999"),
        (f"[{'9' * 5000}]", f"[{'9' * 5000}]"),
    ],
)
def test_ranks_label(text, label):
    assert ranks_label(text) == label


def test_without_communication_there_is_no_table():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(10, 5)
    assert b.table("collectives").absent == NotMeasured("no_communication")


def test_of_a_collective_without_tasks_the_bandwidth_is_over_all_its_time():
    """Beside another whose tasks were recorded, of which it is over the time that moves data."""
    b = AscendBuilder()
    b.step(1, 0, 400)
    b.kernel("MatMul", 0, 10, op_type="MatMul", launch=2)
    b.collective("hcom_allReduce__001_0_1", 20, 100, [(0, "Memcpy", 30, 40, 1)], count=1000)
    b.collective("hcom_allReduce__002_0_1", 200, 50, count=500)
    table = analyze_trace(b.trace()).tables["collectives"]
    rows = {row.size_bytes: row for row in table.records()}
    assert {size: row.algbw for size, row in rows.items()} == {
        4000: pytest.approx(4000 / 40_000),
        2000: pytest.approx(2000 / 50_000),
    }
    assert (rows[4000].transfer_ns, rows[4000].wait_ns) == (40_000, 60_000)
    assert rows[2000].transfer_ns == rows[2000].wait_ns == NotMeasured("no_collective_tasks")


@pytest.mark.parametrize("stated", ["Collective name", "Process Group Name"])
def test_the_record_of_the_collective_itself_counts_also_with_an_empty_name(stated):
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.op("record_param_comms", 0, 10, **ARGS)
    b.launch(2, 5, 10, 20, name=KERNEL, **{stated: "", "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Float"})
    (row,) = collectives(b)
    assert (row.collective, row.size_bytes) == ("all_reduce", 32)
