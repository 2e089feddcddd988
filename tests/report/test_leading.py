"""Which rank of several a report is about, and that it says why: two ranks whose times are known."""

from __future__ import annotations

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.locales import texts
from traceanalyze.ranks.results import leading
from traceanalyze.report.format import Formatter

MS = 1_000


@pytest.mark.parametrize(
    ("steps", "own", "first"),
    [
        ((100, 80), (60, 79), 1),
        ((100, 80), (90, 79), 0),
        ((100, 80), (None, 79), 0),
        ((100, 80), (78, 79), 1),
        # Of equal ones the longer step.
        ((80, 100), (78, 78), 1),
        ((100, 100, 100), (50, 70, 60), 1),
    ],
)
def test_the_rank_that_takes_longest_without_waiting_leads(steps, own, first):
    assert leading(steps, own) == first


def written(folder, steps, host=0):
    """Rank 0 begins each step 20 ms before rank 1, computes for 10 ms less, and waits 30 ms for it in a collective.

    Its host has an operator of so many ms beside that.
    """
    for rank, (begin, compute) in enumerate(((0, 30), (20, 40))):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        for step in range(steps):
            at = 1_000 + 100 * MS * step
            start = at + begin * MS
            trace.step(step, start, at + 98 * MS - start)
            if host and not rank:
                trace.op("aten::view", start + 20, host * MS)
            trace.launch(start, 5, start + 100, compute * MS)
            late = start + 100 + compute * MS
            trace.launch(start + 10, 5, late, at + 65 * MS - late, name="ncclKernel_AllReduce", stream=20)
            trace.launch(at + 65 * MS + 10, 5, at + 65 * MS + 100, 30 * MS)
        trace.write(folder / f"rank{rank}.json")
    return folder


def told(report):
    formatter = Formatter(texts())
    return [formatter.message(one) for one in (*report.verdict_messages, *report.note_messages)]


def test_both_commands_lead_with_the_same_rank_and_say_why(tmp_path):
    folder = written(tmp_path, steps=2)
    # Steps of 98 and 78 ms; rank 0 waits 34.9 - 4.9 ms.
    why = (
        "Rank 1 of 2 works longest: 78.00 ms of its step of 78.00 ms without waiting for others, 15 % longer than "
        "rank 0 (68.00 ms)."
    )
    for report in (traceanalyze.analyze(folder), traceanalyze.postmortem(folder)):
        assert [report.ranks[at].rank for at in report.focus] == [1]
        assert told(report).count(why) == 1
        assert any(line.startswith("Details below are those of rank 1") for line in told(report))


def test_work_of_the_host_beside_waiting_is_no_waiting(tmp_path):
    """It launches what follows the collective 5 ms after its work of 60 ms: sooner by these at most."""
    report = traceanalyze.analyze(written(tmp_path, steps=2, host=60))
    assert told(report)[0].startswith("Rank 0 of 2 works longest: 93.01 ms of its step of 98.00 ms without waiting for")


def test_of_a_rank_whose_step_is_longest_anyway_nothing_is_said(tmp_path):
    alone = traceanalyze.analyze(written(tmp_path, steps=2), ranks="1")
    assert not [line for line in told(alone) if "without waiting" in line]


def test_of_hosts_that_compute_the_one_the_others_wait_for_leads(tmp_path):
    """They compute for 30, 60 and 90 of 100 ms; the last one waits for 9 ms as all of them do."""
    for rank, busy in enumerate((30, 60, 90)):
        trace = TraceBuilder()
        trace.header["distributedInfo"] = {"rank": rank, "world_size": 3, "backend": "gloo"}
        for step in range(4):
            at = 1_000 + 100 * MS * step
            trace.step(step, at, 100 * MS)
            trace.op("aten::mm", at, busy * MS)
            trace.annotation("gloo:all_reduce", at + busy * MS, (99 - busy) * MS, tid=2)
        trace.write(tmp_path / f"rank{rank}.json")
    first, *others = told(traceanalyze.analyze(tmp_path))
    assert first.startswith("Rank 2 of 3 works longest: 100.0 ms of its step of 100.0 ms")
    assert any("Rank 2 makes the others wait 45.00 ms a step, because its compute is longer" in one for one in others)


def test_waiting_that_is_not_measured_is_not_the_largest_part(tmp_path):
    trace = TraceBuilder()
    trace.step(1, 0, 100)
    trace.op("aten::mm", 0, 100)
    trace.annotation("gloo:all_reduce", 10, 20, tid=2)
    first, *_ = traceanalyze.analyze(trace.write(tmp_path / "trace.json")).verdict_messages
    assert "the largest part is host operators (100 %)" in Formatter(texts()).message(first)
