"""Host calls of two sides: self times by thread, never negative, nothing lost."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.comparison.make import side_from
from traceanalyze.comparison.apis import DATA_LOADER, api_pairs
from traceanalyze.comparison.side import CompareOptions
from traceanalyze.model.table import NotMeasured


def told(base, candidate, **options):
    found = api_pairs(side_from(base).context, side_from(candidate).context, CompareOptions(**options))
    return {
        row.shared["api"]: tuple(
            None if side is None else (side["calls"], side["total_ns"] / 1000, side["self_ns"] / 1000)
            for side in (row.base, row.candidate)
        )
        for row in found
    }


def host(*calls, api="cudaLaunchKernel"):
    """Operators (name, begin, µs, thread), and one launch."""
    b = TraceBuilder()
    b.step(0, 0, 200)
    for name, at, length, tid in calls:
        b.op(name, at, length, tid=tid)
    b.launch(150, 2, 160, 10, api=api)
    return b


def test_time_of_a_call_without_the_calls_inside():
    one = host(("aten::linear", 10, 20, 1), ("aten::mm", 12, 5, 1))
    assert told(one, one)["aten::linear"] == ((1, 20, 15),) * 2
    assert told(one, one)["aten::mm"] == ((1, 5, 5),) * 2


def test_calls_of_two_threads_at_the_same_time_take_nothing_from_each_other():
    one = host(("aten::empty_strided", 10, 20, 1), ("aten::t", 12, 15, 2), ("aten::t", 14, 15, 3))
    found = told(one, one)
    assert found["aten::empty_strided"] == ((1, 20, 20),) * 2
    assert found["aten::t"] == ((2, 30, 30),) * 2


def test_of_calls_inside_calls_of_the_same_name_the_total_counts_the_outer():
    one = host(("aten::to", 10, 20, 1), ("aten::to", 12, 10, 1))
    assert told(one, one)["aten::to"] == ((2, 20, 20),) * 2


def test_runtime_calls_of_different_vendors_meet():
    assert told(host(), host(api="hipLaunchKernel")) == {"LaunchKernel": ((1, 2, 2), (1, 2, 2))}
    assert told(host(), host()) == {"cudaLaunchKernel": ((1, 2, 2), (1, 2, 2))}


def test_both_kinds_of_data_loader_are_one_row():
    def loading(kind):
        b = host()
        b.annotation(f"enumerate(DataLoader)#_{kind}ProcessDataLoaderIter.__next__", 10, 30)
        return b

    assert told(loading("Single"), loading("Multi"))[DATA_LOADER] == ((1, 30, 30),) * 2


def test_the_map_of_the_user_holds_for_host_calls():
    base, candidate = host(("lib::gemm", 10, 5, 1)), host(("aten::mm", 10, 7, 1))
    assert told(base, candidate, op_name_map={"lib::gemm": "aten::mm"})["aten::mm"] == ((1, 5, 5), (1, 7, 7))


def test_without_host_calls_nothing_is_measured():
    b = TraceBuilder()
    b.device(0, 5)
    one = side_from(b).context
    assert api_pairs(one, one, CompareOptions()) == NotMeasured("no_host_ops")
