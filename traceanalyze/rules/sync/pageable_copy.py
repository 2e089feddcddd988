from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model import intervals
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.copies import (
    LARGE,
    PINNED_GBS,
    fastest_rate,
    hidden,
    host_copies,
    pageable,
    pinned_rate,
    share_saved,
)
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
    intervals_of,
    measured,
    rule,
)

PARTS = 10
"""Of a recording without steps; in half of them there is what comes back."""
INDEXED = r"^aten::(_?index|_?index_put|_unsafe_index)\w*$"
"""Operators that copy an index that lies on the host: no batch of the data loader."""


@rule(
    "SYN105",
    "pageable-copy",
    title="copies to the device",
    sentence={
        "": (
            "Copies to the device hold the host up or come from pageable memory ({count} in all): {idle} {per} "
            "the device has no work, {exposed} nothing but these copies runs."
        ),
        "held": "Copies to the device hold the host up ({count} in all): {idle} {per} the device has no work.",
        "index": (
            "Indices that lie on the host are copied to the device ({count} copies in all), and the host waits for "
            "that: {idle} {per} the device has no work."
        ),
        "once": (
            "Copies from pageable memory or that hold the host up come only in a part of the recording ({count} in "
            "all), as when a model is loaded: {idle} {per} the device has no work, {exposed} nothing but them runs."
        ),
        "exposed": (
            "Copies to the device ({count} in all), none known to be from pageable memory, take {exposed} {per} in "
            "which nothing else runs."
        ),
    },
    confidence=Confidence.HIGH,
    needs="DLA",
    advice_texts={
        "pin_memory": (
            "pin_memory=True in the DataLoader and .to(device, non_blocking=True); neither helps without the other."
        ),
        "index_on_device": "Keep the index on the device: what is made there once need not be copied.",
        "prefetch_copy": "Copy ahead what is needed next, such as a batch, on a side stream.",
    },
    options={
        "pinned_gbs": (PINNED_GBS, "reached by pinned copies over PCIe 3.0 x16; newer links are faster"),
        "slow": (0.5, "own: copies of memory that is not recorded are pageable below this part of it"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are copied to the device from pageable memory, or the copy holds up the host or the device.

    What it finds
        Copies from host to device that the profile calls pageable, or that are as slow where it does not tell, those
        whose call blocks in effect, and all others that nothing hides in 5 % of the step or more.
    Why it costs time
        The driver copies pageable memory to a staging buffer first, at a fraction of the link's speed, and the call
        returns only when that is done: the host launches nothing meanwhile. On the stream of the kernels these wait for
        copies from pinned memory, too.
    How it is measured
        What a replay of the launches gains without the blocking calls, and with pageable copies as short as pinned ones
        of as many bytes, at the rate of those recorded. Where none were, of PCIe 3.0, and as the end of the range of
        PCIe 4.0, if the device has that. At most: the idle time the calls caused (definitions §7) and all exposed time
        of the copies, as a copy on another stream can be hidden. Other copies save at most as much as other work has
        room to hide, and nothing where what they bring is made just before. Without step markers, copies before the
        first kernel, and those of which half of ten parts of the recording, equal in kernels, have hardly any, are done
        once: no saving. Calls that mostly wait while a collective runs save nothing at least, as what waits for other
        ranks waits in the next one; of several ranks it is what the run gains.
    What to do
        `pin_memory=True` in the DataLoader *and* `.to(device, non_blocking=True)`; copy the next batch ahead, on a side
        stream. Indices that operators copy are no batch: keep them on the device.

    References
        pin_memory and non_blocking tutorial; torch.utils.data; CUDA semantics.
    """
    event = host_copies(facts, "h2d")
    slow = pageable(facts, event, "h2d", options.number("pinned_gbs") * options.number("slow"))
    event, others = event[slow], event[~slow]
    blocking = used_for(facts, SyncUse.HOST_TO_DEVICE)
    loading = _loads_until(facts)
    found = [_of_others(facts, others[facts.context.device.start[others] >= loading])]
    if len(event) or blocking.any():
        stated = options.number("pinned_gbs")
        rates = pinned_rate(facts, "h2d", stated), fastest_rate(facts, "h2d", stated)
        found.extend(_of_pageable(facts, rates, blocking, event, loading))
    for one in found:
        if one is None or one.intervals is None:
            continue
        once = one.once or (not facts.marked and not _throughout(facts, facts.clip(one.intervals)))
        if not once:
            yield one
        elif one.sentence != "exposed" and facts.share(one.cost or 0) >= LEAST_SHARE:
            yield replace(one, once=True, sentence=one.sentence if one.sentence == "held" else "once")


def _of_others(facts: Facts, event: NDArray[np.int64]) -> Finding | None:
    """On copies that are not known to be slow, if nothing hides them in much of the step."""
    device = facts.context.device
    if facts.share(facts.per_step((device.end - device.start)[event])) < LARGE:
        return None
    spans = facts.alone(event)
    shown = intervals.coverage(spans, device.start[event], device.end[event])
    event, shown, time = event[shown > 0], shown[shown > 0], facts.mean(intervals.total(spans))
    if not len(event) or facts.share(time) < LARGE:
        return None
    return Finding(
        cost=time,
        low=0,
        change=Change(events=event, shorter=hidden(facts, shown)),
        draws="mem_exposed",
        intervals=intervals_of(*spans),
        sentence="exposed",
        evidence=measured(exposed=time, count=len(event)),
        advice=("prefetch_copy",),
        count=len(event),
        confidence=Confidence.MEDIUM,
    )


def _of_pageable(
    facts: Facts,
    rates: tuple[float, float],
    blocking: NDArray[np.bool_],
    event: NDArray[np.int64],
    loading: int,
) -> Iterator[Finding | None]:
    """On blocking calls (a mask of `sync_calls`) and pageable copies: of loading and of indices apart."""
    call, start = facts.once(sync_calls), facts.context.device.start[event]
    calls = facts.context.calls.start[call.call]
    indexed, indexes = names_under(facts, facts.context.event_op[event], INDEXED), names_under(facts, call.op, INDEXED)
    for first in (True, False) if not facts.marked else (False,):
        for index in (False, True):
            copies = ((start < loading) == first) & (indexed == index)
            own = blocking & ((calls < loading) == first) & (indexes == index)
            one = _finding(facts, rates, own, event[copies])
            if one is not None and index:
                one = replace(one, advice=("index_on_device",), sentence="index")
            yield one if one is None or not first else replace(one, once=True)


def _loads_until(facts: Facts) -> int:
    """When the first kernel of a recording without steps begins; in steps everything comes back."""
    if facts.marked:
        return np.iinfo(np.int64).min
    start = facts.context.device.start[facts.headline(DeviceClass.COMPUTE)]
    return int(start.min(initial=np.iinfo(np.int64).max))


def _throughout(facts: Facts, spans: intervals.Intervals) -> bool:
    """Whether some of this time lies in half of ten parts of the recording that have as many kernels each."""
    start = np.sort(facts.context.device.start[facts.headline(DeviceClass.COMPUTE)], kind="stable")
    edges = start[np.linspace(0, len(start), PARTS, endpoint=False).astype(np.int64)]
    each = intervals.coverage(spans, edges, np.append(edges[1:], facts.windows.end[-1:]))
    return facts.recurs(each, max(1.0, PRESENT * float(each.mean())))


def _finding(
    facts: Facts, rates: tuple[float, float], blocking: NDArray[np.bool_], event: NDArray[np.int64]
) -> Finding | None:
    """On some blocking calls (a mask of `sync_calls`) and pageable copies, if there are any."""
    waits = next(sync_findings(facts, blocking), None)
    if waits is None and not len(event):
        return None
    exposed = facts.alone(event)
    span = facts.mean(intervals.total(exposed))
    usual, most = (share_saved(facts, event, rate) for rate in rates)
    device, calls = facts.context.device, facts.once(sync_calls).call[blocking]
    shown = intervals.coverage(exposed, device.start[event], device.end[event])
    call = facts.context.calls
    removed = intervals.merge(call.start[calls], call.end[calls])
    waits = waits or Finding(change=Change(removed))

    def faster(change: Change, part: float = usual) -> Change:
        return change._replace(events=event, shorter=np.round(shown * part).astype(np.int64))

    idle = next((int(one.value) for one in waits.evidence if one.label == "idle"), 0)
    found = replace(
        waits,
        cost=idle + span,
        bound=facts.length(intervals_of(*removed)) + span,
        change=faster(change := waits.change or Change()),
        between=(*map(faster, waits.between), *((faster(change, most),) if most > usual else ())),
        draws="idle.sync" if blocking.any() else "mem_exposed",
        # Of copies from memory that nothing tells to be pageable, their own time is no part of it.
        sentence="" if len(event) else "held",
        intervals=np.concatenate((facts.once(sync_calls).spans(blocking), intervals_of(*exposed))),
        evidence=(
            *(measured(idle=idle, exposed=span) if len(event) else measured(idle=idle)),
            *measured(count=max(len(event), int(blocking.sum()))),
            *(one for one in waits.evidence if one.label == "place"),
        ),
        scope=waits.scope if waits.scope.ops else Scope(),
        count=max(len(event), int(blocking.sum())),
    )
    if 2 * intervals.total(intervals.intersect(removed, facts.busy(DeviceClass.COMM))) <= intervals.total(removed):
        return found
    # What waits for other ranks here waits in the next collective else, for all that one rank's recording tells.
    return replace(found, low=0, confidence=Confidence.LOW)
