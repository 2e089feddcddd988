"""The statistics of the gate: moderated two-sample t on one number a run, Holm's correction, and what is only shown.

Everything is in closed form: the same numbers give the same answer. Values `y` are transformed so that more is worse.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.comparison.noise import quantile, survival

MOST_RUNS = 200
"""No more runs a side are ever recommended."""
_LEAST_FLOOR = 0.003
_LEARN_FROM = 5
_MAD_TO_SD = 1.4826


class Prior(NamedTuple):
    """What is known of the spread from run to run before there is any run."""

    floor: float
    """Standard deviation of `y`."""
    weight: float = 4
    """Degrees of freedom that this knowledge is worth."""
    confidence: float = 0.95

    @property
    def alpha(self) -> float:
        """One-sided level of significance."""
        return (1 - self.confidence) / 2


class Estimate(NamedTuple):
    """Difference of two sides and how well it is known."""

    effect: float
    """Mean of the candidate minus mean of the baseline."""
    half_width: float
    """Of the confidence interval around `effect`."""
    spread: float
    """Moderated standard deviation of one run."""
    df: float
    p: float
    """One-sided: how likely an effect this bad would be without any change."""


def estimate(baseline: Sequence[float], candidate: Sequence[float], prior: Prior, *, history: bool = False) -> Estimate:
    """The moderated two-sample t on run values: pooled variance, drawn towards the prior.

    Works from one run a side on, because the prior has a weight of its own. Of a `history`, whose runs are in the order
    in which they were recorded, drift is no noise.
    """
    base, new = np.asarray(baseline, np.float64), np.asarray(candidate, np.float64)
    df = prior.weight + len(base) + len(new) - 2
    own = (len(base) - 1) * _between_neighbours(base) if history else float(((base - base.mean()) ** 2).sum())
    squares = own + float(((new - new.mean()) ** 2).sum())
    spread = math.sqrt((prior.weight * prior.floor**2 + squares) / df)
    error = spread * math.sqrt(1 / len(base) + 1 / len(new))
    effect = float(new.mean() - base.mean())
    half = quantile(1 - prior.alpha, df) * error
    without_spread = 0.0 if effect > 0 else 1.0 if effect < 0 else 0.5
    return Estimate(effect, half, spread, df, survival(effect / error, df) if error else without_spread)


_LEAST_RUNS = 2
"""On either side of a change: one run alone may be an outlier."""
_CHANGE_LEVEL = 0.01
"""Stricter than the gate's: a history is looked at again after every run."""


def change_points(history: Sequence[float], prior: Prior) -> list[int]:
    """Positions of the runs from which on a history is another one, in their order.

    The place where two sides differ most by the moderated t, if they do at the level of significance that is left after
    all places that were tried (Bonferroni), two-sided; then the same in either side. The runs next to it must be nearer
    to the mean of their own side: else one run far from all others would draw its neighbours with it.
    """
    places = range(_LEAST_RUNS, len(history) - _LEAST_RUNS + 1)
    tried = [(estimate(history[:at], history[at:], prior), at) for at in places]
    apart = [(abs(found.effect) / found.half_width, found, at) for found, at in tried if _own_sides(history, at)]
    if not apart:
        return []
    _, found, at = max(apart, key=lambda each: each[0])
    if 2 * min(found.p, 1 - found.p) * len(places) > _CHANGE_LEVEL:
        return []
    later = (at + each for each in change_points(history[at:], prior))
    return [*change_points(history[:at], prior), at, *later]


def _own_sides(history: Sequence[float], at: int) -> bool:
    before, after = float(np.mean(history[:at])), float(np.mean(history[at:]))
    middle, up = (before + after) / 2, after > before
    return (history[at - 1] < middle) == (history[at] > middle) == up


def half_width_alone(found: Estimate, runs: int, prior: Prior) -> float:
    """Half-width of the interval around the mean of one side that has so many runs."""
    return quantile(1 - prior.alpha, found.df) * found.spread / math.sqrt(runs)


