"""What `traceanalyze analyze` does once it is known what is wanted.

Apart from the options' declarations, so that `traceanalyze PATH…` need not wait for typer: with what it imports that
took a sixth of a run on a small trace.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from traceanalyze.cli.output import Progress
    from traceanalyze.errors import Phrase
    from traceanalyze.model.vocabulary import Detail
    from traceanalyze.pipeline import Choices
    from traceanalyze.pipeline.results import Work
    from traceanalyze.report.model import Report

TOP = 5
"""Rows in ranked tables."""
LANG = "en"


class Shown(NamedTuple):
    """What of a report is shown, where and how."""

    format_: str | None = None
    output: Sequence[str] | None = None
    top: int = TOP
    lang: str = LANG
    quiet: bool = False
    verbose: bool = False
    whole: bool = False
    overwrite: bool = False


AS_USUAL = Shown()


def report_on(
    paths: list[str],
    choices: "Choices | None" = None,
    shown: Shown = AS_USUAL,
    *,
    workers: int | None = None,
    cache: str | None = "",
    scheduler: str | None = None,
    record: str | None = None,
) -> None:
    """Analyse the recordings under the paths and write the report."""
    # Imported here, so that usage errors answer at once.
    from traceanalyze.pipeline.results import Work

    with _executor(scheduler) as executor:
        work = Work(workers, executor, cache, _teller(shown, asked=bool(cache)), own=True)
        _write(paths, shown, lambda detail, progress: traces_or_memory(paths, choices, detail, progress, work), record)


def _executor(scheduler: str | None) -> "AbstractContextManager[Executor | None]":
    """Whoever does the work in place of this machine."""
    if scheduler is None:
        return nullcontext()
    from traceanalyze.pipeline.shards import cluster

    return cluster(scheduler)


def _write(
    inputs: list[str],
    shown: Shown,
    make: "Callable[[Detail | None, Progress], tuple[Report, ...]]",
    record: str | None = None,
    command: str = "analyze",
) -> None:
    """Show or write the reports; what makes them is told how much of them is, where that is known.

    They are kept in the store `record`, too.
    """
    from traceanalyze.cli.output import Progress, tell_written, write
    from traceanalyze.locales import texts
    from traceanalyze.report.output import targets
    from traceanalyze.report.view import View

    wanted = targets(shown.output, shown.format_, inputs=inputs, command=command, overwrite=shown.overwrite)
    words = texts(shown.lang)
    view = View.of(shown.top, quiet=shown.quiet, verbose=shown.verbose, whole=shown.whole)
    console = record is None and all(each.format == "console" for each in wanted)
    with Progress(words, wanted=not shown.quiet) as progress:
        found = make(view.detail if console else None, progress)
    write(found, wanted, words, view)
    if record is not None:
        from traceanalyze.report import folder

        tell_written(folder.record(found, record), shown.lang)


def history_of(store: str, shown: Shown) -> None:
    """Show the runs of a store."""
    from traceanalyze.report import folder
    from traceanalyze.report.contents.fleet import history_report
    from traceanalyze.version import __version__

    _write([], shown, lambda _, __: (history_report(folder.kept(store), store, __version__),), command="history")


def _teller(shown: Shown, *, asked: bool) -> "Callable[[Phrase], None] | None":
    """Says that there is no cache, to those who asked for one or want to know all; once, however often it is so."""
    from functools import cache

    from traceanalyze.cli.output import tell_written

    return cache(lambda said: tell_written(said, shown.lang)) if shown.verbose or asked else None


def traces_or_memory(
    paths: list[str], choices: "Choices | None", detail: "Detail | None", progress: "Progress", work: "Work"
) -> "tuple[Report, ...]":
    """Reports on the traces under the paths; where there is none but there are files on memory, on these."""
    from traceanalyze.pipeline import Choices, reports

    choices = choices or Choices()
    try:
        return reports(
            paths, choices if detail is None else choices._replace(detail=detail), progress=progress, work=work
        )
    except InputError:
        from traceanalyze.pipeline.memory import hold_memory_files, memory_reports

        if not hold_memory_files(paths):
            raise
    return memory_reports(paths, progress=progress)


def share_out(
    paths: list[str], choices: "Choices", shard: str, shown: Shown, *, workers: int | None, cache: str | None
) -> None:
    """Analyse a share of the recordings and write its parts into a folder."""
    # Imported here: hardly anybody shares a run out.
    from traceanalyze.cli.output import Progress, tell_written
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.results import Work
    from traceanalyze.pipeline.shards import shard_of, write_shard

    own = shard_of(shard)
    if shown.format_ is not None or len(shown.output or ()) != 1:
        raise UsageError("--shard {text}: give the folder of the parts, -o DIR/", shard)
    (folder,) = shown.output or ()
    with Progress(texts(shown.lang), wanted=not shown.quiet) as progress:
        work = Work(workers, cache=cache, tell=_teller(shown, asked=bool(cache)))
        said = write_shard(paths, choices, own, Path(folder), work, progress)
    if not shown.quiet:
        tell_written(said, shown.lang)


def merge_shares(folder: str, shown: Shown) -> None:
    """Write the report of a run from its parts."""
    from traceanalyze.model.vocabulary import Detail
    from traceanalyze.pipeline.results import Work
    from traceanalyze.pipeline.shards import merged_reports

    work = Work(None)
    _write(
        [folder],
        shown,
        lambda detail, progress: merged_reports(folder, Detail.VERBOSE if detail is None else detail, work, progress),
    )
