"""What steps are called, and sums and means over those that count: the complete ones, or all where none is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.model.patterns import regex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.analyses.results import Steps


_NUMBER = regex(r"(\d+)$")


def step_labels(names: Sequence[str]) -> tuple[str, ...]:
    """What each step is called: the number of `ProfilerStep#5`, else its name, else its position among equal names."""
    found = [_NUMBER.search(name) for name in names]
    numbers = tuple(match.group(1) for match in found if match)
    if len(numbers) == len(names) == len(set(numbers)):
        return numbers
    return tuple(names) if len(set(names)) == len(names) else tuple(str(index) for index in range(len(names)))


def median(times: NDArray[np.int64] | Sequence[int]) -> int:
    """Middle value, of an even number the mean of the two middle ones; 0 of none.

    Exact: times since 1970 do not fit into floating point.
    """
    ordered = np.sort(np.asarray(times, np.int64))
    return (int(ordered[(len(ordered) - 1) // 2]) + int(ordered[len(ordered) // 2])) // 2 if len(ordered) else 0


def rounded(amount: int, by: int) -> int:
    """A quotient rounded to the nearest whole number, alike for both signs; 0 by 0."""
    quotient = (2 * abs(amount) + by) // (2 * by) if by else 0
    return quotient if amount >= 0 else -quotient


@frozen
class Window:
    """The steps a mean is taken over."""

    rows: tuple[int, ...]
    total: int
    """Sum of their times, ns."""

    @property
    def count(self) -> int:
        """Number of steps."""
        return len(self.rows)

    def sum(self, column: NDArray[np.int64]) -> int:
        """Exact sum of a per-step column over these steps."""
        return sum(int(column[row]) for row in self.rows)

    def mean(self, amount: int) -> int:
        """A sum over these steps as nanoseconds a step, rounded to the nearest."""
        return rounded(amount, self.count)

    def share(self, amount: int) -> float:
        """A sum over these steps as a fraction of their time."""
        return amount / self.total if self.total else 0.0


def window_of(steps: Steps) -> Window:
    """The complete steps, or all steps where none is complete."""
    complete = tuple(row for row in range(len(steps)) if steps.complete[row])
    rows = complete or tuple(range(len(steps)))
    return Window(rows, sum(int(steps.end[row] - steps.start[row]) for row in rows))
