"""Memory that operators of two sides allocate."""

from __future__ import annotations

import traceanalyze
from tests.ascend_builder import AscendBuilder
from tests.builder import TraceBuilder
from tests.comparison.make import side_from
from traceanalyze.comparison.memory import MEMORY, OTHER_CALLS, memory_call_pairs, memory_pairs
from traceanalyze.comparison.pairs import PerStep
from traceanalyze.comparison.side import CompareOptions, side
from traceanalyze.model.table import NotMeasured

OPTIONS = CompareOptions()
NOT_FREED = NotMeasured("no_frees")


def program(size, *, freed_at=60.0, name="aten::mm", launch_at=20):
    """An operator that makes its output by `aten::empty`; 64 bytes outside of operators; 32 bytes on the host."""
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.op(name, 10, 20)
    b.op("aten::empty", 12, 4)
    b.launch(launch_at, 1, 50, 10)
    record(b, 14, size, 4096)
    record(b, 40, 64, 8192)
    record(b, 15, 32, 77, kind=0)
    if freed_at:
        record(b, freed_at, -size, 4096)
    return side_from(b).context


def record(b, at, size, address, *, kind=1):
    b.memory(at, size, kind=kind)
    b.events[-1]["args"]["Addr"] = address


def told(base, candidate):
    return {
        row.shared["op"]: tuple(None if s is None else (s["calls"], s["bytes"], s["lifetime_ns"]) for s in row[1:])
        for row in memory_pairs(base, candidate, OPTIONS)
    }


def test_memory_counts_for_the_operator_that_asked_for_it_not_for_the_one_that_makes_tensors():
    assert told(program(512), program(1024, freed_at=24)) == {
        "aten::mm": ((1, 512, 46_000), (1, 1024, 10_000)),
        "<outside operators>": ((1, 64, NOT_FREED), (1, 64, NOT_FREED)),
    }


def test_memory_that_the_first_operator_asks_for_itself_is_its_own():
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.op("aten::mm", 10, 20)
    b.op("aten::add", 40, 20)
    b.launch(20, 1, 50, 10)
    record(b, 14, 512, 4096)
    record(b, 44, 128, 8192)
    record(b, 45, 128, 9216)
    context = side_from(b).context
    assert told(context, context) == {
        "aten::mm": ((1, 512, NOT_FREED), (1, 512, NOT_FREED)),
        "aten::add": ((2, 256, NOT_FREED), (2, 256, NOT_FREED)),
    }


def test_how_long_memory_lived_is_unknown_if_it_was_not_freed():
    assert told(program(512), program(512, freed_at=0))["aten::mm"] == ((1, 512, 46_000), (1, 512, NOT_FREED))


def test_largest_change_comes_first():
    found = MEMORY.fill(memory_pairs(program(512), program(1024), OPTIONS), PerStep(1, 1, 0))
    assert found.column("op")[0] == "aten::mm"


def test_calls_meet_call_by_call():
    first, rest = memory_call_pairs(program(512), program(1024), OPTIONS)
    assert (first.base["op"], first.base["details"]) == ("aten::mm", ((512, 46_000),))
    assert first.candidate["size_bytes"] == 1024
    assert (rest.base["op"], rest.base["details"]) == ("<outside operators>", ((64, None),))


def test_what_wrappers_allocate_is_not_lost():
    wrapper = program(512, name="CompiledFunction", launch_at=35)
    rows = memory_call_pairs(wrapper, program(512), OPTIONS)
    found = {row.base["op"]: row.base["size_bytes"] for row in rows if row.base}
    assert found == {OTHER_CALLS: 512, "<outside operators>": 64}


def test_without_records_nothing_is_measured():
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.op("aten::mm", 10, 20)
    b.launch(20, 1, 50, 10)
    none = side_from(b).context
    assert memory_pairs(none, program(1), OPTIONS) == NotMeasured("no_memory_records")
    assert memory_call_pairs(program(1), none, OPTIONS) == NotMeasured("no_memory_records")


def test_allocations_of_an_ascend_profile_live_as_long_as_its_table_says(tmp_path):
    made = AscendBuilder()
    made.step(1, 0, 1000)
    made.op("aten::add", 10, 50)
    made.op("aten::mul", 100, 50)
    header = ["Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Device Type"]
    # Two of one size at a time: only the row tells which of them was released.
    rows = [("aten::add", 20, 320), ("aten::add", 30, 90), ("aten::mul", 110, None)]
    made.tables["operator_memory.csv"] = [
        header,
        *([name, 4, made.time(at), "" if until is None else made.time(until), "NPU:0"] for name, at, until in rows),
    ]
    (trace,) = traceanalyze.load(made.write(tmp_path / "rank0_ascend_pt")).traces
    context = side(trace).context
    found = {pair.shared["op"]: pair.base for pair in memory_pairs(context, context, CompareOptions())}
    assert (found["aten::add"]["lifetime_ns"], found["aten::add"]["bytes"]) == (360_000, 8192)
    assert found["aten::mul"]["lifetime_ns"] == NotMeasured("no_frees")
