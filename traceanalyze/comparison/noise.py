"""By how much two means may differ by chance: Welch's interval, and the t distribution in closed form."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, variance

_TINY = 1e-300
_EPSILON = 1e-16
_MOST_TERMS = 10_000
_HALVINGS = 200


def survival(t: float, df: float) -> float:
    """Probability that a value of the distribution with `df` degrees of freedom lies above `t`."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = 0.5 * _beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))
    return tail if t >= 0 else 1.0 - tail


@lru_cache(maxsize=256)
def quantile(p: float, df: float) -> float:
    """Value below which a share `p` (0 < p < 1) of the distribution lies."""
    if not 0 < p < 1:
        raise ValueError("p must lie between 0 and 1")
    if p < 0.5:
        return -quantile(1 - p, df)
    above, low, high = 1 - p, 0.0, 1.0
    while survival(high, df) > above:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        low, high = (middle, high) if survival(middle, df) > above else (low, middle)
    return (low + high) / 2


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """Regularised incomplete beta function I_x(a, b); `rest` is 1 - x, given because subtracting would lose digits."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Its continued fraction, by Lentz's method."""
    c = 1.0
    d = 1.0 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _EPSILON * 4:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


SURE, FEWEST = 0.95, 3
"""How safely a difference is no noise, and from how many steps a side on that can be told."""


def half_width(base: Sequence[int], candidate: Sequence[int], cycles: tuple[int, int] = (1, 1)) -> int | None:
    """Half the width of the interval of the difference of both means, ns, of one number a step.

    Where long and short steps alternate, whole cycles of so many steps count. None with fewer than three steps or two
    cycles a side. Sides none of whose steps lie among the other's differ by their gap at least, if they are enough that
    chance rarely sorts them so: one odd step, such as a first without work ahead of it, hides no difference then.
    """
    spread, freedom, sides = 0.0, 0.0, []
    for times, cycle in zip((base, candidate), cycles, strict=True):
        count = len(times) // cycle
        if len(times) < FEWEST or count < 2:
            return None
        means = [sum(times[at * cycle : (at + 1) * cycle]) / cycle for at in range(count)]
        error = variance(means) / count
        spread, freedom = spread + error, freedom + error**2 / (count - 1)
        sides.append(means)
    if not freedom:
        return 0
    width = quantile(1 - (1 - SURE) / 2, spread**2 / freedom) * math.sqrt(spread)
    low, high = sorted(sides, key=fmean)
    gap = min(high) - max(low)
    if gap > 0 and 2 / math.comb(len(low) + len(high), len(low)) <= 1 - SURE:
        width = min(width, fmean(high) - fmean(low) - gap)
    return int(width)
