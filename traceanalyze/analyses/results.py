"""What the analyses of one rank return. Times are int64 ns; arrays over steps are aligned with `Steps`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.model.table import NotMeasured, Table
    from traceanalyze.model.trace import Trace
    from traceanalyze.model.vocabulary import Cause, Level, Mode


@frozen
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
    """Counts in the means; False for a step with < 80 % of the median's device events."""
    between_steps: int
    """Time between markers that belongs to no step."""
    lead_in: int
    """How far the first window starts after its marker because the device still ran earlier work (E0 - h1)."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def time(self) -> NDArray[np.int64]:
        """Step times."""
        return self.end - self.start

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
        )


@frozen
class Partition:
    """Exclusive parts of each step on one device, and the totals beside them (definitions §4).

    compute + comm_exposed + mem_exposed + idle = step time, exactly.
    """

    device: int
    compute: NDArray[np.int64]
    comm_exposed: NDArray[np.int64]
    mem_exposed: NDArray[np.int64]
    idle: NDArray[np.int64]
    comm_total: NDArray[np.int64]
    mem_total: NDArray[np.int64]
    busy: NDArray[np.int64]
    compute_dur: NDArray[np.int64]
    """Sum of durations (may exceed wall time); same for the next two."""
    comm_dur: NDArray[np.int64]
    mem_dur: NDArray[np.int64]

    @property
    def comm_overlapped(self) -> NDArray[np.int64]:
        """Communication hidden behind compute."""
        return self.comm_total - self.comm_exposed

    @property
    def mem_overlapped(self) -> NDArray[np.int64]:
        """Copies and fills hidden behind compute or communication."""
        return self.mem_total - self.mem_exposed


@frozen
class IdleCauses:
    """Idle time of the headline device by step and cause: (steps, len(Cause)) ns; rows sum to `Partition.idle`."""

    by_step: NDArray[np.int64]
    missing: Mapping[Cause, NotMeasured] = field(default_factory=dict)
    """Causes this profile cannot show; their time is inside `UNTRACED` (definitions §15)."""


@frozen
class HostSplit:
    """Host-only report: the step thread's span by what it did (ns per step, rows sum to the step)."""

    data_loading: NDArray[np.int64]
    sync: NDArray[np.int64]
    peer_wait: NDArray[np.int64]
    api: NDArray[np.int64]
    host_op: NDArray[np.int64]
    untraced: NDArray[np.int64]


@frozen
class Check:
    """A data-quality check that had something to say (definitions §14)."""

    id: str
    """Q01 … Q13"""
    level: Level
    message: str
    """Key of the text, see `locales/en/sentences.py`."""
    values: tuple[tuple[str, int | float | str], ...] = ()


@frozen
class RankAnalysis:
    """Everything this version says about one rank."""

    trace: Trace
    mode: Mode
    steps: Steps
    device: int | None
    """Headline device: the one with the largest busy time."""
    partitions: tuple[Partition, ...]
    """One a device, headline first."""
    idle: IdleCauses | NotMeasured
    host: HostSplit | NotMeasured
    checks: tuple[Check, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)
    """By key, in reading order."""

    def measured(self, key: str) -> bool:
        """Whether a table is there and has been measured."""
        return key in self.tables and self.tables[key].absent is None

    def records(self, key: str) -> Iterator[Any]:
        """Rows of a table, with its columns as attributes; none where there is nothing to show."""
        if key in self.tables:
            yield from self.tables[key].records()
