"""Rows with equal keys as groups, and the times of each group, without a loop over rows."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import distinct_codes
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import Column, Kind

_K = TypeVar("_K")
_DENSE = 16
"""Keys up to this many times the number of rows are grouped by a table, larger ones by sorting."""

COUNT = Column("count", Kind.COUNT, "how many there are")
DEVICE_TIME = Column("device_time_ns", Kind.DURATION, "sum of the durations: parallel work counts twice")
MEAN = Column("mean_event_ns", Kind.DURATION, "mean duration of one", heading="mean", scale="event")
EXTREMES = (
    Column("min_ns", Kind.DURATION, "shortest of them", heading="shortest", scale="event", minor=True),
    Column("max_ns", Kind.DURATION, "longest of them", heading="longest", scale="event", minor=True),
)


class Spread(NamedTuple):
    """Times of the rows of each group, ns: how many, their sum, shortest and longest; 0 in a group without rows."""

    number: NDArray[np.int64]
    total: NDArray[np.int64]
    shortest: NDArray[np.int64]
    longest: NDArray[np.int64]

    @property
    def mean(self) -> NDArray[np.int64]:
        """Mean times, rounded to the nearest nanosecond."""
        return (2 * self.total + self.number) // np.maximum(2 * self.number, 1)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Of each group in the sum of all; 0 of nothing."""
        return self.total / max(int(self.total.sum()), 1)

    @property
    def values(self) -> dict[str, NDArray[np.int64]]:
        """Of the columns that tables of device time share, by their keys."""
        keys = (column.key for column in (COUNT, DEVICE_TIME, MEAN, *EXTREMES))
        return dict(zip(keys, (self.number, self.total, self.mean, self.shortest, self.longest), strict=True))


@dataclass(frozen=True, eq=False)
class Groups:
    """Group of each row, and the first row of each group; groups are in order of their keys."""

    of: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)

    def count(self) -> NDArray[np.int64]:
        """Rows of each group."""
        return np.bincount(self.of, minlength=len(self.first))

    def sum(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Exact sum of integers by group."""
        out = np.zeros(len(self.first), np.int64)
        # Of another type they would be added one by one.
        np.add.at(out, self.of, values.astype(np.int64, copy=False))
        return out

    def mean(self, values: NDArray[np.float64], weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Mean of the values that are not NaN, weighted; NaN for a group that has none with weight."""
        known = ~np.isnan(values) & (weights > 0)
        weight = np.bincount(self.of[known], weights[known], len(self.first))
        total = np.bincount(self.of[known], weights[known] * values[known], len(self.first))
        out = np.full(len(self.first), np.nan)
        np.divide(total, weight, out=out, where=weight > 0)
        return out

    def spread(self, time: NDArray[np.int64]) -> Spread:
        """Count, sum, shortest and longest time of each group."""
        count, longest = self.count(), np.zeros(len(self.first), np.int64)
        shortest = np.full(len(self.first), np.iinfo(np.int64).max)
        np.minimum.at(shortest, self.of, time)
        np.maximum.at(longest, self.of, time)
        return Spread(count, self.sum(time), np.where(count > 0, shortest, 0), longest)


def group(*keys: NDArray[Any]) -> Groups:
    """Group rows by one or more integer keys of equal length; the first key decides the order, then the next."""
    of, span = np.zeros(len(keys[0]), np.int64), 1
    if len(keys) == 1:
        of, keys = keys[0].astype(np.int64, copy=False), ()
    for each in keys if len(of) else ():
        low = int(each.min())
        width = int(each.max()) - low + 1
        if width == 1:
            continue
        key = np.subtract(each, low, dtype=np.int64)
        if span * width > _DENSE * len(of):
            key, width = _positions(key)
        if span * width > _DENSE * len(of):
            of, span = _positions(of)
        if span > 1:
            of *= width
            of += key
        else:
            of = key
        span *= width
    of, count = _positions(of)
    first = np.full(count, len(of), np.int64)
    np.minimum.at(first, of, np.arange(len(of)))
    return Groups(of, first)


def _positions(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Rank of each value among the distinct ones, and how many there are."""
    if len(key) == 0:
        return key, 0
    low, high = int(key.min()), int(key.max())
    if high - low < _DENSE * len(key) + 1024:
        found, position = distinct_codes(key - low if low else key, high - low + 1)
        return position, len(found)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    opens = np.concatenate(([False], ordered[1:] != ordered[:-1]))
    position = np.empty(len(key), np.int64)
    position[order] = np.cumsum(opens)
    return position, int(opens.sum()) + 1


def distinct(keys: Iterable[_K], of: NDArray[np.int64]) -> tuple[list[_K], NDArray[np.int64]]:
    """Keys without repetition, and the position of each member's among them; several groups may have the same key."""
    listed = list(keys)
    position = {key: index for index, key in enumerate(dict.fromkeys(listed))}
    return list(position), np.array([position[key] for key in listed], np.int64)[of]
