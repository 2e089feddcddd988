from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.analyses.steps.inference import longest_steady


def brute(values):
    best = (0, 0)
    for first in range(len(values)):
        for stop in range(first + 1, len(values) + 1):
            run = values[first:stop]
            middle = median(run)
            if all(0.8 * middle - 1e-9 <= value <= 1.2 * middle + 1e-9 for value in run) and stop - first > (
                best[1] - best[0]
            ):
                best = (first, stop)
    return best


@given(st.lists(st.integers(50, 120), max_size=14))
def test_it_is_the_longest_of_all_runs(values):
    assert longest_steady(values) == brute(values)


def test_a_run_may_drift_from_its_first_value():
    assert longest_steady([95, 119, 120, 121, 140, 300]) == (1, 5)


def test_the_first_of_equal_runs():
    assert longest_steady([10, 10, 99, 20, 20]) == (0, 2)
    assert longest_steady([]) == (0, 0)


@pytest.mark.parametrize(
    ("values", "run"),
    [
        ([80, 100, 120], (0, 3)),
        ([79, 100, 100], (0, 2)),
        ([100, 100, 121], (0, 2)),
        ([80, 100, 100, 120], (0, 4)),
        ([800, 1001, 1200], (0, 2)),
        ([800, 999, 1199], (0, 2)),
        ([8, 12], (0, 2)),
        ([799, 1200], (0, 1)),
        ([3], (0, 1)),
        ([0, 0], (0, 2)),
    ],
)
def test_a_run_is_steady_up_to_just_a_fifth_from_its_median(values, run):
    assert longest_steady(values) == run
