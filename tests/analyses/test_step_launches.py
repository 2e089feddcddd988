"""Launch delay and queue depth by step on hand-made traces."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from traceanalyze.analyses.idle import launches as step_launches
from traceanalyze.model.table import NotMeasured


def launches(b):
    return b.table("step_launches")


def test_each_step_has_its_own_delays_and_depths():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.launch(0, 1, 2, 10)  # waits 1 µs
    b.launch(5, 1, 12, 10)  # waits 6 µs
    b.launch(110, 1, 131, 10)  # late, waits 20 µs
    found = launches(b)
    assert found.column("late_launches") == (1, 1)
    assert found.column("wait_p50_ns") == (6_000, 20_000)
    assert found.column("wait_p90_ns") == (6_000, 20_000)
    assert found.column("depth_p50") == (1, 1)


def test_depth_is_sampled_where_kernels_start():
    b = TraceBuilder()
    b.step(1, 0, 200)
    for i in range(4):
        b.launch(i, 0.5, 10 + 20 * i, 20)
    found = launches(b)
    assert (*found.column("depth_p50"), *found.column("depth_p90")) == (2.5, 3.7)  # depths 4, 3, 2, 1


def test_a_step_without_launches_has_no_delay():
    b = TraceBuilder()
    b.step(1, 0, 100)
    b.step(2, 100, 100)
    b.launch(0, 1, 2, 10)
    found = launches(b)
    assert found.column("wait_p50_ns")[1] == NotMeasured("no_linked_launches")
    assert found.column("depth_p90")[1] == NotMeasured("no_linked_launches")
    assert found.column("late_launches") == (1, 0)


def test_clocks_that_disagree_measure_nothing():
    b = TraceBuilder()
    b.step(1, 0, 20_000)
    b.launch(10_040, 1, 40, 10)
    assert launches(b).absent == NotMeasured("clocks_disagree")


def test_without_calls_or_links_nothing_is_measured():
    b = TraceBuilder()
    b.step(1, 0, 200)
    b.device(10, 10)
    assert launches(b).absent == NotMeasured("no_api")
    b.api("cudaDeviceSynchronize", 0, 5)
    assert launches(b).absent == NotMeasured("no_linked_launches")


# A tenth of 13 below 13 is 11.7, but nine tenths of 13 are 11.700000000000001.
@example(each=[[0, 13]], q=90)
@pytest.mark.parametrize(("between", "method"), [(False, "higher"), (True, "linear")])
@given(
    each=st.lists(st.lists(st.integers(0, 10**12), max_size=12), min_size=1, max_size=6),
    q=st.sampled_from([0, 10, 50, 90, 100]),
)
def test_percentiles_of_all_steps_at_once_are_those_of_numpy(each, q, between, method):
    values = np.array([value for step in each for value in sorted(step)], np.int64)
    bounds = np.cumsum([0, *(len(step) for step in each)])
    found = step_launches._percentiles(values, bounds, q, between=between)
    expected = [float(np.percentile(step, q, method=method)) if step else np.nan for step in each]
    np.testing.assert_array_equal(found, expected)
