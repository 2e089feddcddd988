"""The analysed steps and their names; sums and means over those that count: complete ones after the start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import compress, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.patterns import dataclass, regex
from traceanalyze.model.phases import Iteration
from traceanalyze.model.table import Kind, NotMeasured, Table

_NUMBER = regex(r"(\d+)$")


def step_labels(names: Sequence[str]) -> tuple[str, ...]:
    """What each step is called: the number of `ProfilerStep#5`, else its name, else its position among equal names."""
    return _labels((*names,))


@lru_cache(16)  # Tables of one rank, and all ranks of a run, ask for the same.
def _labels(names: tuple[str, ...]) -> tuple[str, ...]:
    found = [_NUMBER.search(name) for name in names]
    numbers = tuple(match.group(1) for match in found if match)
    if len(numbers) == len(names) == len(set(numbers)):
        return numbers
    return names if len(set(names)) == len(names) else tuple(str(index) for index in range(len(names)))


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


@dataclass(frozen=True, eq=False)
class Steps:
    """The analysed windows `[start, end)`, one row a step (definitions §3); one row, "whole trace", without markers."""

    name: tuple[str, ...]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    host_start: NDArray[np.int64]
    host_end: NDArray[np.int64]
    owned: NDArray[np.int64]
    """Device events launched inside the step."""
    complete: NDArray[np.bool_]
    """False for a step with < 80 % of the median's device events."""
    between_steps: int
    """Time between markers that belongs to no step."""
    lead_in: int
    """How far the first window starts after its marker because the device still ran earlier work (E0 - h1)."""
    early: NDArray[np.bool_] | None = None
    """Steps whose device events begin, too many for a complete step, in windows before theirs; None: none."""
    starting: NDArray[np.bool_] | None = None
    """Steps of the start of the run, shown but not counted (definitions §18, "Steady steps"); None: nobody asked."""
    iterations: tuple[Iteration, ...] | None = None
    """What an inference server says of each step, where they are its iterations."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def time(self) -> NDArray[np.int64]:
        """Step times."""
        return self.end - self.start

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Steps that sums, means, shares and findings are about: complete ones after the start; all where none is."""
        steady = self.complete if self.starting is None else self.complete & ~self.starting
        return steady if steady.any() else np.ones(len(self), np.bool_)

    def select(self, chosen: NDArray[np.bool_]) -> Steps:
        """The chosen rows only."""
        return replace(
            self,
            name=tuple(compress(self.name, chosen.tolist())),
            start=self.start[chosen],
            end=self.end[chosen],
            host_start=self.host_start[chosen],
            host_end=self.host_end[chosen],
            owned=self.owned[chosen],
            complete=self.complete[chosen],
            early=None if self.early is None else self.early[chosen],
            starting=None if self.starting is None else self.starting[chosen],
            iterations=self.iterations and tuple(compress(self.iterations, chosen.tolist())),
        )


@dataclass(frozen=True, eq=False)
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
        return sum(map(column.tolist().__getitem__, self.rows))

    def mean(self, amount: int) -> int:
        """A sum over these steps as nanoseconds a step, rounded to the nearest."""
        return rounded(amount, self.count)

    def share(self, amount: int) -> float:
        """A sum over these steps as a fraction of their time."""
        return amount / self.total if self.total else 0.0


def window_of(steps: Steps) -> Window:
    """The steps that count."""
    rows = np.flatnonzero(steps.counted)
    return Window(tuple(rows.tolist()), int((steps.end - steps.start)[rows].sum()))


def span_of(steps: Steps) -> int:
    """From the first step that counts to the last, with what lies between steps, without those that do not count."""
    rows = np.flatnonzero(steps.counted)
    if not len(rows):
        return 0
    between = slice(rows[0], rows[-1])
    return int(steps.end[rows[-1]] - steps.start[rows[0]]) - int(steps.time[between][~steps.counted[between]].sum())


