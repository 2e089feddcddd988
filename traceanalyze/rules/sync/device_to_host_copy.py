from dataclasses import replace

import numpy as np

from traceanalyze.model import intervals
from traceanalyze.replay.device import BETWEEN_KERNELS_NS
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.copies import LARGE, PINNED_GBS, hidden, host_copies, pageable, pinned_rate, share_saved
from traceanalyze.rules.common.op_chains import names_under
from traceanalyze.rules.common.syncs import READS, SyncUse, sync_calls, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, intervals_of, measured, rule


@rule(
    "SYN104",
    "device-to-host-copy",
    title="copies to the host inside the step",
    sentence={
        "": (
            "Copies to the host ({count} in all) leave the device without work {idle} {per}, and {exposed} nothing but "
            "these copies runs."
        ),
        "exposed": "Copies to the host ({count} in all) take {exposed} {per} in which nothing else runs.",
    },
    confidence=Confidence.HIGH,
    needs="DLAO",
    advice_texts={
        "keep_on_device": "Keep the computation on the device.",
        "read_late": (
            "Copy results once, at the end of the step, into pinned memory with non_blocking=True, on a side stream, "
            "and wait for an event."
        ),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are copied to the host in the middle of the step.

    What it finds
        `.cpu()`, `.numpy()`, `.tolist()` and other copies from device to host that wait for the device, or that nothing
        hides in 5 % of the step or more. Single values that are read are left to SYN101.
    Why it costs time
        The host waits until the copy is done; meanwhile nothing new is launched. On the stream of the kernels these
        wait for it, too, several times as long where it goes to pageable memory.
    How it is measured
        Idle time of the device caused by sync calls that belong to copies from device to host (definitions §7), and
        time in which nothing but the copies runs. The saving is what a replay gains without both, as far as other work
        has room to hide the copies; at least what it gains with those to pageable memory as short as pinned ones of as
        many bytes, at the rate of those that were recorded; at most what it gains without them.
    What to do
        Keep the computation on the device; gather what is to be read and copy it once, into pinned memory with
        `non_blocking=True`, on a side stream, and wait for an event.

    References
        pin_memory and non_blocking tutorial; PyTorch Performance Tuning Guide.
    """
    device, calls = facts.context.device, facts.once(sync_calls)
    blocking = used_for(facts, SyncUse.DEVICE_TO_HOST)
    waits = next(sync_findings(facts, blocking), None)
    event = host_copies(facts, "d2h")
    event = event[~names_under(facts, facts.context.event_op[event], READS)]
    spans = facts.alone(event)
    shown = intervals.coverage(spans, device.start[event], device.end[event])
    event, shown, time = event[shown > 0], shown[shown > 0], facts.mean(intervals.total(spans))
    if waits is None and (not len(event) or facts.share(time) < LARGE):
        return
    rate = pinned_rate(facts, "d2h", PINNED_GBS)
    slow = pageable(facts, event, "d2h", rate / 2)
    part = share_saved(facts, event[slow], rate)
    gone, faster = hidden(facts, shown), np.round(shown * slow * part).astype(np.int64)
    one = waits or Finding()
    idle = one.cost or 0
    worst, best = one.between or (Change(), Change())
    count = max(len(event), int(blocking.sum()))
    yield replace(
        one,
        sentence="" if idle else "exposed",
        cost=idle + time,
        bound=(one.bound or 0) + time,
        change=(one.change or Change())._replace(events=event, shorter=gone),
        between=(
            worst._replace(events=event, shorter=np.minimum(faster, gone)),
            best._replace(events=event, shorter=(device.end - device.start)[event] + BETWEEN_KERNELS_NS),
        ),
        draws="idle.sync" if idle > time else "mem_exposed",
        intervals=np.concatenate((calls.spans(blocking), intervals_of(*spans))),
        evidence=(
            *(measured(idle=idle) if idle else ()),
            *measured(exposed=time, count=count),
            *(each for each in one.evidence if each.label not in {"idle", "count"}),
        ),
        count=count,
    )
