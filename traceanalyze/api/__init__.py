"""The Python API: load recordings, analyse them, get a report; the command line is built on the same functions."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze import __version__
from traceanalyze.analyses.analyze import analyze_trace
from traceanalyze.api.choices import Choices
from traceanalyze.api.gather import gather, sampled
from traceanalyze.errors import UsageError
from traceanalyze.model.run import Run
from traceanalyze.readers.runs import group_runs
from traceanalyze.report.build import Scope, build_report
from traceanalyze.report.build.selection import parse_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.api.gather import ReadProgress
    from traceanalyze.model.trace import Trace
    from traceanalyze.report.model import Report

    Path = str | os.PathLike[str]

__all__ = ["Choices", "analyze", "load", "load_runs", "reports"]


def load(paths: Path | Sequence[Path]) -> Run:
    """Read the recordings of one run: a file, a folder, a glob, or several of them.

    Raises:
        InputError: The input cannot be used.
        UsageError: It holds several runs; `load_runs` reads them all.
    """
    runs = load_runs(paths)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs)
        raise UsageError(f"the input holds {len(runs)} runs ({names}); name one of them, or use load_runs")
    return runs[0]


def load_runs(paths: Path | Sequence[Path]) -> tuple[Run, ...]:
    """Read the recordings of all runs found under the paths, each run with its ranks."""
    gathered = gather(_texts(paths), lambda trace: trace, progress=None)
    return _with_notes(group_runs(list(gathered.traces)), gathered.notes)


def analyze(
    run: Run | Path | Sequence[Path],
    *,
    steps: str | None = None,
    ranks: str | None = None,
    step_marker: str | None = None,
    data_regex: str | None = None,
    comm_regex: str | None = None,
    not_comm_regex: str | None = None,
    categories: Sequence[str] = (),
    device_peaks: Path | None = None,
) -> Report:
    """Where the steps' time went.

    Args:
        run: What `load` returned, or paths; paths are analysed rank by rank and need less memory.
        steps: Steps to analyse: `5`, `0,3-5`, `2:`.
        ranks: Ranks to analyse, written the same way.
        step_marker: Regular expression of host ranges that are steps, in place of `ProfilerStep#N`.
        data_regex: Regular expression of host ranges that are data loading, beside torch's own.
        comm_regex: Regular expression of kernels that are communication.
        not_comm_regex: Regular expression of kernels that are not.
        categories: `NAME=class` for event categories the tool does not know.
        device_peaks: TOML file with peak rates of devices, looked at before those that the tool knows.

    Returns:
        The report; `report.tables["split"].to_pandas()` and the like are its tables.
    """
    choices = Choices(
        steps,
        ranks,
        step_marker,
        data_regex,
        comm_regex,
        not_comm_regex,
        tuple(categories),
        None if device_peaks is None else os.fspath(device_peaks),
    )
    if isinstance(run, Run):
        options = choices.options()
        wanted = _chosen(run, choices)
        return _report(run, [analyze_trace(trace, options) for trace in wanted], choices)
    found = reports(_texts(run), choices)
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UsageError(f"the input holds {len(found)} runs ({names}); name one of them")
    return found[0]


def reports(paths: Sequence[str], choices: Choices, *, progress: ReadProgress | None = None) -> tuple[Report, ...]:
    """A report for every run found under the paths. Each recording is read, analysed and dropped before the next."""
    options = choices.options()
    results: dict[str, RankAnalysis] = {}

    def analysed(trace: Trace) -> Trace:
        small = sampled(trace)
        results[trace.origin.path] = replace(analyze_trace(trace, options), trace=small)
        return small

    gathered = gather(paths, analysed, progress=progress)
    runs = _with_notes(group_runs(list(gathered.traces)), gathered.notes)
    found = []
    for run in runs:
        traces = _chosen(run, choices)
        # Grouping may have numbered the ranks, so the traces of the run replace those of the analyses.
        analyses = [replace(results[trace.origin.path], trace=trace) for trace in traces]
        found.append(_report(run, analyses, choices))
    return tuple(found)


def _report(run: Run, analyses: Sequence[RankAnalysis], choices: Choices) -> Report:
    scope = Scope(every_rank=choices.ranks is not None)
    return build_report(run.name, analyses, version=__version__, notes=run.notes, scope=scope)


def _with_notes(runs: tuple[Run, ...], notes: tuple[str, ...]) -> tuple[Run, ...]:
    """Remarks on the input as a whole go with the first run."""
    return (replace(runs[0], notes=(*notes, *runs[0].notes)), *runs[1:]) if notes else runs


def _chosen(run: Run, choices: Choices) -> list[Trace]:
    """Traces of the ranks the user wants."""
    if choices.ranks is None:
        return list(run.traces)
    known = [trace for trace in run.traces if trace.origin.rank is not None]
    if not known:
        raise UsageError(f"--ranks {choices.ranks}: the profile of {run.name} does not tell any rank")
    numbers = [trace.origin.rank for trace in known if trace.origin.rank is not None]
    mask = parse_numbers(choices.ranks, "--ranks", "rank").chosen(numbers)
    return [trace for trace, wanted in zip(known, mask, strict=True) if wanted]


def _texts(paths: Path | Sequence[Path]) -> list[str]:
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.fspath(path) for path in several]
