"""Which event is innermost at an instant, and the levels of a tree, against a look at every event."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.analyses.host import nesting
from traceanalyze.analyses.host.nesting import MOST_LEVELS, innermost, innermost_at, levels, nest
from traceanalyze.model import calltree
from traceanalyze.model.intervals import merge

spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 15)), min_size=1, max_size=30)


def nested(rows):
    start, length = np.array(rows, np.int64).T
    return nest(np.arange(len(rows)), start, start + length)


def slow_innermost(tree, t):
    running = [place for place in range(len(tree)) if tree.start[place] <= t < tree.end[place]]
    return max(running, default=-1)


@pytest.mark.parametrize("library", [None, calltree._library()], ids=["twin", "native"])
@pytest.mark.parametrize("climbs", [0, 1, nesting._CLIMBS])
@given(rows=spans)
def test_the_innermost_event_is_the_last_of_the_tree_that_runs(library, rows, climbs):
    tree, t = nested(rows), np.arange(-1, 50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_CLIMBS", climbs)
        patch.setattr(calltree, "_library", lambda: library)
        assert innermost_at(tree, t).tolist() == [slow_innermost(tree, each) for each in t.tolist()]


@pytest.mark.parametrize("library", [None, calltree._library()], ids=["twin", "native"])
def test_instants_of_many_threads_are_looked_up_on_their_own(monkeypatch, library):
    tree = nested([(0, 10), (2, 3)])
    monkeypatch.setattr(calltree, "_library", lambda: library)
    assert innermost(tree, np.array([3, 0, 0, 7], np.int32), np.array([2, 2, 1, 2])).tolist() == [-1, 1, 0, -1]
    assert innermost(tree, np.array([], np.int32), np.array([], np.int64)).tolist() == []


@given(rows=spans)
def test_levels_count_what_is_around(rows):
    tree = nested(rows)
    around = [0] * len(tree)
    for place, parent in enumerate(tree.parent.tolist()):
        around[place] = around[parent] + 1 if parent >= 0 else 0
    found = levels(tree)
    expected = [[place for place, depth in enumerate(around) if depth == level] for level in range(max(around) + 1)]
    assert [each.tolist() for each in found.places] == expected
    assert found.deeper.tolist() == found.around.tolist() == []


def test_what_is_too_deep_goes_to_the_last_level_told_apart():
    depth = MOST_LEVELS + 50
    tower = [(place, 2 * (depth - place)) for place in range(depth)]
    tree = nested([*tower, *((at + 1000, length) for at, length in tower)])
    found = levels(tree)
    assert len(found.places) == MOST_LEVELS + 1
    assert found.places[-1].tolist() == [MOST_LEVELS, depth + MOST_LEVELS]
    assert sorted(np.concatenate((*found.places, found.deeper)).tolist()) == list(range(2 * depth))
    assert set(found.around.tolist()) == {MOST_LEVELS, depth + MOST_LEVELS}
    assert ((found.deeper < depth) == (found.around < depth)).all()


@pytest.mark.parametrize("a_thread", [0, 10**9])
@given(rows=spans, windows=spans)
def test_events_begin_in_windows_however_they_are_looked_for(rows, windows, a_thread):
    tree, (start, length) = nested(rows), np.array(windows, np.int64).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_A_THREAD", a_thread)
        found = tree.begun_in(merge(start, start + length)).tolist()
    assert found == [any(at <= t < at + size for at, size in windows) for t in tree.start.tolist()]
