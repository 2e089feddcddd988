"""Parts of the step on both sides: exact, and never a change that is only one of recording."""

from __future__ import annotations

from tests.builder import TraceBuilder
from tests.comparison.make import parts_of, side_from, training
from traceanalyze.comparison.attribution import headline, parts
from traceanalyze.model.table import NotMeasured


def test_parts_of_both_sides_sum_to_the_step():
    base, candidate = side_from(training(wait=40)), side_from(training(kernel=50, steps=3))
    found = parts(base, candidate)
    told = parts_of(found)
    assert told["compute"] == (60.0, 150.0)
    assert told["memory_ops"] == (10.0, 15.0)
    assert told["communication"] == (0.0, 0.0)
    assert told["data_loading"] == (80.0, 0.0)
    assert sum(part.base for part in found) == base.info.step_time == 200_000
    assert sum(part.candidate for part in found) == candidate.info.step_time == 240_000


def test_the_headline_sums_dispatch_and_the_device_side():
    base = side_from(training())
    found = parts(base, base)
    told = parts_of(headline(found))
    assert "dispatch_launch" not in told
    # The operator from 8, its launch call 10-12, then 2 µs until it runs, in each of two steps.
    assert told["dispatch"] == (12.0, 12.0)
    assert "host_op" not in told
    assert sum(part.base for part in headline(found)) == sum(part.base for part in found)


def test_idle_time_is_one_part_if_one_side_lacks_runtime_calls():
    base, candidate = side_from(training(wait=40)), side_from(training(wait=40, launches=False))
    found = parts(base, candidate)
    assert [part.key for part in found] == ["compute", "communication", "memory_ops", "idle"]
    assert [part.base - part.candidate for part in found] == [0, 0, 0, 0]


def test_host_time_outside_calls_is_one_part_if_one_side_lacks_host_operators():
    def bare(**more):
        b = training(**more)
        b.events = [event for event in b.events if event["cat"] not in {"cpu_op", "user_annotation"}]
        return b

    with_ops = training(wait=40, steps=1)
    with_ops.events = [event for event in with_ops.events if not event["name"].startswith("ProfilerStep")]
    base, candidate = side_from(with_ops), side_from(bare(wait=40, steps=1))
    found = parts_of(parts(base, candidate))
    assert not {"data_loading", "host_op", "peer_wait", "untraced"} & set(found)
    assert found["outside_calls"][0] == found["outside_calls"][1]
    assert found["dispatch_launch"][0] == found["dispatch_launch"][1]
    told = parts_of(headline(parts(base, candidate)))
    assert "dispatch" not in told
    assert told["dispatch_calls"][0] == told["dispatch_calls"][1]


def test_what_neither_side_can_show_is_not_measured():
    one = side_from(training(launches=False))
    found = parts_of(parts(one, one))
    assert found["sync"] == (NotMeasured("no_api"), NotMeasured("no_api"))
    told = parts_of(headline(parts(one, one)))
    assert told["dispatch"] == (NotMeasured("no_api"), NotMeasured("no_api"))
    assert told["host_op"] == found["host_op"]
    measured = [part for part in parts(one, one) if isinstance(part.base, int)]
    assert sum(part.base for part in measured) == one.info.step_time


def host_only(op: float):
    b = TraceBuilder()
    b.step(0, 0, 100)
    b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 30)
    b.op("aten::mm", 40, op)
    return b


def test_host_time_stands_for_the_step_where_no_device_was_recorded():
    found = parts(side_from(host_only(20)), side_from(host_only(50)))
    told = parts_of(found)
    assert (told["data_loading"], told["host_op"], told["untraced"]) == ((30.0, 30.0), (20.0, 50.0), (50.0, 20.0))
    assert sum(part.base for part in found) == sum(part.candidate for part in found) == 100_000


def test_a_device_on_one_side_only_leaves_nothing_to_compare_but_the_step():
    found = parts(side_from(host_only(20)), side_from(training()))
    assert parts_of(found) == {"step": (100.0, 120.0)}
