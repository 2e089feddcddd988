"""The regression gate and its baselines, as the command line and Python use them."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Unpack

from traceanalyze import plugins
from traceanalyze.errors import InputError, Phrase, UsageError, listed
from traceanalyze.pipeline.choices import Choices, PathLike, Patterns, checked, path_texts, several
from traceanalyze.pipeline.gate_runs import Reading, commit, read_runs
from traceanalyze.pipeline.gather import ReadProgress
from traceanalyze.pipeline.selection import Chosen
from traceanalyze.regression.baseline import (
    KEEP,
    Baseline,
    added,
    changed,
    is_baseline,
    level,
    read_baseline,
    write_baseline,
)
from traceanalyze.regression.budget import Budget, BudgetFile, check_keys, read_budget
from traceanalyze.regression.metrics import METRICS
from traceanalyze.regression.results import GateResult, MetricResult, SideSummary, Verdict
from traceanalyze.regression.samples import Place, RunSample
from traceanalyze.regression.verdict import ALWAYS_MATCH
from traceanalyze.regression.verdict import gate as judge
from traceanalyze.report.contents.gate import build_gate
from traceanalyze.report.model import GateReport
from traceanalyze.version import __version__

BUDGET_FILE, PROJECT_FILE = "traceanalyze.toml", "pyproject.toml"
_FINDINGS = ("findings.high", "findings.total")


def gate(
    candidate: PathLike | Sequence[PathLike],
    baseline: PathLike | Sequence[PathLike] = (),
    *,
    budget: PathLike | None = None,
    steps: Chosen | None = None,
    ranks: Chosen | None = None,
    warmup: int | None = None,
    strict: bool = False,
    exit_zero: bool = False,
    no_match: str | Sequence[str] = (),
    labels: str | Sequence[str] = (),
    language: str = "en",
    **patterns: Unpack[Patterns],
) -> GateReport:
    """Is the candidate slower or bigger than the baseline by more than its budget?

    Args:
        candidate: Runs under test: files, folders of one run or of several, globs.
        baseline: Runs to compare with, or a baseline file; without any only absolute limits are checked.
        budget: TOML file; by default `traceanalyze.toml`, else `[tool.traceanalyze.gate]` of `pyproject.toml`.
        steps: Steps to use: `5`, `0,3-5`, `2:`; then no step is left out as warm-up.
        ranks: Ranks to use, written the same way.
        warmup: Steps left out at the beginning of every run.
        strict: Inconclusive metrics and regressions at level warn fail, too.
        exit_zero: `exit_code` is 0 whatever the verdict.
        no_match: Keys of the environment that need not match.
        labels: `NAME=PATH`: the name of the side with this path.
        language: Of verdict and tables: en or zh.
        patterns: What is what in a recording, as of `analyze`: `step_marker`, `data_regex`, `comm_regex`,
            `not_comm_regex`, `categories`.

    Returns:
        The report; its `overall`, `exit_code`, `metrics` and `why` say most.

    Raises:
        InputError: A run cannot be used.
        UsageError: The budget is wrong, or the sides cannot be compared.
    """
    return gate_report(
        path_texts(candidate),
        path_texts(baseline, required=False),
        Choices(steps, ranks, **checked(patterns, Patterns)),
        budget=None if budget is None else os.fspath(budget),
        labels=several(labels),
        warmup=warmup,
        strict=strict,
        exit_zero=exit_zero,
        waived=several(no_match),
    ).in_language(language)


def gate_report(
    candidate: Sequence[str],
    baseline: Sequence[str],
    choices: Choices,
    *,
    budget: str | None = None,
    labels: Sequence[str] = (),
    warmup: int | None = None,
    strict: bool = False,
    exit_zero: bool = False,
    waived: Sequence[str] = (),
    progress: ReadProgress | None = None,
) -> GateReport:
    """As `gate`, with all that the command line may say; `labels` are `NAME=PATH`, for the side with that path."""
    written = _find_budget(budget, warmup)
    waived = check_keys(waived, "--no-match")
    old_label, new_label = _labels(labels, baseline, candidate)
    reading = _reading(written, choices)
    # First, as its path is the one that is written once and forgotten.
    try:
        old = read_runs(baseline, reading, progress=progress) if baseline else ()
    except InputError as error:
        raise InputError("--baseline {error}", error) from error
    new = level(read_runs(candidate, reading, progress=progress))
    rules = written.for_environment(new[0].environment)
    stored = any(map(is_baseline, baseline))
    if not stored:
        # What the CI system tests is the candidate.
        old = tuple(replace(run, commit="") for run in old)
    if stored and choices.ranks is not None:
        raise UsageError("--ranks: a baseline file keeps the ranks of a run together; give the traces instead")
    if stored:
        old = _matching(old, new, rules, waived)
    if baseline and not old:
        raise InputError("{path}: the baseline holds no run; traceanalyze baseline update adds some", baseline[0])
    new = tuple(replace(run, places=tuple(map(_in_checkout, run.places))) for run in new)
    sides = SideSummary(old_label, old, stored=stored), SideSummary(new_label, new)
    found = judge(*sides, rules, strict=strict, exit_zero=exit_zero, waived=waived)
    failed = (("plugin", {"text": note}) for note in plugins.notes())
    known = {run.id for run in old}
    twice = (
        ("input", {"run": run.name, "text": Phrase("is a run of the baseline, too")}) for run in new if run.id in known
    )
    return build_gate(replace(found, tool_version=__version__, notes=(*failed, *twice, *found.notes)))


def _in_checkout(place: Place) -> Place:
    """The place by the path that its file has in this folder, where it was recorded elsewhere: by its longest end."""
    parts = PurePosixPath(place.file.replace("\\", "/")).parts
    if "site-packages" in parts:
        return place
    ends = (PurePosixPath(*parts[at:]) for at in range(len(parts)) if parts[at] != "/")
    return next((place._replace(file=str(end)) for end in ends if os.path.isfile(end)), place)  # noqa: PTH113 - never raises


def _find_budget(path: str | None, warmup: int | None) -> BudgetFile:
    """The budget file that is named or found, or the defaults; with another number of warm-up steps if one is given."""
    found = BudgetFile(Budget())
    for name in (path,) if path is not None else (BUDGET_FILE, PROJECT_FILE):
        try:
            content = Path(name).read_bytes()
        except FileNotFoundError:
            if path is not None:
                raise UsageError("--budget {path}: there is no such file", path) from None
            continue
        except OSError as error:
            raise UsageError("{path}: cannot be read: {why}", name, error.strerror) from error
        if path is None and name == PROJECT_FILE and b"tool.traceanalyze" not in content:
            continue
        found = read_budget(content, name)
        break
    if warmup is None:
        return found
    settings = replace(found.budget.settings, warmup_steps=warmup)
    return found._replace(budget=replace(found.budget, settings=settings))


def _reading(written: BudgetFile, choices: Choices) -> Reading:
    overridden = [name for _, metrics in written.overrides for name in metrics if name not in METRICS]
    return Reading(
        choices=choices,
        settings=written.budget.settings,
        selectors=tuple(dict.fromkeys((*written.budget.selectors, *overridden))),
        findings=any(written.budget.rules[name].level != "off" for name in _FINDINGS),
    )


def _matching(
    old: Sequence[RunSample], new: Sequence[RunSample], budget: Budget, waived: Sequence[str]
) -> tuple[RunSample, ...]:
    """The level of a baseline file in the candidate's environment; its last run where none is, so that it is told."""
    keys = {*budget.settings.match, *ALWAYS_MATCH} - set(waived)
    wanted = {key: new[0].environment.get(key) for key in keys}
    fitting = tuple(run for run in old if all(run.environment.get(key) == wanted[key] for key in keys))
    return level(fitting) or tuple(old[-1:])


