"""`traceanalyze convert`: a trace with the analyses drawn over it, for Perfetto."""

from __future__ import annotations

from typing import Annotated

import typer


def convert(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH…", help="A trace, or the folder or files of the ranks of one run."),
    ],
    *,
    annotate: Annotated[
        str,
        typer.Option(
            metavar="OUT",
            help="File to write (.json or .json.gz): the trace, with tracks of what the analyses found; for Perfetto.",
        ),
    ],
    overlay_only: Annotated[bool, typer.Option("--overlay-only", help="Only these tracks, without the trace.")] = False,
    lang: Annotated[str, typer.Option(metavar="LANG", help="Language of the tracks: en or zh.")] = "en",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks.")] = False,
) -> None:
    """Draw steps, idle causes, sync points and findings over a trace; several ranks become one file."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.api import perfetto
    from traceanalyze.cli.progress import Progress

    with Progress(wanted=not quiet) as progress:
        notes = perfetto.annotate(paths, annotate, overlay_only=overlay_only, language=lang, progress=progress)
    if not quiet:
        for note in notes:
            typer.echo(note, err=True)
        typer.echo(f"Wrote {annotate}", err=True)
