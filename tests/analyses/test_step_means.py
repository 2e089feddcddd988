"""Means over steps, and which steps are steady, just at and just beyond each limit."""

from __future__ import annotations

import numpy as np
import pytest

from traceanalyze.analyses.steps.inference import longest_steady
from traceanalyze.analyses.steps.window import long_at_first, median, rounded


@pytest.mark.parametrize(
    ("amount", "by", "expected"),
    [(5, 2, 3), (-5, 2, -3), (4, 3, 1), (5, 3, 2), (7, 5, 1), (8, 5, 2), (1, 1, 1), (0, 4, 0), (9, 0, 0)],
)
def test_a_mean_is_rounded_to_the_nearest_nanosecond_and_halves_away_from_zero(
    amount: int, by: int, expected: int
) -> None:
    assert rounded(amount, by) == expected


@pytest.mark.parametrize(
    ("times", "middle"),
    [((), 0), ((7,), 7), ((9, 4), 6), ((9, 1, 4), 4), ((8, 1, 9, 4), 6), ((2**62, 2**62 + 4), 2**62 + 2)],
)
def test_the_median_of_an_even_number_is_between_the_two_in_the_middle(times: tuple[int, ...], middle: int) -> None:
    assert median(times) == middle


@pytest.mark.parametrize(
    ("times", "count"),
    [
        ((), 0),
        ((9,), 0),
        ((21, 10, 10), 1),
        ((20, 10, 10), 0),
        ((90, 21, 10, 10), 2),
        # Two have to be left.
        ((21, 10), 0),
        ((90, 21, 10), 0),
        # Where long and short ones alternate from there on, the first is part of that.
        ((30, 10, 30, 10), 0),
        ((90, 30, 10, 30, 10), 1),
    ],
)
def test_steps_at_the_beginning_are_long_beyond_twice_the_median_of_the_others(
    times: tuple[int, ...], count: int
) -> None:
    assert long_at_first(np.array(times, np.int64)) == count


@pytest.mark.parametrize(
    ("values", "run"),
    [
        ((), (0, 0)),
        ((5,), (0, 1)),
        # 80 and 120 are just within a fifth of the median of 100.
        ((80, 100, 120), (0, 3)),
        ((79, 100, 120), (0, 2)),
        ((80, 100, 121), (0, 2)),
        # Of an even number the median is between the two in the middle: 100, and 101.
        ((80, 96, 104, 120), (0, 4)),
        ((80, 98, 104, 120), (0, 3)),
        # The first of the longest.
        ((10, 10, 50, 50, 90, 90), (0, 2)),
        ((10, 50, 50, 90, 90), (1, 3)),
    ],
)
def test_like_iterations_are_within_a_fifth_of_their_median(values: tuple[int, ...], run: tuple[int, int]) -> None:
    assert longest_steady(values) == run
