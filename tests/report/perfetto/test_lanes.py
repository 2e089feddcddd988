"""Slices that overlap are put on different tracks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.report.perfetto.events import lanes


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=12))
def test_lanes_hold_everything_once_and_need_no_more_than_run_at_once(spans):
    start = np.array([begin for begin, _ in spans], np.int64)
    end = start + np.array([length for _, length in spans], np.int64)
    found = lanes(start, end)
    assert sorted(np.concatenate([*found, []]).astype(int).tolist()) == list(range(len(spans)))
    for lane in found:
        assert (start[lane][1:] >= end[lane][:-1]).all()
    most = max((int(((start <= t) & (end > t)).sum()) for t in range(45)), default=0)
    assert len(found) == most
