"""How many examples a property is tried on: few in a plain run, many more in `.ci/extended`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("TRACEANALYZE_EXAMPLES", "1"))
"""As many times as in a plain run."""


def examples(count: int, *allowed: HealthCheck) -> settings:
    """So many in a plain run. A busy machine is no failure: nothing is timed in tests."""
    return settings(max_examples=count * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow, *allowed])


DEFAULT = examples(25)
"""For properties that say nothing about it."""
