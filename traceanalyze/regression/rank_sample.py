"""From one rank's recording to the little that is kept of it."""

import hashlib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import collectives, description_rows, types
from traceanalyze.analyses.host.modules import event_modules
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.partition import exclusive_time
from traceanalyze.analyses.steps.phases import launch_places
from traceanalyze.analyses.steps.window import Steps
from traceanalyze.comparison.caveats import lacking
from traceanalyze.errors import InputError, Phrase
from traceanalyze.model import intervals
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.columns import Rows
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.regression.budget import Settings
from traceanalyze.regression.environment import rank_environment, workload
from traceanalyze.regression.explain import explain
from traceanalyze.regression.measures import RankSteps, collective_sizes, counts, rank_steps, timings
from traceanalyze.regression.metrics import Selector, selector_of
from traceanalyze.regression.samples import Counted, RankSample, Sample, with_findings

NO_MATCH = NotMeasured("selector_matches_nothing")


def selected(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """What the selector asks for; `NO_MATCH` where no name fits its pattern."""
    on_device = selector.of != "op" or selector.suffix == "device_time"
    if on_device and len(rank.side.context.device) == 0:
        return NotMeasured("no_device_events")
    return _SELECTED[selector.of](rank, selector)


def _names_like(rank: RankSteps, codes: NDArray[np.int32], pattern: str) -> NDArray[np.bool_]:
    lookup = rank.side.context.trace.strings.lookup
    return lookup(codes, lambda name: fnmatchcase(name, pattern)).astype(np.bool_)


def _device_time(rank: RankSteps, event: Rows) -> NDArray[np.float64]:
    device = rank.side.context.device
    return rank.per_step(rank.of_device()[event], (device.end - device.start)[event])


def _kernels(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    device = rank.side.context.device
    event = np.flatnonzero((device.kind == EventKind.KERNEL) & _names_like(rank, device.name, selector.pattern))
    if len(event) == 0:
        return NO_MATCH
    return rank.counted(rank.of_device()[event]) if selector.suffix == "count" else _device_time(rank, event)


def _operators(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """Runs that are not inside another matching run; device time of all that was launched inside, counted once."""
    context = rank.side.context
    rows = np.flatnonzero(context.kind == EventKind.HOST_OP)
    rows = rows[_names_like(rank, context.trace.events.name[rows], selector.pattern)]
    if len(rows) == 0:
        return NO_MATCH
    start = context.trace.events.ts[rows]
    end, track = start + context.trace.events.dur[rows], context.trace.events.track[rows]
    inside = np.zeros(len(context.device), np.bool_)
    launch_track, launch_time = launch_places(context)
    count, host = np.zeros(rank.count), np.zeros(rank.count)
    for thread in np.unique(track).tolist():
        own = np.flatnonzero(track == thread)
        own = own[np.lexsort((-end[own], start[own]))]
        first, last = start[own], end[own]
        here = np.flatnonzero(launch_track == thread)
        inside[here] = intervals.contains(intervals.merge(first, last), launch_time[here])
        reach = np.maximum.accumulate(last)
        outer = np.concatenate(([True], last[1:] > reach[:-1]))
        step = rank.of_host(first[outer])
        count += rank.counted(step)
        host += rank.per_step(step, (last - first)[outer])
    if selector.suffix == "device_time":
        return _device_time(rank, np.flatnonzero(inside))
    return count if selector.suffix == "count" else host


def _modules(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """Device time, forward and backward, of modules whose path (or one around them) fits."""
    context, found = rank.side.context, rank.side.modules
    if found is None:
        return NotMeasured("no_modules")
    fits = np.zeros(len(found.places), np.bool_)
    for index, place in enumerate(found.places):
        names = (place.path, place.path.replace("/", "."), place.name)
        own = any(fnmatchcase(name, selector.pattern) for name in names)
        fits[index] = own or (place.parent >= 0 and fits[place.parent])
    if not fits.any():
        return NO_MATCH
    of = event_modules(context, found, rank.side.phase)
    return _device_time(rank, context.once(device_work).event[(of >= 0) & fits[np.maximum(of, 0)]])


def _collectives(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    context = rank.side.context
    if selector.suffix in {"busbw", "algbw"}:
        return _bandwidth(rank, selector)
    comm = np.flatnonzero(context.device.klass == DeviceClass.COMM)
    kind = types(context, comm, description_rows(context, comm)) if len(comm) else comm
    fits = np.array([fnmatchcase(name, selector.pattern) for name in TYPES], np.bool_)
    event = comm[fits[kind]]
    if len(event) == 0:
        return NO_MATCH
    step = rank.of_device()[event]
    if selector.suffix == "count":
        return rank.counted(step)
    if selector.suffix == "bytes":
        size = collective_sizes(rank, event)
        return NotMeasured("no_collective_metadata") if (size < 0).any() else rank.per_step(step, size)
    if selector.suffix == "exposed_time":
        windows = intervals.merge(context.steps.start, context.steps.end)
        return rank.per_step(step, exclusive_time(context.device, context.devices[0], windows)[event])
    return _device_time(rank, event)


def _bandwidth(rank: RankSteps, selector: Selector) -> NDArray[np.float64] | NotMeasured:
    """Mean over the run, weighted by time."""
    table = collectives(rank.side.context)
    rows = [row for row in table.records() if fnmatchcase(row.collective, selector.pattern)]
    if not rows:
        return NO_MATCH
    known = [(getattr(row, selector.suffix), row.device_time_ns) for row in rows]
    values = [(float(value), time) for value, time in known if not isinstance(value, NotMeasured) and time]
    if not values:
        return NotMeasured("no_collective_metadata")
    return np.array([sum(value * time for value, time in values) / sum(time for _, time in values)])


_SELECTED: dict[str, Callable[[RankSteps, Selector], NDArray[np.float64] | NotMeasured]] = {
    "kernel": _kernels,
    "op": _operators,
    "module": _modules,
    "collective": _collectives,
}


def rank_sample(
    trace: Trace,
    options: Options,
    settings: Settings,
    *,
    tool_version: str,
    selectors: Sequence[str] = (),
    chosen: Callable[[Steps], NDArray[np.bool_]] | None = None,
    findings: Callable[[Trace, Options], Counted] | None = None,
) -> RankSample:
    """Measure one rank, in the steps that the user has `chosen`; `selectors` are metrics named by patterns.

    `findings` counts those by rule; without it they are not counted.
    """
    rank = rank_steps(trace, options, warmup=settings.warmup_steps, chosen=chosen)
    if rank.count == 0:
        every = len(rank.side.context.all_steps)
        why = (
            Phrase("the file is cut short; copy or record it again")
            if not trace.read.whole
            else Phrase(
                "{every} recorded, {warmup} left out as warm-up (--warmup 0 keeps them), incomplete ones left out, too",
                every,
                settings.warmup_steps,
            )
            if chosen is None
            else Phrase("none of the {every} steps is chosen by --steps and complete", every)
        )
        raise InputError("{path}: no usable step: {why}", trace.origin.path, why)
    steps, events = rank.side.context.steps, trace.events
    if not steps.time.any():
        why = Phrase("no event with a duration is of a known category")
        raise InputError("{path}: no usable step: {why}", trace.origin.path, why)
    values = counts(rank) | timings(rank)
    # Tokens and samples per second, where the budget says how many a rank handles in a step.
    rates = {"step.tokens_per_s": settings.tokens_per_step, "step.samples_per_s": settings.samples_per_step}
    values |= {name: number / (np.maximum(steps.time, 1) / 1e9) for name, number in rates.items() if number is not None}
    values |= {name: selected(rank, selector) for name in selectors if (selector := selector_of(name)) is not None}
    sample = RankSample(
        path=trace.origin.path,
        steps=steps.name,
        values=values,
        environment=rank_environment(rank, tool_version),
        workload=workload(rank),
        explain=explain(rank),
        mean_step=float(steps.time.mean()),
        digest=_digest(trace),
        began=trace.base_ns + rank.side.context.begin if len(events) else 0,
        notes=tuple(Phrase(_LACKING[key], *map(itemgetter(1), told)) for key, told in lacking(rank.side.context)),
    )
    return sample if findings is None else with_findings(sample, findings(trace, options))


_LACKING = {
    "truncated": Phrase("the file is cut short: later work is missing"),
    "salvaged": Phrase("broken and left out: {count:,} events or places"),
    "unknown": Phrase(
        "not counted: {count:,} events, whose categories are not known ({categories}); --category {first}=kernel maps "
        "them"
    ),
    "impossible": Phrase("cut or left out: {count:,} device events at impossible times, or there twice"),
}
"""Of the notes of a run; `comparison.caveats.lacking` names what there is."""


def _digest(trace: Trace) -> str:
    """Of what was recorded, however the file is packed."""
    found = hashlib.sha256()
    events = trace.events
    for column in (events.ts, events.dur, events.name, events.cat, events.track):
        found.update(np.ascontiguousarray(column).tobytes())
    found.update(trace.strings.blob.tobytes())
    found.update(f"{trace.base_ns} {trace.origin.rank}".encode())
    return found.hexdigest()


def snapshot_samples(devices: Sequence[AllocatorAnalysis]) -> dict[str, Sample]:
    """Peaks of the highest device, and retries of that with most; of all devices of a run's snapshots."""
    if not devices:
        return {}
    peaks = {"memory.allocated_peak": "block_bytes", "memory.reserved_peak": "reserved_bytes"}
    return {
        **{name: Sample(float(max(one.moments.array(key).max() for one in devices))) for name, key in peaks.items()},
        "alloc.retry.count": Sample(float(max(len(device.retries) for device in devices))),
    }
