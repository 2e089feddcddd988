"""The regression gate and its baselines, as the command line and Python use them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from traceanalyze import plugins
from traceanalyze.errors import InputError, UsageError
from traceanalyze.pipeline.choices import Choices, PathLike, path_texts
from traceanalyze.pipeline.gate_runs import Reading, commit, read_runs
from traceanalyze.pipeline.gather import ReadProgress
from traceanalyze.regression.baseline import KEEP, Baseline, added, changed, is_baseline, read_baseline, write_baseline
from traceanalyze.regression.budget import Budget, BudgetFile, check_keys, read_budget
from traceanalyze.regression.metrics import METRICS
from traceanalyze.regression.results import GateResult, SideSummary, Verdict
from traceanalyze.regression.samples import RunSample
from traceanalyze.regression.verdict import PROFILER_OPTIONS
from traceanalyze.regression.verdict import gate as judge
from traceanalyze.version import __version__

BUDGET_FILE, PROJECT_FILE = "traceanalyze.toml", "pyproject.toml"
_FINDINGS = ("findings.high", "findings.total")


@dataclass(frozen=True)
class GateChoices:
    """What a user may choose about a gate; texts as on the command line."""

    candidate: tuple[str, ...]
    baseline: tuple[str, ...] = ()
    budget: str | None = None
    """None: `traceanalyze.toml`, then `pyproject.toml`, then the defaults."""
    labels: tuple[str, ...] = ()
    """`NAME=PATH`: what the side with this path is called."""
    warmup: int | None = None
    strict: bool = False
    exit_zero: bool = False
    waived: tuple[str, ...] = ()
    common: Choices = field(default_factory=Choices)


def gate(
    candidate: PathLike | Sequence[PathLike],
    baseline: PathLike | Sequence[PathLike] = (),
    *,
    budget: PathLike | None = None,
    steps: str | None = None,
    ranks: str | None = None,
    warmup: int | None = None,
    strict: bool = False,
    no_match: Sequence[str] = (),
) -> GateResult:
    """Is the candidate slower or bigger than the baseline by more than its budget?

    Args:
        candidate: Runs under test: files, folders of one run or of several, globs.
        baseline: Runs to compare with, or a baseline file; without any only absolute limits are checked.
        budget: TOML file; by default `traceanalyze.toml`, else `[tool.traceanalyze.gate]` of `pyproject.toml`.
        steps: Steps to use: `5`, `0,3-5`, `2:`; then no step is left out as warm-up.
        ranks: Ranks to use, written the same way.
        warmup: Steps left out at the beginning of every run.
        strict: Inconclusive metrics and regressions at level warn fail, too.
        no_match: Keys of the environment that need not match.

    Returns:
        The result; its `overall`, `exit_code`, `metrics` and `why` say everything.

    Raises:
        InputError: A run cannot be used.
        UsageError: The budget is wrong, or the sides cannot be compared.
    """
    choices = GateChoices(
        candidate=path_texts(candidate),
        baseline=path_texts(baseline),
        budget=None if budget is None else os.fspath(budget),
        warmup=warmup,
        strict=strict,
        waived=tuple(no_match),
        common=Choices(steps=steps, ranks=ranks),
    )
    return gate_result(choices)


def gate_result(choices: GateChoices, *, progress: ReadProgress | None = None) -> GateResult:
    """The result that the choices describe."""
    written = find_budget(choices.budget)
    waived = check_keys(choices.waived, "--no-match")
    labels = _labels(choices)
    reading = _reading(written, choices.common, choices.warmup)
    new = read_runs(choices.candidate, reading, progress=progress)
    budget = _for_runs(written, new, choices.warmup)
    old = read_runs(choices.baseline, reading, progress=progress) if choices.baseline else ()
    stored = any(map(is_baseline, choices.baseline))
    if stored and choices.common.ranks is not None:
        raise UsageError("--ranks: a baseline file keeps the ranks of a run together; give the traces instead")
    if stored:
        old = _matching(old, new, budget, waived)
    if choices.baseline and not old:
        raise InputError(f"{choices.baseline[0]}: the baseline holds no run; traceanalyze baseline update adds some")
    found = judge(
        SideSummary(labels[0], old, stored=stored),
        SideSummary(labels[1], new),
        budget,
        strict=choices.strict,
        exit_zero=choices.exit_zero,
        waived=waived,
    )
    failed = (("plugin", {"text": note}) for note in plugins.notes())
    return replace(found, tool_version=__version__, notes=(*failed, *found.notes))


def find_budget(path: str | None) -> BudgetFile:
    """The budget file that is named or found, or the defaults.

    Raises:
        UsageError: It cannot be read, or does not make sense.
    """
    names = (path,) if path is not None else (BUDGET_FILE, PROJECT_FILE)
    for name in names:
        try:
            content = Path(name).read_bytes()
        except FileNotFoundError:
            if path is not None:
                raise UsageError(f"--budget {path}: there is no such file") from None
            continue
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror}") from error
        if path is None and name == PROJECT_FILE and b"tool.traceanalyze" not in content:
            continue
        return read_budget(content, name)
    return BudgetFile(Budget())


def _for_runs(written: BudgetFile, runs: Sequence[RunSample], warmup: int | None) -> Budget:
    budget = written.for_environment(runs[0].environment)
    return budget if warmup is None else replace(budget, settings=replace(budget.settings, warmup_steps=warmup))


def _reading(written: BudgetFile, choices: Choices, warmup: int | None) -> Reading:
    settings = written.budget.settings
    overridden = [name for _, metrics in written.overrides for name in metrics if name not in METRICS]
    return Reading(
        choices=choices,
        settings=settings if warmup is None else replace(settings, warmup_steps=warmup),
        selectors=tuple(dict.fromkeys((*written.budget.selectors, *overridden))),
        findings=any(written.budget.rules[name].level != "off" for name in _FINDINGS),
    )


def _matching(
    old: Sequence[RunSample], new: Sequence[RunSample], budget: Budget, waived: Sequence[str]
) -> tuple[RunSample, ...]:
    """The runs of a baseline file from the candidate's environment; all where there is none, so that it is told."""
    keys = {*budget.settings.match, PROFILER_OPTIONS} - set(waived)
    wanted = {key: new[0].environment.get(key) for key in keys}
    fitting = tuple(run for run in old if all(run.environment.get(key) == wanted[key] for key in keys))
    return fitting or tuple(old[-1:])


