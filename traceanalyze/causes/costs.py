"""What each finding of a rank takes in each of its steps: all that is kept of the intervals behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.finding import Finding

    Place = tuple[str, str, str, tuple[str, ...]]
    Costs = Mapping[Place, NDArray[np.int64]]


def place_of(finding: Finding) -> Place:
    """What tells the findings of one rank apart: rule, slug, sentence and place."""
    return finding.rule, finding.slug, finding.sentence, finding.scope.ops


def costs_of(findings: Iterable[Finding], facts: Facts) -> Costs:
    """Ns in each of the windows, of the findings that are tied to points in time."""
    return {place_of(one): facts.by_step(one.intervals) for one in findings if one.intervals is not None}
