"""An allocator that gives its cache back for lack of memory, as a public trace of torchrec on V100 shows it."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from tests.rules.make import judged
from traceanalyze.rules.finding import Severity

MS = 1000
RETRY = ("cudaMalloc", *["cudaFree"] * 4, "cudaMalloc")


def short(calls=RETRY, *, first=200, number=0, op="aten::cat", steps=4):
    """Steps of 100 ms with device work for 90; one takes `first` ms more, in calls of the allocator in one operator."""
    b, at = TraceBuilder(), 0
    for step in range(steps):
        more = first * MS if step == number else 0
        b.step(step, at, 100 * MS + more)
        if more:
            if op:
                b.op(op, at + 500, more + 500)
            for place, call in enumerate(calls):
                begin = at + 600 + place * (more // len(calls))
                if call == "cudaLaunchKernel":
                    b.launch(begin, 10, begin + 20, 100, name="trial")
                else:
                    b.api(call, begin, more // len(calls))
        b.launch(at + more + 2 * MS, 10, at + more + 3 * MS, 60 * MS, name="work")
        b.launch(at + more + 63 * MS, 10, at + more + 64 * MS, 30 * MS, name="more_work")
        at += 100 * MS + more
    return b


def of_rules(program, *rules):
    return {one.rule: one for one in judged(program, *rules).findings}


def test_a_step_that_is_left_out_shows_that_memory_ran_short():
    found = of_rules(short(), "MEM103", "CGR106")
    one = found["MEM103"]
    assert (one.sentence, one.severity, one.saving, one.scope.ops) == ("flushed", Severity.MEDIUM, None, ("aten::cat",))
    known = {each.label: each.value for each in one.evidence}
    assert known == {"what": "aten::cat", "count": 4, "flush": 6 * 33_333_000, "step": "0"}
    # Nothing of it is done once.
    assert "CGR106" not in found


def test_in_a_step_that_counts_it_has_a_price():
    one = of_rules(short(first=40, number=2), "MEM103")["MEM103"]
    assert (one.sentence, one.scope.steps) == ("flushed", ("2",))
    assert one.saving == pytest.approx(40_000_000 / 4, rel=0.02)


@pytest.mark.parametrize(
    "program",
    [
        short(("cudaFree", "cudaMalloc")),  # One block is exchanged for another.
        short(("cudaMalloc", *["cudaFree"] * 4)),  # Nothing is taken after that.
        short(("cudaMalloc",) * 5),
        short(op=""),  # As empty_cache does.
        short(("cudaMalloc", "cudaFree", "cudaMalloc", "cudaFree", "cudaMalloc")),  # Blocks are exchanged.
        short(("cudaMalloc", *["cudaFree"] * 3, "cudaMalloc")),  # As cuBLAS when it starts.
        short(("cudaLaunchKernel", *RETRY)),  # An algorithm was tried out before.
    ],
)
def test_other_calls_of_the_allocator_are_no_lack_of_memory(program):
    assert "MEM103" not in of_rules(program, "MEM103")


def test_the_first_step_that_counts_is_not_the_first_one_where_another_is_left_out():
    """Two steps with calls after a long one: memory is taken again and again."""
    b = short(("cudaMalloc",), steps=3)
    for at in (300 * MS, 400 * MS):
        b.api("cudaMalloc", at + 100, 1800)
    one = of_rules(b, "MEM101")["MEM101"]
    assert one.count == 2


def test_what_is_taken_after_memory_ran_short_is_no_other_finding():
    """2 ms of every step after the first one; nothing is given back there, which MEM101 would say."""
    b = short()
    for number in range(1, 4):
        at = (200 + 100 * number) * MS
        b.op("aten::empty", at + 90, 1820)
        b.api("cudaMalloc", at + 100, 1800)
    found = of_rules(b, "MEM101", "MEM103")
    assert list(found) == ["MEM103"]
    assert found["MEM103"].saving == pytest.approx(1_800_000, rel=0.1)
