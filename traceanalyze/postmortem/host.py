"""What limits a program on the host where no device was recorded, which no rule judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.rules.finding import Confidence, Evidence, Finding, Severity
from traceanalyze.rules.ranking import HIGH, LEAST_NS, MEDIUM

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HOST_LOADING = "host_loading"
"""Slug of the finding; no rule has it."""


def host_loading(loading: NDArray[np.int64], times: NDArray[np.int64]) -> Finding | None:
    """That the step thread waits for its data, if it takes 5 % of the step: then batches could be made elsewhere.

    Args:
        loading: Of each step, ns (definitions §3, host-only report).
        times: The steps.
    """
    saving = int(loading.sum()) // max(len(loading), 1)
    share = int(loading.sum()) / max(int(times.sum()), 1)
    if share < MEDIUM or saving < LEAST_NS:
        return None
    return Finding(
        saving=saving,
        bound=saving,
        evidence=(Evidence("wait", saving, "DURATION"), Evidence("share", share, "SHARE")),
        advice=("set_workers", "cheaper_samples", "local_data"),
        count=len(loading),
        severity=Severity.HIGH if share >= HIGH else Severity.MEDIUM,
        confidence=Confidence.HIGH,
        slug=HOST_LOADING,
    )
