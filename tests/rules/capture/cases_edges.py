"""Rules about the recording just at their thresholds: id → programs."""

from __future__ import annotations

import numpy as np

from tests.builder import TraceBuilder
from tests.rules.make import STEP, Fires, busy
from tests.rules.memory.cases import snapshot
from traceanalyze.analyses.memory.lifetimes import Curve


def long_first(count, first):
    """So many steps, the first of which is longer."""
    b = TraceBuilder()
    at = 0.0
    for number in range(count):
        b.step(number, at, STEP * (first if number == 0 else 1))
        busy(b, at, number)
        at += STEP * (first if number == 0 else 1)
    return b


def full(**more):
    return snapshot(truncation="full", active=Curve(2**30, np.zeros(0, np.int64)), **more)


FIRES = {
    "CAP101": [
        Fires(
            long_first(3, 1.5),
            evidence={"ratio": 1.5},
            options={"ratio": (1.5, 1.5, 1.52)},
        )
    ],
    "CAP111": [
        Fires(
            full(events=2),
            evidence={"events": 2, "before": 1073741824, "peak": 996189696},
        )
    ],
}
SILENT = {"CAP101": [long_first(2, 3), long_first(3, 1.49)], "CAP111": [full(events=1)]}
