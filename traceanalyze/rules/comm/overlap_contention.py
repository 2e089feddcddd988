from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.parts import SDMA_GBS, SDMA_REACHED
from traceanalyze.analyses.grouping import Groups, group
from traceanalyze.model import intervals
from traceanalyze.model.columns import MISSING
from traceanalyze.model.kernel_classes import KernelGroup
from traceanalyze.rules.common.communication import communicating, transfers
from traceanalyze.rules.common.computing import Computing, computing, names_of
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    measured,
    rule,
)

_MB = 1 << 20
_RUNS = 3
"""Of a kernel on each side, for a comparison."""


@rule(
    "COM108",
    "overlap-contention",
    title="kernels slowed by communication",
    sentence={
        "": "Kernels take {slower} longer while communication runs beside them, {lost} {per}.",
        "sdma": (
            "{count} transfer(s) between devices reach {bandwidth} GB/s beside matrix products, where {expected} GB/s "
            "are usual: both share the memory's bandwidth."
        ),
    },
    confidence=Confidence.MEDIUM,
    needs="DO",
    advice_texts={
        "limit_channels": (
            "Give NCCL fewer multiprocessors (NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS) and compare the step time."
        ),
        "limit_channels.ascend": (
            "Compare the step time with overlap off; communication shares the memory's bandwidth with compute."
        ),
    },
    options={
        "slower": (0.20, "own: kernels under communication against the same without"),
        "least_us": (20.0, "own: shorter kernels scatter by more"),
        "sdma_gbs": (SDMA_GBS, "msprof-analyze advisor: GB/s of a transfer between devices of one machine"),
        "reached": (SDMA_REACHED, "msprof-analyze advisor: of it, beside matrix products"),
        "large_mb": (1.0, "own: smaller transfers do not reach it in any case"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Kernels take longer while communication runs beside them.

    What it finds
        Kernels that take 20 % longer when communication overlaps them than when it does not.
    Why it costs time
        Communication kernels occupy multiprocessors and memory bandwidth that compute then lacks.
    How it is measured
        The same kernels (name, grid, and shapes or else the same place in every step: equal names and grids may be
        problems of any size) of 20 µs or more, at least three under communication for more than half their time and
        three without any. The saving is what the former take longer than the median of
        the latter; half of it is the estimate, as overlap costs something in any case. On Ascend also transfers of 1 MB
        or more between devices of one machine that reach less than 80 % of 18 GB/s beside matrix products, and a fifth
        less than without; what they take longer than at 18 GB/s is the most.
    What to do
        Fewer channels or blocks for NCCL (`NCCL_MAX_CTAS`, `NCCL_MAX_NCHANNELS`), copies by the copy engine; compare
        with overlap switched off.

    References
        NCCL; msprof-analyze advisor.
    """
    work, comm = facts.once(computing), facts.once(communicating)
    if len(work) == 0 or len(comm) == 0:
        return
    yield from _transfers(facts, options)
    long = work.time >= options.number("least_us") * 1000
    covered = np.zeros(len(work), np.int64)
    covered[long] = intervals.coverage(intervals.merge(comm.start, comm.end), work.start[long], work.end[long])
    under, alone = long & (2 * covered > work.time), long & (covered == 0)
    if min(int(under.sum()), int(alone.sum())) < _RUNS:
        return
    each, known = _problems(facts, work)
    under, alone = under & known, alone & known
    usual = _medians(each.of, work.time, alone, len(each))
    count = [np.bincount(each.of[side], minlength=len(each)) for side in (under, alone)]
    slow = _medians(each.of, work.time, under, len(each)) >= (1 + options.number("slower")) * usual
    chosen = under & (slow & (count[0] >= _RUNS) & (count[1] >= _RUNS))[each.of]
    if not chosen.any():
        return
    more = np.maximum(work.time - usual[each.of].astype(np.int64), 0)[chosen]
    lost = facts.per_step(more)
    yield Finding(
        saving=lost // 2,
        bound=lost,
        draws="compute",
        intervals=work.spans(chosen),
        evidence=measured(
            lost=lost,
            slower=float(work.time[chosen].sum() / (work.time[chosen].sum() - more.sum())) - 1,
            count=int(chosen.sum()),
        ),
        scope=Scope(ops=names_of(facts, work.name[chosen], more)),
        count=int(chosen.sum()),
    )


def _problems(facts: Facts, work: Computing) -> tuple[Groups, NDArray[np.bool_]]:
    """Kernels that do the same work, and whether that is known.

    By name, grid and shapes; where no shapes are recorded by name, grid and place among those of the step, if every
    step has equally many.
    """
    events = facts.context.trace.events
    shapes = events.numbers("shapes", work.op_row)
    shapes = np.where(shapes == MISSING, events.numbers("kernel_shapes", work.row), shapes)
    alike = group(work.name, events.numbers("grid", work.row))
    step = np.searchsorted(facts.edges[0], work.start, "right")
    here = group(alike.of, step)
    count = here.count()
    order = np.argsort(here.of, kind="stable")
    place = np.empty(len(work), np.int64)
    place[order] = np.arange(len(work)) - (np.cumsum(count) - count)[here.of[order]]
    most = np.zeros(len(alike), np.int64)
    np.maximum.at(most, alike.of, count[here.of])
    equal = alike.count() == most * len(facts.edges[0])
    shaped = shapes != MISSING
    return group(alike.of, np.where(shaped, shapes, -1 - place)), shaped | equal[alike.of]


def _transfers(facts: Facts, options: Options) -> Iterator[Finding]:
    """Transfers of the copy engine that are slow beside matrix products, where tasks are recorded."""
    tasks, work = facts.once(transfers), facts.once(computing)
    if tasks is None:
        return
    large = ~tasks.network & ~tasks.inside & (tasks.size >= options.number("large_mb") * _MB) & (tasks.time > 0)
    products = work.group == KernelGroup.MATMUL
    beside = intervals.coverage(
        intervals.merge(work.start[products], work.end[products]), tasks.start, tasks.start + tasks.time
    )
    under, alone = large & (2 * beside > tasks.time), large & (beside == 0)
    if int(under.sum()) < _RUNS:
        return
    rate, usual = (float(tasks.size[side].sum() / max(int(tasks.time[side].sum()), 1)) for side in (under, alone))
    nominal = options.number("sdma_gbs")
    if rate >= options.number("reached") * nominal or (alone.any() and rate * (1 + options.number("slower")) > usual):
        return
    time = facts.per_step(tasks.time[under])
    yield Finding(
        bound=round(time * (1 - rate / nominal)),
        draws="comm_exposed",
        sentence="sdma",
        evidence=(
            Evidence("count", int(under.sum()), "COUNT", *tasks.longest(under)),
            *measured(bandwidth=rate, expected=nominal),
        ),
        scope=Scope(ops=("SDMA",)),
        count=int(under.sum()),
        severity=Severity.LOW,
    )


def _medians(
    of: NDArray[np.int64], time: NDArray[np.int64], chosen: NDArray[np.bool_], count: int
) -> NDArray[np.int64]:
    """Upper median of the chosen rows of each group, 0 where there are none."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.lexsort((time[rows], of[rows]))]
    number = np.bincount(of[rows], minlength=count)
    middle = np.cumsum(number) - number + number // 2
    out = np.zeros(count, np.int64)
    out[number > 0] = time[rows[middle[number > 0]]]
    return out
