"""What `traceanalyze analyze` does once it is known what is wanted.

Apart from the options' declarations, so that `traceanalyze PATH…` need not wait for typer: with what it imports that
took a sixth of a run on a small trace.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError

if TYPE_CHECKING:
    from traceanalyze.cli.progress import Progress
    from traceanalyze.pipeline import Choices
    from traceanalyze.report.model import Report

TOP = 5
"""Rows in ranked tables."""
LANG = "en"


def report_on(
    paths: list[str],
    choices: "Choices | None" = None,
    *,
    format_: str | None = None,
    output: Sequence[str] | None = None,
    top: int = TOP,
    lang: str = LANG,
    quiet: bool = False,
    verbose: bool = False,
    whole: bool = False,
) -> None:
    """Analyse the recordings under the paths and write the report."""
    # Imported here, so that usage errors answer at once.
    from traceanalyze.cli.guard import tell_slow_scanner
    from traceanalyze.cli.output import write
    from traceanalyze.cli.progress import Progress
    from traceanalyze.locales import texts
    from traceanalyze.pipeline import Choices
    from traceanalyze.report.output import targets
    from traceanalyze.report.view import View

    wanted = targets(output, format_, inputs=paths)
    words = texts(lang)
    view = View.of(top, quiet=quiet, verbose=verbose, whole=whole)
    if not quiet:
        tell_slow_scanner()
    choices = choices or Choices()
    if all(each.format == "console" for each in wanted):
        choices = choices._replace(detail=view.detail)
    with Progress(words, wanted=not quiet) as progress:
        found = _traces_or_memory(paths, choices, progress)
    write(found, wanted, words, view)


def _traces_or_memory(paths: list[str], choices: "Choices", progress: "Progress") -> "tuple[Report, ...]":
    """Reports on the traces under the paths; where there is none but there are files on memory, on these."""
    from traceanalyze.pipeline import reports
    from traceanalyze.pipeline.results import Work

    try:
        return reports(paths, choices, progress=progress, work=Work(workers=None))
    except InputError:
        from traceanalyze.pipeline.memory import hold_memory_files, memory_reports

        if not hold_memory_files(paths):
            raise
    return memory_reports(paths, progress=progress)
