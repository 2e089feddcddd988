"""The runs behind the paths a user gave to the gate: read one recording after another, keeping only samples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath

from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.errors import InputError, UsageError
from traceanalyze.frozen import frozen
from traceanalyze.model.trace import Run
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress, progress_of, sampled
from traceanalyze.pipeline.selection import parse_numbers, step_chooser
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.memory_sources import is_snapshot, snapshots_of
from traceanalyze.readers.runs import group_runs, run_folder
from traceanalyze.readers.snapshot import read_snapshot
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import expand
from traceanalyze.regression.baseline import is_baseline, read_baseline
from traceanalyze.regression.budget import Settings
from traceanalyze.regression.environment import run_environment
from traceanalyze.regression.explain import Explain
from traceanalyze.regression.rank_sample import rank_sample, snapshot_samples
from traceanalyze.regression.samples import (
    Counted,
    RankSample,
    RunSample,
    Sample,
    combined,
    count_findings,
    side_by_side,
    with_run_findings,
)
from traceanalyze.version import __version__

_HEAD_BYTES = 64
_APART = " holds several recordings, analysed apart"
"""Remark that is none here: several runs in a folder are what the gate is for."""
_YEAR_2000_NS = 946_684_800 * 10**9
_COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION")


@frozen
class Reading:
    """How recordings become samples."""

    choices: Choices = field(default_factory=Choices)
    """Steps, ranks and classification."""
    settings: Settings = field(default_factory=Settings)
    selectors: tuple[str, ...] = ()
    findings: bool = True
    """Run the rules, too."""


def baseline_file(path: str) -> bool:
    """Whether a path is a baseline file, by its content."""
    try:
        with Path(path).open("rb") as file:
            return is_baseline(file.read(_HEAD_BYTES))
    except OSError:
        return False


def read_runs(paths: Sequence[str], reading: Reading, *, progress: ReadProgress | None = None) -> tuple[RunSample, ...]:
    """The runs behind paths: files, folders of one run or of several, globs, baseline files, allocator snapshots.

    Raises:
        InputError: A recording cannot be read, or has no usable step.
        UsageError: It is not clear which files are ranks of one run.
    """
    found: list[RunSample] = []
    traces: list[str] = []
    for path in paths:
        if baseline_file(path):
            found.extend(read_baseline(path).level())
        elif Path(path).is_file() and is_snapshot(Source(path, size=Path(path).stat().st_size)):
            found.append(_snapshot_run(path, (Source(path, size=Path(path).stat().st_size),)))
        elif Path(path).is_dir() and not _has_traces(path):
            found.extend(_snapshot_runs(path))
        else:
            traces.append(path)
    if traces:
        found.extend(_trace_runs(traces, reading, progress))
    return tuple(found)


def _has_traces(path: str) -> bool:
    """Whether a folder without any trace has snapshots instead; one without either is left to fail as usual."""
    try:
        return bool(expand([path]).sources)
    except InputError:
        if not snapshots_of(path):
            raise
        return False


def _trace_runs(paths: Sequence[str], reading: Reading, progress: ReadProgress | None) -> list[RunSample]:
    options = reading.choices.options()
    chosen = step_chooser(reading.choices.steps) if reading.choices.steps else None
    counting = count_findings if reading.findings else None
    samples: dict[str, RankSample] = {}
    small = []
    selection = expand(paths)
    for source in selection.sources:
        trace = read_trace(source, progress_of(progress, source))
        samples[trace.origin.path] = rank_sample(
            trace,
            options,
            reading.settings,
            tool_version=__version__,
            selectors=reading.selectors,
            chosen=chosen,
            findings=counting,
        )
        small.append(sampled(trace))
        del trace
    runs = group_runs(small)
    _clear(runs, samples, {source.path for source in selection.sources if source.path in paths})
    snapshots = _snapshots_by_folder(paths)
    doubtful = tuple(f"{one.inside} ({one.reason})" for one in selection.passed if one.reason)
    found = [_run_sample(run, samples, reading.choices.ranks, snapshots if _alone(run, runs) else {}) for run in runs]
    if doubtful:
        found[0] = replace(found[0], notes=(*found[0].notes, f"files passed over: {', '.join(doubtful[:3])}"))
    return found


def _alone(run: Run, runs: Sequence[Run]) -> bool:
    """Whether the folder of a run holds no other run, so that its snapshots are those of the run."""
    mine = run_folder(run.traces[0].origin.path)
    return sum(run_folder(other.traces[0].origin.path) == mine for other in runs) == 1


def _clear(runs: Sequence[Run], samples: dict[str, RankSample], named: set[str]) -> None:
    """Runs that a folder's files were taken apart into must not have been recorded at the same time.

    Raises:
        UsageError: They overlap, and the user did not name each of the files.
    """
    folders: dict[str, list[Run]] = {}
    for run in runs:
        folders.setdefault(run_folder(run.traces[0].origin.path), []).append(run)
    for folder, members in folders.items():
        spans = sorted((*_span(run, samples), run.name) for run in members if not _all_named(run, named))
        if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
            names = ", ".join(trace.origin.path for run in members for trace in run.traces)
            raise UsageError(
                f"{folder}: it is not clear which files are ranks of one run and which are other runs, as they tell "
                f"no different ranks but overlap in time: {names}; "
                "put each run into a folder of its own, or name the files"
            )


def _all_named(run: Run, named: set[str]) -> bool:
    return all(trace.origin.path in named for trace in run.traces)


def _span(run: Run, samples: dict[str, RankSample]) -> tuple[int, int]:
    ranks = [samples[trace.origin.path] for trace in run.traces]
    return min(rank.began for rank in ranks), max(rank.ended for rank in ranks)


def _run_sample(
    run: Run, samples: dict[str, RankSample], wanted: str | None, snapshots: dict[str, tuple[Source, ...]]
) -> RunSample:
    traces = list(run.traces)
    if wanted is not None:
        numbers = [trace.origin.rank for trace in traces if trace.origin.rank is not None]
        if len(numbers) < len(traces):
            raise UsageError(f"--ranks {wanted}: the profile of {run.name} does not tell all ranks")
        mask = parse_numbers(wanted, "--ranks", "rank").chosen(numbers)
        traces = [trace for trace, chosen in zip(traces, mask, strict=True) if chosen]
    ranks = [(trace.origin.rank, samples[trace.origin.path]) for trace in traces]
    kept, of_run = side_by_side(ranks)
    metrics, missing, steps = combined([(rank, sample) for (rank, _), sample in zip(ranks, kept, strict=True)])
    if steps == 0:
        raise InputError(f"{run.name}: the ranks have no usable step in common")
    slowest = max(range(len(kept)), key=lambda index: (kept[index].mean_step, -index))
    began = min(sample.began for sample in kept)
    remembered = _remembered(snapshots.get(str(PurePath(traces[0].origin.path).parent), ()))
    return RunSample(
        id=_digest(sample.digest for sample in kept),
        name=run.name,
        time=_time(began),
        ranks=tuple(rank for rank, _ in ranks),
        environment=run_environment([sample.environment for sample in kept], steps),
        workload=kept[slowest].workload,
        metrics=remembered | with_run_findings(metrics, of_run),
        missing={name: reason for name, reason in missing.items() if name not in remembered},
        explain=kept[slowest].explain,
        usable_steps=steps,
        commit=commit(),
        findings=_findings(kept, of_run),
        notes=tuple(note for note in run.notes if _APART not in note),
        places=tuple(dict.fromkeys(place for sample in kept for place in sample.places)),
    )


def _findings(ranks: Sequence[RankSample], of_run: Counted) -> dict[str, int] | None:
    """Of each rule those of the rank with most; of rules about ranks those of the run."""
    counts = [sample.findings for sample in ranks if sample.findings is not None]
    if len(counts) < len(ranks):
        return None
    most = {rule: max(each.get(rule, 0) for each in counts) for each in counts for rule in each}
    return dict(sorted((most | dict(of_run.by_rule)).items()))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _time(ns: int) -> str:
    """ISO 8601, where the recording tells absolute time."""
    if ns < _YEAR_2000_NS:
        return ""
    return datetime.fromtimestamp(ns // 10**9, UTC).isoformat()


def commit() -> str:
    """What the CI system says is tested; empty elsewhere."""
    return next((os.environ[name] for name in _COMMIT_VARIABLES if os.environ.get(name)), "")


def _snapshots_by_folder(paths: Sequence[str]) -> dict[str, tuple[Source, ...]]:
    found: dict[str, tuple[Source, ...]] = {}
    for path in paths:
        if Path(path).is_dir():
            for source in snapshots_of(path):
                folder = str(PurePath(source.path).parent)
                found[folder] = (*found.get(folder, ()), source)
    return found


def _remembered(sources: Sequence[Source]) -> dict[str, Sample]:
    return snapshot_samples([device for source in sources for device in analyze_snapshot(read_snapshot(source))])


def _snapshot_runs(path: str) -> Iterator[RunSample]:
    """Every folder with snapshots below a path is a run."""
    for folder, sources in sorted(_snapshots_by_folder([path]).items()):
        yield _snapshot_run(folder, sources)


def _snapshot_run(name: str, sources: Sequence[Source]) -> RunSample:
    content = (hashlib.sha256(Path(source.path).read_bytes()).hexdigest() for source in sources)
    metrics = _remembered(sources)
    if not metrics:
        raise InputError(f"{name}: the snapshot is empty: no device had memory")
    return RunSample(
        id=_digest(content),
        name=PurePath(name).name,
        time="",
        ranks=(),
        environment={},
        workload={},
        metrics=metrics,
        missing={},
        explain=Explain(0, {}),
        usable_steps=0,
        commit=commit(),
    )
