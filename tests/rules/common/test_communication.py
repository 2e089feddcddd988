"""What rules are told of the collectives of a rank."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from tests.rules.make import facts_of
from traceanalyze.rules.common.communication import communicating

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32"


@pytest.mark.parametrize("first", ["collective", "kernel"])
def test_collectives_know_the_call_that_issued_them_also_if_it_is_the_first_of_all(first):
    b = TraceBuilder()
    b.step(1, 0, 100)
    own, other = (1, 20) if first == "collective" else (20, 1)
    b.launch(own, 5, 40, 10, name=ALL_REDUCE, stream=20, tid=2)
    b.launch(other, 5, 60, 10)
    facts = facts_of(b.trace())
    found = facts.once(communicating)
    (track,) = found.track.tolist()
    assert found.issued.tolist() == [own * 1000]
    assert facts.context.trace.track_text(track)[1] == "2"


@pytest.mark.parametrize("calls", [False, True])
def test_a_collective_that_no_call_issued_has_no_thread(calls):
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.device(75, 10, name=ALL_REDUCE, stream=20)
    if calls:
        b.launch(20, 5, 30, 10)
    found = facts_of(b.trace()).once(communicating)
    assert (found.track.tolist(), found.issued.tolist()) == ([-1], [0])
