"""Two snapshots compared by what their peaks consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.allocator.results import AllocatorAnalysis, Moment


@frozen
class LineChange:
    """Block bytes of one line and category at the peaks of both sides; all rows sum to the peaks."""

    line: str
    category: str
    base: int
    candidate: int
    base_blocks: int
    candidate_blocks: int

    @property
    def change(self) -> int:
        """Candidate minus base."""
        return self.candidate - self.base


@frozen
class Difference:
    """The peaks of two snapshots, each of the device that reserves most."""

    base: Moment
    candidate: Moment
    rows: tuple[LineChange, ...]
    """Largest change first."""


def difference(base: Sequence[AllocatorAnalysis], candidate: Sequence[AllocatorAnalysis]) -> Difference | None:
    """Compare the peaks; None when a side has no device."""
    if not base or not candidate:
        return None
    first, second = (max(side, key=lambda one: one.moments[0].reserved).moments[0] for side in (base, candidate))
    sums: dict[tuple[str, str], list[int]] = {}
    for at, moment in enumerate((first, second)):
        for one in moment.holders:
            entry = sums.setdefault((one.line, one.category), [0, 0, 0, 0])
            entry[at] += one.allocated
            entry[2 + at] += one.blocks
    rows = [LineChange(line, category, *numbers) for (line, category), numbers in sums.items()]
    return Difference(first, second, tuple(sorted(rows, key=lambda row: (-abs(row.change), row.line, row.category))))
