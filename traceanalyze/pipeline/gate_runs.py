"""The runs behind the paths a user gave to the gate: read one recording after another, keeping only samples."""

import hashlib
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath

from traceanalyze import plugins
from traceanalyze.analyses.memory.allocator import analyze_snapshot
from traceanalyze.errors import Apart, InputError, Phrase, UsageError, listed, some
from traceanalyze.model.trace import YEAR_2000_NS, Run, Trace, at_other_times
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress, gather, without_events
from traceanalyze.pipeline.selection import Chosen, parse_numbers
from traceanalyze.ranks.results import spans
from traceanalyze.readers.memory_sources import is_snapshot, snapshots_of
from traceanalyze.readers.remote import is_remote
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
    distinct,
    side_by_side,
)
from traceanalyze.report.contents.ranks import rank_label
from traceanalyze.version import __version__

_COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION")


@dataclass(frozen=True)
class Reading:
    """How recordings become samples."""

    choices: Choices = field(default_factory=Choices)
    """Steps, ranks and classification."""
    settings: Settings = field(default_factory=Settings)
    selectors: tuple[str, ...] = ()
    findings: bool = True
    """Run the rules, too."""


def read_runs(paths: Sequence[str], reading: Reading, *, progress: ReadProgress | None = None) -> tuple[RunSample, ...]:
    """The runs behind paths: files, folders of one run or of several, globs, baseline files, allocator snapshots."""
    found: list[RunSample] = []
    traces: list[str] = []
    for path in paths:
        file = Source(path, size=Path(path).stat().st_size) if Path(path).is_file() else None
        if is_remote(path):
            traces.append(path)
        elif is_baseline(path):
            found.extend(read_baseline(path).runs)
        elif file is not None and is_snapshot(file):
            found.append(_snapshot_run(path, (file,)))
        elif Path(path).is_dir() and not _has_traces(path):
            # Every folder with snapshots below it is a run.
            found.extend(_snapshot_run(*each) for each in sorted(_snapshots_by_folder([path]).items()))
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
    chosen = options.steps
    counting = count_findings if reading.findings else None
    samples: dict[str, RankSample] = {}

    def sample(trace: Trace) -> Trace:
        # What is damaged is never judged.
        if trace.read.whole:
            samples[trace.origin.path] = rank_sample(
                trace,
                options,
                reading.settings,
                tool_version=__version__,
                selectors=reading.selectors,
                chosen=chosen,
                findings=counting,
            )
        return without_events(trace)

    read = gather(paths, sample, progress=progress)
    if read.failed and reading.choices.ranks is None:
        (_, why), *more = read.failed
        if more:
            raise InputError(
                "{why}; {count} more cannot be read: {files}; or choose other ranks with --ranks",
                *(why, len(more), some([path for path, _ in more])),
            )
        raise InputError("{why}; or choose other ranks with --ranks", why)
    runs = group_runs(read.traces, read.lost)
    folders = _by_folder(runs)
    _refuse_overlaps(folders, {*paths})
    # Snapshots are those of a run where their folder holds no other.
    snapshots, single = _snapshots_by_folder(paths), {id(each[0]) for each in folders.values() if len(each) == 1}
    found = [_run_sample(run, samples, reading.choices.ranks, snapshots if id(run) in single else {}) for run in runs]
    # Of plug-ins the gate tells by itself.
    notes = (note for note in read.notes if note not in plugins.notes())
    found[0] = replace(found[0], notes=(*found[0].notes, *notes))
    return found


def _by_folder(runs: Sequence[Run]) -> dict[str, list[Run]]:
    folders: dict[str, list[Run]] = {}
    for run in runs:
        folders.setdefault(run_folder(run.traces[0].origin.path), []).append(run)
    return folders


def _refuse_overlaps(folders: Mapping[str, Sequence[Run]], named: set[str]) -> None:
    """Runs that a folder's files were taken apart into must not have been recorded at the same time."""
    for folder, members in folders.items():
        paths = [[trace.origin.path for trace in run.traces] for run in members]
        times = [
            [trace.span for trace in run.traces]
            for run, each in zip(members, paths, strict=True)
            if not named.issuperset(each)
        ]
        whole = sorted((min(start for start, _ in each), max(end for _, end in each)) for each in times)
        if any(later[0] < earlier[1] for earlier, later in pairwise(whole)):
            # Of the smallest, which is mostly what does not belong there.
            names = [path for each in sorted(paths, key=len) for path in each]
            raise UsageError(
                "{folder}: it is not clear which files are ranks of one run and which are other runs, as they "
                "tell no different ranks but overlap in time: {names}; put each run into a folder of its own, "
                "or name the files",
                folder,
                some(names),
            )


