"""How many examples a property is tried on: few in a plain run, many more in `.ci/extended`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = float(os.environ.get("TRACEANALYZE_EXAMPLES", "0.6"))
"""Of what a property asks for; a plain run has time for little more than half."""


def examples(count: int, *allowed: HealthCheck) -> settings:
    """So many in a plain run, and the same each time, so that it judges a change alone; `.ci/extended` draws new ones.

    A busy machine is no failure: nothing is timed in tests.
    """
    return settings(
        max_examples=max(1, round(count * TIMES)),
        deadline=None,
        derandomize=TIMES < 1,
        suppress_health_check=[HealthCheck.too_slow, *allowed],
    )


DEFAULT = examples(25)
"""For properties that say nothing about it."""
