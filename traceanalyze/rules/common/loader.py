"""What rules about data loading share: the loader's ranges, and what the step waits for them."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import Cause, EventKind
from traceanalyze.replay.host import LEAST_WAITS, WORKERS
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import Facts, merged

LOADER = regex(r"^enumerate\(DataLoader\)#.*__next__|^enumerate\(DataPipe\)#")
"""Ranges in which torch's loader makes or waits for a batch."""
_MAKES_ITERATOR = regex(r"torch/utils/data/dataloader\.py\(\d+\): _get_iterator$")
"""The function of the loader that makes an iterator, and with it new workers."""
_OF_EPOCHS = 1 / 3
"""So many ranges at most are ends of epochs: an epoch of two batches has as many; two batches a step are no epochs."""


def batches(facts: Facts) -> NDArray[np.int64]:
    """Event rows of the loader's ranges that belong to the windows, by time; use with `Facts.once`.

    These are the ranges that the host of the steps begins, and those the windows wait for: a window may begin later
    than its batch, with the end of the previous step's device work, and end after the next one has begun. Of ranges in
    each other only the outer one: a pipe reads from another one, sample by sample, for one batch.
    """
    rows = facts.rows(RANGES, LOADER, anywhere=True)
    start, end = facts.spans(rows).T
    rows = rows[facts.begun(start) | (intervals.coverage(merged(waited(facts)), start, end) > 0)]
    tracks, (start, end) = facts.context.trace.events.track[rows], facts.spans(rows).T
    outer = np.ones(len(rows), np.bool_)
    for track in distinct(tracks).tolist():
        own = np.flatnonzero(tracks == track)
        own = own[np.lexsort((-end[own], start[own]))]
        outer[own[1:]] = end[own[1:]] > np.maximum.accumulate(end[own])[:-1]
    return rows[outer]


def waited(facts: Facts) -> NDArray[np.int64]:
    """(n, 2) time in the windows that data loading costs: idle time of the device, or of the host that computes."""
    return facts.host(Cause.DATA_LOADING) if facts.host_computes else facts.idle(Cause.DATA_LOADING)


def start_of_workers(facts: Facts) -> Intervals:
    """The recording's first wait for a loader with workers if it takes twice as long as any other: they start, once."""
    spans = facts.spans(facts.rows(RANGES, WORKERS, anywhere=True))
    time = spans[:, 1] - spans[:, 0]
    once = len(time) > LEAST_WAITS and time[0] >= 2 * time[1:].max()
    return merged(spans[: int(once)])


def steady_batches(facts: Facts) -> NDArray[np.int64]:
    """`batches` without the one that the workers' start delays."""
    rows, start = facts.once(batches), facts.once(start_of_workers).start
    return rows[~np.isin(facts.context.trace.events.ts[rows], start)]


def begun_anew(facts: Facts, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the loader's ranges (rows by time) are proven to be the first of a new iterator.

    Either a function that makes one was recorded since the range before, or that one was the end of an epoch: no batch,
    so no operator follows it, unlike most others.
    """
    start, end = facts.spans(rows).T
    made = np.sort(facts.spans(facts.rows(EventKind.PYTHON, _MAKES_ITERATOR, anywhere=True))[:, 0])
    anew: NDArray[np.bool_] = np.diff(np.searchsorted(made, start), prepend=0) > 0
    ops, ended = np.sort(facts.context.op_nest.start, kind="stable"), np.zeros(len(rows), np.bool_)
    ended[1:] = np.searchsorted(ops, end[:-1]) == np.searchsorted(ops, start[1:])
    return anew | (ended & (float(ended.mean()) <= _OF_EPOCHS))


def single_process(facts: Facts, rows: NDArray[np.int64]) -> bool:
    """Whether the loader makes its batches in the loop itself (`num_workers=0`)."""
    trace = facts.context.trace
    return bool(trace.strings.matches(trace.events.name[rows], lambda text: "_SingleProcess" in text).any())
