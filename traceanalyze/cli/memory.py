"""`traceanalyze memory`: what the device's memory was used for, and what went wrong with it."""

from typing import Annotated

import typer

from traceanalyze.cli import options


def memory(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH…",
            help=(
                "Allocator snapshots (.pickle, .json, .gz) or a folder of them, with the traces of the run if there "
                "are any. Two snapshots: the change."
            ),
        ),
    ],
    *,
    base: Annotated[
        str | None, typer.Option(metavar="FILE", help="Snapshot to compare with, by source line at the peaks.")
    ] = None,
    capacity: options.Capacity = None,
    category: options.Category = None,
    custom_profile: Annotated[
        str,
        typer.Option(
            metavar="FILE", help='Categories of your own: JSON of names and regular expressions, {"experts": "moe"}.'
        ),
    ] = "",
    format_: options.FormatOption = None,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    top: options.Top = 5,
    lang: options.Lang = "en",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    whole: options.All = False,
) -> None:
    """Say what used the device's memory: peak, leaks, churn, fragmentation, failed requests."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress, write
    from traceanalyze.errors import UsageError
    from traceanalyze.locales import texts
    from traceanalyze.pipeline.choices import Choices
    from traceanalyze.pipeline.memory import are_snapshots, memory_difference, memory_reports
    from traceanalyze.report.output import targets
    from traceanalyze.report.view import View

    if base is not None and len(paths) > 1:
        raise UsageError("--base: give one snapshot to compare with it")
    pair = (base, paths[0]) if base is not None else tuple(paths) if len(paths) == 2 and are_snapshots(paths) else None
    wanted = targets(output, format_, inputs=[*paths, *([base] if base else [])], command="memory", overwrite=overwrite)
    words, choices = texts(lang), Choices(categories=tuple(category or ()))
    view = View.of(top, quiet=quiet, verbose=verbose, whole=whole)
    with Progress(words, wanted=not quiet) as progress:
        if pair is None:
            found = memory_reports(
                paths, capacity=capacity, choices=choices, custom_profile=custom_profile, progress=progress
            )
        else:
            found = (memory_difference(*pair, custom_profile=custom_profile, progress=progress),)
    write(found, wanted, words, view)