def amounts(table: Table, sums: Mapping[str, int | NotMeasured], whole: tuple[str, int], window: Window) -> Table:
    """A table of parts by their sums over the window; `whole` is what they are of, and its sum.

    Its first column names the part; the others are `mean_ns`, `share` (of the window), `share_of_idle` (of the whole)
    and `sum_ns`, as far as it has them.
    """
    ways: dict[str, Callable[[int], float]] = {
        "mean_ns": window.mean,
        "share": window.share,
        "share_of_idle": lambda amount: amount / whole[1] if whole[1] else 0.0,
        "sum_ns": int,
    }
    name, *keys = table.keys
    cells = {
        key: [each if isinstance(each, NotMeasured) else ways[key](each) for each in sums.values()] for key in keys
    }
    totals = {name: whole[0]} | {key: ways[key](whole[1]) for key in keys}
    steps = (("steps", Kind.COUNT, window.count),)
    return replace(table.fill(**{name: list(sums)}, **cells), totals=totals, title_values=steps)


STARTING = 2
"""A first step longer than so many medians of those after it belongs to the start of the run (definitions §18)."""
_FEWEST = 2
"""Where fewer would be left, all count (definitions §18)."""
_LONGEST_CYCLE, _OWN, _APART = 16, 0.05, 0.02
"""Steps alternate where their place in a cycle of at most so many explains all but such a part of their variance, and
the means of the places differ by such a part of the step."""
_AS_LONG = 0.8
"""Part of a step's length from which another is as long: what returns is the program's rhythm, not its start."""

StepKey: TypeAlias = "tuple[str, int]"
"""Name of a step, and its place among those of the same name."""


def step_keys(names: Sequence[str]) -> tuple[StepKey, ...]:
    """What tells the steps of one recording apart, and finds them again in that of another rank."""
    count: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, count[name]))
        count[name] += 1
    return tuple(found)


def settled(steps: Steps, agreed: Collection[StepKey] | None = None) -> Steps:
    """The steps, with those of the start marked: by their times, or all but what the ranks `agreed` to count."""
    starting = np.zeros(len(steps), np.bool_)
    if agreed is not None:
        starting |= [key not in agreed for key in step_keys(steps.name)]
        return replace(steps, starting=starting)
    if steps.iterations is not None:
        # A long one reads a prompt.
        return replace(steps, starting=starting)
    complete = np.flatnonzero(steps.complete)
    early = np.zeros(len(steps), np.bool_) if steps.early is None else steps.early
    starting[complete[: _first_steady(steps.time[complete], early[complete])]] = True
    return replace(steps, starting=starting)


def counted_steps(steps: Steps) -> NDArray[np.bool_]:
    """The steps that count where the user chose none."""
    return settled(steps).counted


def whole_cycles(steps: Steps) -> NDArray[np.bool_]:
    """Of the steps that count the last ones that are whole cycles, where long and short steps alternate."""
    counted = counted_steps(steps)
    rows = np.flatnonzero(counted)
    counted[rows[: len(rows) % cycle_of(steps.time[rows])]] = False
    return counted


def cycle_of(times: NDArray[np.int64]) -> int:
    """In how many steps their times (n,), ns, come back: 1 where long and short steps do not alternate."""
    mean = float(times.mean()) if len(times) else 0.0
    off, number = times - mean, np.arange(len(times))
    spread = float((off**2).sum())
    for cycle in range(2, min(len(times) // 2, _LONGEST_CYCLE) + 1):
        place = number % cycle
        usual = np.bincount(place, off) / np.bincount(place)
        own = float(((off - usual[place]) ** 2).sum())
        if own <= _OWN * spread and np.ptp(usual) >= _APART * mean:
            return cycle
    return 1


def _first_steady(times: NDArray[np.int64], early: NDArray[np.bool_]) -> int:
    """How many leading steps each take more than twice the median of those after them, or lie in the window of one.

    A window that lasts until work of its step on another stream ends takes the time of the next steps, which say
    nothing by their own then.
    """
    first = 0
    while len(times) - first > _FEWEST:
        after = times[first + 1 :][~early[first + 1 :]]
        if times[first] <= median(STARTING * after) or _returns(times[first:]):
            break
        following = first + 1 + int((~np.append(early[first + 1 :], False)).argmax())
        if len(times) - following < _FEWEST:
            break
        first = following
    return first


def _returns(times: NDArray[np.int64]) -> bool:
    """Whether steps as long as the first follow at one distance, for two whole cycles at least."""
    alike = np.flatnonzero(times >= _AS_LONG * times[0]).tolist()
    apart = {after - before for before, after in pairwise([*alike, len(times)])}
    cycle = max(apart)
    return len(alike) > 1 and 2 * cycle <= len(times) and apart - {len(times) - alike[-1]} <= {cycle}
