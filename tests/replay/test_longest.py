"""Longest paths and work taken out: the native functions, their twins and what is counted one by one agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from traceanalyze.model.intervals import merge
from traceanalyze.replay import longest
from traceanalyze.replay.longest import NEVER, Busy, Edges, Ended, HostTime


def graph(points, rows):
    """Edges from (source, target, weight) in any order."""
    rows = sorted(((min(a, b), max(a, b), weight) for a, b, weight in rows if a != b), key=lambda row: row[1])
    source, target, weight = np.array(rows, np.int64).reshape(-1, 3).T
    bounds = np.searchsorted(target, np.arange(points + 1))
    return Edges(bounds, source.astype(np.int32)), weight, rows


@pytest.fixture(params=["native", "twin"])
def times(request, monkeypatch):
    if request.param == "twin":
        monkeypatch.setattr(longest, "_library", lambda: None)
    elif longest._library() is None:
        pytest.skip("the native library was not built")
    return longest.longest


@st.composite
def graphs(draw):
    points = draw(st.integers(1, 8))
    point = st.integers(0, points - 1)
    rows = draw(st.lists(st.tuples(point, point, st.integers(-5, 20)), max_size=14))
    earliest = draw(st.lists(st.one_of(st.integers(0, 30), st.just(NEVER)), min_size=points, max_size=points))
    return points, rows, earliest


@pytest.fixture(scope="module")
def both():
    return [longest._longest_twin] + (
        [lambda *given_graph: longest._longest(*given_graph, longest._library())] if longest._library() else []
    )


@examples(60)
@given(graphs())
def test_each_point_is_as_late_as_the_longest_path_to_it(both, drawn):
    points, rows, earliest = drawn
    edges, weight, ordered = graph(points, rows)

    def latest(point):
        """Over all paths."""
        return max([earliest[point], *(latest(source) + lag for source, target, lag in ordered if target == point)])

    expected = [latest(point) for point in range(points)]
    for way in both:
        assert way(edges, weight, np.array(earliest, np.int64)).tolist() == expected


def test_a_chain_adds_up(times):
    edges, weight, _ = graph(4, [(0, 1, 5), (1, 2, 7), (2, 3, 11)])
    assert times(edges, weight, np.array([100, NEVER, NEVER, NEVER])).tolist() == [100, 105, 112, 123]


def test_no_points(times):
    edges, weight, _ = graph(0, [])
    assert times(edges, weight, np.zeros(0, np.int64)).tolist() == []


@st.composite
def works(draw):
    moments = sorted(draw(st.lists(st.integers(0, 30), min_size=1, max_size=10)))
    row = st.integers(0, len(moments) - 1)
    work = draw(st.lists(st.tuples(row, row, st.integers(-3, 12), st.integers(0, 1), st.integers(-5, 40)), max_size=8))
    spans = draw(st.lists(st.tuples(st.integers(-5, 35), st.integers(0, 9)), max_size=6))
    return moments, work, spans


@examples(60)
@given(works())
def test_an_edge_loses_the_work_of_its_line_down_to_the_least_that_is_left(drawn):
    moments, work, spans = drawn
    begin, end, least, line, weight = np.array(work, np.int64).reshape(-1, 5).T
    begin, end = (np.array(moments, np.int64)[each] for each in (begin, end))
    host = HostTime(np.arange(len(work))[::-1], begin, end, least, line)
    start, length = np.array(spans, np.int64).reshape(-1, 2).T
    gone = {time for first, many in spans for time in range(first, first + many)}
    left = [
        max(was - lost, min(low, was)) if of and (lost := len(gone & set(range(moments[a], moments[b])))) else was
        for a, b, low, of, was in work
    ]
    for library in {longest._library(), None}:
        found = weight[::-1].copy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(longest, "_library", lambda library=library: library)
            longest.take_out(host, 1, merge(start, start + length), found)
        assert found[::-1].tolist() == left


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_edges_by_target_keep_their_order_and_weights_and_know_their_numbers(rows):
    source, target = np.array(rows, np.int32).reshape(-1, 2).T
    weight = np.arange(len(rows)) * (1 << 40)
    ordered = sorted(range(len(rows)), key=lambda edge: rows[edge][1])
    for way in (longest.by_target, longest._by_target_twin):
        edges, number, weights = way(source, target, weight, 7)
        assert [weights[place] for place in number] == weight.tolist()
        assert [edges.source[place] for place in number] == [row[0] for row in rows]
        assert [int(number[edge]) for edge in ordered] == list(range(len(rows)))
        leads = [rows[edge][1] for edge in ordered]
        assert edges.bounds.tolist() == [sum(target < point for target in leads) for point in range(8)]


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), max_size=8), st.data())
def test_an_edge_loses_what_its_event_is_shorter_and_one_to_the_host_no_more_than_the_event(rows, data):
    length, shorter = (data.draw(st.lists(st.integers(0, 9), min_size=4, max_size=4)) for _ in range(2))
    event, weight = np.array(rows, np.int64).reshape(-1, 2).T
    follows = data.draw(st.integers(0, len(rows)))
    left = [
        max(was - (shorter[of] if at < follows else min(shorter[of], length[of])), 0)
        for at, (of, was) in enumerate(rows)
    ]
    busy = Busy(np.arange(len(rows))[::-1], event, follows)
    for library in {longest._library(), None}:
        found = weight[::-1].copy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(longest, "_library", lambda library=library: library)
            longest.shorten(busy, np.array(shorter, np.int64), np.array(length, np.int64), found)
        assert found[::-1].tolist() == left


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 60)), max_size=6).map(
        lambda rows: sorted(rows, key=lambda row: row[2])
    ),
    st.integers(0, 5),
)
def test_a_gap_is_gone_but_for_the_time_between_the_device_being_done_and_the_event(rows, began):
    """Instant by instant: each event with the gap before it, how long it lasts and when it begins in the other run."""
    ends, expected = [100 * (1 + at) for at in range(len(rows))], []
    gaps = [at for at, row in enumerate(rows) if row[0]]
    for at in gaps:
        busy = set(range(began)).union(*(range(then + lasts) for _, lasts, then in rows[:at]))
        left = len(set(range(rows[at][2])) - busy)
        expected.extend([(ends[at] - rows[at][0] + left, ends[at])] if left < rows[at][0] else [])
    # Events and points in another order, as those of several devices are.
    length, lasted, time = np.array(rows, np.int64).reshape(-1, 3)[::-1].T.copy()
    own, at = np.arange(len(rows))[::-1].copy(), np.array(gaps, np.int64)
    ended = Ended(own, own, at, np.array(ends, np.int64)[at], length[own][at])
    for library in {longest._library(), None}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(longest, "_library", lambda library=library: library)
            found = longest.gone(ended, time, lasted, began)
        assert list(zip(*(each.tolist() for each in found), strict=True)) == expected
