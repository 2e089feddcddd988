"""May these sides be compared at all? When in doubt the gate says no: a wrong verdict is worse than none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.errors import UsageError
from traceanalyze.gate.environment import Difference, differences, similarity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from traceanalyze.gate.rules import Rule, Settings
    from traceanalyze.gate.samples import EnvironmentValue, RunSample

PROFILER_OPTIONS = "profiler_options"
LIKE_WORKLOAD = 0.8
"""Below it the sides probably run different programs."""


def comparable(
    baseline: Sequence[RunSample], candidate: Sequence[RunSample], settings: Settings, waived: Collection[str]
) -> tuple[Difference, ...]:
    """Differences of the environment that do not forbid a comparison.

    Raises:
        UsageError: The sides differ in a key that must match, in their ranks, or in what they run.
    """
    found = differences(baseline, candidate)
    must = {*settings.match, PROFILER_OPTIONS} - set(waived)
    broken = [each for each in found if each.key in must]
    if broken:
        told = "; ".join(f"{each.key}: {_listed(each.baseline)} / {_listed(each.candidate)}" for each in broken)
        raise UsageError(
            f"the environments cannot be compared (baseline / candidate): {told}; --no-match KEY waives a key"
        )
    _same_ranks(baseline, candidate)
    likeness = similarity([run.workload for run in baseline], [run.workload for run in candidate])
    if likeness is not None and likeness < settings.min_workload_similarity:
        raise UsageError(
            f"the workloads are {likeness:.2f} alike, less than min_workload_similarity "
            f"{settings.min_workload_similarity:g}"
        )
    return tuple(each for each in found if each.key not in must)


def _same_ranks(baseline: Sequence[RunSample], candidate: Sequence[RunSample]) -> None:
    sets = [{tuple(run.ranks) for run in side if run.ranks} for side in (baseline, candidate)]
    if len(sets[0] | sets[1]) > 1:
        told = " / ".join("; ".join(sorted(_ranks(each) for each in side)) for side in sets)
        raise UsageError(f"the runs have different ranks (baseline / candidate): {told}; --ranks chooses common ones")


def _ranks(ranks: Iterable[int | None]) -> str:
    return ", ".join("unknown" if rank is None else str(rank) for rank in ranks)


def _listed(values: Sequence[EnvironmentValue]) -> str:
    return " or ".join(shown(value) for value in values)


def shown(value: EnvironmentValue) -> str:
    """A value of the environment for people."""
    if value is None:
        return "unknown"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def selectors_fit(rules: Mapping[str, Rule], runs: Sequence[RunSample], selectors: Iterable[str]) -> None:
    """A selector that fits nothing anywhere is a mistake in the budget.

    Raises:
        UsageError: There is one.
    """
    for name in selectors:
        reasons = {run.missing.get(name) for run in runs}
        if name in rules and reasons == {"selector_matches_nothing"}:
            raise UsageError(f"{name}: no name fits this pattern, in none of the runs")
