"""The bullets of definitions §18 that no room of its own tests, each on paper."""

from __future__ import annotations

import pytest

from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context, context_of
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.options import Filter, Options
from traceanalyze.comparison.compare import compare_sides
from traceanalyze.comparison.side import side
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import Cause
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.summary import summarize
from traceanalyze.ranks.waits import collective_waits

SECOND = 1_000_000


def told(b):
    return {check.message: dict(check.values) for check in b.analyze().checks}


def late(*starts, at=3 * SECOND, marked=True):
    """A step of two kernels, 3 s after the zero of the clock, and device events elsewhere."""
    b = TraceBuilder()
    if marked:
        b.step(1, at, 100)
    b.launch(at, 2, at + 10, 20)
    b.launch(at + 30, 2, at + 40, 20)
    for start in starts:
        b.device(start, 5, name="never set")
    return b


@pytest.mark.parametrize("starts", [(0,), (0, 0, 0), (2 * SECOND - 1,), (0, 0, SECOND + 1), (0, 3, 9, SECOND + 9)])
@pytest.mark.parametrize("marked", [True, False])
def test_device_events_that_begin_long_before_all_else_are_told_and_in_no_span(starts, marked):
    b = late(*starts, marked=marked)
    found, plain = b.analyze(), late(marked=marked).analyze()
    (span,), (same,) = found.records("device_spans"), plain.records("device_spans")
    assert (span.span_ns, span.compute_kernels) == (same.span_ns, same.compute_kernels) == (50_000, 2)
    assert found.steps.time.tolist() == plain.steps.time.tolist()
    assert told(b)["impossible_start"] == {"count": len(starts), "before_ns": 1000 * (3 * SECOND - min(starts))}
    (launches,) = found.records("launches")
    assert (launches.linked, launches.unlinked) == (2, 0)


@pytest.mark.parametrize(("at", "dur", "left_out"), [(0, 5, 1), (-1, 5, 1), (0, 2 * SECOND + 1, 0), (1, 5, 0)])
def test_an_operator_at_a_time_that_was_never_set_is_told_and_counts_nowhere(at, dur, left_out):
    b = late(marked=False)
    b.op("aten::mm", at, dur)
    b.op("aten::add", 3 * SECOND, 5)
    assert told(b).get("impossible_start", {"count": 0})["count"] == left_out
    assert sum(row.calls for row in b.rows("operators") if row.op == "aten::mm") == 1 - left_out


@pytest.mark.parametrize("cat", ["gpu_user_annotation", "cuda_sync"])
def test_what_else_stands_on_the_device_makes_no_time_possible(cat):
    """A range on the device begins with its first kernel, hence at 0 too."""
    b = late(0, 0)
    b.event(cat, "forward", 0, 3 * SECOND, pid=0, tid=7, device=0, stream=7)
    assert told(b)["impossible_start"]["count"] == 3
    assert b.rows("device_spans")[0].span_ns == 50_000


@pytest.mark.parametrize(("more", "left_out"), [({}, 1), ({"stream": 8}, 0), ({"name": "other"}, 0)])
def test_device_work_that_stands_twice_counts_once_and_is_told(more, left_out):
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.launch(0, 2, 10, 20)
    b.device(10, 20, correlation=1, **more)
    b.device(40, 0, correlation=2)
    b.device(40, 0, correlation=2)
    assert told(b).get("repeated", {"count": 0}) == {"count": left_out}
    assert sum(row.count for row in b.rows("kernels")) == 4 - left_out
    assert b.rows("device_spans")[0].compute_kernels == 4 - left_out


@pytest.mark.parametrize("starts", [(2 * SECOND,), (2 * SECOND, 2 * SECOND - 1), (3 * SECOND - 1,), ()])
def test_what_begins_within_a_second_of_others_counts(starts):
    b = late(*starts)
    assert "impossible_start" not in told(b)
    assert len(b.analyze().trace.events) - len(starts) == 5
    assert sum(row.count for row in b.analyze().records("kernels")) == 2  # in the step
    (span,) = b.analyze().records("device_spans")
    assert span.compute_kernels == 2 + len(starts)


def test_a_recording_of_nothing_else_begins_with_its_first_event():
    b = TraceBuilder()
    for at in (0, 0):
        b.device(at, 5)
    assert "impossible_start" not in told(b)


def test_parts_by_time_count_from_the_first_possible_event():
    part = context_of(late(0).trace(), Options(keep=Filter(time=(35_000, 70_000))))
    assert part.device.start.tolist() == [1000 * (3 * SECOND + 40)]


def on_workers(*collectives, busy=((0, 30), (90, 10))):
    """A step of 100 µs whose thread computes at times, and collectives on worker threads."""
    b = TraceBuilder()
    b.step(1, 0, 100)
    for at, length in busy:
        b.op("aten::mm", at, length)
    for number, (at, length) in enumerate(collectives):
        b.annotation("gloo:all_reduce", at, length, tid=2 + number)
    return b


