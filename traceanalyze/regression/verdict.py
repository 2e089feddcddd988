"""From verdicts on metrics to the answer of the gate and its exit code."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen
from traceanalyze.regression.budget import Budget, Rule, Settings
from traceanalyze.regression.environment import Difference, differences, similarity
from traceanalyze.regression.evaluate import evaluate
from traceanalyze.regression.explain import why
from traceanalyze.regression.metrics import Kind, Level
from traceanalyze.regression.results import GateResult, MetricResult, Overall, SideSummary, Verdict
from traceanalyze.regression.samples import FEW_STEPS, EnvironmentValue, RunSample
from traceanalyze.regression.statistics import drifts, mann_whitney, outliers, two_populations

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
        listed = "; ".join(f"{each.key}: {_listed(each.baseline)} / {_listed(each.candidate)}" for each in broken)
        raise UsageError(
            f"the environments cannot be compared (baseline / candidate): {listed}; --no-match KEY waives a key"
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
        listed = " / ".join("; ".join(sorted(_ranks(each) for each in side)) for side in sets)
        raise UsageError(f"the runs have different ranks (baseline / candidate): {listed}; --ranks chooses common ones")


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


FAILED, INCONCLUSIVE = 1, 3
STALE_DAYS, STALE_CHANGES = 90, 3
_LEVELS = (Level.ERROR, Level.WARN, Level.OFF)
_VERDICTS = tuple(Verdict)
_BAD = frozenset({Verdict.REGRESSION, Verdict.MISSING, Verdict.INCONCLUSIVE})
Note = tuple[str, "Mapping[str, object]"]


@frozen
class Strictness:
    """What the command line says about verdicts."""

    strict: bool = False
    """Inconclusive metrics and regressions at level warn fail."""
    exit_zero: bool = False
    """Report only."""
    waived: tuple[str, ...] = ()
    """Keys of the environment that need not match."""


def gate(
    baseline: SideSummary, candidate: SideSummary, budget: Budget, strictness: Strictness | None = None
) -> GateResult:
    """Judge the candidate's runs against the baseline's; without any in the baseline only absolute limits count.

    Raises:
        UsageError: The sides cannot be compared, or there is nothing to judge.
    """
    how = strictness or Strictness()
    old, new, settings = baseline.runs, candidate.runs, budget.settings
    selectors_fit(budget.rules, (*old, *new), budget.selectors)
    differ = comparable(old, new, settings, how.waived) if old else ()
    found = [_with_notes(each, old, new) for each in evaluate(budget.rules, old, new, settings, stored=baseline.stored)]
    if not found:
        raise UsageError("nothing to judge: give --baseline, or absolute limits in the budget")
    overall, code, reason = conclude(found, budget, strict=how.strict)
    return GateResult(
        overall=overall,
        exit_code=0 if how.exit_zero else code,
        reason=reason,
        baseline=baseline,
        candidate=candidate,
        budget=budget,
        metrics=tuple(sorted(found, key=_worst_first)),
        why=why([run.explain for run in old], [run.explain for run in new]) if old else None,
        differences=differ,
        similarity=similarity([run.workload for run in old], [run.workload for run in new]) if old else None,
        waived=how.waived,
        notes=tuple(chain(_run_notes(baseline, candidate), _side_notes(found, old, new, budget))),
        findings=_findings(old, new),
        strict=how.strict,
    )


def conclude(found: Sequence[MetricResult], budget: Budget, *, strict: bool = False) -> tuple[Overall, int, str]:
    """The answer, its exit code and, where that is not 0, the reason in one line."""
    settings = budget.settings
    failing = [each for each in found if fails_gate(each, budget, strict=strict)]
    if failing:
        return Overall.FAIL, FAILED, _named(failing)
    open_ = [each for each in found if each.verdict == Verdict.INCONCLUSIVE and each.rule.level == Level.ERROR]
    if open_:
        fails = strict or settings.on_inconclusive == "fail"
        answer = Overall.PASS if settings.on_inconclusive == "pass" and not strict else Overall.INCONCLUSIVE
        return answer, INCONCLUSIVE if fails else 0, _named(open_) if fails else ""
    return Overall.PASS, 0, ""


def fails_gate(each: MetricResult, budget: Budget, *, strict: bool) -> bool:
    """Whether a metric fails the gate; one that is inconclusive may do so, too."""
    settings, error = budget.settings, each.rule.level == Level.ERROR
    if each.verdict == Verdict.REGRESSION:
        return error or strict
    if each.verdict == Verdict.IMPROVEMENT:
        return error and settings.on_improvement == "fail"
    return each.verdict == Verdict.MISSING and error and settings.on_missing == "fail"


def _named(found: Sequence[MetricResult]) -> str:
    names = [f"{each.name} ({each.verdict.replace('_', ' ')})" for each in sorted(found, key=_worst_first)]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _worst_first(each: MetricResult) -> tuple[bool, int, int, float, str]:
    """What can fail the gate comes first, at level error before level warn."""
    change = each.change
    bad = each.verdict in _BAD
    return (
        not bad,
        _LEVELS.index(each.rule.level) if bad else 0,
        _VERDICTS.index(each.verdict),
        -abs(change) if change is not None else -math.inf,
        each.name,
    )


def _with_notes(each: MetricResult, old: Sequence[RunSample], new: Sequence[RunSample]) -> MetricResult:
    """What is worth knowing about the samples of a time; it decides nothing."""
    if each.rule.metric.kind != Kind.TIME or not each.baseline_runs:
        return each
    notes = list(each.notes)
    steps = [[run.metrics[each.name].per_step for run in side] for side in (old, new)]
    pooled = [list(chain.from_iterable(side)) for side in steps]
    p = mann_whitney(*pooled)
    if p is not None:
        notes.append(("mann_whitney", f"{p:.3g}"))
    for side, values, runs, names in zip(
        ("baseline", "candidate"), steps, (each.baseline_runs, each.candidate_runs), (old, new), strict=True
    ):
        if any(two_populations(one) for one in values):
            notes.append(("two_populations", side))
        if any(drifts(one) for one in values):
            notes.append(("drift", side))
        notes.extend(("outlier", names[at].name) for at in outliers(runs))
    if each.statistics is not None and each.statistics.threshold < 2 * each.statistics.noise_floor:
        notes.append(("budget_below_noise", f"{each.statistics.noise_floor:.4g}"))
    return replace(each, notes=tuple(notes))


def _run_notes(*sides: SideSummary) -> Iterator[Note]:
    for side in sides:
        for run in side.runs:
            if 0 < run.usable_steps < FEW_STEPS:
                yield "few_steps", {"run": run.name, "steps": run.usable_steps}
            for note in run.notes:
                yield "input", {"run": run.name, "text": note}


def _side_notes(
    found: Sequence[MetricResult], old: Sequence[RunSample], new: Sequence[RunSample], budget: Budget
) -> Iterator[Note]:
    likeness = similarity([run.workload for run in old], [run.workload for run in new]) if old else None
    if likeness is not None and likeness < LIKE_WORKLOAD:
        yield "workload", {"similarity": f"{likeness:.2f}"}
    if old:
        yield from stale(old, new)
    if budget.settings.on_missing == "warn":
        for each in found:
            if each.verdict == Verdict.MISSING:
                yield "missing", {"metric": each.name}


def stale(old: Sequence[RunSample], new: Sequence[RunSample]) -> Iterator[Note]:
    """A baseline that is too old, or that was moved too often; measured by the runs' own times, not by the clock."""
    times = [max((run.time for run in side if run.time), default="") for side in (old, new)]
    if all(times):
        age = datetime.fromisoformat(times[1]) - datetime.fromisoformat(times[0])
        if age > timedelta(days=STALE_DAYS):
            yield "stale", {"days": age.days}
    changes = {run.accepted for run in old if run.accepted}
    if len(changes) > STALE_CHANGES:
        yield "accepted", {"count": len(changes)}


def _findings(old: Sequence[RunSample], new: Sequence[RunSample]) -> dict[str, tuple[int, int]]:
    """Rules whose number of findings changed; most of any run counts on either side."""
    if any(run.findings is None for run in (*old, *new)):
        return {}
    rules = dict.fromkeys(rule for run in (*old, *new) for rule in run.findings or ())
    counts = {rule: (_most(old, rule), _most(new, rule)) for rule in sorted(rules)}
    return {rule: pair for rule, pair in counts.items() if pair[0] != pair[1]}


def _most(runs: Sequence[RunSample], rule: str) -> int:
    return max(((run.findings or {}).get(rule, 0) for run in runs), default=0)
