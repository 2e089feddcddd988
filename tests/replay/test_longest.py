"""Longest paths: the native function, its Python twin and all paths one by one agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from traceanalyze.replay import longest
from traceanalyze.replay.longest import NEVER, Edges


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