def split(b):
    return {row.part: row.mean_ns for row in b.rows("split")}


def test_waiting_for_peers_is_the_union_of_collectives_while_the_step_is_blocked():
    """Blocked from 30 to 90; collectives from 20 to 60, from 50 to 70 and from 85 to 95."""
    found = split(on_workers((20, 40), (50, 20), (85, 10)))
    assert (found["peer_wait"], found["host_op"], found["untraced"]) == (45_000, 40_000, 15_000)


def test_without_a_blocked_step_thread_waiting_for_peers_is_not_measured():
    found = split(on_workers((5, 20), busy=((0, 100),)))
    assert found["peer_wait"] == NotMeasured("step_never_blocked")
    assert (found["host_op"], found["untraced"]) == (100_000, 0)
    assert split(on_workers())["peer_wait"] == 0


def test_collectives_of_another_process_are_not_waited_for():
    b = on_workers((40, 30))
    b.events[-1]["pid"] = 101
    assert split(b)["peer_wait"] == 0


@pytest.mark.parametrize(("at", "waited"), [(40, 30_000), (100, NotMeasured("step_never_blocked"))])
def test_an_idle_device_waits_for_peers_as_its_step_does(at, waited):
    """The device works from 0 to 10 and from 120 on; its step computes from 90 to 130."""
    b = TraceBuilder()
    b.step(1, 0, 150)
    b.launch(0, 0, 0, 10)
    b.op("aten::mm", 90, 40)
    b.launch(118, 2, 120, 30)
    b.annotation("gloo:all_reduce", at, 30, tid=9)
    found = b.analyze().idle
    assert int(found.by_step[:, Cause.PEER_WAIT].sum()) == (waited if isinstance(waited, int) else 0)
    assert found.missing.get(Cause.PEER_WAIT, waited) == waited


CUT = "[" + ", ".join(map(str, range(29))) + ", ..., 63]"
"""As torch writes the ranks of a group of 64 into its events."""


def member(rank, *, late, header=(), ranks=CUT):
    """Three steps in which a rank comes to an all-reduce early, or last."""
    b = TraceBuilder()
    b.header["distributedInfo"] = {"rank": rank, "world_size": 128, "backend": "nccl", "pg_config": list(header)}
    described = {"Collective name": "allreduce", "Process Group Name": "7", "Process Group Ranks": ranks}
    sizes = {"Group size": 64, "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float"}
    for step in range(3):
        at = 1_000 * step
        b.step(step, at, 990)
        b.launch(at, 2, at + 10, 80 + late)
        begin = at + 100 + late
        b.launch(begin - 5, 2, begin, 400 - late, name="ncclDevKernel_AllReduce", **described, **sizes)
    return b.trace()


def run_of(numbers, **more):
    contexts = [Context(member(rank, late=200 * (rank == 3), **more), Options()) for rank in numbers]
    return compare_ranks([summarize(context, analyze_context(context)) for context in contexts])


def test_a_group_that_torch_cut_has_the_members_of_its_name():
    header = [{"pg_name": "7", "ranks": list(range(64))}, {"pg_name": "8", "ranks": list(range(64, 128))}]
    found = run_of((0, 3), header=header)
    (group,) = found.groups
    assert (group.group, group.complete) == ("0-63", False)
    assert group.missing == tuple(number for number in range(64) if number not in {0, 3})
    assert run_of((0, 3), header=header, ranks="[0, 3]").groups[0].complete
    shorter = [header[0] | {"ranks": list(range(40))}]
    assert run_of((0, 3), header=shorter).groups[0].group == "7 (0, 1, …, 63)"  # another group of that name


def test_a_group_for_which_torch_lists_no_ranks_has_all_of_the_run():
    """A group of all 128, of whose list in the events a part is left."""
    b = TraceBuilder()
    config = [{"pg_name": "0", "pg_size": 128, "ranks": []}, {"pg_name": "1", "pg_size": 4, "ranks": []}]
    b.header["distributedInfo"] = {"rank": 0, "world_size": 128, "pg_config": config}
    named = {"Process Group Name": "0", "Process Group Ranks": CUT, "Group size": 128}
    b.launch(0, 2, 10, 80, name="ncclDevKernel_AllReduce", **named)
    trace = b.trace()
    assert trace.groups == {"0": tuple(range(128)), "1": ()}
    (code,) = trace.events.fields["group_ranks"].value
    assert trace.strings.text(code) == str(list(range(128)))


def test_a_group_whose_members_nobody_tells_is_never_whole():
    """All ranks are here that the cut list names; it would pass for a group of 30 in which rank 3 is the straggler."""
    found = run_of((*range(29), 63))
    (group,) = found.groups
    assert (group.group, group.complete, group.missing) == ("7 (0, 1, …, 63)", False, ())
    assert {row.is_bound for row in collective_waits(found).records()} == {True}
    assert found.stragglers == NotMeasured("ranks_missing")
    (rank,) = run_of((*range(29), 63), ranks=str([*range(29), 63])).stragglers
    assert rank.label == "3"


