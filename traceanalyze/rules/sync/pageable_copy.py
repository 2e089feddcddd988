from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.kernels.copies import DIRECTIONS, copy_memory, directions
from traceanalyze.model import intervals
from traceanalyze.model.columns import MISSING
from traceanalyze.model.vocabulary import DeviceClass, EventKind
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.copies import copied_bytes
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.syncs import SyncUse, sync_calls, sync_findings, used_for
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.ranking import PRESENT
from traceanalyze.rules.rule import (
    Confidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    intervals_of,
    measured,
    rule,
)

PARTS = 10
"""Of a recording without steps; in half of them there is what comes back."""
INDEXED = r"^aten::(_?index|_?index_put|_unsafe_index)\w*$"
"""Operators that copy an index that lies on the host: no batch of the data loader."""
LONG_NS = 100_000
"""Copies shorter than this say nothing about the rate of the link."""


@rule(
    "SYN105",
    "pageable-copy",
    title="copies from pageable memory",
    sentence={
        "": (
            "Copies to the device hold the host up or come from pageable memory ({count} in all): {idle} {per} "
            "the device has no work, {exposed} nothing but these copies runs."
        ),
        "index": (
            "Indices that lie on the host are copied to the device ({count} copies in all), and the host waits for "
            "that: {idle} {per} the device has no work, {exposed} nothing but these copies runs."
        ),
        "once": (
            "Copies from pageable memory or that hold the host up come only in a part of the recording ({count} in "
            "all), as when a model is loaded: {idle} {per} the device has no work, {exposed} nothing but them runs."
        ),
    },
    confidence=Confidence.HIGH,
    needs="DLA",
    advice_texts={
        "pin_memory": (
            "pin_memory=True in the DataLoader and .to(device, non_blocking=True); neither helps without the other."
        ),
        "index_on_device": "Keep the index on the device: what is made there once need not be copied.",
        "prefetch_copy": "Copy the next batch ahead, on a side stream.",
    },
    options={
        "pinned_gbs": (12.0, "reached by pinned copies over PCIe 3.0 x16; newer links are faster"),
        "slow": (0.5, "own: copies of memory that is not recorded are pageable below this part of it"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are copied to the device from pageable memory, or the copy holds the host up.

    What it finds
        Copies from host to device that the profile calls pageable, or that are as slow where it does not tell, and
        those whose call blocks in effect.
    Why it costs time
        The driver copies pageable memory to a staging buffer first, at a fraction of the link's speed, and the call
        returns only when that is done: the host launches nothing meanwhile.
    How it is measured
        What a replay of the launches gains without the blocking calls, and with pageable copies as short as pinned ones
        of as many bytes. At most: the idle time the calls caused (definitions §7) and all exposed time of the copies,
        as a copy on another stream can be hidden. Without step markers, copies before the first kernel, and those of
        which half of ten parts of the recording, equal in kernels, have hardly any, are done once: no saving. Calls
        that mostly wait while a collective runs have a cost alone: what waits for other ranks waits in the next one.
    What to do
        `pin_memory=True` in the DataLoader *and* `.to(device, non_blocking=True)`; copy the next batch ahead, on a side
        stream. Indices that operators copy are no batch: keep them on the device.

    References
        pin_memory and non_blocking tutorial; torch.utils.data; CUDA semantics.
    """
    event = _pageable(facts, options.number("pinned_gbs") * options.number("slow"))
    blocking = used_for(facts, SyncUse.HOST_TO_DEVICE)
    start, call = facts.context.device.start[event], facts.once(sync_calls)
    calls, loading = facts.context.calls.start[call.call], _loads_until(facts)
    indexed, indexes = names_under(facts, facts.context.event_op[event], INDEXED), names_under(facts, call.op, INDEXED)
    for first in (True, False) if not facts.marked else (False,):
        for index in (False, True):
            copies = ((start < loading) == first) & (indexed == index)
            own = blocking & ((calls < loading) == first) & (indexes == index)
            found = _finding(facts, options.number("pinned_gbs"), own, event[copies])
            if found is None or found.intervals is None:
                continue
            once = first or (not facts.marked and not _throughout(facts, facts.clip(found.intervals)))
            if not once or facts.share(found.cost or 0) >= LEAST_SHARE:
                advice, sentence = (("index_on_device",), "index") if index else ((), "")
                yield replace(found, once=once, sentence="once" if once else sentence, advice=advice)


def _loads_until(facts: Facts) -> int:
    """When the first kernel of a recording without steps begins; in steps everything comes back."""
    start = facts.context.device.start[facts.headline(DeviceClass.COMPUTE)]
    return np.iinfo(np.int64).min if facts.marked else int(start.min(initial=np.iinfo(np.int64).max))


def _throughout(facts: Facts, spans: intervals.Intervals) -> bool:
    """Whether some of this time lies in half of ten parts of the recording that have as many kernels each."""
    start = np.sort(facts.context.device.start[facts.headline(DeviceClass.COMPUTE)])
    edges = start[np.linspace(0, len(start), PARTS, endpoint=False).astype(np.int64)]
    each = intervals.coverage(spans, edges, np.append(edges[1:], facts.windows.end[-1:]))
    return facts.recurs(each, max(1.0, PRESENT * float(each.mean())))


def _finding(facts: Facts, rate: float, blocking: NDArray[np.bool_], event: NDArray[np.int64]) -> Finding | None:
    """On some blocking calls (a mask of `sync_calls`) and pageable copies, if there are any."""
    waits = next(sync_findings(facts, blocking), None)
    exposed = _exposed(facts, event)
    span = facts.mean(intervals.total(exposed))
    if waits is None and not len(event):
        return None
    slow = _share_saved(facts, event, rate)
    device, calls = facts.context.device, facts.once(sync_calls).call[blocking]
    shown = intervals.coverage(exposed, device.start[event], device.end[event])
    call = facts.context.calls
    removed = intervals.merge(call.start[calls], call.end[calls])
    shorter = np.round(shown * slow).astype(np.int64)
    waits = waits or Finding(change=Change(removed))

    def faster(change: Change) -> Change:
        return change._replace(events=event, shorter=shorter)

    idle = next((int(one.value) for one in waits.evidence if one.label == "idle"), 0)
    found = replace(
        waits,
        cost=idle + facts.mean(int(shorter.sum())),
        bound=facts.length(intervals_of(*removed)) + span,
        change=faster(waits.change or Change()),
        between=tuple(map(faster, waits.between)),
        draws="idle.sync" if blocking.any() else "mem_exposed",
        intervals=np.concatenate((facts.once(sync_calls).spans(blocking), _end_of(facts, event, shorter))),
        evidence=(
            *measured(idle=idle, exposed=span, count=max(len(event), int(blocking.sum()))),
            *(one for one in waits.evidence if one.label == "place"),
        ),
        scope=waits.scope if waits.scope.ops else Scope(),
        count=max(len(event), int(blocking.sum())),
    )
    if 2 * intervals.total(intervals.intersect(removed, facts.busy(DeviceClass.COMM))) <= intervals.total(removed):
        return found
    # What waits for other ranks here waits in the next collective else: a cost that may save nothing.
    unsure = Confidence.MEDIUM
    return replace(found, cost=idle, bound=None, change=None, between=(), severity=Severity.LOW, confidence=unsure)


def _pageable(facts: Facts, rate: float) -> NDArray[np.int64]:
    """Copies from pageable host memory in the windows, on the headline device.

    Where the kind of memory is not recorded (Ascend), those of `LONG_NS` and more that move fewer bytes/ns than `rate`.
    """
    context = facts.context
    device = context.device
    rows = np.flatnonzero((device.kind == EventKind.MEMCPY) & (device.device == context.devices[0]))
    rows = rows[intervals.contains(facts.windows, device.start[rows])]
    rows = rows[directions(context, rows) == DIRECTIONS.index("h2d")] if len(rows) else rows

    def kind(text: str) -> int:
        return ("pageable", "pinned", None).index(copy_memory(text, "h2d"))

    memory = context.trace.strings.lookup(device.name[rows], kind)
    size, time = copied_bytes(facts, rows), (device.end - device.start)[rows]
    slow = (size != MISSING) & (time >= LONG_NS) & (size < rate * time)
    found: NDArray[np.int64] = rows[(memory == 0) | ((memory == 2) & slow)]
    return found


def _exposed(facts: Facts, event: NDArray[np.int64]) -> intervals.Intervals:
    """Time of these copies in which nothing else runs."""
    device = facts.context.device
    other = (device.klass != DeviceClass.MEM) & (device.device == facts.context.devices[0])
    own = intervals.merge(device.start[event], device.end[event])
    free = intervals.subtract(own, intervals.merge(device.start[other], device.end[other]))
    return intervals.intersect(free, facts.windows)


def _end_of(facts: Facts, event: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n, 2) so much of the end of each copy."""
    end = facts.context.device.end[event]
    return intervals_of(end - length, end)[length > 0]


def _share_saved(facts: Facts, event: NDArray[np.int64], rate: float) -> float:
    """Part of the copies' time that pinned memory would save; 0 where sizes were not recorded."""
    device = facts.context.device
    size = copied_bytes(facts, event)
    time = int((device.end - device.start)[event].sum())
    if not time or (size == MISSING).any():
        return 0.0
    return max(0.0, 1 - float(size.sum()) / rate / time)