def _labels(labels: Sequence[str], baseline: Sequence[str], candidate: Sequence[str]) -> tuple[str, str]:
    names = ["baseline", "candidate"]
    for text in labels:
        name, equals, path = text.partition("=")
        sides = [at for at, paths in enumerate((baseline, candidate)) if path in paths]
        if not equals or not name or not sides:
            raise UsageError("--label {text}: write NAME=PATH with one of the paths given", text)
        names[sides[0]] = name
    return names[0], names[1]


def update(
    path: str,
    runs: Sequence[str],
    choices: Choices,
    *,
    keep: int = KEEP,
    label: str = "",
    budget: str | None = None,
    accept: bool = False,
    warmup: int | None = None,
    progress: ReadProgress | None = None,
) -> tuple[Baseline, int, tuple[str, ...]]:
    """Add runs to a baseline file, which is made if there is none; with `accept` even if they are a regression.

    Returns the file's runs, how many were added, and the names of those that were in it already.
    """
    written = _find_budget(budget, warmup)
    found = read_runs(runs, _reading(written, choices), progress=progress)
    checked_out = commit()
    found = tuple(replace(run, label=label or run.label, commit=run.commit or checked_out) for run in found)
    rules = written.for_environment(found[0].environment)
    known: list[str] = []

    def change(before: Baseline | None) -> Baseline:
        present = before or Baseline(created=_now())
        ids = {run.id for run in present.runs}
        fresh = tuple(run for run in found if run.id not in ids)
        mark = _level_mark(present, fresh, rules, accept=accept)
        marked = [run if run.id in ids else replace(run, accepted=mark) for run in found]
        new, twice = added(present, marked, keep=keep)
        known.extend(run.name for run in twice)
        return replace(new, tool_version=__version__)

    return changed(path, change), len(found) - len(known), tuple(known)


