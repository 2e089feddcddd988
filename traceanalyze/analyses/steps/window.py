"""Sums and means over the steps that count: the complete ones, or all where none is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.analyses.results import Steps


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
        return (2 * amount + self.count) // (2 * self.count) if self.count else 0

    def share(self, amount: int) -> float:
        """A sum over these steps as a fraction of their time."""
        return amount / self.total if self.total else 0.0


def window_of(steps: Steps) -> Window:
    """The complete steps, or all steps where none is complete."""
    complete = tuple(row for row in range(len(steps)) if steps.complete[row])
    rows = complete or tuple(range(len(steps)))
    return Window(rows, sum(int(steps.end[row] - steps.start[row]) for row in rows))
