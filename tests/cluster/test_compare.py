"""Two ranks made by hand, answers on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cluster.make import rank
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group, LinkTraffic

STEPS = ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")


def late(number, by, **more):
    """Three steps of 1000 ns, an all-reduce in each that ends at 700 and takes 100; the rank comes `by` ns early."""
    begin = 600 - by
    rows = [(step, "all_reduce", 64, 1000 * step + begin, 1000 * step + 700) for step in range(3)]
    return rank(number, *rows, steps=STEPS, **more)


def test_wait_is_what_a_collective_takes_beyond_the_shortest():
    found = compare_ranks([late(0, 300), late(1, 0)])
    (one,) = found.collectives
    assert (one.kind, one.bytes, one.count, one.transfer) == ("all_reduce", 64, 3, 300)
    assert one.wait == (("0", 900), ("1", 0))
    assert not one.bound
    assert [(each.wait, each.last) for each in found.waits] == [(900, 0), (0, 3)]


def test_the_rank_that_is_always_last_is_named_with_the_part_that_makes_it_late():
    found = compare_ranks([late(0, 300, compute=100, dispatch=50, gc=0), late(1, 0, compute=120, dispatch=330, gc=0)])
    (one,) = found.stragglers
    assert (one.label, one.wait, one.share, one.last) == ("1", 300, 0.3, 1.0)
    assert (one.phase, one.excess) == ("dispatch", 280)


def test_recorded_pauses_are_named_rather_than_the_host_work_they_lie_in():
    found = compare_ranks([late(0, 300, untraced=10, gc=0), late(1, 0, untraced=310, gc=250)])
    assert (found.stragglers[0].phase, found.stragglers[0].excess) == ("gc", 250)


def test_a_rank_that_is_late_in_one_step_only_is_no_straggler():
    first = rank(
        0, *[(s, "all_reduce", 64, 1000 * s + b, 1000 * s + 700) for s, b in enumerate((100, 600, 600))], steps=STEPS
    )
    second = rank(
        1, *[(s, "all_reduce", 64, 1000 * s + b, 1000 * s + 700) for s, b in enumerate((600, 500, 500))], steps=STEPS
    )
    found = compare_ranks([first, second])
    # Rank 1 waits less in all (200 < 500), but is last only once.
    assert [each.wait for each in found.waits] == [500, 200]
    assert found.stragglers == ()


def test_two_steps_are_too_few_for_a_straggler():
    pair = [replace(late(n, 300 * (1 - n)), complete=late(0, 0).complete & [True, True, False]) for n in (0, 1)]
    assert compare_ranks(pair).stragglers == NotMeasured("few_steps_for_stragglers")


def test_with_ranks_missing_transfer_is_a_bound_and_nobody_is_named():
    group = Group("0-3", (0, 1, 2, 3), 4)
    found = compare_ranks([late(0, 300, world=4, group=group), late(1, 0, world=4, group=group)])
    assert found.missing == (2, 3)
    assert [(one.bound, one.missing, one.transfer) for one in found.collectives] == [(True, (2, 3), 300)]
    assert found.stragglers == NotMeasured("ranks_missing")


def test_without_a_known_size_of_the_group_nothing_is_taken_for_complete():
    group = Group("mystery", (), 0)
    found = compare_ranks([late(0, 300, world=None, group=group), late(1, 0, world=None, group=group)])
    assert found.collectives[0].bound


@pytest.mark.parametrize(
    ("second", "what", "index", "left_out", "kept"),
    [
        ([("all_reduce", 8), ("all_gather", 8), ("all_reduce", 8)], "kind", 1, 4, 1),
        ([("all_reduce", 8), ("all_reduce", 16), ("all_reduce", 8)], "bytes", 1, 4, 1),
        ([("all_reduce", 8), ("all_reduce", 8)], "count", 2, 1, 2),
        ([("all_reduce", -1), ("all_reduce", -1)], "count", 0, 5, 0),
    ],
)
def test_matching_stops_where_ranks_disagree_and_says_so(second, what, index, left_out, kept):
    def made(number, rows):
        return rank(number, *[(0, kind, size, 100 * at, 100 * at + 50) for at, (kind, size) in enumerate(rows)])

    found = compare_ranks([made(0, [("all_reduce", 8)] * 3), made(1, second)])
    (stop,) = found.stops
    assert (stop.what, stop.index, stop.left_out) == (what, index, left_out)
    assert sum(map(len, found.groups)) == kept


def test_ranks_may_send_unequal_amounts_in_an_all_to_all():
    pair = [rank(n, (0, "all_to_all", 100 + n, 10 * n, 90)) for n in (0, 1)]
    assert compare_ranks(pair).collectives[0].wait == (("0", 10), ("1", 0))


def test_waiting_is_not_defined_for_a_broadcast():
    pair = [rank(n, (0, "broadcast", 8, 10 * n, 90)) for n in (0, 1)]
    found = compare_ranks(pair)
    assert found.collectives == NotMeasured("no_matched_collectives")
    assert found.waits[0].wait == NotMeasured("no_matched_collectives")


def test_sends_and_receives_are_counted_as_exposed_time_of_the_rank():
    first = rank(0, (0, "send", 8, 0, 70), (0, "all_reduce", 8, 100, 200))
    second = rank(1, (0, "recv", 8, 0, 90), (0, "all_reduce", 8, 100, 200))
    found = compare_ranks([first, second])
    assert [one.point_to_point for one in found.waits] == [70, 90]
    assert found.stops == ()


def test_steps_are_matched_by_name_and_the_rest_is_counted():
    first = rank(0, (0, "barrier", -1, 0, 10), (1, "barrier", -1, 100, 130), steps=STEPS[:2])
    second = rank(1, (0, "barrier", -1, 110, 130), (1, "barrier", -1, 200, 210), steps=STEPS[1:])
    found = compare_ranks([first, second])
    assert found.steps == ("ProfilerStep#2",)
    assert found.outside == 2
    assert found.collectives[0].wait == (("0", 10), ("1", 0))


def test_imbalance_is_the_maximum_over_the_mean():
    found = compare_ranks([late(0, 0, compute=[100, 200, 100]), late(1, 0, compute=[300, 200, 100])])
    (one,) = found.imbalance
    # Steps: (300 - 200) / 200, 0, 0.
    assert one.mean == pytest.approx(0.5 / 3)
    assert (one.worst, one.worst_step, one.highest, one.high, one.low) == (0.5, STEPS[0], "1", 200, 133)


def test_clocks_are_told_apart_by_the_ends():
    found = compare_ranks([late(0, 300), late(1, 0, clock=5_000)])
    assert [(one.label, one.offset, one.residual, one.skew) for one in found.clocks] == [
        ("0", 0, 0, 0),
        ("1", 5_000, 0, 300),
    ]


def test_arrival_is_not_told_where_the_ends_scatter_as_much():
    rows = [(step, "all_reduce", 64, 1000 * step + 600, 1000 * step + 700 + 90 * step) for step in range(3)]
    found = compare_ranks([late(0, 300), rank(1, *rows, steps=STEPS)])
    # Ends differ by 0, 90 and 180: median 90, MAD 90; arrivals are 210 apart.
    assert (found.clocks[1].offset, found.clocks[1].residual) == (90, 90)
    assert found.clocks[1].skew == NotMeasured("clocks_too_uneven")


def test_a_slow_link_is_told_from_the_others_of_its_kind():
    def traffic(target, time):
        return LinkTraffic(0, target, "HCCS", 20, 1000, time)

    found = compare_ranks([late(0, 0, links=[traffic(1, 100), traffic(2, 100), traffic(3, 125)]), late(1, 0)])
    # 8 bytes a ns against 10: a fifth below.
    assert [(one.target, one.slow) for one in found.links] == [(3, pytest.approx(0.2)), (1, None), (2, None)]


def test_groups_are_named_by_what_they_are_for():
    group = Group("tp_group_0", (), 2)
    found = compare_ranks([late(0, 0, group=group), late(1, 0, group=group)])
    assert found.groups[0].role == "tensor"
    listed = compare_ranks([late(n, 0, names={"dp_shard": (0, 1)}) for n in (0, 1)])
    assert listed.groups[0].role == "data"
    assert compare_ranks([late(0, 0), late(1, 0)]).groups[0].role is None
