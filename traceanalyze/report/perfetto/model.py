"""What is drawn over a trace: tracks of slices, and counters. Times are int64 ns of the trace's own clock."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.analyses.results import NotMeasured

Value = str | int | float | None
"""What a slice says of itself; None is left out."""


MIB = 1 << 20


@frozen
class Slices:
    """One track: slices that do not overlap, in time order."""

    title: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    name: Sequence[str]
    """Of each slice."""
    args: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    """Argument → its value for each slice."""


@frozen
class Counter:
    """Values that hold from their instant to the next one."""

    title: str
    t: NDArray[np.int64]
    values: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]
    """Name of a series → its value at each instant."""


@frozen
class Overlay:
    """All tracks of one rank, top to bottom."""

    slices: tuple[Slices, ...]
    counters: tuple[Counter, ...]
    missing: tuple[tuple[str, NotMeasured], ...] = ()
    """Titles of tracks that the profile cannot give, and why."""
    unplaced: int = 0
    """Findings that name no place in time."""


def milliseconds(ns: int) -> float:
    """For people; exact times are those of the slices."""
    return ns / 1_000_000
