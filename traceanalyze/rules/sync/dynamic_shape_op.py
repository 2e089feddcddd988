"""SYN102: the shape of a result depends on values on the device."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Finding, Options, rule


@rule("SYN102", "dynamic-shape-op", confidence=Confidence.HIGH, needs="DLAO", advice=("fixed_shapes",))
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The shape of a result depends on values on the device.

    What it finds
        `nonzero`, `masked_select`, indexing with a mask, `unique`, `repeat_interleave` without `output_size`.
    Why it costs time
        The host must know the shape before it can go on, so it waits for the device, which then waits for the host.
    How it is measured
        Idle time of the device that sync calls under these operators caused (definitions §7).
    What to do
        `torch.where` and masks, a fixed capacity, `output_size=` where the operator has it.

    References
        PyTorch Performance Tuning Guide; msprof-analyze advisor.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.DYNAMIC_SHAPE))
