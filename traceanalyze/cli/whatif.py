"""`traceanalyze whatif`: how long a step would take if something about the program were different."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from traceanalyze.cli import options

First = TypeVar("First")
Second = TypeVar("Second")


def whatif(
    paths: options.Recordings,
    *,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=(
                "What would take no time: a part of the step (data_loading), or findings (DAT101); of a snapshot: "
                "empty_cache; repeatable."
            ),
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
    rank: Annotated[
        list[str] | None,
        typer.Option(metavar="RANK=median", help="A rank that would come when the others do; repeatable."),
    ] = None,
    alloc_conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTINGS",
            help="Of a snapshot: another PYTORCH_ALLOC_CONF, such as expandable_segments:True; repeatable.",
        ),
    ] = None,
    capacity: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Of a snapshot: on a device of so much memory, such as 40GiB.")
    ] = None,
    format_: options.FormatOption = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    steps: Annotated[str | None, typer.Option(metavar="LIST", help="Steps to look at: 5, 0,3-5, 2:.")] = None,
    streams: options.Streams = None,
    name_regex: options.NameRegex = None,
    time: options.Time = None,
    step_marker: options.StepMarker = None,
    data_regex: options.DataRegex = None,
    comm_regex: options.CommRegex = None,
    not_comm_regex: options.NotCommRegex = None,
    category: options.Category = None,
    device_peaks: options.DevicePeaks = None,
    lang: options.Lang = "en",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    whole: options.All = False,
) -> None:
    """Say how long a step would take if something were different, or what the allocator of a snapshot would reserve."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress, write
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.memory import hold_memory_files
    from traceanalyze.pipeline.whatif import asked_for, whatif_of_snapshots, whatif_reports
    from traceanalyze.report.output import targets
    from traceanalyze.report.view import View

    places, words = targets(output, format_, inputs=paths, command="whatif", overwrite=overwrite), texts(lang)
    view = View.of(View().top, quiet=quiet, verbose=verbose, whole=whole)
    wanted = asked_for(
        options.listed(without),
        [_halves("--faster", each, "communication=1.5", str, float) for each in faster or ()],
        options.listed(overlap),
        [_halves("--rank", each, "3=median", int, str) for each in rank or ()],
        of_memory=bool(alloc_conf or capacity),
    )
    what = step_marker, data_regex, comm_regex, not_comm_regex, tuple(category or ()), device_peaks
    choices = Choices(steps, None, *what, streams=streams, name_regex=name_regex, time=time)
    with Progress(words, wanted=not quiet) as progress:
        if alloc_conf or capacity or hold_memory_files(paths):
            found = whatif_of_snapshots(paths, wanted, choices, alloc_conf or (), capacity, progress=progress)
        else:
            found = whatif_reports(paths, wanted, choices, progress=progress)
    write(found, places, words, view)


def _halves(
    option: str, text: str, example: str, first: Callable[[str], First], second: Callable[[str], Second]
) -> tuple[First, Second]:
    """What stands before and after the last `=`."""
    from traceanalyze.errors import UsageError

    name, equals, value = text.rpartition("=")
    try:
        return first(name), second(value)
    except ValueError:
        if equals and name:
            wrong = value if first is str else name
            raise UsageError(
                "{option} {text}: {wrong} is no number; write it as {example}", option, text, wrong, example
            ) from None
        raise UsageError("{option} {text}: write it as {example}", option, text, example) from None
