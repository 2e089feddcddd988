"""Simulated ranks as the comparison sees them, and what it must find."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tests.simulate.simulate import simulate
from tests.simulate.workload import Fault, Model, Ranks, Recording, Workload
from tests.simulate.writers.kineto import write
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.ranks.summary import summarize
from traceanalyze.readers.kineto import read_text

if TYPE_CHECKING:
    from traceanalyze.model.trace import Trace
    from traceanalyze.ranks.results import RankSummary

SMALL = Model(layers=1, hidden=256, heads=4, sequence=128, batch=4, vocabulary=1024)


def workload(*faults: Fault, ranks: int = 2, strategy: str = "ddp", seed: int = 0, offset: int = 0) -> Workload:
    return Workload(
        model=SMALL,
        ranks=Ranks(count=ranks, strategy=strategy, bucket=2**19),
        recording=Recording(stacks=False, clock_offset=offset),
        faults=faults,
        seed=seed,
    )


@cache
def traces(work: Workload) -> tuple[Trace, ...]:
    return tuple(read_text(write(schedule)) for schedule in simulate(work))


def summary_of(trace: Trace, rank: int, *, shift: int = 0) -> RankSummary:
    context = Context(replace(trace, base_ns=trace.base_ns + shift), Options())
    found = summarize(context, analyze_context(context))
    return replace(found, rank=rank, label=str(rank))


def summaries(work: Workload, shifts: tuple[int, ...] = ()) -> list[RankSummary]:
    moved = shifts or (0,) * work.ranks.count
    return [summary_of(trace, rank, shift=moved[rank]) for rank, trace in enumerate(traces(work))]


def true_waits(work: Workload) -> list[int]:
    """By rank the time from its arrival at each collective to that of the last rank."""
    arrivals = [
        {work.collective.index: work.start for work in schedule.works if work.collective is not None}
        for schedule in simulate(work)
    ]
    return [sum(max(each[index] for each in arrivals) - start for index, start in own.items()) for own in arrivals]
