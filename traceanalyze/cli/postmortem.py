"""`traceanalyze postmortem`: what limited a run, from everything that its directory holds."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyze.cli import options
from traceanalyze.locales import Texts

if TYPE_CHECKING:
    from traceanalyze.report.model import Report


class FailOn(StrEnum):
    """From which severity on a finding makes the command fail."""

    HIGH = "high"
    MEDIUM = "medium"


_CAUSES = ("incident", "cause"), ("run_causes", "finding")
"""Tables of what was found, and their column that names it."""
TOP = 10
"""Rows of ranked tables: a post-mortem has few."""
FOUND = 1
"""Exit code when `--fail-on` was broken."""


def postmortem(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_DIR…",
            help="The run's directory, or its files: traces, Ascend profiles, memory snapshots, logs, dumps, stacks.",
        ),
    ],
    *,
    format_: options.FormatOption = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    steps: Annotated[str | None, typer.Option(metavar="LIST", help="Steps to look at: 5, 0,3-5, 2:.")] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="LIST", help="Ranks to look at, each in detail: 0,3-7. Default: all.")
    ] = None,
    capacity: options.Capacity = None,
    streams: options.Streams = None,
    name_regex: options.NameRegex = None,
    time: options.Time = None,
    step_marker: options.StepMarker = None,
    data_regex: options.DataRegex = None,
    comm_regex: options.CommRegex = None,
    not_comm_regex: options.NotCommRegex = None,
    category: options.Category = None,
    device_peaks: options.DevicePeaks = None,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit with 1 if a cause is of this severity or above.")
    ] = None,
    top: options.Top = TOP,
    lang: options.Lang = "en",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    whole: options.All = False,
    select: options.Select = None,
    ignore: options.Ignore = None,
) -> None:
    """Say what ended or limited a run, since when, on which ranks, what it cost, and what to do first.

    Exits with 0 (fine), 1 (--fail-on was broken) or 2 (nothing can be read, or wrong usage).
    """
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress, write
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.postmortem import postmortem_reports
    from traceanalyze.pipeline.results import Work
    from traceanalyze.report.output import targets
    from traceanalyze.report.view import View

    what = step_marker, data_regex, comm_regex, not_comm_regex, tuple(category or ()), device_peaks
    choices = Choices(steps, ranks, *what, options.listed(select), options.listed(ignore), streams, name_regex, time)
    wanted = targets(output, format_, inputs=paths, command="postmortem", overwrite=overwrite)
    words = texts(lang)
    view = View.of(top, quiet=quiet, verbose=verbose, whole=whole, usual=TOP)
    with Progress(words, wanted=not quiet) as progress:
        found = postmortem_reports(paths, choices, capacity=capacity, progress=progress, work=Work(workers=None))
    write(found, wanted, words, view)
    if fail_on is not None:
        _fail_on(fail_on, found, words)


def _fail_on(limit: FailOn, found: "Sequence[Report]", words: Texts) -> None:
    """End with 1, and one line that names the first cause that is severe enough."""
    severe = ("severity_high",) if limit == FailOn.HIGH else ("severity_high", "severity_medium")
    for report in found:
        tables = [(report.tables[key], name) for key, name in _CAUSES if key in report.tables]
        causes = (zip(table.column("severity"), table.column(name), strict=True) for table, name in tables)
        for severity, cause in chain.from_iterable(causes):
            if severity in severe:
                values = {"severity": words.terms[str(severity)], "finding": words.terms.get(str(cause), str(cause))}
                typer.echo(f"traceanalyze postmortem: {words.messages['fail_on'].format(**values)}", err=True)
                raise typer.Exit(FOUND)
