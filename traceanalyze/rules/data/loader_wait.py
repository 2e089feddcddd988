from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.columns import occurs
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.vocabulary import Cause
from traceanalyze.replay.host import READY_NS
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.loader import single_process, start_of_workers, steady_batches, waited
from traceanalyze.rules.common.replay import saved
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    intervals_of,
    measured,
    merged,
    rule,
)


@rule(
    "DAT101",
    "loader-wait",
    title={"": "waiting for the data loader", "start": "workers of the loader start"},
    sentence={
        "": "The device waits for the data loader {idle} {per} ({share} of the time).",
        "single": (
            "The device waits for the data loader {idle} {per} ({share} of the time): batches are made in the training "
            "loop itself (num_workers=0)."
        ),
        "start": (
            "The first wait for the data loader takes {time}, far longer than any other: its workers start, which "
            "costs {idle} {per}."
        ),
        "host": "The step waits {time} {per} for the data loader ({share} of the time).",
        "host_single": (
            "Making batches takes {time} {per} ({share} of the time), in the training loop itself (num_workers=0)."
        ),
    },
    evidence={"batches": "batches"},
    confidence=Confidence.HIGH,
    needs="DO",
    host="O",
    advice=("more_workers", "cheaper_samples", "local_data"),
    advice_texts={
        "more_workers": (
            "More workers or a larger prefetch_factor in the DataLoader; persistent_workers=True, pin_memory=True."
        ),
        "set_workers_host": (
            "DataLoader(num_workers=…, persistent_workers=True) with as many workers as cores can be spared: give "
            "torch fewer (torch.set_num_threads); then tune prefetch_factor."
        ),
        "more_workers_host": (
            "More workers or a larger prefetch_factor in the DataLoader, if cores can be spared "
            "(torch.set_num_threads); persistent_workers=True."
        ),
    },
    options={
        "share": (0.05, "TensorBoard plugin: a loader above 5 % of the step is a bottleneck"),
        "least_ms": (10.0, "msprof-analyze advisor: 10 ms a step"),
        "workers": (
            0.4,
            "own: by so much at most new workers slow the host; PyTorch Kineto's samples of ResNet-50: by a fifth",
        ),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The device is idle because the host waits for its data loader.

    What it finds
        Steps whose device stands idle while the training thread waits for the next batch; of a program that computes
        on the host, any such waiting.
    Why it costs time
        Nothing can be launched before the batch is there. With `num_workers=0` (the default) batches are made in the
        training loop itself, one after the other.
    How it is measured
        Idle time of the device for which the next kernel had not been launched because its thread, or that of the
        steps, was inside `enumerate(DataLoader)#…__next__`, `enumerate(DataPipe)#…` or a range of `--data-regex`
        (definitions §5). Time of the loader under a busy device costs nothing and is no finding. The estimate replays
        the launches without the loader, so idle time until the host is ahead again counts, too, also where the idle
        time itself is below the limit. New workers may slow the rest of the host, by 40 % at most.
        Where the host alone computes: time of the steps' thread in these ranges, less the 0.6 ms that fetching a batch
        takes when workers have it ready; half of that where workers take the cores that compute.
        The recording's first wait is told by itself, as done once, where a loader has workers and it takes twice as
        long as any other wait: they start then.
    What to do
        Several workers, then `prefetch_factor`, `persistent_workers=True` and `pin_memory=True`; cheaper decoding and
        augmentation; data on a local disk, in few large files. Workers need free cores: on a host that computes
        itself, give fewer to torch (`torch.set_num_threads`).

    References
        torch.utils.data; PyTorch Performance Tuning Guide.
    """
    start = facts.once(start_of_workers)
    spans = intervals_of(*intervals.subtract(merged(waited(facts)), start))
    yield from _start(facts, start)
    time = facts.length(spans)
    brief = facts.share(time) < options.number("share") and time < options.number("least_ms") * 1e6
    if brief and (facts.host_computes or not time):
        return
    if not facts.marked and len(spans) < 3:
        return  # One start of an epoch says nothing about steps.
    rows = facts.once(steady_batches)
    alone = single_process(facts, rows)
    found = Finding(
        intervals=spans,
        sentence="single" if alone and not _beside(facts, rows) else "",
        evidence=(*measured(idle=time, share=facts.share(time)), Evidence("batches", len(rows), "COUNT")),
        scope=Scope(ops=tuple(dict.fromkeys(facts.name(row) for row in rows[:1].tolist()))),
        count=len(rows),
    )
    first = "set_workers" if alone else "more_workers"
    found = replace(found, advice=(f"{first}_host" if facts.host_computes else first, "cheaper_samples", "local_data"))
    found = _on_host(found, facts, time) if facts.host_computes else _of_device(found, facts, rows, time, options)
    # The device may work through most of the waiting, and still be late for it.
    if not brief or (found.change and facts.share(saved(facts, found.change)) >= options.number("share")):
        yield found


def _start(facts: Facts, start: Intervals) -> Iterator[Finding]:
    """What the start of the workers costs."""
    spans = intervals_of(*intervals.intersect(merged(waited(facts)), start))
    if facts.share(facts.length(spans)) >= LEAST_SHARE:
        length = Evidence("time", intervals.total(start), "DURATION", int(start.start[0]), int(start.end[0]))
        yield Finding(
            cost=facts.length(spans),
            once=True,
            sentence="start",
            intervals=spans,
            evidence=(length, *measured(idle=facts.length(spans))),
            advice=("persistent_workers",),
        )


def _beside(facts: Facts, rows: NDArray[np.int64]) -> bool:
    """Whether threads of their own make the batches: only the waits for them hold up the steps."""
    context = facts.context
    return not occurs(context.trace.events.track[rows], [context.step_track, *context.threads]).any()


def _of_device(found: Finding, facts: Facts, rows: NDArray[np.int64], idle: int, options: Options) -> Finding:
    """With what the device gains without the loader.

    Workers that did not exist before need cores. How many are free no recording tells: at worst the rest of the host is
    so much slower, though no longer busy than the loader is now, at best not at all; half of that is expected.
    """
    loading = merged(facts.spans(rows))
    if _beside(facts, rows):
        loading = intervals.intersect(loading, merged(facts.host(Cause.DATA_LOADING)))
    taken = facts.length(facts.spans(rows))
    most = min(options.number("workers"), taken / max(facts.step_time - taken, 1))
    ends = (most, most / 2, 0.0) if single_process(facts, rows) else (0.0,) * 3
    low, change, high = (Change(loading, slower=slower) for slower in ends)
    return replace(found, cost=idle, draws="idle", change=change, between=(low, high) if any(ends) else ())


def _on_host(found: Finding, facts: Facts, time: int) -> Finding:
    """With what the host gains: all but fetching batches that are ready.

    Workers take cores that compute as well, how many is not recorded: of two that share all work half is gained.
    """
    saving = max(0, time - facts.mean(found.count * READY_NS))
    return replace(
        found,
        saving=saving,
        low=saving // 2,
        confidence=Confidence.MEDIUM,
        bound=time,
        draws="host.data_loading",
        sentence=f"host_{found.sentence}" if found.sentence else "host",
        evidence=(Evidence("time", time, "DURATION"), *found.evidence[1:]),
    )
