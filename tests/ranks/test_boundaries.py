"""Thresholds and whole rows of the comparison of ranks: just at and just beyond each, answers on paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.ranks.make import ints, rank
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import compare_ranks, imbalance, longest, rank_steps
from traceanalyze.ranks.links import links
from traceanalyze.ranks.match import clock_offsets, missing_ranks, presence, role_of, world_size
from traceanalyze.ranks.results import Group, LinkTraffic, MatchedGroup, columns_of, leading
from traceanalyze.ranks.stragglers import (
    UNSURE,
    _delayed_by,
    _spent_before,
    _waits_of,
    absent_sentences,
    straggler_sentences,
)
from traceanalyze.ranks.waits import collective_waits, rank_waits


def steps(count):
    return tuple(f"ProfilerStep#{number}" for number in range(1, count + 1))


def arriving(*ranks, taken=100, bytes_=64, parts=({}, {}, {}, {})):
    """Ranks by when they come to the collectives of each step: `ranks[rank][step]` are ns after its begin.

    Collectives come 100 ns after each other and end together, `taken` after the last rank came; steps are 1000 ns.
    """
    count = len(ranks)
    group = Group(f"0-{count - 1}", tuple(range(count)), count)
    found = []
    for number, own in enumerate(ranks):
        rows = []
        for step, starts in enumerate(own):
            for at, start in enumerate(starts):
                last = max(each[step][at] for each in ranks)
                rows.append((step, "all_reduce", bytes_, 1000 * step + start, 1000 * step + last + taken))
        found.append(rank(number, *rows, steps=steps(len(own)), world=count, group=group, **parts[number]))
    return compare_ranks(found)


def late(cluster):
    return [(one.label, one.wait, one.share, one.last, one.steps_last, one.steps) for one in cluster.stragglers]


def test_what_a_straggler_costs_is_the_mean_wait_of_the_others_a_step():
    found = arriving([[0]] * 3, [[100]] * 3, [[300]] * 3)
    assert late(found) == [("2", 250, 0.25, 1.0, 3, 3)]
    assert found.stragglers[0].exposed == 250
    assert (found.stragglers[0].position, found.stragglers[0].group) == (2, "0-2")


@pytest.mark.parametrize(("by", "named"), [(310, True), (309, False)])
def test_a_straggler_is_the_last_where_half_of_the_waiting_is(by, named):
    """For ranks 0 and 1, late once each, the others wait 620, rank 2 but 20 of it; for rank 2 both wait so long."""
    found = arriving([[100, 300, 600]] * 3, [[400, 0, 600]] * 3, [[390, 290, 600 + by]] * 3).stragglers
    assert [(one.label, one.last) for one in found] == ([("2", 0.5)] if named else [])


def test_collectives_in_which_nobody_waits_long_do_not_count():
    """In each step rank 1 comes 300 late to one collective, and 1 early to four more."""
    found = arriving([[0, 401, 501, 601, 701]] * 3, [[300, 400, 500, 600, 700]] * 3)
    assert late(found) == [("1", 300, 0.3, 300 / 304, 3, 3)]


@pytest.mark.parametrize(("waits", "named"), [((300, 300, 300, -10, -10), True), ((300, 300, -10, -10), False)])
def test_a_straggler_is_the_last_in_three_of_five_steps(waits, named):
    found = arriving([[400]] * len(waits), [[400 + by] for by in waits])
    assert bool(found.stragglers) is named


@pytest.mark.parametrize(("used", "named"), [(3, True), (2, False)])
def test_a_straggler_needs_three_steps_with_collectives(used, named):
    none = [[]] * (4 - used)
    assert bool(arriving([[0]] * used + none, [[50]] * used + none).stragglers) is named


def test_equal_ranks_have_no_straggler():
    found = arriving([[0]] * 3, [[0]] * 3)
    assert (found.stragglers, straggler_sentences(found)) == ((), ())


@pytest.mark.parametrize(("by", "sentences"), [(10, 1), (9, 0)])
def test_waiting_is_worth_a_name_and_a_sentence_from_a_hundredth_of_the_step(by, sentences):
    """Somebody is last each time, and of two by chance often enough."""
    found = arriving([[0]] * 3, [[by]] * 3)
    assert (len(found.stragglers), len(straggler_sentences(found))) == (sentences, sentences)
    assert rank_waits(found).column("straggler") == (False, bool(sentences))


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        ({"untraced": 400, "gc": 150}, {"untraced": 100, "gc": 0}, ("gc", 150)),
        ({"untraced": 400, "gc": 149}, {"untraced": 100, "gc": 0}, ("untraced", 300)),
        ({"untraced": 400, "pause": 300}, {"untraced": 100, "pause": 0}, ("pause", 300)),
        ({"untraced": 400, "pause": 299}, {"untraced": 100, "pause": 0}, ("untraced", 300)),
        ({"compute": 400, "pause": 300}, {"compute": 100, "pause": 0}, ("compute", 300)),
        ({"compute": 400, "gc": 300}, {"compute": 100, "gc": 0}, ("compute", 300)),
        ({"compute": 130}, {"compute": 100}, ("compute", 30)),
        # What differs by less than a tenth of the waiting is no reason for it.
        ({"compute": 129}, {"compute": 100}, (None, 0)),
        ({"compute": 100}, {"compute": 100}, (None, 0)),
        ({"compute": 110, "sync": 60}, {"compute": 80, "sync": 20}, ("sync", 40)),
    ],
)
def test_what_makes_a_rank_late(mine, theirs, expected):
    found = arriving([[0]] * 3, [[300]] * 3, [[0]] * 3, parts=(theirs, mine, theirs))
    (one,) = found.stragglers
    assert (one.phase, one.excess) == expected


def recorded(number, waiting, *, peers=(3, 3, 3)):
    """A rank of four that was in a collective for 100 ns a step, of which it waited, by its tasks, for some rank."""
    group = Group("0-3", (0, 1, 2, 3), 4)
    rows = [(step, "all_reduce", 64, 1000 * step, 1000 * step + 100) for step in range(3)]
    one = rank(number, *rows, steps=steps(3), world=4, group=group)
    own = replace(one.collectives, moved=100 - ints([waiting] * 3), waited_for=ints(peers))
    return replace(one, collectives=own)


@pytest.mark.parametrize(("waiting", "sentences"), [(10, 1), (9, 0)])
def test_a_rank_that_was_not_recorded_is_named_from_a_hundredth_of_the_step(waiting, sentences):
    cluster = compare_ranks([recorded(0, waiting), recorded(1, waiting)])
    found, first = absent_sentences(cluster)
    assert len(found) == sentences
    if found:
        assert {name: value for name, _, value in found[0].values if name not in {"ranks", "absent"}} == {
            "rank": 3,
            "state": "not recorded",
            "wait": 10,
            "share": 0.01,
        }
    assert not first
    assert rank_waits(cluster).column("recorded_wait_ns") == (waiting, waiting)
    assert rank_waits(cluster).column("waited_for") == (3, 3)


def test_ranks_that_wait_for_different_ranks_name_nobody():
    cluster = compare_ranks([recorded(0, 50), recorded(1, 50, peers=(2, 2, 3))])
    (one,), _ = absent_sentences(cluster)
    assert one.key == "waits_for_absent"
    assert rank_waits(cluster).column("waited_for") == (3, 2)


def test_every_column_of_the_waits_of_a_rank():
    busy = ({"compute": 100, "gc": 0}, {"compute": 350, "gc": 0})
    table = rank_waits(arriving([[0, 400]] * 3, [[300, 300]] * 3, parts=busy))
    keys = ("rank", "step_ns", "wait_ns", "share", "times_last", "matched", "straggler", "late_because", "excess_ns")
    assert tuple(column.key for column in table.columns) == keys
    assert table.rows == (
        ("0", 1000, 300, 0.3, 3, 6, False, None, None),
        ("1", 1000, 100, 0.1, 3, 6, True, "compute", 250),
    )


def test_every_column_of_the_waits_in_collectives():
    table = collective_waits(arriving([[0, 400]] * 3, [[300, 300]] * 3, taken=70))
    keys = ("group", "role", "collective", "bytes", "count", "rank", "transfer_ns", "wait_ns", "is_bound")
    assert tuple(column.key for column in table.columns) == keys
    assert table.rows == (
        ("0-1", None, "all_reduce", 64, 6, "0", 420, 900, False),
        ("0-1", None, "all_reduce", 64, 6, "1", 420, 300, False),
    )


def test_collectives_without_a_size_or_a_group_say_so():
    pair = [rank(n, (0, "barrier", -1, 10 * n, 90), group=Group("", (), 0)) for n in (0, 1)]
    table = collective_waits(compare_ranks(pair))
    missing = NotMeasured("no_collective_metadata")
    assert (table.column("bytes"), table.column("group")) == ((missing, missing), (missing, missing))
    zero = [rank(n, (0, "all_reduce", 0, 10 * n, 90)) for n in (0, 1)]
    assert collective_waits(compare_ranks(zero)).column("bytes") == (0, 0)


def test_rows_of_collectives_are_ordered_by_all_their_waiting():
    """The second kind keeps rank 1 waiting 40, the first rank 0 for 30."""
    pair = [
        rank(0, (0, "all_reduce", 8, 0, 130), (0, "all_gather", 16, 200, 300)),
        rank(1, (0, "all_reduce", 8, 30, 130), (0, "all_gather", 16, 160, 300)),
    ]
    table = collective_waits(compare_ranks(pair))
    assert [row[2:] for row in table.rows] == [
        ("all_gather", 16, 1, "0", 100, 0, False),
        ("all_gather", 16, 1, "1", 100, 40, False),
        ("all_reduce", 8, 1, "0", 100, 30, False),
        ("all_reduce", 8, 1, "1", 100, 0, False),
    ]


def test_imbalance_of_all_that_a_rank_can_be_loaded_with():
    both = {"compute": 100, "dispatch": 0, "data_loading": 0}, {"compute": 100, "dispatch": 100, "data_loading": 200}
    table = imbalance(arriving([[0]] * 3, [[0]] * 3, parts=both))
    assert table.rows == (
        ("compute", 0.0, 0.0, "1", "0", 100, "0", 100, 3),
        ("compute_and_host", 0.6, 0.6, "1", "1", 400, "0", 100, 3),
    )
    assert imbalance(arriving([[0]] * 3, [[0]] * 3)).absent == NotMeasured("no_device_events")


def test_ranks_step_by_step():
    parts = {"compute": [100, 200, 300], "sync": [150, 150, 150]}, {"compute": [50, 60, 70], "sync": [40, 80, 60]}
    table = rank_steps(arriving([[0]] * 3, [[300]] * 3, parts=parts))
    # Own time: 700 and 1000 of a mean of 850.
    assert table.rows == (
        ("1", "0", 1000, 700 / 850, 300, "sync", 150),
        ("1", "1", 1000, 1000 / 850, 0, "compute", 50),
        ("2", "0", 1000, 700 / 850, 300, "compute", 200),
        ("2", "1", 1000, 1000 / 850, 0, "sync", 80),
        ("3", "0", 1000, 700 / 850, 300, "compute", 300),
        ("3", "1", 1000, 1000 / 850, 0, "compute", 70),
    )


@pytest.mark.parametrize(
    ("times", "own", "leads"),
    [
        ((100, 100), (100, 101), 1),
        ((100, 100), (101, 100), 0),
        ((100, 101), (100, 100), 1),
        ((100, 101), (200, 100), 0),
        ((100, 101), (200, None), 1),
        ((101, 100), (50, 50), 0),
    ],
)
def test_the_rank_leads_whose_own_step_is_longest(times, own, leads):
    assert leading(times, own) == leads


def test_findings_are_measured_by_the_step_of_the_rank_that_leads():
    found = arriving([[0]] * 3, [[300]] * 3)
    longer = [replace(one, step_time=np.full(3, time)) for one, time in zip(found.ranks, (1200, 1100), strict=True)]
    # Own time: 900 of 1200, and all of 1100; the mean of both steps is 1150.
    assert found._replace(ranks=tuple(longer)).step == 1100


def test_of_equally_long_steps_the_first_is_the_longest():
    assert (longest((3, 5, 5)), longest((5, 5, 3))) == (1, 0)


@pytest.mark.parametrize(
    ("size", "count", "others", "below"),
    [
        (950, 10, 2, pytest.approx(0.05)),
        (951, 10, 2, None),
        (950, 9, 2, None),
        (950, 10, 1, None),
        (500, 10, 2, 0.5),
        (1050, 10, 2, None),
    ],
)
def test_a_link_is_slow_from_a_twentieth_below_the_others_on(size, count, others, below):
    """Links of 10 bytes a ns; the one in question has its bytes in 100 ns."""
    usual = [LinkTraffic(1, 2 + at, "HCCS", 10, 1000, 100) for at in range(others)]
    table = links([rank(0, links=[LinkTraffic(0, 1, "HCCS", count, size, 100), *usual]), rank(1)])
    (found,) = [row for row in table.rows if row[1:3] == (0, 1)]
    assert found == ("HCCS", 0, 1, count, size, 100, size / 100, below, 0)


def test_traffic_of_a_link_is_summed_over_the_recordings_and_kinds_are_apart():
    one, other = LinkTraffic(0, 1, "HCCS", 3, 600, 100), LinkTraffic(0, 1, "RDMA", 1, 50, 0)
    table = links([rank(0, links=[one, other]), rank(1, links=[one])])
    assert table.rows == (
        ("HCCS", 0, 1, 6, 1200, 200, 6.0, None, 0),
        ("RDMA", 0, 1, 1, 50, 0, NotMeasured("no_duration"), None, 0),
    )
    assert links([rank(0), rank(1)]).absent == NotMeasured("no_collective_tasks")


def test_clocks_are_too_uneven_from_what_the_spread_of_arrivals_allows():
    """Arrivals are 300 apart; ends differ by 0, x and 2 x, so that the deviation is x."""

    def skew(deviation):
        first = [(step, "all_reduce", 64, 1000 * step + 300, 1000 * step + 700) for step in range(3)]
        ends = [0, deviation, 2 * deviation]
        second = [(s, "all_reduce", 64, 1000 * s + 600 + by, 1000 * s + 700 + by) for s, by in enumerate(ends)]
        rows = clock_offsets(compare_ranks([rank(0, *first, steps=steps(3)), rank(1, *second, steps=steps(3))])).rows
        return rows[1]

    assert skew(0) == ("1", 0, 0, 300, 3, "0")
    assert skew(60)[1:4] == (60, 60, 300)
    assert skew(61)[1:4] == (61, 61, NotMeasured("clocks_too_uneven"))


def in_pairs(number, clock):
    """Ranks 0 and 1, and 1 and 2, meet in groups of two at 500 and 800 of each step; their transfers take 50."""
    pairs = [pair for pair in ((0, 1), (1, 2)) if number in pair]
    rows = [
        (step, "all_reduce", 64, 1000 * step + 300 + 300 * pair[0] + 10 * number, 1000 * step + 500 + 300 * pair[0])
        for pair in pairs
        for step in range(3)
    ]
    one = rank(number, *rows, steps=steps(3), world=3, clock=clock)
    groups = tuple(Group(f"{a}-{b}", (a, b), 2) for a, b in pairs)
    return replace(one, groups=groups, collectives=replace(one.collectives, group=np.repeat(np.arange(len(pairs)), 3)))


def test_clocks_are_known_by_way_of_a_rank_that_both_meet():
    found = compare_ranks([in_pairs(0, 0), in_pairs(1, 5_000), in_pairs(2, 7_000)])
    assert clock_offsets(found).rows == (
        ("0", 0, 0, 0, 0, "0"),
        ("1", 5_000, 0, 5, 3, "0"),
        ("2", 7_000, 0, 10, 3, "0"),
    )
    assert [(one.group, one.members, one.complete) for one in found.groups] == [
        ("0-1", (0, 1), True),
        ("1-2", (1, 2), True),
    ]
    assert rank_waits(found).column("wait_ns") == (10, 10, 0)
    assert rank_waits(found).column("matched") == (3, 6, 3)


def test_missing_ranks_are_those_of_the_largest_world_that_were_not_recorded():
    assert missing_ranks([rank(0, world=4), rank(2, world=None), rank(3, world=3)]) == (1,)
    assert missing_ranks([rank(0, world=None)]) == ()


@pytest.mark.parametrize(
    ("group", "numbers", "world", "expected"),
    [
        (Group("0-1", (0, 1), 2), (0, 1), 4, ((), True)),
        (Group("0-2", (0, 1, 2), 3), (0, 1), 4, ((2,), False)),
        (Group("", (), 0), (0, 1), 4, ((2, 3), False)),
        (Group("", (), 0), (0, 1), 2, ((), True)),
        (Group("", (), 0), (0, 1), None, ((), False)),
        (Group("tp", (), 2), (0, 1), 4, ((), True)),
        (Group("tp", (), 3), (0, 1), 4, ((), False)),
        (Group("tp", (), 0), (0, 1), 4, ((), False)),
        (Group("tp", (), 4), (0, 1), 4, ((2, 3), False)),
        (Group("tp", (), 3), (0, 1), None, ((2,), False)),
    ],
)
def test_which_ranks_of_a_group_are_here(group, numbers, world, expected):
    ranks = [rank(number, world=world) for number in numbers]
    assert presence([group], range(len(numbers)), ranks, world_size(ranks)) == expected


@pytest.mark.parametrize(
    ("label", "role"),
    [
        *(("tp", "tensor"), ("mp_group", "tensor"), ("pp.0", "pipeline"), ("default_dp", "data"), ("moe", "expert")),
        *(("cp-1", "context"), ("app", None), ("tp_dp", None), ("", None)),
    ],
)
def test_what_a_group_is_for_is_in_its_name(label, role):
    assert role_of([label]) == role


@pytest.mark.parametrize(("members", "role"), [((0, 1), "tensor"), ((0, 2), "data"), ((), None)])
def test_a_name_that_another_rank_gives_the_same_ranks_counts_too(members, role):
    group, call = Group("7", members, len(members)), (0, "all_reduce", 8, 0, 9)
    ranks = [rank(0, call, group=group), rank(1, call, group=group, names={"tp": (0, 1), "dp": (0, 2)})]
    assert [one.role for one in compare_ranks(ranks).groups] == [role]


def test_what_did_not_match_is_counted_by_step():
    """The second step differs in its second type, the first has one collective more on rank 0."""
    first = [(0, "all_reduce", 8, 0, 9), (0, "all_reduce", 8, 10, 19), (1, "all_reduce", 8, 100, 109)]
    second = [(0, "all_reduce", 8, 0, 9), (1, "all_gather", 8, 100, 109)]
    found = compare_ranks([rank(0, *first, steps=steps(2)), rank(1, *second, steps=steps(2))])
    assert [(one.step, one.index, one.what, one.left_out) for one in found.stops] == [
        ("ProfilerStep#1", 1, "count", 1),
        ("ProfilerStep#2", 0, "kind", 2),
    ]
    notes = [[value for _, _, value in note.values] for note in collective_waits(found).notes]
    assert notes == [[2, "ProfilerStep#2"], [1, "ProfilerStep#1"]]


def test_columns_of_what_matched():
    found = arriving([[0, 400]] * 2, [[300, 300]] * 2)
    (one,) = found.groups
    assert (one.members, one.missing, one.complete, len(one)) == ((0, 1), (), True, 4)
    assert one.step.tolist() == [0, 0, 1, 1]
    assert one.transfer.tolist() == [100] * 4
    assert one.wait(slice(None)).tolist() == [[300, 0], [0, 100]] * 2
    assert one.wait(1).tolist() == [0, 100] * 2
    assert found.exposed_waits.by_step.tolist() == [[300, 300], [100, 100]]
    assert found.exposed_waits.bound is False


def of_group(*members, calls):
    """A group of two whose first member comes at the first time of each call and whose second at the other."""
    start = ints(calls)
    end = np.repeat(start.max(axis=1, keepdims=True) + 1, 2, axis=1)
    count = np.zeros(len(start), np.int64)
    flags = np.ones(len(start), np.bool_)
    return MatchedGroup("", None, members, (), True, count, count, count, start, end, end - start, start, flags)


@pytest.mark.parametrize(
    ("late", "waited", "group"), [(10, 0, 1), (10, 5, 1), (10, 6, None), (10, 20, None), (2, 1, 1), (2, 2, None)]
)
def test_a_late_rank_only_passes_on_what_it_waited_longer_than_the_others(late, waited, group):
    """Rank 1 comes as much later than rank 0 as it had waited for rank 2, while rank 0 had waited for rank 3."""
    at = range(100, 500, 100)
    shared = of_group(0, 1, calls=[(t + 50, t + 50 + late) for t in at])
    before = of_group(1, 2, calls=[(t + 20, t + 20 + late) for t in at])
    other = of_group(0, 3, calls=[(t + 20, t + 20 + waited) for t in at])
    groups = [shared, before, other]
    assert _delayed_by(groups, columns_of(groups), 0, 1) == group
    assert _delayed_by(groups[::2], columns_of(groups[::2]), 0, 1) is None


@pytest.mark.parametrize(("took", "group"), [(4, None), (5, UNSURE), (20, UNSURE)])
@pytest.mark.parametrize("both", [True, False])
def test_a_rank_that_is_only_longer_in_another_collective_makes_nobody_late(took, group, both):
    """Rank 1 comes 10 later than rank 0, as its collective with rank 2 takes longer; unless that of rank 0 does too."""
    at = range(100, 500, 100)
    shared = of_group(0, 1, calls=[(t + 50, t + 60) for t in at])
    slow, like = (of_group(*pair, calls=[(t + 20, t + 20) for t in at]) for pair in ((1, 2), (0, 3)))
    slow, like = (replace(one, end=one.start + took, exposed=one.start * 0 + took) for one in (slow, like))
    groups = [shared, slow, *([like] if both else [])]
    assert _delayed_by(groups, columns_of(groups), 0, 1) == (None if both else group)


@pytest.mark.parametrize(("hidden", "group"), [(True, 1), (False, None)])
def test_a_lead_that_hidden_waiting_leaves_is_not_caused_again(hidden, group):
    """Rank 1 waits 10 for rank 2 before each collective, and comes 10, 20, 30 and 40 after rank 0, which computes."""
    at = range(100, 500, 100)
    shared = of_group(0, 1, calls=[(t + 50, t + 50 + 10 * (each + 1)) for each, t in enumerate(at)])
    shared = replace(shared, exposed=shared.start * 0 if hidden else shared.end - shared.start)
    groups = [shared, of_group(1, 2, calls=[(t + 20, t + 30) for t in at])]
    assert _delayed_by(groups, columns_of(groups), 0, 1) == group


@pytest.mark.parametrize("part", [slice(0, 2), slice(1, 2)])
def test_what_a_rank_waited_elsewhere_is_counted_since_the_collective_before(part):
    """Rank 1 waits 10 before the second collective, twice before the third, and 7 after the last."""
    shared = of_group(0, 1, calls=[(t + 50, t + 60) for t in range(100, 400, 100)])
    waits = [(210, 220), (305, 315), (320, 330), (400, 407)]
    groups = [shared, of_group(1, 2, calls=[(t, u) for t, u in waits])]
    assert _spent_before(groups, columns_of(groups), 0, part, _waits_of).tolist() == [[0, 0, 0], [0, 10, 20]][part]
    early = [shared, of_group(1, 2, calls=[(10, 13), *waits])]
    assert _spent_before(early, columns_of(early), 0, part, _waits_of).tolist() == [[0, 0, 0], [3, 10, 20]][part]