def _labels(choices: GateChoices) -> tuple[str, str]:
    """Names of both sides."""
    names = {"baseline": "baseline", "candidate": "candidate"}
    for text in choices.labels:
        name, equals, path = text.partition("=")
        sides = [side for side in names if path in getattr(choices, side)]
        if not equals or not name or not sides:
            raise UsageError(f"--label {text}: write NAME=PATH with one of the paths given")
        names[sides[0]] = name
    return names["baseline"], names["candidate"]


@dataclass(frozen=True)
class UpdateChoices:
    """What is added to a baseline file."""

    path: str
    runs: tuple[str, ...]
    keep: int = KEEP
    label: str = ""
    budget: str | None = None
    accept: bool = False
    """Take runs in although they are a regression."""
    warmup: int | None = None
    common: Choices = field(default_factory=Choices)


def update(choices: UpdateChoices, *, progress: ReadProgress | None = None) -> tuple[Baseline, int, tuple[str, ...]]:
    """Add runs to a baseline file, which is made if there is none.

    Returns:
        The file's runs, how many were added, and the names of those that were in it already.

    Raises:
        InputError: A run cannot be used, or the file is damaged.
        UsageError: A run is a regression against the baseline and is not accepted.
    """
    written = find_budget(choices.budget)
    reading = _reading(written, choices.common, choices.warmup)
    runs = read_runs(choices.runs, reading, progress=progress)
    runs = tuple(replace(run, label=choices.label or run.label, commit=run.commit or commit()) for run in runs)
    budget = _for_runs(written, runs, choices.warmup)
    known: list[str] = []

    def change(before: Baseline | None) -> Baseline:
        present = before or Baseline(created=_now())
        ids = {run.id for run in present.runs}
        fresh = tuple(run for run in runs if run.id not in ids)
        mark = _level_mark(present, fresh, budget, accept=choices.accept)
        new, twice = added(
            present, [replace(run, accepted=mark) if run in fresh else run for run in runs], keep=choices.keep
        )
        known.extend(run.name for run in twice)
        return replace(new, tool_version=__version__)

    after = changed(choices.path, change)
    return after, len(runs) - len(known), tuple(known)