def _run_sample(
    run: Run, samples: dict[str, RankSample], wanted: Chosen | None, snapshots: dict[str, tuple[Source, ...]]
) -> RunSample:
    traces = list(run.traces)
    if wanted is not None:
        numbers = [trace.origin.rank for trace in traces if trace.origin.rank is not None]
        if len(numbers) < len(traces):
            raise UsageError("--ranks {wanted}: the profile of {run} does not tell all ranks", wanted, run.name)
        mask = parse_numbers(wanted, "--ranks", Phrase("rank")).chosen(numbers)
        traces = [trace for trace, chosen in zip(traces, mask, strict=True) if chosen]
    fit = [trace.read.whole and not other for trace, other in zip(traces, at_other_times(traces), strict=True)]
    damaged = [trace for trace, usable in zip(traces, fit, strict=True) if not usable]
    # Nobody knows what is missing, so nothing could be said about the run.
    if damaged and not any(fit):
        path = next(one.origin.path for one in damaged if not one.read.whole)
        raise InputError("{path}: the file is cut short, so it cannot be judged; copy or record it again", path)
    if damaged:
        raise InputError(
            "{run}: damaged, cut short or of another time: {files}; copy or record again, or judge the others with "
            "--ranks {others}",
            run.name,
            listed(
                Phrase("rank {rank} ({path})", rank_label(one.origin, at), one.origin.path)
                for at, one in enumerate(traces)
                if not fit[at]
            ),
            spans([rank_label(one.origin, at) for at, one in enumerate(traces) if fit[at]]),
        )
    ranks = [(trace.origin.rank, samples[trace.origin.path]) for trace in traces]
    kept, about_ranks = side_by_side(ranks)
    metrics, missing, steps = combined([(rank, sample) for (rank, _), sample in zip(ranks, kept, strict=True)])
    # To findings on its ranks come those about them.
    metrics |= {
        name: replace(metrics[name], value=metrics[name].value + more)
        for name, more in about_ranks.metrics.items()
        if name in metrics
    }
    if steps == 0:
        raise InputError("{run}: the ranks have no usable step in common", run.name)
    slowest = max(kept, key=lambda sample: sample.mean_step)
    began = min(sample.began for sample in kept)
    counted = [sample.findings for sample in kept if sample.findings is not None]
    remembered = _remembered(snapshots.get(str(PurePath(traces[0].origin.path).parent), ()))
    return RunSample(
        id=_digest(sample.digest for sample in kept),
        name=run.name,
        # ISO 8601, where the recording tells absolute time.
        time="" if began < YEAR_2000_NS else datetime.fromtimestamp(began // 10**9, UTC).isoformat(),
        ranks=tuple(rank for rank, _ in ranks),
        environment=run_environment([sample.environment for sample in kept], steps),
        workload=slowest.workload,
        metrics=remembered | metrics,
        missing={name: reason for name, reason in missing.items() if name not in remembered},
        explain=slowest.explain,
        usable_steps=steps,
        commit=commit_of_ci(),
        findings=_findings(counted, about_ranks) if len(counted) == len(kept) else None,
        # Several runs in a folder are what the gate is for.
        notes=(
            *(note for note in run.notes if not isinstance(note, Apart)),
            *dict.fromkeys(note for sample in kept for note in sample.notes),
        ),
        places=distinct(place for each in counted for place in each.places),
    )


def _findings(ranks: Sequence[Counted], about_ranks: Counted) -> dict[str, int]:
    """Of each rule those of the rank with most; of rules about ranks those of the run."""
    most = Counter[str]()
    for each in ranks:
        most |= Counter(each.by_rule)
    return dict(sorted({**most, **about_ranks.by_rule}.items()))


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def commit_of_ci() -> str:
    """What the CI system says is tested; empty elsewhere."""
    return next((os.environ[name] for name in _COMMIT_VARIABLES if os.environ.get(name)), "")


def commit() -> str:
    """What is tested: what the CI system says, else what git has checked out here; empty where neither tells."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True)  # noqa: S607
    except (OSError, subprocess.SubprocessError):
        return commit_of_ci()
    return commit_of_ci() or found.stdout.strip()


def _snapshots_by_folder(paths: Sequence[str]) -> dict[str, tuple[Source, ...]]:
    found: dict[str, tuple[Source, ...]] = {}
    for source in (source for path in paths if Path(path).is_dir() for source in snapshots_of(path)):
        folder = str(PurePath(source.path).parent)
        found[folder] = (*found.get(folder, ()), source)
    return found


def _remembered(sources: Sequence[Source]) -> dict[str, Sample]:
    return snapshot_samples([device for source in sources for device in analyze_snapshot(read_snapshot(source))])


def _snapshot_run(name: str, sources: Sequence[Source]) -> RunSample:
    content = (hashlib.sha256(Path(source.path).read_bytes()).hexdigest() for source in sources)
    metrics = _remembered(sources)
    if not metrics:
        raise InputError("{name}: the snapshot is empty: no device had memory", name)
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
        commit=commit_of_ci(),
    )
