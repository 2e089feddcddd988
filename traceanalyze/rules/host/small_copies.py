import numpy as np

from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.model import intervals
from traceanalyze.model.columns import MISSING, median
from traceanalyze.model.vocabulary import Cause, DeviceClass, EventKind
from traceanalyze.rules.common.copies import copied_bytes
from traceanalyze.rules.common.replay import launching, without
from traceanalyze.rules.common.syncs import sync_calls
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, intervals_of, merged, rule


@rule(
    "HST109",
    "small-copies",
    title="many small copies",
    sentence=(
        "{each} copies {per} go between host and device, half of them of {bytes} or less; for {time} {per} nothing "
        "but them runs, or the device has no work as the host asks for them."
    ),
    evidence={"each": "copies a step", "bytes": "median size"},
    confidence=Confidence.MEDIUM,
    needs="DL",
    advice=("pack_copies", "create_on_device"),
    order=-1,
    advice_texts={"pack_copies": "Pack small tensors into one pinned buffer and copy it once."},
    options={
        "count": (10.0, "TraceLens: copies a step"),
        "bytes": (65536.0, "TraceLens: the median copy is smaller than 64 KiB"),
        "share": (0.05, "TraceLens: of the step; without marked steps the count tells nothing"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Many small copies go between host and device.

    What it finds
        More than 10 copies a step from or to the host, or 5 % of the step in them, the median below 64 KiB.
    Why it costs time
        Each copy costs a call and a transfer whose time hardly depends on its size.
    How it is measured
        Time in which nothing but the copies below 64 KiB runs, and idle time in the operators and calls that only make
        these, or after they waited; of it all but the part of one copy is saved by packing them. Copies to the host
        that it waits for are no part of it (SYN101, SYN104).
    What to do
        Pack tensors into one pinned buffer and copy it once; create tensors on the device.

    References
        pin_memory and non_blocking tutorial; TraceLens.
    """
    context, syncs = facts.context, facts.once(sync_calls)
    device = context.device
    rows = np.flatnonzero((device.kind == EventKind.MEMCPY) & facts.inside(device.start))
    way = directions(context, rows) if len(rows) else rows
    h2d, d2h = (way == DIRECTIONS.index(one) for one in ("h2d", "d2h"))
    rows, d2h = rows[h2d | d2h], d2h[h2d | d2h]
    size = copied_bytes(facts, rows)
    if not len(rows) or (size == MISSING).any() or median(size) >= options.number("bytes"):
        return
    small = size < options.number("bytes")
    rows, d2h, size = rows[small], d2h[small], size[small]
    each = len(rows) / max(facts.window.count, 1)
    often = facts.marked and each > options.number("count")
    # What the host waits for to read it is told by these waits (SYN101, SYN104).
    rows = rows[~(d2h & np.isin(context.event_op[rows], syncs.op[syncs.op >= 0]))]
    pieces = facts.pieces
    copying = np.flatnonzero(pieces.cause == Cause.DISPATCH_COPY)
    most = np.concatenate(((device.end - device.start)[rows], (pieces.end - pieces.start)[copying]))
    if not often and facts.share(facts.per_step(most)) < options.number("share"):
        return
    other = device.klass != DeviceClass.MEM
    alone = intervals.subtract(
        intervals.merge(device.start[rows], device.end[rows]), intervals.merge(device.start[other], device.end[other])
    )
    host = launching(facts, rows)
    drained = syncs.spans(intervals.contains(host, context.calls.start[syncs.call]))
    called = intervals.union(intervals.intersect(host, facts.idle_time), merged(drained))
    spans = intervals_of(*intervals.intersect(intervals.union(alone, called), facts.windows))
    whole = facts.length(spans)
    if not often and facts.share(whole) < options.number("share"):
        return
    yield Finding(
        saving=round(whole * max(0.0, 1 - 1 / each)),
        change=without(facts, rows, max(0.0, 1 - 1 / each)),
        bound=whole,
        draws="",
        intervals=spans,
        evidence=(
            Evidence("each", each, "NUMBER"),
            Evidence("bytes", int(median(size)), "MEMORY"),
            Evidence("time", whole, "DURATION"),
        ),
        count=len(rows),
    )
