from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.copies import copied_bytes
from traceanalyze.rules.common.launching import idle_during
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.pricing import LEAST_SHARE
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, rule

_GLOO = regex(r"^gloo:(?!barrier|monitored_barrier)")
_LATENCY_NS = 100_000
"""Own: of a message of gloo over TCP."""
_VALUE = 8
"""Bytes of one number: it is as likely read by the program itself."""


@rule(
    "COM114",
    "cpu-backend",
    title="collectives of gloo",
    sentence={
        "": "Collectives of gloo ({count} in all) leave the device without work {idle} {per}.",
        "peers": (
            "Collectives of gloo ({count} in all) leave the device without work {idle} {per}: they wait for other "
            "ranks, as what was copied from the device for them takes no such time to send."
        ),
        "own": (
            "Collectives of gloo ({count} in all) leave the device without work {idle} {per}: they send what the host "
            "has, of a size that is not recorded, or wait for other ranks."
        ),
    },
    confidence=Confidence.HIGH,
    needs="DO",
    advice_texts={
        "device_backend.cuda": 'init_process_group("nccl") for tensors on devices.',
        "device_backend.ascend": 'init_process_group("hccl") for tensors on devices.',
        "late_peers": "Record the other ranks and compare them: one of them comes late, with any backend.",
    },
    advice=("device_backend",),
    options={"gbs": (1.0, "own: what gloo sends over TCP at least")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are sent by a backend of the CPU.

    What it finds
        Collectives of gloo, other than barriers, during which the device is idle.
    Why it costs time
        Gloo sends from host memory: the tensors are copied there and back, and no fast link is used. It also waits for
        ranks that come late, as any backend does.
    How it is measured
        Idle time of the device during ranges named `gloo:…` is the cost. What another backend saves is no more than
        what the shortest collective of the name and as many bytes takes, or 1 GB/s for what was copied to the host
        since the collective before; the rest is waiting for other ranks. Objects and tensors of the host, which
        nothing is copied for, gain nothing by another backend; of what size they are is not recorded, so they may wait.
    What to do
        `init_process_group("nccl")` (`hccl` on Ascend) for tensors on devices; gloo is right for objects on the host.

    References
        torch.distributed.
    """
    rows = facts.rows(RANGES, _GLOO)
    if not len(rows):
        return
    found = idle_during(facts, rows, facts.names(rows[:1]))
    found = replace(found, cost=found.saving, evidence=tuple(one for one in found.evidence if one.label != "host"))
    span, sending = facts.spans(rows), _sending(facts, rows, options.number("gbs"))
    sent = intervals.merge(span[:, 1] - sending, span[:, 1])
    saving = facts.length(facts.overlap(sent))
    if facts.share(saving) >= LEAST_SHARE:
        bound = facts.mean(intervals.total(sent))
        yield replace(found, saving=saving, bound=bound, change=Change(sent))
        return
    held = span[sending == 0]
    # Nothing was copied for these.
    unknown = 2 * facts.length(facts.overlap(intervals.merge(held[:, 0], held[:, 1]))) > (found.cost or 0)
    yield replace(
        found,
        saving=None,
        bound=None,
        change=None,
        sentence="own" if unknown else "peers",
        advice=("late_peers",),
        severity=Severity.MEDIUM if facts.share(found.cost or 0) >= HIGH else Severity.LOW,
        confidence=Confidence.LOW if unknown else Confidence.MEDIUM,
    )


def _sending(facts: Facts, rows: NDArray[np.int64], gbs: float) -> NDArray[np.int64]:
    """What each collective sends for at most, ns; the rest is waiting for others."""
    device, span = facts.context.device, facts.spans(rows)
    copy = np.flatnonzero(device.klass == DeviceClass.MEM)
    copy = copy[directions(facts.context, copy) == DIRECTIONS.index("d2h")]
    copy = copy[np.argsort(device.start[copy], kind="stable")]
    copied = np.concatenate(([0], np.cumsum(np.maximum(copied_bytes(facts, copy), 0))))
    until = np.searchsorted(device.start[copy], span[:, 1])
    moved = copied[until] - copied[np.concatenate((until[:1] * 0, until[:-1]))]
    time, alike = span[:, 1] - span[:, 0], group(facts.context.trace.events.name[rows], moved)
    shortest = np.full(len(alike), np.iinfo(np.int64).max)
    np.minimum.at(shortest, alike.of, time)
    return np.where(
        moved > _VALUE, np.minimum(shortest[alike.of], _LATENCY_NS + np.round(moved / gbs).astype(np.int64)), 0
    )