def _level_mark(present: Baseline, fresh: Sequence[RunSample], budget: Budget, *, accept: bool) -> str:
    """Id under which regressed runs are accepted; empty where they are none."""
    old = _matching(present.level(), fresh, budget, ()) if fresh and present.runs else ()
    keys = {*budget.settings.match, PROFILER_OPTIONS}
    if not old or any(old[0].environment.get(key) != fresh[0].environment.get(key) for key in keys):
        return ""
    found = judge(SideSummary("baseline", old, stored=True), SideSummary("candidate", tuple(fresh)), budget)
    worse = _worse(found)
    if worse and not accept:
        raise UsageError(
            f"the runs are a regression against the baseline ({', '.join(worse)}); "
            "--accept takes them in as the new level"
        )
    return fresh[0].id if worse else ""


def _worse(result: GateResult) -> list[str]:
    """Metrics whose regression is an error."""
    return [each.name for each in result.metrics if each.verdict == Verdict.REGRESSION and each.rule.level == "error"]


def write_refreshed(path: str, choices: GateChoices, result: GateResult) -> Baseline:
    """The baseline of a gate with the candidate's runs added, as a file."""
    before = next((read_baseline(old) for old in choices.baseline if is_baseline(old)), None)
    present = before or Baseline(result.baseline.runs, created=_now())
    mark = result.candidate.runs[0].id if _worse(result) else ""
    after, _ = added(present, [replace(run, accepted=mark) for run in result.candidate.runs])
    after = replace(after, tool_version=__version__)
    write_baseline(path, after)
    return after


def prune(path: str, *, older_than: int | None, label: str | None, environment: Sequence[str]) -> int:
    """Remove runs of a baseline file that fit every condition; how many.

    Args:
        path: the file.
        older_than: age in days, counted back from the newest run.
        label: label of the runs.
        environment: `KEY=VALUE` of the environment.
    """
    if older_than is None and label is None and not environment:
        raise UsageError("baseline prune: say what to remove: --older-than, --label or --environment")
    pairs = [text.partition("=")[::2] for text in environment]
    check_keys((key for key, _ in pairs), "--environment")
    removed = 0

    def change(before: Baseline | None) -> Baseline:
        nonlocal removed
        if before is None:
            raise InputError(f"{path}: there is no such file")
        goes = _old(before, older_than)
        kept = tuple(
            run
            for run in before.runs
            if not (
                goes(run)
                and (label is None or run.label == label)
                and all(str(run.environment.get(key)) == value for key, value in pairs)
            )
        )
        removed = len(before.runs) - len(kept)
        return replace(before, runs=kept)

    changed(path, change)
    return removed


def _old(baseline: Baseline, days: int | None) -> Callable[[RunSample], bool]:
    """Whether a run is older than so many days; runs that do not tell their time never are."""
    if days is None:
        return lambda _: True
    newest = max((run.time for run in baseline.runs if run.time), default="")
    if not newest:
        return lambda _: False
    limit = datetime.fromisoformat(newest) - timedelta(days=days)
    return lambda run: bool(run.time) and datetime.fromisoformat(run.time) < limit


def _now() -> str:
    return datetime.now(UTC).replace(microsecond=0).isoformat()