def test_groups_of_one_name_whose_lists_torch_cut_are_not_one():
    """Even and odd ranks of 128 reduce apart: the even ones transfer for 300 µs a step, the odd ones for 350."""

    def rank(number):
        cut = "[" + ", ".join(str(number % 2 + 2 * at) for at in range(29)) + f", ..., {number % 2 + 126}]"
        return member(number, late=50 if number % 2 else 100 * (number == 2), ranks=cut)

    contexts = [Context(rank(number), Options()) for number in (0, 1, 2, 3)]
    found = compare_ranks([summarize(context, analyze_context(context)) for context in contexts])
    waits = {(row.group, row.rank): (row.transfer_ns, row.wait_ns) for row in collective_waits(found).records()}
    assert waits == {
        ("7 (0, 2, …, 126)", "0"): (900_000, 300_000),
        ("7 (0, 2, …, 126)", "2"): (900_000, 0),
        ("7 (1, 3, …, 127)", "1"): (1_050_000, 0),
        ("7 (1, 3, …, 127)", "3"): (1_050_000, 0),
    }


def launching():
    """The device works from 0 to 10 and from 110 to 150; a call from 60 to 70 inside an operator from 40 to 80."""
    b = TraceBuilder()
    b.step(1, 0, 150)
    b.launch(0, 0, 0, 10)
    b.op("aten::mm", 40, 40)
    b.api("cudaGetDevice", 60, 10)
    b.launch(100, 5, 110, 40)
    return b


def test_dispatch_is_the_same_in_every_command():
    """10 µs in the call, 30 in the operator around it, 5 in the launch and 5 until the kernel begins."""
    b, dispatch = launching(), 50_000
    found = b.analyze()
    assert split(b)["dispatch"] == dispatch == found.tables["steps"].column("dispatch_ns")[0]
    causes = {row.cause: row.mean_ns for row in found.records("idle_causes")}
    assert sum(time for cause, time in causes.items() if cause.startswith("dispatch_")) + causes["host_op"] == dispatch
    assert "dispatch" not in causes
    other = TraceBuilder()
    other.step(1, 0, 150)
    other.launch(0, 0, 0, 10)
    other.launch(10, 0, 10, 140)
    compared = compare_sides(side(b.trace()), side(other.trace()))
    difference = {row.part: row.base_time_ns for row in compared.tables["step_difference"].records()}
    assert difference["dispatch"] == dispatch
    contexts = [Context(b.trace(), Options())]
    assert summarize(contexts[0], analyze_context(contexts[0])).parts["dispatch"].tolist() == [dispatch]


def test_a_gap_is_found_whole_then_cut_at_the_borders_of_steps():
    """From 10 to 110 over two steps: late once, whole; what ends after the last window has no next event."""
    b = TraceBuilder()
    b.step(1, 0, 50)
    b.step(2, 50, 100)
    b.launch(0, 0, 0, 10)
    b.launch(75, 5, 110, 20)
    found = b.analyze()
    assert next(iter(found.records("launches"))).late == 1
    cut = sorted((row.step, row.length_ns, row.next_event) for row in found.records("gaps") if row.next_event)
    assert cut == [("1", 40_000, "kernel"), ("2", 60_000, "kernel")]
    gaps = Context(b.trace(), Options()).once(idle_gaps)
    assert (gaps.start.tolist(), gaps.end.tolist()) == ([10_000, 130_000], [110_000, 150_000])
    assert gaps.event.tolist() == [1, -1]


def test_gaps_without_a_launch_ask_the_step_thread_then_other_launching_threads():
    b = TraceBuilder()
    b.step(1, 0, 150)
    b.launch(0, 0, 0, 10)
    b.launch(0, 0, 0, 5, tid=5, stream=9)  # a launching thread
    b.device(110, 40)
    b.op("aten::mm", 20, 20)
    b.op("aten::add", 30, 30, tid=5)
    b.op("aten::other", 0, 150, tid=6)  # launches nothing
    causes = {row.cause: row.mean_ns for row in b.analyze().records("idle_causes")}
    assert (causes["host_op"], causes["untraced"]) == (40_000, 60_000)


def test_the_usual_number_of_events_is_that_of_steps_with_any():
    """A cut recording: of six steps two have their 5 events, one has 3 of them, three have none."""
    b = TraceBuilder()
    for number, count in enumerate((5, 5, 3, 0, 0, 0)):
        b.step(number, 100 * number, 100)
        for event in range(count):
            b.launch(100 * number + 10 * event, 1, 100 * number + 10 * event + 2, 5)
    assert b.analyze().steps.complete.tolist() == [True, True, False, False, False, False]


def test_delays_are_observed_values_the_upper_of_two():
    b = TraceBuilder()
    b.step(1, 0, 200)
    for number, delay in enumerate((1, 4)):
        b.launch(50 * number, 2, 50 * number + 2 + delay, 5)
    assert next(iter(b.analyze().records("launches"))).delay_p50_ns == 4_000
