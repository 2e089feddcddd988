"""An Ascend profile's own tables against its timeline: what is told, just at and just beyond 1 %; answers on paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.ascend_builder import AscendBuilder
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.quality.ascend import ascend_checks
from traceanalyze.model.collectives import VendorCollective, VendorCollectives
from traceanalyze.model.trace import OtherExport, VendorNumbers, VendorStep

if TYPE_CHECKING:
    from collections.abc import Sequence

REDUCE, GATHER = "hcom_allReduce__001_0_1", "hcom_allGather__001_1_1"


def told(b: AscendBuilder, **tables: Any) -> dict[str, dict[str, Any]]:
    """Values of what is told, by its key."""
    trace = b.trace()
    origin = trace.origin._replace(format="ascend", level="Level1")
    found = ascend_checks(Context(replace(trace, origin=origin, **tables), Options()))
    return {check.message: dict(check.values) for check in found}


def working(parts: Sequence[tuple[Any, ...]] = ((0, "Memcpy", 120, 40, 1), (1, "Notify_Wait", 120, 50, 1))) -> Any:
    """Compute from 0 to 100 and from 150 to 160 µs, a collective from 100 to 200 µs, launched by a CANN call."""
    b = AscendBuilder()
    b.call("Node@launch", 0, 1)
    b.kernel("MatMul", 0, 100, op_type="MatMul", launch=2)
    b.kernel("Add", 150, 10, op_type="Add", launch=4)
    b.collective(REDUCE, 100, 100, parts)
    return b


def steps(*parts: tuple[int | None, ...]) -> tuple[VendorStep, ...]:
    """Rows of the table of step times: computing, communication, not overlapped, free."""
    empty = VendorStep(*(None,) * 10)
    keys = ("computing", "communication", "not_overlapped", "free")
    return tuple(empty._replace(**dict(zip(keys, each, strict=False))) for each in parts)


def own_steps(*parts: tuple[int | None, ...]) -> VendorNumbers:
    return VendorNumbers("step_trace_time.csv", steps(*parts))


def collectives(*rows: VendorCollective) -> VendorCollectives:
    return VendorCollectives("communication.json", rows)


def one(name: str = REDUCE, elapsed: int | None = 100_000, wait: int | None = None, *links: Any) -> VendorCollective:
    return VendorCollective(name, "group000", 1, elapsed, None, wait, None, links)


def test_a_profile_without_tables_of_its_own_has_nothing_to_compare() -> None:
    assert told(working()) == {}


def test_what_the_level_leaves_out_is_told() -> None:
    b = working(())
    assert told(b) == {"no_collective_tasks": {"level": "Level1"}}
    b.events = [event for event in b.events if event["pid"] != b.cann]
    assert told(b) == {}
    b.event("Enqueue", 1, 1, 0, 2, "enqueue", correlation_id=1)
    b.event("Dequeue@x", 1, 2, 2, 2, "dequeue", correlation_id=1)
    assert set(told(b)) == {"no_collective_tasks", "no_cann_calls"}
    host = AscendBuilder()
    host.call("Node@launch", 0, 1)
    assert told(host, vendor=own_steps((5, 5, 5))) == {}


@pytest.mark.parametrize(
    ("computing", "communication", "bare", "differ"),
    [
        (110_000, 100_000, 90_000, {}),
        (108_900, 99_000, 89_100, {}),
        (111_111, 101_010, 90_909, {}),
        (108_899, 98_999, 89_099, {"computing": 110_000, "communication": 100_000, "not_overlapped": 90_000}),
        (111_112, 101_011, 90_910, {"computing": 110_000, "communication": 100_000, "not_overlapped": 90_000}),
        (0, 100_000, 90_000, {"computing": 110_000}),
        # A table without a column says nothing.
        (None, 1, 1, {}),
    ],
)
def test_step_times_of_the_profile_may_differ_by_a_hundredth(
    computing: int | None, communication: int, bare: int, differ: dict[str, int]
) -> None:
    """Two rows are summed."""
    theirs = {"computing": computing, "communication": communication, "not_overlapped": bare}
    found = told(working(), vendor=own_steps((computing, communication - 40, bare), (0, 40, 0)))
    source = {"source": "step_trace_time.csv"}
    assert found == {
        f"vendor_differs_{part}": {"ours_ns": ours, "theirs_ns": theirs[part], **source}
        for part, ours in differ.items()
    }


def test_only_work_that_belongs_to_a_step_is_compared_with_step_times() -> None:
    b = working()
    b.step(1, 0, 130)
    b.kernel("Late", 300, 10, op_type="Add", launch=290)
    assert told(b, vendor=own_steps((110_000, 100_000, 90_000))) == {}


@pytest.mark.parametrize(
    ("elapsed", "differs"),
    [(99_000, False), (98_999, True), (101_010, False), (101_011, True), (0, False), (None, False)],
)
def test_durations_of_collectives_may_differ_by_a_hundredth(elapsed: int | None, differs: bool) -> None:
    found = told(working(), vendor_collectives=collectives(one(elapsed=elapsed)))
    values = {"count": 1, "of": 1, "name": REDUCE, "ours_ns": 100_000, "theirs_ns": elapsed}
    assert found == ({"collectives_differ": {"source": "communication.json", **values}} if differs else {})


@pytest.mark.parametrize(("theirs", "differs"), [(6_000, False), (5_999, True), (8_000, False), (8_001, True)])
def test_a_microsecond_is_rounding(theirs: int, differs: bool) -> None:
    b = working()
    b.collective(GATHER, 300, 7)
    found = told(b, vendor_collectives=collectives(one(), one(GATHER, theirs)))
    assert set(found) == ({"collectives_differ"} if differs else set())
    if differs:
        assert (found["collectives_differ"]["of"], found["collectives_differ"]["name"]) == (2, GATHER)


def test_the_collective_that_differs_most_is_named_and_rows_of_one_name_are_summed() -> None:
    b = working()
    b.collective(REDUCE, 300, 100)
    b.collective(GATHER, 500, 10)
    # Of these one side does not tell how long they took.
    b.collective("no time here", 600, 0)
    b.collective("none there", 700, 10)
    rows = one(elapsed=100_000), one(elapsed=50_000), one(GATHER, 20_000)
    rows = *rows, one("no time here", 500_000), one("none there", None)
    found = told(b, vendor_collectives=collectives(*rows))["collectives_differ"]
    assert (found["count"], found["of"], found["name"]) == (2, 2, REDUCE)
    assert (found["ours_ns"], found["theirs_ns"]) == (200_000, 150_000)


def test_collectives_that_only_the_table_has_are_missing_in_the_timeline() -> None:
    found = told(working(), vendor_collectives=collectives(one(), one(GATHER, 5), one("x", 7), one("y", None)))
    assert found == {"collectives_missing": {"source": "communication.json", "count": 3, "time_ns": 12}}
    # Where none is matched, names are made in another way.
    assert told(working(), vendor_collectives=collectives(one(GATHER, 5))) == {}


def moved(*tasks: dict[str, Any]) -> AscendBuilder:
    """The collective with these copies: from rank 0 over HCCS to rank 1, 1000 bytes, where they do not say more."""
    b = working(())
    usual = {"src rank": 0, "dst rank": 1, "size(Byte)": 1000, "transport type": "SDMA", "link type": "HCCS"}
    for at, task in enumerate(tasks):
        args = usual | {"name": "Memcpy", "stream id": 4} | task
        b.event(args.pop("name"), b.hccl, 1, 110 + 2 * at, 1, **args)
    return b


@pytest.mark.parametrize(
    ("task", "sums"),
    [
        ({}, {"HCCS": 1000}),
        ({"size(Byte)": 1}, {"HCCS": 1}),
        ({"size(Byte)": 0}, {}),
        ({"src rank": 1, "dst rank": 0}, {"HCCS": 1000}),
        ({"src rank": 1}, {}),
        ({"dst rank": 0}, {}),
        ({"dst rank": 4294967295}, {}),
        ({"name": "Notify_Wait"}, {}),
        ({"link type": "PCIE"}, {"PCIE": 1000}),
        ({"link type": "ON_CHIP"}, {}),
        ({"link type": "ROCE", "transport type": "RDMA"}, {"RDMA": 1000}),
    ],
)
def test_bytes_that_ranks_sent_each_other_are_compared_by_kind_of_link(
    task: dict[str, Any], sums: dict[str, int]
) -> None:
    for link in ("HCCS", "PCIE", "RDMA"):
        found = told(
            moved(task),
            vendor_collectives=collectives(one(REDUCE, 100_000, None, (link, 5000, 1), ("elsewhere", 5, 1))),
        )
        values = {"source": "communication.json", "link": link, "ours_bytes": sums.get(link, 0), "theirs_bytes": 5000}
        assert found == {"link_bytes_differ": values}


@pytest.mark.parametrize(("bytes_", "differ"), [(1980, False), (1979, True), (2020, False), (2021, True)])
def test_bytes_may_differ_by_a_hundredth(bytes_: int, differ: bool) -> None:
    """The sum of two tasks, and of two rows; others went elsewhere."""
    rows = one(REDUCE, 50_000, None, ("HCCS", 980, 1)), one(REDUCE, 50_000, None, ("HCCS", bytes_ - 980, 1))
    found = told(moved({}, {}, {"link type": "PCIE"}, {"dst rank": 0}), vendor_collectives=collectives(*rows))
    assert set(found) == ({"link_bytes_differ"} if differ else set())


@pytest.mark.parametrize(
    ("wait", "theirs"), [(59_400, None), (59_399, 59_399), (60_606, None), (60_607, 60_607), (None, None), (0, 0)]
)
def test_waiting_on_one_plane_is_told_where_it_leaves_out_more_than_a_hundredth(
    wait: int | None, theirs: int | None
) -> None:
    """Of 100 µs data move in 40."""
    found = told(working(), vendor_collectives=collectives(one(wait=wait)))
    values = {"source": "communication.json", "ours_ns": 60_000, "theirs_ns": theirs}
    assert found == ({} if theirs is None else {"wait_of_one_plane": values})


def test_waiting_is_not_compared_where_tasks_or_times_of_a_collective_are_missing() -> None:
    b = working()
    b.collective(GATHER, 300, 10)
    assert told(b, vendor_collectives=collectives(one(wait=1), one(GATHER, 10_000, 1))) == {}
    both = [(0, "Memcpy", 120, 40, 1)]
    b = working(both)
    b.collective(GATHER, 300, 10, [(0, "Memcpy", 300, 5, 1)])
    assert told(b, vendor_collectives=collectives(one(wait=1), one(GATHER, 10_000, None))) == {}
    found = told(b, vendor_collectives=collectives(one(wait=1), one(GATHER, 10_000, 2)))["wait_of_one_plane"]
    assert (found["ours_ns"], found["theirs_ns"]) == (65_000, 3)


@pytest.mark.parametrize(
    ("other", "differ"),
    [
        ({"kernels": 2, "kernel_time": 110_000}, {}),
        ({"kernels": 2, "kernel_time": 108_900}, {}),
        ({"kernels": 2, "kernel_time": 108_899}, {"kernel_time": (110_000, 108_899)}),
        ({"kernels": 1, "kernel_time": 110_000}, {"kernel_count": (2, 1)}),
        ({"windows": (130_000,)}, {}),
        ({"windows": (128_700,)}, {}),
        ({"windows": (128_699,)}, {"step_time": (130_000, 128_699)}),
        ({"windows": (65_000, 65_000)}, {"step_count": (1, 2)}),
        ({"steps": steps((110_000, None, 90_000, 50))}, {}),
        # A microsecond is rounding, whatever it is of.
        ({"steps": steps((110_000, None, 90_000, 1050))}, {}),
        ({"steps": steps((108_899, None, 90_000, 1051))}, {"computing": (110_000, 108_899), "free": (50, 1051)}),
        ({"steps": steps((None, None, 88_999, None))}, {"not_overlapped": (90_000, 88_999)}),
    ],
)
def test_both_exports_of_a_profile_may_differ_by_a_hundredth(
    other: dict[str, Any], differ: dict[str, tuple[int, int]]
) -> None:
    b = working()
    b.step(1, 1, 130)
    own = own_steps((110_000, 100_000, 90_000, 50))
    found = told(b, vendor=own, other_export=OtherExport("analysis.db", **other))
    if not differ:
        assert found == {"exports_agree": {"source": "analysis.db", "count": 3 if "steps" in other else 2}}
        return
    units = {what: "" if what.endswith("_count") else "_ns" for what in differ}
    assert found == {
        f"exports_differ_{what}": {"source": "analysis.db", f"ours{units[what]}": ours, f"theirs{units[what]}": theirs}
        for what, (ours, theirs) in differ.items()
    }


@pytest.mark.parametrize("other", [{}, {"kernels": 2}, {"kernel_time": 5}, {"windows": (1,)}, {"steps": steps((5,))}])
def test_an_export_with_nothing_to_compare_says_so(other: dict[str, Any]) -> None:
    """The trace has no steps here, and no step times of its own."""
    assert told(working(), other_export=OtherExport("analysis.db", **other)) == {
        "exports_not_compared": {"source": "analysis.db"}
    }


def test_tables_of_the_whole_say_nothing_of_a_part() -> None:
    trace = working().trace()
    changed = replace(trace, vendor=own_steps((1, 1, 1)), origin=trace.origin._replace(format="ascend"))
    assert list(ascend_checks(Context(changed, Options(keep="compute")))) == []
    assert (
        list(ascend_checks(Context(replace(changed, origin=trace.origin._replace(format="kineto")), Options()))) == []
    )
