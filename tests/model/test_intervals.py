"""Laws of the interval algebra, against sets of unit cells on a small line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.model import intervals
from traceanalyze.model.intervals import Intervals


@pytest.fixture(params=["native", "twin"], scope="module", autouse=True)
def way(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "twin":
            patch.setattr(intervals, "_library", lambda: None)
        elif intervals._library() is None:
            pytest.skip("the native library was not built")
        yield


LINE = 40
pairs = st.lists(st.tuples(st.integers(0, LINE), st.integers(0, LINE)), max_size=12)


def arrays(items):
    return np.array([a for a, _ in items], np.int64), np.array([b for _, b in items], np.int64)


def merged(items):
    return intervals.merge(*arrays(items))


def cells(items):
    return {x for a, b in items for x in range(a, b)}


def as_cells(a: Intervals):
    return cells(zip(a.start.tolist(), a.end.tolist(), strict=True))


def is_set(a: Intervals):
    return (a.end > a.start).all() and (a.start[1:] > a.end[:-1]).all()


@given(pairs)
def test_merge_keeps_exactly_the_covered_time_and_is_a_set(items):
    result = merged(items)
    assert as_cells(result) == cells(items)
    assert is_set(result)


@given(pairs)
def test_merge_is_idempotent_and_ignores_order(items):
    once = merged(items)
    twice = intervals.merge(*once)
    backwards = merged(items[::-1])
    assert [x.tolist() for x in once] == [x.tolist() for x in twice] == [x.tolist() for x in backwards]


@given(pairs, pairs)
def test_union_intersection_and_difference_are_those_of_the_cells(a, b):
    one, two = merged(a), merged(b)
    assert as_cells(intervals.union(one, two)) == cells(a) | cells(b)
    assert as_cells(intervals.intersect(one, two)) == cells(a) & cells(b)
    assert as_cells(intervals.subtract(one, two)) == cells(a) - cells(b)
    assert is_set(intervals.subtract(one, two))


@given(pairs, pairs)
def test_lengths_add_up(a, b):
    one, two = merged(a), merged(b)
    both = intervals.total(intervals.intersect(one, two))
    assert intervals.total(one) + intervals.total(two) == intervals.total(intervals.union(one, two)) + both
    assert intervals.total(intervals.subtract(one, two)) == intervals.total(one) - both


@given(st.lists(st.tuples(st.integers(-5, 205), st.integers(-5, 205)), max_size=4))
def test_of_many_members_a_few_windows_cut_only_the_outer_ones(windows):
    many = [(at, at + 3) for at in range(0, 200, 4)]
    few = intervals.merge(*arrays(windows))
    for both in (intervals.intersect(few, merged(many)), intervals.intersect(merged(many), few)):
        assert as_cells(both) == cells(windows) & cells(many)


@given(pairs, st.integers(0, LINE), st.integers(0, LINE))
def test_gaps_are_the_window_without_the_set(items, start, end):
    free = intervals.gaps(merged(items), start, end)
    assert as_cells(free) == set(range(start, end)) - cells(items)
    assert is_set(free)


@given(pairs, pairs)
def test_coverage_is_the_covered_part_of_each_window(items, windows):
    measured = intervals.coverage(merged(items), *arrays(windows))
    assert measured.tolist() == [len(cells(items) & set(range(a, b))) for a, b in windows]


@given(pairs)
def test_an_instant_is_inside_from_the_start_of_a_member_to_before_its_end(items):
    inside = intervals.contains(merged(items), np.arange(-1, LINE + 2))
    assert inside.tolist() == [at in cells(items) for at in range(-1, LINE + 2)]


@given(st.lists(st.integers(0, LINE)), st.lists(st.integers(-1, LINE + 1)), st.sampled_from([1, intervals._SOME]))
def test_moments_that_have_passed_are_those_not_after_an_instant(moments, instants, times):
    found = intervals.passed(np.array(sorted(moments), np.int64), np.array(instants * times, np.int64))
    assert found.tolist() == [sum(moment <= instant for moment in moments) for instant in instants] * times


@given(pairs, pairs)
def test_overlaps_name_the_members_each_piece_comes_from(a, b):
    one, two = merged(a), merged(b)
    pieces = intervals.overlaps(one, two)
    assert as_cells(Intervals(pieces.start, pieces.end)) == cells(a) & cells(b)
    assert (pieces.start[1:] >= pieces.end[:-1]).all()
    for start, end, i, j in zip(*(column.tolist() for column in pieces), strict=True):
        assert one.start[i] <= start < end <= one.end[i]
        assert two.start[j] <= start < end <= two.end[j]


def test_absolute_nanoseconds_stay_exact():
    base = 1_700_000_000_123_456_789
    one = intervals.merge(np.array([base, base + 2]), np.array([base + 1, base + 3]))
    assert intervals.total(one) == 2
    assert intervals.gaps(one, base, base + 4).start.tolist() == [base + 1, base + 3]


def test_members_of_one_are_kept_and_the_others_fill_the_time_between_them():
    """Against every cell by itself; borders of the first are kept even where two of its members touch."""
    chance = np.random.RandomState(5)
    for _ in range(200):
        edges = [np.sort(chance.choice(LINE, 2 * chance.randint(0, 6), replace=False)) for _ in range(2)]
        a, b = (Intervals(each[::2], each[1::2]) for each in edges)
        if len(a.start):  # the first two touch
            cut = np.sort(np.append(a.start, (a.start[0] + a.end[0] + 1) // 2))
            a = Intervals(cut, np.sort(np.append(a.end, cut[1]))) if cut[1] < a.end[0] else a
        start, end, label = intervals.beside(
            a, np.arange(len(a.start), dtype=np.uint8), b, np.arange(100, 100 + len(b.start), dtype=np.uint8)
        )
        expected = [-1] * LINE
        for one, first in ((b, 100), (a, 0)):
            for at, (low, high) in enumerate(zip(*one, strict=True)):
                expected[low:high] = [first + at] * (high - low)
        found = [-1] * LINE
        for low, high, of in zip(start, end, label.tolist(), strict=True):
            assert low < high
            assert found[low:high] == [-1] * (high - low)
            found[low:high] = [of] * (high - low)
        assert found == expected
        assert (np.diff(start) > 0).all()


@given(pairs, st.data())
def test_events_run_where_any_of_their_rows_does(items, data):
    """In any order of the rows, of which some may be asked for twice; an event may have no length, or less."""
    rows = np.array(data.draw(st.lists(st.integers(0, len(items) - 1))) if items else [], np.int64)
    start, end = arrays(items)
    result = intervals.active(start, end - start, rows)
    assert is_set(result)
    assert as_cells(result) == cells([items[row] for row in rows.tolist()])
