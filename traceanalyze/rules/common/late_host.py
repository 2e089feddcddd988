"""What shorter kernels save where the host cannot keep up: often nothing, as the gaps only become longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze import intervals
from traceanalyze.model.vocabulary import DeviceClass
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.common.without import without

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts

SHARE, LATE = 0.10, 0.20
"""As HST101: where the host is this late, it decides how long a step takes."""


def with_late_host(facts: Facts, spans: NDArray[np.int64], saving: int) -> int:
    """What is left of a saving of compute time, ns a step, once the launches are replayed.

    Args:
        facts: Of the rank.
        spans: (n, 2) time of the kernels that would be shorter, all by the same part.
        saving: By how much they would be shorter, ns a step.
    """
    if not facts.once(launching).bound(SHARE, LATE):
        return saving
    device = facts.context.device
    mine = (device.device == facts.context.devices[0]) & (device.klass == DeviceClass.COMPUTE)
    event = np.flatnonzero(mine & (device.end > device.start))
    inside = intervals.coverage(facts.clip(spans), device.start[event], device.end[event])
    event, inside = event[inside > 0], inside[inside > 0]
    order = np.argsort(device.start[event], kind="stable")
    part = min(1.0, saving * facts.window.count / max(int(inside.sum()), 1))
    shorter = np.round(inside[order] * part).astype(np.int64)
    return min(saving, without(facts, intervals.EMPTY, (event[order], shorter)).saving)
