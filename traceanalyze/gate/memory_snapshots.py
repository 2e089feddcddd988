"""Memory metrics of allocator snapshots, for runs that have some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.gate.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.allocator.results import AllocatorAnalysis

_RETRIES = frozenset({"retry", "failed_retry"})


def snapshot_samples(devices: Sequence[AllocatorAnalysis]) -> dict[str, Sample]:
    """Peaks of the highest device, and retries of that with most; of all devices of a run's snapshots."""
    if not devices:
        return {}
    retries = max(sum(1 for run in device.runs if run.kind in _RETRIES) for device in devices)
    return {
        "memory.allocated_peak": Sample(float(max(_peak(device, "allocated") for device in devices))),
        "memory.reserved_peak": Sample(float(max(_peak(device, "reserved") for device in devices))),
        "alloc.retry.count": Sample(float(retries)),
    }


def _peak(device: AllocatorAnalysis, which: str) -> int:
    return max((int(getattr(moment, which)) for moment in device.moments), default=0)
