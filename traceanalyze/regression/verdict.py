"""From verdicts on metrics to the answer of the gate and its exit code."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from traceanalyze.errors import Phrase, UsageError, listed
from traceanalyze.regression.budget import Budget, Settings
from traceanalyze.regression.environment import Difference, differences, similarity
from traceanalyze.regression.evaluate import evaluate
from traceanalyze.regression.explain import why
from traceanalyze.regression.metrics import Kind, Level
from traceanalyze.regression.results import BAD, GateResult, MetricResult, Overall, SideSummary, Verdict
from traceanalyze.regression.samples import FEW_STEPS, EnvironmentValue, RunSample
from traceanalyze.regression.statistics import drifted, drifts, mann_whitney, outliers, two_populations

ALWAYS_MATCH = frozenset({"profiler_options", "step_marker"})
"""Whatever the budget says: recording inflates times, and a whole trace or another range is no such step."""
LIKE_WORKLOAD = 0.8
"""Below it the sides probably run different programs."""


def comparable(
    baseline: Sequence[RunSample], candidate: Sequence[RunSample], settings: Settings, waived: Collection[str]
) -> tuple[tuple[Difference, ...], float | None]:
    """Differences of the environment that do not forbid a comparison, and the likeness of the workloads."""
    found = differences(baseline, candidate)
    must = {*settings.match, *ALWAYS_MATCH} - set(waived)
    broken = [each for each in found if each.key in must]
    if broken:
        listed = "; ".join(
            f"{each.key}: {' or '.join(map(shown, each.baseline))} / {' or '.join(map(shown, each.candidate))}"
            for each in broken
        )
        raise UsageError(
            "the environments cannot be compared (baseline / candidate): {listed}; --no-match KEY waives a key", listed
        )
    ranks = [{tuple(run.ranks) for run in side if run.ranks} for side in (baseline, candidate)]
    if len(ranks[0] | ranks[1]) > 1:
        listed = " / ".join("; ".join(sorted(", ".join(map(shown, each)) for each in side)) for side in ranks)
        raise UsageError(
            "the runs have different ranks (baseline / candidate): {listed}; --ranks chooses common ones", listed
        )
    likeness = similarity([run.workload for run in baseline], [run.workload for run in candidate])
    if likeness is not None and likeness < settings.min_workload_similarity:
        raise UsageError(
            "the workloads are {likeness:.2f} alike, less than min_workload_similarity {least:g}",
            likeness,
            settings.min_workload_similarity,
        )
    return tuple(each for each in found if each.key not in must), likeness


def shown(value: EnvironmentValue) -> str:
    """A value of the environment for people."""
    if value is None:
        return "unknown"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


FAILED, INCONCLUSIVE = 1, 3
STALE_DAYS, STALE_CHANGES = 90, 3
_LEVELS = (Level.ERROR, Level.WARN, Level.OFF)
_VERDICTS = tuple(Verdict)
Note = tuple[str, "Mapping[str, object]"]


def gate(
    baseline: SideSummary,
    candidate: SideSummary,
    budget: Budget,
    *,
    strict: bool = False,
    exit_zero: bool = False,
    waived: tuple[str, ...] = (),
) -> GateResult:
    """Judge the candidate's runs against the baseline's; without any in the baseline only absolute limits count.

    With `strict` inconclusive metrics and regressions at level warn fail, with `exit_zero` nothing does. `waived` are
    keys of the environment that need not match.
    """
    old, new, settings = baseline.runs, candidate.runs, budget.settings
    for name in budget.selectors:
        if {run.missing.get(name) for run in (*old, *new) if run.asked(name)} == {"selector_matches_nothing"}:
            raise UsageError("{name}: no name fits this pattern in any of the runs", name)
    differ, likeness = comparable(old, new, settings, waived) if old else ((), None)
    stored = baseline.stored
    found = [
        _with_notes(each, old, new, stored=stored) for each in evaluate(budget.rules, old, new, settings, stored=stored)
    ]
    if not found:
        if all(name.startswith(("memory.", "alloc.")) for run in new for name in run.metrics):
            raise UsageError(
                "nothing to judge: of a memory snapshot the gate judges the peaks; give --baseline another snapshot, "
                "or limits of the peaks in the budget; `traceanalyze memory` tells what is in it"
            )
        raise UsageError("nothing to judge: give --baseline, or absolute limits in the budget")
    overall, code, reason = conclude(found, budget, strict=strict)
    return GateResult(
        overall=overall,
        exit_code=0 if exit_zero else code,
        reason=reason,
        baseline=baseline,
        candidate=candidate,
        budget=budget,
        metrics=tuple(sorted(found, key=_worst_first)),
        why=why([run.explain for run in old], [run.explain for run in new]) if old else None,
        differences=differ,
        similarity=likeness,
        waived=waived,
        notes=tuple(_notes(found, old, new, settings, likeness)),
        findings=_findings(old, new),
        strict=strict,
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


SAID = {
    str(each): each
    for each in (Phrase("fail"), Phrase("inconclusive"), Phrase("regression"), Phrase("missing"), Phrase("improvement"))
}
"""Answers and verdicts that stand in sentences, by their words."""


def _named(found: Sequence[MetricResult]) -> str:
    worst = sorted(found, key=_worst_first)
    names = []
    for each in worst:
        verdict = SAID.get(each.verdict, each.verdict)
        said = Phrase("{name} ({verdict}, ± assumed)", each.name, verdict) if each.assumed else None
        names.append(said or Phrase("{name} ({verdict})", each.name, verdict))
    return Phrase("{names} and {count} more", listed(names[:3]), len(names) - 3) if len(names) > 3 else listed(names)


def _worst_first(each: MetricResult) -> tuple[bool, int, int, float, str]:
    """What can fail the gate comes first, at level error before level warn."""
    change = each.change
    bad = each.verdict in BAD
    return (
        not bad,
        _LEVELS.index(each.rule.level) if bad else 0,
        _VERDICTS.index(each.verdict),
        -abs(change) if change is not None else -math.inf,
        each.name,
    )


def _with_notes(
    each: MetricResult, old: Sequence[RunSample], new: Sequence[RunSample], *, stored: bool
) -> MetricResult:
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
    if stored and drifted(each.baseline_runs):
        notes.append(("baseline_drift", ""))
    if each.statistics is not None and each.statistics.threshold < 2 * each.statistics.noise_floor:
        notes.append(("budget_below_noise", f"{each.statistics.noise_floor:.4g}"))
    return replace(each, notes=tuple(notes))


def _notes(
    found: Sequence[MetricResult],
    old: Sequence[RunSample],
    new: Sequence[RunSample],
    settings: Settings,
    likeness: float | None,
) -> Iterator[Note]:
    for run in (*old, *new):
        if 0 < run.usable_steps < FEW_STEPS:
            yield "few_steps", {"run": run.name, "steps": run.usable_steps}
        for note in run.notes:
            yield "input", {"run": run.name, "text": note}
    if likeness is not None and likeness < LIKE_WORKLOAD:
        yield "workload", {"similarity": f"{likeness:.2f}"}
    if old:
        yield from _stale(old, new)
    if settings.on_missing == "warn":
        yield from (("missing", {"metric": each.name}) for each in found if each.verdict == Verdict.MISSING)


def _stale(old: Sequence[RunSample], new: Sequence[RunSample]) -> Iterator[Note]:
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
    before, after = (Counter[str](), Counter[str]())
    for most, side in ((before, old), (after, new)):
        for run in side:
            most |= Counter(run.findings or {})
    return {rule: (before[rule], after[rule]) for rule in sorted(before | after) if before[rule] != after[rule]}