def runs_needed(found: Estimate, threshold: float, prior: Prior) -> int | None:
    """Fewest runs a side that resolve half of the budget; None when there are more than `MOST_RUNS`."""
    for runs in range(1, MOST_RUNS + 1):
        df = prior.weight + 2 * runs - 2
        if quantile(1 - prior.alpha, df) * found.spread * math.sqrt(2 / runs) <= threshold / 2:
            return runs
    return None


def holm(p: Sequence[float]) -> list[float]:
    """P values corrected for their number (Holm's step-down method), in the order given."""
    order = sorted(range(len(p)), key=lambda index: (p[index], index))
    corrected = [1.0] * len(p)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[index]))
        corrected[index] = highest
    return corrected


def learned_floor(history: Sequence[float], default: float, *, least: float = _LEAST_FLOOR) -> float:
    """Noise floor: how much a run differs from the next one, once the baseline has five runs; else the default."""
    if len(history) < _LEARN_FROM:
        return default
    return max(least, math.sqrt(_between_neighbours(np.asarray(history, np.float64))))


def drifted(history: Sequence[float]) -> bool:
    """Whether runs of a history lie much further apart than one does from the next."""
    values = np.asarray(history, np.float64)
    return len(values) >= _LEARN_FROM and float(np.var(values, ddof=1)) > 4 * _between_neighbours(values)


def _between_neighbours(values: NDArray[np.float64]) -> float:
    """Variance from the differences of runs that follow each other (von Neumann), which a slow drift hardly enters."""
    return float((np.diff(values) ** 2).sum()) / 2 / (len(values) - 1) if len(values) > 1 else 0.0


def mann_whitney(baseline: Sequence[float], candidate: Sequence[float]) -> float | None:
    """Two-sided p of the Mann-Whitney test on pooled steps, by the normal approximation with ties; only ever shown."""
    n, m = len(baseline), len(candidate)
    if min(n, m) == 0:
        return None
    values = np.concatenate((np.asarray(baseline, np.float64), np.asarray(candidate, np.float64)))
    _, of, count = np.unique(values, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[of]
    u = float(rank[n:].sum()) - m * (m + 1) / 2
    ties = float((count.astype(np.float64) ** 3 - count).sum())
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return None
    z = max(abs(u - n * m / 2) - 0.5, 0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def two_populations(steps: Sequence[float]) -> bool:
    """Whether the steps look like two kinds of steps: one gap wider than 4 MAD with a fifth of them on either side."""
    ordered = np.sort(np.asarray(steps, np.float64))
    least = math.ceil(0.2 * len(ordered))
    if len(ordered) < 5:
        return False
    gaps = np.diff(ordered)
    at = int(np.argmax(gaps))
    return bool(at + 1 >= least and len(ordered) - at - 1 >= least and gaps[at] > 4 * _mad(ordered))


def outliers(runs: Sequence[float]) -> list[int]:
    """Positions of runs far from the others (robust z above 3.5); they are reported, never removed."""
    values = np.asarray(runs, np.float64)
    mad = _mad(values) * _MAD_TO_SD
    if len(values) < 4 or mad == 0:
        return []
    return [int(index) for index in np.flatnonzero(np.abs(values - np.median(values)) > 3.5 * mad)]


def drifts(steps: Sequence[float]) -> bool:
    """Whether a run gets faster or slower: its halves differ by over 1 % and by over 3 standard deviations."""
    values = np.asarray(steps, np.float64)
    if len(values) < 6:
        return False
    first, second = values[: len(values) // 2], values[len(values) // 2 :]
    shift = abs(float(np.median(second) - np.median(first)))
    spread = _MAD_TO_SD * max(_mad(first), _mad(second))
    return shift > 3 * spread and shift > 0.01 * abs(float(np.median(values)))


def _mad(values: NDArray[np.float64]) -> float:
    return float(np.median(np.abs(values - np.median(values)))) if len(values) else 0.0
