"""Collectives meet by type, group and size, whatever the library calls them."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.comparison.make import side_from
from traceanalyze.comparison.collectives import collective_pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import NotMeasured

NCCL, RCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"


def side(*calls, compute=0.0):
    """Collectives one after another: (kernel name, µs, arguments) each; compute runs beside them from the start."""
    b = TraceBuilder()
    b.step(0, 0, 1000)
    at = 100.0
    for place, (name, length, arguments) in enumerate(calls):
        b.launch(10 + 3 * place, 1, at, length, name=name, stream=20, **arguments)
        at += length
    if compute:
        b.launch(90, 1, 100, compute, name="gemm")
    return side_from(b).context


def stated(kind, elements=None, ranks="[0, 1]"):
    more = {} if elements is None else {"In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float"}
    return {"Collective name": kind, "Process Group Ranks": ranks, **more}


def told(base, candidate):
    def sums(each):
        return None if each is None else (each["calls"], each["total_ns"] / 1000)

    return [
        (*(row.shared[key] for key in ("collective", "group", "size_bytes")), sums(row.base), sums(row.candidate))
        for row in collective_pairs(base, candidate, CompareOptions())
    ]


def test_names_of_different_libraries_are_one_type():
    base = side((NCCL, 30, stated("allreduce", 256)))
    candidate = side((RCCL, 20, stated("allreduce", 256)))
    assert told(base, candidate) == [("all_reduce", "0-1", 1024, (1, 30), (1, 20))]


def test_types_and_sizes_have_rows_of_their_own():
    calls = [
        ("ncclDevKernel_SendRecv", 5, stated("all_to_allv", 64)),
        (NCCL, 7, stated("allreduce", 64)),
        (NCCL, 9, stated("allreduce", 128)),
    ]
    one = side(*calls)
    assert sorted(told(one, one)) == [
        ("all_reduce", "0-1", 256, (1, 7), (1, 7)),
        ("all_reduce", "0-1", 512, (1, 9), (1, 9)),
        ("all_to_all", "0-1", 256, (1, 5), (1, 5)),
    ]


def test_sizes_that_only_one_side_has_are_compared_together():
    base = side((NCCL, 7, stated("allreduce", 64)), (NCCL, 9, stated("allreduce", 128)))
    candidate = side((NCCL, 5, stated("allreduce", 64)), (NCCL, 4, stated("allreduce", 100)))
    assert sorted(told(base, candidate), key=str) == [
        ("all_reduce", "0-1", 256, (1, 7), (1, 5)),
        ("all_reduce", "0-1", None, (1, 9), (1, 4)),
    ]


def test_a_side_that_states_no_size_still_meets_the_other():
    base, candidate = side((NCCL, 7, stated("allreduce", 64))), side((NCCL, 5, stated("allreduce")))
    assert told(base, candidate) == [("all_reduce", "0-1", None, (1, 7), (1, 5))]


def test_a_type_that_one_side_does_not_use_stands_alone():
    base = side((NCCL, 7, stated("allreduce", 64)))
    candidate = side((NCCL, 7, stated("allreduce", 64)), ("ncclDevKernel_Broadcast", 3, stated("broadcast", 64)))
    assert ("broadcast", "0-1", 256, None, (1, 3)) in told(base, candidate)


def test_groups_of_other_ranks_meet_in_the_order_of_first_use():
    base = side(*((NCCL, 7, stated("allreduce", 64, ranks)) for ranks in ("[0, 1]", "[0, 2]", "[0, 1, 2, 3]")))
    candidate = side(*((NCCL, 5, stated("allreduce", 64, ranks)) for ranks in ("[0, 1]", "[0, 1, 2, 3]", "[4, 6]")))
    assert sorted(row[1] for row in told(base, candidate)) == ["0, 2 → 4, 6", "0-1", "0-3"]
    assert all(row[3:] == ((1, 7), (1, 5)) for row in told(base, candidate))


def test_groups_of_other_ranks_meet_only_groups_of_their_size():
    base = side(*((NCCL, 7, stated("allreduce", 64, ranks)) for ranks in ("[0, 2]", "[0, 2, 4, 6]")))
    candidate = side(*((NCCL, 5, stated("allreduce", 64, ranks)) for ranks in ("[1, 3, 5, 7]", "[1, 3]", "[1]")))
    groups = {row[1]: row[3:] for row in told(base, candidate)}
    assert groups == {
        "0, 2 → 1, 3": ((1, 7), (1, 5)),
        "0, 2, 4, 6 → 1, 3, 5, 7": ((1, 7), (1, 5)),
        "1": (None, (1, 5)),
    }


def test_groups_of_many_ranks_meet_only_groups_of_their_size():
    every, rows = str([*range(0, 512, 8)]), str([at for at in range(512) if at // 8 % 8 == 0])
    base = side(*((NCCL, 7, stated("allreduce", 64, ranks)) for ranks in (every, "[0, 1]")))
    candidate = side(
        *((NCCL, 5, stated("allreduce", 64, ranks)) for ranks in (str([*range(1, 505, 8)]), rows, "[0, 1]"))
    )
    groups = {row[1]: row[3:] for row in told(base, candidate)}
    assert groups == {
        "0-1": ((1, 7), (1, 5)),
        "0, 8, …, 504 → 0-7, 64-71, …, 448-455": ((1, 7), (1, 5)),
        "1, 9, …, 497": (None, (1, 5)),
    }


def test_exposed_time_is_that_of_the_partition_and_waiting_needs_more():
    one = side((NCCL, 30, stated("allreduce", 64)), (NCCL, 20, stated("allreduce", 128)), compute=40)
    rows = collective_pairs(one, one, CompareOptions())
    assert {row.shared["size_bytes"]: row.base["exposed_ns"] for row in rows} == {256: 0, 512: 10_000}
    assert rows[0].base["wait_ns"] == rows[0].base["transfer_ns"] == NotMeasured("of_all_together")


def test_without_communication_there_is_nothing_to_compare():
    assert collective_pairs(side(), side(), CompareOptions()) == NotMeasured("no_communication")
