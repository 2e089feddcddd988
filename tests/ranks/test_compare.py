"""Two ranks made by hand, answers on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ranks.make import rank
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import compare_ranks, imbalance
from traceanalyze.ranks.links import links
from traceanalyze.ranks.match import clock_offsets
from traceanalyze.ranks.results import Group, LinkTraffic
from traceanalyze.ranks.waits import collective_waits, rank_waits

STEPS = ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")


def waits(cluster):
    """Sums by rank, of the collectives of one row."""
    return [(one.rank, one.wait_ns) for one in collective_waits(cluster).records()]


def late(number, by, **more):
    """Three steps of 1000 ns, an all-reduce in each that ends at 700 and takes 100; the rank comes `by` ns early."""
    begin = 600 - by
    rows = [(step, "all_reduce", 64, 1000 * step + begin, 1000 * step + 700) for step in range(3)]
    return rank(number, *rows, steps=STEPS, **more)


def test_wait_is_what_a_collective_takes_beyond_the_shortest():
    found = compare_ranks([late(0, 300), late(1, 0)])
    table = collective_waits(found)
    of_both = [(one.collective, one.bytes, one.count, one.transfer_ns, one.is_bound) for one in table.records()]
    assert of_both == [("all_reduce", 64, 3, 300, False)] * 2
    assert waits(found) == [("0", 900), ("1", 0)]
    # Per step of three.
    assert [(each.wait_ns, each.times_last) for each in rank_waits(found).records()] == [(300, 0), (0, 3)]


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
    assert waits(found) == [("0", 500), ("1", 200)]
    assert rank_waits(found).column("wait_ns") == (167, 67)
    assert found.stragglers == ()


def test_two_steps_are_too_few_for_a_straggler():
    pair = [replace(late(n, 300 * (1 - n)), counted=late(0, 0).counted & [True, True, False]) for n in (0, 1)]
    assert compare_ranks(pair).stragglers == NotMeasured("few_steps_for_stragglers")


def test_with_ranks_missing_transfer_is_a_bound_and_nobody_is_named():
    group = Group("0-3", (0, 1, 2, 3), 4)
    found = compare_ranks([late(0, 300, world=4, group=group), late(1, 0, world=4, group=group)])
    assert found.missing == (2, 3)
    table = collective_waits(found)
    assert (table.column("is_bound"), table.column("transfer_ns")) == ((True, True), (300, 300))
    assert [one.missing for one in found.groups] == [(2, 3)]
    assert found.stragglers == NotMeasured("ranks_missing")


def test_without_a_known_size_of_the_group_nothing_is_taken_for_complete():
    group = Group("mystery", (), 0)
    found = compare_ranks([late(0, 300, world=None, group=group), late(1, 0, world=None, group=group)])
    assert collective_waits(found).column("is_bound") == (True, True)


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
    assert waits(compare_ranks(pair)) == [("0", 10), ("1", 0)]


def test_waiting_is_not_defined_for_a_broadcast():
    pair = [rank(n, (0, "broadcast", 8, 10 * n, 90)) for n in (0, 1)]
    found = compare_ranks(pair)
    assert collective_waits(found).absent == NotMeasured("no_matched_collectives")
    assert rank_waits(found).column("wait_ns")[0] == NotMeasured("no_matched_collectives")


def test_sends_and_receives_are_counted_as_exposed_time_of_the_rank():
    first = rank(0, (0, "send", 8, 0, 70), (0, "all_reduce", 8, 100, 200))
    second = rank(1, (0, "recv", 8, 0, 90), (0, "all_reduce", 8, 100, 200))
    found = compare_ranks([first, second])
    assert rank_waits(found).column("point_to_point_ns") == (70, 90)
    assert found.stops == ()


def test_steps_are_matched_by_name_and_the_rest_is_counted():
    first = rank(0, (0, "barrier", -1, 0, 10), (1, "barrier", -1, 100, 130), steps=STEPS[:2])
    second = rank(1, (0, "barrier", -1, 110, 130), (1, "barrier", -1, 200, 210), steps=STEPS[1:])
    found = compare_ranks([first, second])
    assert found.steps == ("ProfilerStep#2",)
    assert found.outside == 2
    assert waits(found) == [("0", 10), ("1", 0)]


def test_imbalance_is_the_maximum_over_the_mean():
    found = compare_ranks([late(0, 0, compute=[100, 200, 100]), late(1, 0, compute=[300, 200, 100])])
    (one,) = imbalance(found).records()
    # Steps: (300 - 200) / 200, 0, 0.
    assert one.imbalance == pytest.approx(0.5 / 3)
    assert (one.worst_imbalance, one.worst_step, one.most_rank, one.most_ns, one.least_ns) == (0.5, "1", "1", 200, 133)


def test_clocks_are_told_apart_by_the_ends():
    found = compare_ranks([late(0, 300), late(1, 0, clock=5_000)])
    found = clock_offsets(found).records()
    assert [(one.rank, one.offset_ns, one.residual_ns, one.skew_ns) for one in found] == [
        ("0", 0, 0, 0),
        ("1", 5_000, 0, 300),
    ]


def test_arrival_is_not_told_where_the_ends_scatter_as_much():
    rows = [(step, "all_reduce", 64, 1000 * step + 600, 1000 * step + 700 + 90 * step) for step in range(3)]
    found = compare_ranks([late(0, 300), rank(1, *rows, steps=STEPS)])
    # Ends differ by 0, 90 and 180: median 90, MAD 90; arrivals are 210 apart.
    _, one = clock_offsets(found).records()
    assert (one.offset_ns, one.residual_ns) == (90, 90)
    assert one.skew_ns == NotMeasured("clocks_too_uneven")


def test_a_slow_link_is_told_from_the_others_of_its_kind():
    def traffic(target, time):
        return LinkTraffic(0, target, "HCCS", 20, 1000, time)

    found = links([late(0, 0, links=[traffic(1, 100), traffic(2, 100), traffic(3, 125)]), late(1, 0)])
    # 8 bytes a ns against 10: a fifth below.
    expected = [(3, pytest.approx(0.2)), (1, None), (2, None)]
    assert [(one.target_rank, one.below_usual) for one in found.records()] == expected


def test_groups_are_named_by_what_they_are_for():
    group = Group("tp_group_0", (), 2)
    found = compare_ranks([late(0, 0, group=group), late(1, 0, group=group)])
    assert found.groups[0].role == "tensor"
    listed = compare_ranks([late(n, 0, names={"dp_shard": (0, 1)}) for n in (0, 1)])
    assert listed.groups[0].role == "data"
    assert compare_ranks([late(0, 0), late(1, 0)]).groups[0].role is None


def test_of_stages_that_only_send_the_one_that_waits_least_works_longest():
    """Rank 1 waits 400 of the 500 ns that it receives for, as its pair tells; in a group of three the shortest does."""

    def stage(number, kind, begin, world=2):
        members = tuple(range(world))
        rows = [(step, kind, 64, 1000 * step + begin, 1000 * step + 800) for step in range(3)]
        return rank(number, *rows, steps=STEPS, world=world, group=Group(f"0-{world - 1}", members, world))

    found = compare_ranks([stage(0, "send", 700), stage(1, "recv", 300)])
    assert (found.own_time, found.lead) == ((1000, 600), 0)
    assert (found.waits.by_step.tolist(), found.waits.bound) == ([[0] * 3, [400] * 3], False)
    found = compare_ranks([stage(0, "send", 750, 3), stage(1, "recv", 300, 3), stage(2, "recv", 600, 3)])
    assert (found.own_time, found.lead, found.waits.bound) == ((1000, 700, 1000), 0, True)
    # Of recordings without one of the ranks, or of ranks that do not send, nobody knows.
    assert compare_ranks([stage(0, "send", 700, 3), stage(1, "recv", 300, 3)]).waits is None
    assert compare_ranks([stage(0, "send", 700), rank(1, steps=STEPS)]).own_time == (None, None)


def on_host(number, *peer_wait, **parts):
    """A rank whose host computes, in as many steps of 1000 ns as it waits in for other processes."""
    steps = tuple(f"ProfilerStep#{at}" for at in range(len(peer_wait)))
    return replace(rank(number, steps=steps, world=3, peer_wait=peer_wait, **parts), host_computes=True)


def test_of_hosts_that_compute_the_one_that_waits_least_is_late():
    """If it came in time, rank 2 would be the last: of 100, 200 and 300 ns that it waits more, 200 a step."""
    found = compare_ranks(
        [
            on_host(0, 500, 600, 700, compute=400, untraced=0),
            on_host(1, 50, 50, 50, compute=400, untraced=550),
            on_host(2, 150, 250, 350, compute=500, untraced=0),
        ]
    )
    (one,) = found.stragglers
    assert (one.label, one.steps_last, one.last) == ("1", 3, 1.0)
    assert (one.wait, one.exposed, one.share) == (375, 200, 0.375)
    assert (one.phase, one.excess) == ("untraced", 550)
    assert found.own_time == (450, 1000, 800)
    assert found.lead == 1


def test_of_hosts_that_compute_nobody_is_late_who_is_not_so_again_and_again():
    turns = [on_host(0, 0, 900, 900), on_host(1, 900, 0, 900), on_host(2, 900, 900, 0)]
    assert compare_ranks(turns).stragglers == ()
    late = [on_host(0, 900, 900, 900), on_host(1, 0, 0, 0)]
    assert compare_ranks(late).stragglers == NotMeasured("ranks_missing")
    unknown = replace(late[1], parts={})
    assert compare_ranks([late[0], unknown, on_host(2, 0, 0, 0)]).own_time == (None,) * 3


def test_groups_of_one_name_with_other_members_are_not_one():
    """Ranks 0 and 1 meet, and 2 and 3; rank 3 comes 200 ns late, and all groups are called tp."""
    late = (0, 0, 0, 200)
    made = [
        rank(
            number,
            (0, "all_reduce", 64, late[number], 300),
            world=4,
            group=Group("tp", members, 2),
        )
        for number, members in enumerate([(0, 1), (0, 1), (2, 3), (2, 3)])
    ]
    table = collective_waits(compare_ranks(made))
    assert table.column("group") == ("tp (2-3)", "tp (2-3)", "tp (0-1)", "tp (0-1)")
    assert table.column("wait_ns") == (200, 0, 0, 0)
