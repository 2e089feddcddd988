"""How much of the waiting nothing hides: hand-made ranks, answers on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ranks.make import ints, rank
from traceanalyze.model.table import NotMeasured
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group
from traceanalyze.ranks.waits import rank_waits

PAIR, OF_FOUR = Group("0-1", (0, 1), 2), Group("0-3", (0, 1, 2, 3), 4)


def ranks(durations, exposed, *, group=PAIR, moved=None):
    """Two ranks with all-reduces in one step, by rank how long each takes and is exposed."""
    found = []
    for number, (lengths, shown) in enumerate(zip(durations, exposed, strict=True)):
        calls = [
            (0, "all_reduce", 64, 100 * at + 50 - length, 100 * at + 50) for at, length in enumerate(lengths, start=1)
        ]
        made = rank(number, *calls, group=group, world=group.size)
        columns = {"exposed": ints(shown)} | ({} if moved is None else {"moved": ints(moved[number])})
        found.append(replace(made, collectives=replace(made.collectives, **columns)))
    return found


@pytest.mark.parametrize(
    ("durations", "exposed", "waits"),
    [
        # All of the wait is exposed.
        (((30, 10), (10, 10)), ((30, 10), (10, 10)), [20, 0]),
        # Compute hides 15 of the first 30.
        (((30, 10), (10, 10)), ((15, 10), (10, 10)), [5, 0]),
        # The late first one pushes the second out of the compute that hides it on the other rank.
        (((30, 10), (10, 10)), ((10, 10), (10, 0)), [10, 0]),
        # Never more than all waiting.
        (((30, 10), (10, 10)), ((30, 10), (0, 0)), [20, 0]),
        # Each is the last once; both wait.
        (((30, 10), (10, 40)), ((30, 10), (10, 40)), [20, 30]),
    ],
)
def test_of_a_whole_group(durations, exposed, waits):
    found = compare_ranks(ranks(durations, exposed)).exposed_waits
    assert (found.by_step[:, 0].tolist(), found.bound) == (waits, False)


def test_with_ranks_missing_only_what_each_is_exposed_beyond_its_shortest_is_known():
    found = compare_ranks(ranks(((30, 10), (10, 10)), ((10, 10), (10, 0)), group=OF_FOUR)).exposed_waits
    assert (found.by_step[:, 0].tolist(), found.bound) == ([0, 0], True)
    found = compare_ranks(ranks(((30, 10), (10, 10)), ((25, 10), (10, 10)), group=OF_FOUR)).exposed_waits
    assert (found.by_step[:, 0].tolist(), found.bound) == ([15, 0], True)


def test_with_ranks_missing_the_parts_of_the_collectives_tell_more():
    given = ranks(((30, 10), (10, 10)), ((25, 10), (10, 8)), group=OF_FOUR, moved=((5, 5), (5, 5)))
    found = compare_ranks(given).exposed_waits
    assert (found.by_step[:, 0].tolist(), found.bound) == ([25, 8], True)
    # All ranks are there: the durations tell it.
    whole = ranks(((30, 10), (10, 10)), ((25, 10), (10, 8)), moved=((5, 5), (5, 5)))
    assert compare_ranks(whole).exposed_waits.by_step[:, 0].tolist() == [17, 0]


def test_without_collectives_it_is_not_measured():
    assert compare_ranks([rank(0), rank(1)]).exposed_waits == NotMeasured("no_matched_collectives")


@pytest.mark.parametrize("group", [OF_FOUR, PAIR])
def test_what_the_parts_tell_is_in_the_short_table_where_the_waits_are_lower_bounds(group):
    given = ranks(((30, 10), (10, 10)), ((25, 10), (10, 8)), group=group, moved=((5, 5), (5, 5)))
    (column,) = [one for one in rank_waits(compare_ranks(given)).columns if one.key == "recorded_wait_ns"]
    assert column.minor == (group is PAIR)
