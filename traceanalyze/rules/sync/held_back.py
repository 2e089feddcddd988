from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.idle.idle import idle_gaps
from traceanalyze.analyses.idle.launches import lost_launches
from traceanalyze.model.columns import Rows, median
from traceanalyze.model.intervals import contains, coverage
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import ApiClass, Cause
from traceanalyze.rules.common.launching import GRAPH, begun_before, excerpt
from traceanalyze.rules.common.one_off import one_off
from traceanalyze.rules.ranking import MEDIUM
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
    picked,
    rule,
)

_WAIT = regex(r"StreamWait(Event|Value)|LaunchHostFunc|StreamAddCallback|BatchMemOp")
_JUST_NS = 20_000
"""Work of another device that ended no longer than this before is what was waited for."""
_LONGER, _MOST_USUAL_NS = 3, 100_000
"""A device that is held back waits so much longer than it takes from one piece of queued work to the next, and that is
no more than this: an Ascend 910B that is recorded, with its core counters (level 1) or without, takes 95 µs."""
_ADVICE = {
    "device": ("order_streams",),
    "event": ("order_streams", "record_stream_waits"),
    "graph": ("plain_run",),
    "lost": ("all_events",),
    "": ("other_processes",),
}
"""Of each sentence."""
_WHY = tuple(_ADVICE)
"""Sentences; of several that fit the first."""


@rule(
    "SYN109",
    "held-back",
    title="launched work is held back",
    sentence={
        "device": "Launched work waits {idle} {per} on stream {stream} for {what} on device {other}.",
        "event": (
            "Launched work waits {idle} {per} on stream {stream}, which {what} makes wait; for what was not recorded."
        ),
        "graph": (
            "Between kernels of one graph the device stands still for {idle} {per}; that every one of them is recorded "
            "may be the reason."
        ),
        "lost": (
            "Launched work waits {idle} {per} on stream {stream} behind launches of which the recording shows no work "
            "of the device: that may have run meanwhile."
        ),
        "": (
            "Launched work waits {idle} {per} on stream {stream} for something that the trace does not show, such as "
            "work of another process on this device or the loading of code."
        ),
    },
    evidence={"stream": "stream", "other": "other device"},
    confidence=Confidence.MEDIUM,
    needs="DL",
    advice_texts={
        "order_streams": (
            "Record the event right after the work that is needed, launch that work earlier, or give it a stream of "
            "its own."
        ),
        "other_processes": (
            "See with nvidia-smi or rocm-smi whether another process uses this device, and record after a warm-up, "
            "when all code is loaded."
        ),
        "other_processes.ascend": (
            "See with npu-smi whether another process uses this device, and record after a warm-up, when all code is "
            "loaded."
        ),
        "all_events": (
            "See whether events of the recording are lost or of a category that is not known (--category NAME=kernel "
            "maps it), and record again."
        ),
        "plain_run": "Time the step without recording: what it is shorter by is no cost of the program.",
        "record_stream_waits": (
            "_ExperimentalConfig(enable_cuda_sync_events=True) records which stream waits for which event."
        ),
        "record_stream_waits.ascend": (
            "See in the timeline what other streams do before it: no option of torch_npu records what a stream waits "
            "for."
        ),
    },
    options={
        "share": (0.05, "own: of the step"),
        "least_us": (50.0, "own: less is how long a launch takes on some devices (MI300: 13 to 16 µs)"),
    },
    order=1,
)
def find(facts: Facts, options: Options) -> Findings:
    """The device is idle though work for it was launched.

    What it finds
        Idle time before work that was launched long ago, and what held it back: another device, an event, a value or a
        function of the host that its stream waits for, a graph.
    Why it costs time
        The device has nothing else to do meanwhile.
    How it is measured
        Idle time that is held back by other work (definitions §5), in waits of 50 µs or more and of three times what
        the device usually takes from one piece of queued work to the next, from 5 % of the step on.
        Work of another device that ended within 20 µs before is what was waited for; else what the call that made a
        stream wait, just before the launch, let it wait for: on this device nothing ran, as far as launches before it
        are not without work of the device: what they launched is lost, and may have run. What would be saved cannot be
        told: what was waited for may be needed. What the first recorded work of a stream waits for, at the beginning
        and never again for half as long, was launched before the recording: of that nothing is known.
    What to do
        Record events as early as possible, and launch what is waited for first.

    References
        CUDA semantics, streams; Holistic Trace Analysis.
    """
    pieces, context = facts.pieces, facts.context
    gaps = context.once(idle_gaps)
    waits = gaps.end - np.clip(gaps.launch_end, gaps.start, gaps.end)
    queued = waits[(gaps.launch_end > 0) & (waits == gaps.end - gaps.start)]
    usual = median(queued) if len(queued) else 0.0
    least = max(options.number("least_us") * 1000, _LONGER * usual if usual <= _MOST_USUAL_NS else 0)
    held = (pieces.cause == Cause.DEVICE_DEPENDENCY) & (waits[pieces.gap] >= least)
    length = pieces.end - pieces.start
    once = 2 * coverage(facts.once(one_off).every, pieces.start, pieces.end) > length
    held = np.flatnonzero(held & ~once & ~contains(facts.once(begun_before), pieces.start))
    if facts.share(facts.idle_mean(Cause.DEVICE_DEPENDENCY)) < options.number("share") or not len(held):
        return
    if facts.once(excerpt):
        return
    gap, of = np.unique(pieces.gap[held], return_inverse=True)
    why, source = _reasons(facts, gap)
    strings, device = context.trace.strings, context.device
    for place, sentence in enumerate(_WHY):
        mine = held[(why == place)[of]]
        spans = picked(pieces.start, pieces.end, mine)
        idle = facts.length(spans)
        if not len(mine) or facts.share(idle) < options.number("share"):
            continue
        at = int(np.argmax(spans[:, 1] - spans[:, 0]))
        row = int(of[np.flatnonzero(held == mine[at])[0]])
        event = int(gaps.event[gap[row]])
        yield Finding(
            cost=idle,
            intervals=spans,
            sentence=sentence,
            evidence=(
                *measured(idle=idle, count=len(mine)),
                Evidence("longest", int(spans[at, 1] - spans[at, 0]), "DURATION", *spans[at].tolist()),
                Evidence("stream", int(device.stream[event]), "NUMBER"),
                *_about(facts, sentence, int(source[row])),
            ),
            scope=Scope(ops=(strings.text(int(device.name[event])),)),
            count=len(mine),
            severity=Severity.MEDIUM if facts.share(idle) >= MEDIUM and sentence != "lost" else Severity.LOW,
            advice=_ADVICE[sentence],
        )


