"""Sums over each side's steps as means per step, their differences, ratios and shares; exact until shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen
from traceanalyze.model.table import NotMeasured

if TYPE_CHECKING:
    from traceanalyze.comparison.results import SideInfo

Amount = int | NotMeasured
"""A sum over the steps of a side."""


EVEN = 0.001
"""Difference of two steps up to which they count as equally long."""


@frozen
class PerStep:
    """Numbers of steps of both sides, and how much longer the candidate's step takes."""

    base_steps: int
    candidate_steps: int
    change: int
    """Difference of the mean step times, ns, times both numbers of steps."""
    even: bool = False
    """The steps are as good as equally long: shares of their difference would say nothing."""

    @classmethod
    def of(cls, base: SideInfo, candidate: SideInfo) -> PerStep:
        """Those of two sides; a side without steps counts as one that took no time."""
        counts = max(base.count, 1), max(candidate.count, 1)
        longest = max(candidate.step_time * counts[0], base.step_time * counts[1])
        change = candidate.step_time * counts[0] - base.step_time * counts[1]
        return cls(*counts, change, abs(change) <= EVEN * longest)

    def base(self, amount: int) -> int:
        """A sum of the base as a whole number per step."""
        return rounded(amount, self.base_steps)

    def candidate(self, amount: int) -> int:
        """A sum of the candidate as a whole number per step."""
        return rounded(amount, self.candidate_steps)

    def base_number(self, count: int) -> float:
        """A count of the base per step, not rounded."""
        return count / self.base_steps

    def candidate_number(self, count: int) -> float:
        """A count of the candidate per step, not rounded."""
        return count / self.candidate_steps

    def exact(self, base: int, candidate: int) -> int:
        """Candidate minus base per step, times both numbers of steps: what to sort and to sum by."""
        return candidate * self.base_steps - base * self.candidate_steps

    def diff(self, base: int, candidate: int) -> int:
        """Candidate minus base per step; swapping the sides negates it."""
        return rounded(self.exact(base, candidate), self.base_steps * self.candidate_steps)

    def ratio(self, base: int, candidate: int) -> float | None:
        """Candidate over base; 1 where both are nothing, None where only the base is."""
        if base:
            return candidate * self.base_steps / (base * self.candidate_steps)
        return None if candidate else 1.0

    def share(self, base: int, candidate: int) -> float | None:
        """Part of the change of the step time; negative where it goes against it, None where there is none."""
        if self.even or not self.change:
            return None
        exact = self.exact(base, candidate)
        return exact / self.change if exact else 0.0


def rounded(amount: int, by: int) -> int:
    """A quotient rounded to the nearest whole number, alike for both signs."""
    quotient = (2 * abs(amount) + by) // (2 * by)
    return quotient if amount >= 0 else -quotient


def missing(*amounts: Amount) -> NotMeasured | None:
    """Why one of the amounts is not known."""
    return next((amount for amount in amounts if isinstance(amount, NotMeasured)), None)


def match(base: object | None, candidate: object | None) -> str:
    """Term for which sides have a row."""
    if base is None:
        return "only_candidate"
    return "only_base" if candidate is None else "both_sides"
