"""Call trees: the native function, its Python twin and a slow reference agree; lengths add up whatever the input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.model import calltree, intervals
from traceanalyze.model.calltree import Spans


def spans(rows, tick=1):
    start, length, track, rank = np.array(rows, np.int64).reshape(-1, 4).T
    return Spans(start, length, track.astype(np.int32), rank.astype(np.uint8), tick)


def built(given_spans):
    tree = calltree.build(given_spans)
    return [list(map(int, column)) for column in (tree.row, tree.parent, tree.stop, tree.start, tree.end)]


anything = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 2), st.integers(0, 2)), max_size=40
)


@st.composite
def laminar(draw):
    """Properly nested intervals of one thread, in any order."""
    rows = []

    def fill(start, end, depth):
        at = start
        while at < end and depth < 4 and draw(st.booleans()):
            first = draw(st.integers(at, end - 1))
            last = draw(st.integers(first, end))
            rows.append((first, last - first, 0, 0))
            if last > first:
                fill(first, last, depth + 1)
            at = max(last, first + 1)

    fill(0, 60, 0)
    return draw(st.permutations(rows))


needs_library = pytest.mark.skipif(calltree._library() is None, reason="the native library was not built")


@needs_library
@given(rows=anything, tick=st.integers(0, 3))
def test_native_and_twin_agree(rows, tick):
    mine = spans(rows, tick)
    native, twin = calltree._build(mine, calltree._library()), calltree._build_twin(mine)
    for name in ("row", "parent", "stop", "start", "end", "own", "bounds"):
        np.testing.assert_array_equal(getattr(native, name), getattr(twin, name), name)
        assert getattr(native, name).dtype == getattr(twin, name).dtype
    assert native.broken == twin.broken


@pytest.mark.parametrize("library", [None, calltree._library()], ids=["twin", "native"])
@given(rows=anything, data=st.data())
def test_some_rows_nest_as_if_they_were_all(library, rows, data):
    mine = spans(rows)
    some = np.array(data.draw(st.permutations(range(len(rows))))[::2], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calltree, "_library", lambda: library)
        tree = calltree.build(mine._replace(rows=some))
        alone = calltree.build(Spans(*(column[some] for column in mine[:4])))
    assert tree.row.tolist() == some[alone.row].tolist()
    for name in ("parent", "stop", "start", "end", "own"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(alone, name), name)
    assert [
        set(mine.track[tree.row[first:last]].tolist()) - {track}
        for track, (first, last) in enumerate(pairwise(tree.bounds.tolist()))
    ] == [set()] * (len(tree.bounds) - 1)


@needs_library
@given(rows=anything, tick=st.integers(0, 3))
def test_own_times_are_those_of_the_tree(rows, tick):
    mine = spans(rows, tick)
    events = mine._replace(rank=np.where(mine.rank == 2, calltree.NO_RANK, mine.rank))
    kept = np.flatnonzero(mine.rank < 2)
    tree = calltree.build(Spans(*(column[kept] for column in mine[:4]), tick))
    own = np.zeros(len(rows), np.int64)
    own[kept[tree.row]] = tree.own
    np.testing.assert_array_equal(calltree.own_times(events), own)
    np.testing.assert_array_equal(calltree._own_times_twin(events), own)


@needs_library
@given(rows=anything, data=st.data())
def test_native_and_twin_agree_on_the_outermost(rows, data):
    tree = calltree.build(spans(rows))
    key = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(tree), max_size=len(tree))), np.int32)
    outer = calltree._outermost(tree.stop, key, 4, calltree._library())
    np.testing.assert_array_equal(outer, calltree._outermost_twin(tree.stop, key))
    for at in range(len(tree)):
        above, around = tree.parent[at], []
        while above >= 0:
            around.append(key[above])
            above = tree.parent[above]
        assert outer[at] == (key[at] not in around)


@needs_library
@given(rows=anything, data=st.data())
def test_native_and_twin_agree_on_how_many_of_some_events_each_is_or_contains(rows, data):
    tree = calltree.build(spans(rows))
    some = np.array(data.draw(st.lists(st.integers(-1, len(tree) - 1), max_size=12)), np.int32)
    expected = [sum(at <= one < tree.stop[at] for one in some) for at in range(len(tree))]
    assert calltree.inside(tree.stop, some).tolist() == expected
    assert calltree._inside_twin(tree.stop, some).tolist() == expected


@given(rows=laminar())
def test_the_parent_is_the_smallest_event_around(rows):
    """Of equal events each contains the next in the file; an empty event contains nothing."""
    order, parent, _, start, end = built(spans(rows, 0))
    for at, row in enumerate(order):
        around = [
            other
            for other in range(at)
            if start[other] <= start[at] < end[other] and end[at] <= end[other] and order[other] != row
        ]
        assert parent[at] == max(around, default=-1)


@given(rows=anything, tick=st.integers(0, 3))
def test_lengths_add_up(rows, tick):
    mine = spans(rows, tick)
    tree = calltree.build(mine)
    length = tree.end - tree.start
    inside = tree.parent >= 0
    own = length - np.bincount(tree.parent[inside], length[inside], len(tree)).astype(np.int64)
    assert (own >= 0).all()
    for track in range(3):
        member = mine.track == track
        here = mine.track[tree.row] == track
        covered = intervals.total(intervals.merge(mine.start[member], (mine.start + mine.length)[member]))
        # Only what lasts a tick longer than its parent loses anything.
        assert own[here].sum() == covered if tick == 0 else own[here].sum() <= covered
    np.testing.assert_array_equal(own, tree.own)
    for at in range(len(tree)):
        assert (tree.parent[at + 1 : tree.stop[at]] >= at).all()


def test_each_thread_has_its_own_tree():
    order, parent, stop, *_ = built(spans([(0, 10, 1, 0), (2, 3, 0, 0), (2, 3, 1, 0)]))
    assert (order, parent, stop) == ([1, 0, 2], [-1, -1, 1], [1, 3, 3])


def test_events_that_start_together_nest_the_longer_outside_then_by_rank_then_by_row():
    rows = [(0, 5, 0, 2), (0, 5, 0, 1), (0, 9, 0, 3), (0, 5, 0, 1)]
    order, parent, *_ = built(spans(rows))
    assert (order, parent) == ([2, 1, 3, 0], [-1, 0, 1, 2])


@pytest.mark.parametrize(("after", "broken"), [(0, 0), (1, 0), (2, 1)])
def test_a_tick_is_a_nanosecond_where_nothing_else_is_said(after, broken):
    untold = Spans(*spans([(0, 10, 0, 0), (5, 5 + after, 0, 0)])[:4])
    assert calltree.build(untold).broken == broken


def test_a_child_may_end_a_tick_after_its_parent():
    order, parent, _, _, end = built(spans([(0, 10, 0, 0), (5, 6, 0, 0)]))
    assert (order, parent, end) == ([0, 1], [-1, 0], [10, 10])


def test_more_than_a_tick_closes_the_parent():
    mine = spans([(0, 10, 0, 0), (5, 7, 0, 0), (6, 1, 0, 0)])
    _, parent, stop, _, end = built(mine)
    assert (parent, stop, end) == ([-1, -1, 1], [1, 3, 3], [5, 12, 7])
    assert calltree.build(mine).broken == 1


def test_a_child_closes_all_that_it_outlasts():
    mine = spans([(0, 20, 0, 0), (1, 9, 0, 0), (2, 6, 0, 0), (5, 10, 0, 0)])
    _, parent, _, _, end = built(mine)
    assert (parent, end) == ([-1, 0, 1, 0], [20, 5, 5, 15])
    assert calltree.build(mine).broken == 2


def test_an_empty_event_has_a_parent_and_no_children():
    _, parent, *_ = built(spans([(0, 10, 0, 0), (3, 0, 0, 0), (3, 0, 0, 0), (10, 0, 0, 0)]))
    assert parent == [-1, 0, 0, -1]


def test_no_events():
    tree = calltree.build(spans([]))
    assert (len(tree), tree.broken) == (0, 0)
