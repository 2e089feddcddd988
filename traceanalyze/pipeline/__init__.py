"""The Python API: load recordings, analyse them, get a report; the command line is built on the same functions."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceanalyze import plugins
from traceanalyze.errors import UsageError
from traceanalyze.model.trace import Run
from traceanalyze.pipeline.choices import Choices, path_texts
from traceanalyze.pipeline.gather import ReadProgress, disagreeing, gather
from traceanalyze.pipeline.recordings import analysed_rank
from traceanalyze.pipeline.results import ALONE, Work, chosen_ranks
from traceanalyze.pipeline.run_report import report_of_ranks, run_reports, with_notes
from traceanalyze.pipeline.selection import Chosen
from traceanalyze.readers.memory_sources import holds_memory_file
from traceanalyze.readers.runs import group_runs
from traceanalyze.report.model import Report

if TYPE_CHECKING:
    from concurrent.futures import Executor

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
        raise UsageError("the input holds {count} runs ({names}); name one of them, or use load_runs", len(runs), names)
    return runs[0]


def load_runs(paths: Path | Sequence[Path]) -> tuple[Run, ...]:
    """Read the recordings of all runs found under the paths, each run with its ranks."""
    read = gather(path_texts(paths), lambda trace: trace, progress=None)
    return with_notes(group_runs(read.traces, read.lost), read.notes)


def analyze(
    run: Run | Path | Sequence[Path],
    *,
    steps: Chosen | None = None,
    ranks: Chosen | None = None,
    step_marker: str | None = None,
    data_regex: str | None = None,
    comm_regex: str | None = None,
    not_comm_regex: str | None = None,
    categories: str | Sequence[str] = (),
    device_peaks: Path | None = None,
    streams: Chosen | None = None,
    name_regex: str | None = None,
    time: str | None = None,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    language: str = "en",
    executor: "Executor | None" = None,
) -> Report:
    """Where the steps' time went.

    Args:
        run: What `load` returned, or paths; paths are analysed rank by rank and need less memory.
        steps: Steps to analyse: 5, [0, 3], `0,3-5`, `2:`.
        ranks: Ranks to analyse, written the same way.
        step_marker: Regular expression of host ranges that are steps, in place of `ProfilerStep#N`.
        data_regex: Regular expression of host ranges that are data loading, beside torch's own.
        comm_regex: Regular expression of kernels that are communication.
        not_comm_regex: Regular expression of kernels that are not.
        categories: `NAME=class` for event categories the tool does not know.
        device_peaks: TOML file with peak rates of devices, looked at before those that the tool knows.
        streams: Streams whose device work to analyse, written like steps; the rest is as if unrecorded.
        name_regex: Regular expression of names of device work to analyse; the rest is as if unrecorded.
        time: The time to analyse, since the first event: `10ms-1.5s`, `2s-`.
        select: Rules to run, by id, slug or how ids begin; all when empty.
        ignore: Rules not to run, written the same way.
        language: Of verdict, findings and tables: en or zh.
        executor: Of `concurrent.futures`, or like these: analyses the recordings under the paths, one in each worker.

    Returns:
        The report; `report.tables["split"].to_pandas()` and the like are its tables.
    """
    what = step_marker, data_regex, comm_regex, not_comm_regex, categories, device_peaks
    choices = Choices(steps, ranks, *what, select, ignore, streams, name_regex, time)
    if isinstance(run, Run):
        options, rules = choices.options(), choices.rules()
        by_rank = [analysed_rank(trace, options, rules) for trace in chosen_ranks(run, choices)]
        agreed = disagreeing(run.traces, {one.analysis.trace.origin.path: one.analysis for one in by_rank})
        by_rank = [
            analysed_rank(one.analysis.trace, options._replace(agreed=agreed[path]), rules) if path in agreed else one
            for one in by_rank
            for path in [one.analysis.trace.origin.path]
        ]
        new = tuple(note for note in plugins.notes() if note not in run.notes)
        return report_of_ranks(with_notes((run,), new)[0], by_rank, choices).in_language(language)
    found = reports(path_texts(run), choices, work=Work(executor=executor))
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise UsageError("the input holds {count} runs ({names}); name one of them", len(found), names)
    return found[0].in_language(language)


def reports(
    paths: Sequence[str], choices: Choices, *, progress: ReadProgress | None = None, work: Work = ALONE
) -> tuple[Report, ...]:
    """A report for every run found under the paths. Each recording is read, analysed and dropped before the next.

    Allocator snapshots beside them are judged with the recording of their rank. Processes that share the `work` import
    the main module of the program anew.
    """
    if any(map(holds_memory_file, paths)):
        # Imported here: most recordings come without a snapshot.
        from traceanalyze.pipeline.memory_files import reports_with_snapshots

        return reports_with_snapshots(paths, choices, progress=progress, work=work)
    return run_reports(paths, choices, progress=progress, work=work)[0]
