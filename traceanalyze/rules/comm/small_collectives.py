from dataclasses import replace

import numpy as np

from traceanalyze.model.columns import median
from traceanalyze.rules.common.communication import chained, comm_finding, communicating
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, UnmeasuredError, measured, rule

_MB = 1 << 20


@rule(
    "COM104",
    "small-collectives",
    title="communication in small messages",
    sentence="Small messages ({size} in the middle, {count} in all) take {time} {per}, {part} of the communication.",
    confidence=Confidence.MEDIUM,
    needs="D",
    advice_texts={
        "larger_buckets": (
            "Larger buckets (bucket_cap_mb), coalesced collectives, gradient accumulation; ZeRO-2 or ZeRO-1 instead of "
            "ZeRO-3."
        )
    },
    options={
        "share": (0.20, "msprof-analyze advisor: of the communication time"),
        "within_mb": (16.0, "msprof-analyze advisor: small inside a machine"),
        "between_mb": (1.0, "msprof-analyze advisor: small between machines"),
        "machine": (8.0, "own: ranks of larger groups are on several machines"),
        "least": (8.0, "own: small messages a step; fewer cannot be joined to much effect"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Much communication is in small messages.

    What it finds
        Collectives of less than 16 MB (1 MB in groups of more than 8 ranks) that take 20 % of the communication time.
        Not those between kernels that depend on each other, layer after layer (COM101): nothing joins them.
    Why it costs time
        Each collective has a fixed cost, whatever its size; small messages never reach the bandwidth of the links.
    How it is measured
        Sizes as recorded. What of the exposed time of small messages is saved is told by the bandwidth of larger ones
        of the same types on this rank. Without them nothing proves that larger ones are faster: half is taken, at least
        nothing. At most, all of it.
    What to do
        Larger buckets, coalesced calls, gradient accumulation; ZeRO-2 or ZeRO-1 instead of ZeRO-3. Tensor parallel
        decoding sends small messages by design.

    References
        msprof-analyze advisor; DistributedDataParallel.
    """
    work = facts.once(communicating)
    if len(work) == 0:
        return
    if not work.described:
        raise UnmeasuredError("no_collective_metadata")
    known = work.size >= 0
    wide = work.ranks > options.number("machine")
    limit = np.where(wide, options.number("between_mb"), options.number("within_mb")) * _MB
    small = known & (work.size < limit) & ~work.of_kind("barrier") & ~facts.once(chained)
    time, every, count = int(work.time[small].sum()), int(work.time.sum()), int(small.sum())
    if time < options.number("share") * every or not count or count < options.number("least") * facts.window.count:
        return
    large = known & ~small & np.isin(work.kind, work.kind[small])
    rate = float(work.size[large].sum()) / float(work.time[large].sum()) if work.time[large].sum() else 0.0
    needed = min(1.0, float(work.size[small].sum()) / rate / time) if rate else 0.5
    size = int(median(work.size[small]))
    evidence = measured(time=facts.mean(time), part=time / every, size=size, count=count)
    found = comm_finding(facts, small, evidence, saving=round(work.exposed_mean(facts, small) * (1 - needed)))
    most = Severity.MEDIUM if facts.share(found.saving or 0) >= HIGH else None
    yield found if rate else replace(found, low=0, severity=most, confidence=Confidence.LOW)
