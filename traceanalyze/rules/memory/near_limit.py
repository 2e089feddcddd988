"""MEM109: little of the device's memory is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.rules.common.allocations import device_memory
from traceanalyze.rules.finding import Confidence, Evidence, Finding, Severity
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.rule import Options


@rule(
    "MEM109",
    "near-limit",
    confidence=Confidence.MEDIUM,
    needs="DM",
    advice=("less_memory", "hccl_buffers"),
    options={"share": (0.90, "TensorBoard plugin: peak of allocated memory over the capacity")},
    rare=True,
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """Little of the device's memory is left.

    What it finds
        A peak of allocated memory above 90 % of the device's.
    Why it costs time
        It costs nothing yet; a longer sequence or fragmentation ends in retries (MEM103) or a failed request.
    How it is measured
        Highest recorded total of the allocator over the device's memory; not judged where either is unknown.
    What to do
        Activation checkpointing, lower precision, a sharded optimizer; on Ascend fewer or smaller communication
        buffers.

    References
        Understanding CUDA memory usage; CANN HCCL variables.
    """
    known = device_memory(facts)
    if known is None or isinstance(known[0].peak_allocated, NotMeasured):
        return
    peak, capacity = known[0].peak_allocated, known[1]
    if peak > options.number("share") * capacity:
        yield Finding(
            evidence=(
                Evidence("share", peak / capacity, "SHARE"),
                Evidence("peak", peak, "MEMORY"),
                Evidence("capacity", capacity, "MEMORY"),
            ),
            severity=Severity.INFO,
        )
