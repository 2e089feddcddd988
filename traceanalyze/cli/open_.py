"""`traceanalyze open`: the annotated trace in Perfetto, from a server on this computer."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from traceanalyze.cli.viewer import VIEWER_PORT, advice, has_display

_FILE = "trace.json.gz"


def open_(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH…", help="A trace, or the folder or files of the ranks of one run."),
    ],
    *,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of this computer; ui.perfetto.dev reads 9001 only.")
    ] = VIEWER_PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    overlay_only: Annotated[bool, typer.Option("--overlay-only", help="Only the tracks, without the trace.")] = False,
    lang: Annotated[str, typer.Option(metavar="LANG", help="Language of the tracks: en or zh.")] = "en",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the address.")] = False,
) -> None:
    """Open a trace in Perfetto with what the analyses found drawn over it."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.api import perfetto
    from traceanalyze.cli.progress import Progress
    from traceanalyze.cli.serve import FileServer
    from traceanalyze.locales import texts

    words = texts(lang)
    with tempfile.TemporaryDirectory(prefix="traceanalyze-") as folder:
        file = Path(folder) / _FILE
        # The port first: nobody wants to wait for the analysis to learn that it is taken.
        with FileServer(file, port) as server:
            with Progress(wanted=not quiet) as progress:
                made = perfetto.annotated(paths, file, overlay_only=overlay_only, language=lang, progress=progress)
            typer.echo(words.messages["open_url"].format(url=server.url(made.place)))
            if not quiet:
                for note in (*made.notes, *advice(server.server_port, words.messages, os.environ)):
                    typer.echo(note, err=True)
            if not no_browser and has_display(os.environ):
                import webbrowser

                webbrowser.open(server.url(made.place))
            sys.stdout.flush()
            server.serve_once()
            if not quiet:
                typer.echo(words.messages["open_served"], err=True)