def _level_mark(present: Baseline, fresh: Sequence[RunSample], budget: Budget, *, accept: bool) -> str:
    """Id of the level that begins with these runs: an accepted regression or an improvement; empty where none does."""
    old = _matching(present.runs, fresh, budget, ()) if fresh and present.runs else ()
    keys = {*budget.settings.match, *ALWAYS_MATCH}
    if not old or any(old[0].environment.get(key) != fresh[0].environment.get(key) for key in keys):
        return ""
    found = judge(SideSummary("baseline", old, stored=True), SideSummary("candidate", tuple(fresh)), budget)
    worse = _errors(found, Verdict.REGRESSION)
    if worse and not accept:
        raise UsageError(
            "the runs are a regression against the baseline ({names}); --accept takes them in as the new level",
            listed(Phrase("{name} (± assumed)", each.name) if each.assumed else each.name for each in worse),
        )
    return _level_of(found)


def _level_of(found: GateResult) -> str:
    """Id of the level that the candidate begins; among slower runs the next regression would not be seen."""
    return found.candidate.runs[0].id if _errors(found, Verdict.REGRESSION, Verdict.IMPROVEMENT) else ""


def _errors(result: GateResult, *verdicts: Verdict) -> list[MetricResult]:
    """Metrics at level error with one of these verdicts."""
    return [each for each in result.metrics if each.verdict in verdicts and each.rule.level == "error"]


def write_refreshed(path: str, baseline: Sequence[str], result: GateResult) -> None:
    """The baseline of a gate with the candidate's runs added, as a file."""
    before = next((read_baseline(old) for old in baseline if is_baseline(old)), None)
    present = before or Baseline(result.baseline.runs, created=_now())
    mark = _level_of(result)
    checked_out = commit()
    new = [replace(run, accepted=mark, commit=run.commit or checked_out) for run in result.candidate.runs]
    after, _ = added(present, new)
    write_baseline(path, replace(after, tool_version=__version__))


def prune(path: str, *, older_than: int | None, label: str | None, environment: Sequence[str]) -> int:
    """Remove runs of a baseline file that fit every condition; how many.

    Days count back from the newest run; conditions on the environment are `KEY=VALUE`.
    """
    if older_than is None and label is None and not environment:
        raise UsageError("baseline prune: say what to remove: --older-than, --label or --environment")
    pairs = [text.partition("=")[::2] for text in environment]
    check_keys((key for key, _ in pairs), "--environment")
    removed = 0

    def change(before: Baseline | None) -> Baseline:
        nonlocal removed
        if before is None:
            raise InputError("{path}: there is no such file", path)
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
