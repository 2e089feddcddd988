"""Longest paths and work taken out: the native functions, their twins and what is counted one by one agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from traceanalyze.model.intervals import merge
from traceanalyze.replay import longest
from traceanalyze.replay.longest import NEVER, Edges, HostTime


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
def test_edges_by_target_keep_their_order_and_know_their_numbers(rows):
    source, target = np.array(rows, np.int32).reshape(-1, 2).T
    ordered = sorted(range(len(rows)), key=lambda edge: rows[edge][1])
    for way in (longest.by_target, longest._by_target_twin):
        edges, number = way(source, target, 7)
        assert [edges.source[place] for place in number] == [row[0] for row in rows]
        assert [int(number[edge]) for edge in ordered] == list(range(len(rows)))
        leads = [rows[edge][1] for edge in ordered]
        assert edges.bounds.tolist() == [sum(target < point for target in leads) for point in range(8)]
