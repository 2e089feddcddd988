"""Compute kernels that follow each other again and again: what fusing them could save."""

from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import Groups, group
from traceanalyze.analyses.kernels.use import SHORT_KERNEL_NS
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.steps.phases import backward_only
from traceanalyze.model.table import Column, Kind, Table, declare, labels_of
from traceanalyze.model.vocabulary import DeviceClass

LONGEST = 5
KEPT = 50
_SEQUENCES = declare(
    "kernel_sequences",
    "Kernels that often follow each other (sum over the analysed steps)",
    Column(
        "sequence", Kind.NAME, "compute kernels in a row on one stream, by their labels", heading="kernels in a row"
    ),
    Column("kernel_names", Kind.NAME, "the same kernels by their whole names", heading="whole names", minor=True),
    Column("kernels_each", Kind.COUNT, "kernels in one such row", heading="kernels"),
    Column("count", Kind.COUNT, "how often, without overlap"),
    Column("fewer_launches", Kind.COUNT, "launches fewer if each row were one kernel", heading="saves"),
    Column("device_time_ns", Kind.DURATION, "sum of the durations of these kernels"),
    Column("share", Kind.SHARE, "device time over the time of the analysed steps"),
    Column(
        "between_ns", Kind.DURATION, "device idle on that stream from one of these kernels to the next", heading="gaps"
    ),
    Column("mean_kernel_ns", Kind.DURATION, "mean duration of one of the kernels", heading="mean", scale="event"),
    Column(
        "all_short",
        Kind.FLAG,
        "the kernels take less than 10 µs on average, about what launching one costs",
        heading="fusing pays",
        minor=True,
    ),
    ranked=True,
    detail=True,
)


class _Kernels(NamedTuple):
    """Compute kernels of the headline device by stream, in order of start."""

    name: NDArray[np.int64]
    run: NDArray[np.int64]
    """Equal for kernels of one step and stream with nothing else between them on the stream."""
    time: NDArray[np.int64]
    gap: NDArray[np.int64]
    """Time from the end of the kernel before, 0 where that is still running."""


class _Repeats(NamedTuple):
    """Sequences of one length that occur more than once."""

    length: int
    at: NDArray[np.int64]
    """Position of the first kernel of each occurrence; occurrences of one sequence may overlap."""
    of: Groups
    times: NDArray[np.int64]


def kernel_sequences(context: Context) -> Table:
    """Sequences of 2 to `LONGEST` kernels, those first that would save most launches as one kernel.

    A sequence that occurs only inside one longer sequence is left out. Occurrences lie within a step, and other work
    of the stream between two kernels parts them.
    """
    kernels = _kernels(context)
    found = _repeats(kernels)
    rows: list[tuple[int, ...]] = []
    for repeats, longer in zip(found, [*found, None][1:], strict=True):
        rows.extend(_rows(kernels, repeats, _whole(repeats, longer)))
    rows.sort(key=lambda row: (-row[0] * (row[2] - 1), -row[3], row[1]))
    count, at, length, time, gaps = np.array(rows[:KEPT], np.int64).reshape(-1, 5).T
    text = context.trace.strings.text
    names = [
        [text(code) for code in kernels.name[first : first + size].tolist()]
        for first, size in zip(at.tolist(), length.tolist(), strict=True)
    ]
    label = labels_of(Kind.KERNEL, chain.from_iterable(names), context.once(backward_only))
    mean = time // (count * length)
    return _SEQUENCES.fill(
        sequence=[" → ".join(map(label.__getitem__, each)) for each in names],
        kernel_names=[" → ".join(each) for each in names],
        kernels_each=length,
        count=count,
        fewer_launches=count * (length - 1),
        device_time_ns=time,
        share=time / max(int(context.counted.time.sum()), 1),
        between_ns=gaps,
        mean_kernel_ns=mean,
        all_short=mean < SHORT_KERNEL_NS,
    )