def _about(facts: Facts, sentence: str, source: int) -> Iterator[Evidence]:
    """What was waited for, and where that is; `source` is an event of a device, or a call."""
    context = facts.context
    if sentence == "device":
        yield Evidence("what", context.trace.strings.text(int(context.device.name[source])), "KERNEL")
        yield Evidence("other", int(context.device.device[source]), "NUMBER")
    elif sentence == "event":
        yield Evidence("what", context.trace.strings.text(int(context.calls.name[source])), "NAME")


def _reasons(facts: Facts, gap: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Position in `_WHY` of what each gap waited for, and the event or call behind it, -1 where nothing tells."""
    context, gaps = facts.context, facts.context.once(idle_gaps)
    device, calls = context.device, context.calls
    why, source = np.full(len(gap), len(_WHY) - 1), np.full(len(gap), -1, np.int64)
    call, name = gaps.call[gap], calls.name
    why[_behind_lost(facts, gap)] = _WHY.index("lost")
    graph = context.trace.strings.matches(name[call], GRAPH.search)
    why[graph] = _WHY.index("graph")
    waits = context.trace.strings.matches(name, _WAIT.search)
    asked = (calls.klass == ApiClass.LAUNCH) | (calls.klass == ApiClass.COPY)
    at = np.arange(len(calls))
    last_wait, last_asked = (np.maximum.accumulate(np.where(each, at, -1)) for each in (waits, asked))
    before = np.maximum(call - 1, 0)
    wait = last_wait[before]
    own = (wait > last_asked[before]) & (wait >= 0) & (calls.track[wait] == calls.track[call]) & (call > 0)
    why[own], source[own] = _WHY.index("event"), wait[own]
    other = np.flatnonzero(device.device != context.devices[0])
    if len(other):
        other = other[np.argsort(device.end[other], kind="stable")]
        last = np.searchsorted(device.end[other], gaps.end[gap], "right") - 1
        just = (last >= 0) & (gaps.end[gap] - device.end[other[np.maximum(last, 0)]] <= _JUST_NS)
        why[just], source[just] = _WHY.index("device"), other[last[just]]
    return why, source


def _behind_lost(facts: Facts, gap: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Before which gaps' launches others on their thread, since that of the stream's event before, have no event."""
    context, gaps = facts.context, facts.context.once(idle_gaps)
    device, calls, lost = context.device, context.calls, context.once(lost_launches)
    order = np.lexsort((device.start, device.stream, device.device))
    before = np.full(len(device), -1)
    same = (np.diff(device.stream[order]) == 0) & (np.diff(device.device[order]) == 0)
    before[order[1:]] = np.where(same, order[:-1], -1)
    call, last = gaps.call[gap], before[gaps.event[gap]]
    known = (call >= 0) & (last >= 0)
    first = np.where(known, context.link[last], -1)
    found = np.zeros(len(gap), np.bool_)
    for at in np.flatnonzero(known & (first >= 0)).tolist():
        between = lost[np.searchsorted(lost, first[at]) : np.searchsorted(lost, call[at])]
        found[at] = bool((calls.track[between] == calls.track[call[at]]).any())
    return found
