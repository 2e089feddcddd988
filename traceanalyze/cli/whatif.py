"""`traceanalyze whatif`: how long a step would take if something about the program were different."""

from __future__ import annotations

from typing import Annotated

import typer

from traceanalyze.cli import options


def whatif(
    paths: options.Recordings,
    *,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What would take no time: a part of the step (data_loading), or findings (DAT101); repeatable.",
        ),
    ] = None,
    faster: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FACTOR",
            help="What would be so many times as fast: a part, or device work by a regular expression; repeatable.",
        ),
    ] = None,
    overlap: Annotated[
        list[str] | None,
        typer.Option(metavar="communication", help="What would run beside compute that does not need it."),
    ] = None,
    format_: options.FormatOption = None,
    output: options.Output = None,
    steps: Annotated[str | None, typer.Option(metavar="LIST", help="Steps to look at: 5, 0,3-5, 2:.")] = None,
    step_marker: options.StepMarker = None,
    lang: options.Lang = "en",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say how long a step would take if something were different, and what would limit it then."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Target, write
    from traceanalyze.cli.progress import Progress
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.whatif import Wanted, whatif_reports
    from traceanalyze.report.view import View

    target, words = Target.of(output, format_, inputs=paths), texts(lang)
    wanted = Wanted(options.listed(without), tuple(map(_factor, faster or ())), options.listed(overlap))
    with Progress(wanted=not quiet) as progress:
        found = whatif_reports(paths, wanted, Choices(steps=steps, step_marker=step_marker), progress=progress)
    write(found, target, words, View.of(View().top, quiet=quiet, verbose=verbose))


def _factor(text: str) -> tuple[str, float]:
    """`NAME=FACTOR` as both."""
    from traceanalyze.errors import UsageError

    name, _, factor = text.rpartition("=")
    try:
        return name, float(factor)
    except ValueError:
        raise UsageError("--faster {text}: write NAME=FACTOR, such as communication=1.5", text) from None