def _kernels(context: Context) -> _Kernels:
    """Put the device events of each stream side by side, then keep the compute kernels."""
    work, device = context.once(device_work), context.device
    own = np.flatnonzero(device.device[work.event] == context.devices[0])
    stream = group(device.stream[work.event[own]]).of
    own = own[np.argsort(stream.astype(np.min_scalar_type(int(stream.max(initial=0)))), kind="stable")]
    event = work.event[own]
    start = device.start[event]
    step = np.searchsorted(context.counted.start, start, "right")
    compute = device.klass[event] == DeviceClass.COMPUTE
    parted = (np.diff(device.stream[event]) != 0) | (np.diff(step) != 0) | ~compute[1:] | ~compute[:-1]
    run = np.concatenate(([0], np.cumsum(parted)))[: len(event)]
    gap = np.concatenate(([0], np.maximum(start[1:] - device.end[event[:-1]], 0)))[: len(event)]
    return _Kernels(device.name[event[compute]].astype(np.int64), run[compute], work.time[own[compute]], gap[compute])


def _repeats(kernels: _Kernels) -> list[_Repeats]:
    """Repeated sequences by length, each found from those one shorter: a prefix occurs as often at least."""
    found = []
    at = np.arange(len(kernels.name))
    code = kernels.name
    for length in range(2, LONGEST + 1):
        fits = at + length <= len(kernels.name)
        fits[fits] = kernels.run[at[fits]] == kernels.run[at[fits] + length - 1]
        at, code = at[fits], code[fits]
        of = group(code, kernels.name[at + length - 1])
        count = of.count()
        again = np.flatnonzero(count[of.of] > 1)
        at = at[again]
        if len(at) == 0:
            break
        kept = group(of.of[again])
        found.append(_Repeats(length, at, kept, kept.count()))
        code = kept.of
    return found


def _whole(repeats: _Repeats, longer: _Repeats | None) -> NDArray[np.bool_]:
    """Sequences that are not always part of the same sequence one longer."""
    whole = np.ones(len(repeats.of), np.bool_)
    if longer is None:
        return whole
    first = longer.at[longer.of.first]
    for place in (np.searchsorted(repeats.at, first), np.searchsorted(repeats.at, first + 1)):
        part = repeats.of.of[place]
        whole[part[repeats.times[part] == longer.times]] = False
    return whole


def _rows(kernels: _Kernels, repeats: _Repeats, whole: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Count, first position, length, time and gaps of the sequences that would save most."""
    chosen = _apart(repeats, np.flatnonzero(_hopeful(repeats, whole)[repeats.of.of]))
    at, sequences = repeats.at[chosen], group(repeats.of.of[chosen])
    time = _sums(kernels.time, at, at + repeats.length)
    gaps = _sums(kernels.gap, at + 1, at + repeats.length)
    count, total = sequences.count(), sequences.sum(time)
    best = np.lexsort((-total, -count))[:KEPT]
    best = best[count[best] > 1]
    columns = (count, at[sequences.first], np.full(len(count), repeats.length), total, sequences.sum(gaps))
    return list(zip(*(column[best].tolist() for column in columns), strict=True))


def _hopeful(repeats: _Repeats, whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Those of the sequences that may be among the most frequent once occurrences must not overlap.

    Of `times` occurrences at least every `length`-th is free; who has fewer than that many of `KEPT` others is out.
    """
    times = np.where(whole, repeats.times, 0)
    if len(times) <= KEPT:
        return whole
    sure = -(-times // repeats.length)
    hopeful: NDArray[np.bool_] = whole & (times >= np.partition(sure, -KEPT)[-KEPT])
    return hopeful


def _sums(values: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    before = np.concatenate(([0], np.cumsum(values)))
    out: NDArray[np.int64] = before[end] - before[begin]
    return out


def _apart(repeats: _Repeats, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of occurrences of one sequence that overlap each other (`AAAA` holds `AA` three times) every one that is free.

    The occurrences are sorted by sequence, then position; `following` is the next of the sequence that does not overlap
    or the first of the next sequence, so walking along it visits just the free ones. Only sequences that overlap
    themselves are walked.
    """
    ordered = chosen[np.argsort(repeats.of.of[chosen], kind="stable")]
    sequence = repeats.of.of[ordered]
    span = int(repeats.at.max()) + repeats.length + 1
    key = sequence * span + repeats.at[ordered]
    touching = (sequence[1:] == sequence[:-1]) & (np.diff(key) < repeats.length)
    if not touching.any():
        return ordered
    walked = np.zeros(len(repeats.of), np.bool_)
    walked[sequence[1:][touching]] = True
    tangled = walked[sequence]
    key, rows = key[tangled], ordered[tangled]
    following = np.searchsorted(key, key + repeats.length).tolist()
    free, place = [], 0
    while place < len(following):
        free.append(place)
        place = following[place]
    return np.concatenate((ordered[~tangled], rows[free]))
