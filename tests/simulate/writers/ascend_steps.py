"""The vendor's own account of a step: its window on the device, overlap of computing and communication, free time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.simulate.truth.vendor import step_of, vendor_steps

if TYPE_CHECKING:
    from tests.simulate.schedule import Work
    from tests.simulate.writers.ascend_rank import Rank

Spans = list[tuple[int, int]]
ROWS = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")


@dataclass(frozen=True)
class Overlap:
    """Rows of the process "Overlap Analysis": merged, copies counted as free time."""

    rank: Rank

    @cached_property
    def spans(self) -> dict[str, Spans]:
        """Intervals by row name."""
        works = self.rank.schedule.works
        computing = merged([(work.start, work.end) for work in works if work.kind == "compute"])
        communication = merged([(work.start, work.end) for work in works if work.kind == "comm"])
        busy = merged([*computing, *communication])
        return {
            "Computing": computing,
            "Communication": communication,
            "Communication(Not Overlapped)": without(communication, computing),
            "Free": [(a[1], b[0]) for a, b in pairwise(busy)],
        }


def merged(spans: Spans) -> Spans:
    """The same time as disjoint intervals in order; what takes no time is left out."""
    found: Spans = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > start:
            found.append((start, end))
    return found


def without(spans: Spans, taken: Spans) -> Spans:
    """Time of disjoint intervals that is not in others."""
    found: Spans = []
    for start, end in spans:
        cursor = start
        for first, last in taken:
            if last > cursor and first < end:
                if first > cursor:
                    found.append((cursor, first))
                cursor = max(cursor, last)
        if cursor < end:
            found.append((cursor, end))
    return found


def step_times(rank: Rank, overlap: Overlap) -> list[tuple[int, list[float]]]:
    """Numbers of step_trace_time of each step, µs, added up as the vendor does: in floating point."""
    rows = []
    steps = vendor_steps(rank.schedule)
    for step in steps:
        mine = {
            name: [span for span in spans if step_of(steps, span[0]) is step] for name, spans in overlap.spans.items()
        }
        sums = {name: sum((end - start) / 1000 for start, end in spans) for name, spans in mine.items()}
        every = [span for spans in mine.values() for span in spans]
        first, last = min((a for a, _ in every), default=0), max((b for _, b in every), default=0)
        begin = (rank.base + first) / 1000
        stage = (rank.base + last) / 1000 - begin
        preparing = max(0.0, begin - (rank.base + step.host_start) / 1000)
        alone = sums["Communication(Not Overlapped)"]
        shared = sums["Communication"] - alone
        numbers = [sums["Computing"], alone, shared, sums["Communication"], sums["Free"], stage, 0, alone, preparing]
        rows.append((step.number, numbers if rank.layout.era != "2023" else numbers[:-1]))
    return rows


def duration(work: Work) -> int:
    """Length of a work, ns."""
    return work.end - work.start
