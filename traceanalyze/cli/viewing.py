"""`traceanalyze open`: the annotated trace in Perfetto, from a server on this computer."""

import os
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from traceanalyze.cli import options
from traceanalyze.cli.guard import in_language
from traceanalyze.errors import Phrase, UsageError
from traceanalyze.model.table import sentences

_SAY = sentences(
    open_url="Open in a browser on this computer: {url}",
    open_served="The viewer has loaded the trace.",
    open_viewer=(
        "The browser loads the viewer from ui.perfetto.dev, so it needs the internet; the trace goes from this "
        "computer to the browser only. Ctrl-C ends."
    ),
    open_no_display=(
        "This machine has no display. On your own computer run `{command}`, then open the address above there."
    ),
    open_other_port="ui.perfetto.dev may read from port 9001 only; with {port} use a viewer of your own",
)

VIEWER_PORT = 9001
"""The only port of this computer that the viewer's content policy lets it read from."""


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a browser of this computer can show anything."""
    if sys.platform.startswith(("win", "darwin")):
        return "SSH_CONNECTION" not in environment
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def advice(port: int, messages: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """How the address is reached, by people on another computer too."""
    from traceanalyze.cli.serve import ADDRESS

    said = [messages[_SAY["open_viewer"]]]
    if port != VIEWER_PORT:
        said.append(messages[_SAY["open_other_port"]].format(port=port))
    if not has_display(environment):
        command = f"ssh -L {port}:{ADDRESS}:{port} {socket.gethostname()}"
        said.append(messages[_SAY["open_no_display"]].format(command=command))
    return said


_FILE = "trace.json.gz"


def open_(
    paths: options.Recordings,
    *,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of this computer; ui.perfetto.dev reads 9001 only.")
    ] = VIEWER_PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    overlay_only: Annotated[bool, typer.Option("--overlay-only", help="Only the tracks, without the trace.")] = False,
    at: Annotated[
        str | None,
        typer.Option(metavar="FROM-TO", help="Where to look, since the first event: 10ms-1.5s; default: the worst."),
    ] = None,
    category: options.Category = None,
    lang: options.LangOfTracks = "en",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the address.")] = False,
) -> None:
    """Open a trace in Perfetto with what the analyses found drawn over it."""
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress
    from traceanalyze.cli.serve import FileServer
    from traceanalyze.locales import texts
    from traceanalyze.pipeline import perfetto

    words = texts(lang)
    with tempfile.TemporaryDirectory(prefix="traceanalyze-") as folder:
        file = Path(folder) / _FILE
        # The port first: nobody wants to wait for the analysis to learn that it is taken.
        with FileServer(file, port) as server:
            with Progress(words, wanted=not quiet) as progress:
                known = tuple(category or ())
                made = perfetto.annotated(
                    paths, file, overlay_only=overlay_only, categories=known, language=lang, progress=progress, at=at
                )
            typer.echo(words.messages[_SAY["open_url"]].format(url=server.url(made.place)))
            if not quiet:
                for note in (*made.notes, *advice(server.server_port, words.messages, os.environ)):
                    typer.echo(note, err=True)
            if not no_browser and has_display(os.environ):
                import webbrowser

                webbrowser.open(server.url(made.place))
            sys.stdout.flush()
            server.serve_once()
            if not quiet:
                typer.echo(words.messages[_SAY["open_served"]], err=True)


def convert(
    paths: options.Recordings,
    *,
    annotate: Annotated[
        str | None,
        typer.Option(
            metavar="OUT",
            help="File to write (.json or .json.gz): the trace, with tracks of what the analyses found; for Perfetto.",
        ),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="File to write (.parquet): every event of all ranks, for SQL."),
    ] = None,
    overlay_only: Annotated[bool, typer.Option("--overlay-only", help="Only these tracks, without the trace.")] = False,
    overwrite: options.Overwrite = False,
    category: options.Category = None,
    lang: options.LangOfTracks = "en",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks.")] = False,
) -> None:
    """Draw steps, idle causes, sync points and findings over a trace, or write its events as a table.

    Several ranks become one file.
    """
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import Progress
    from traceanalyze.locales import texts
    from traceanalyze.pipeline import perfetto

    if annotate is None and parquet is None:
        raise UsageError("give a file to write, --annotate out.json.gz or --parquet out.parquet")
    with Progress(texts(lang), wanted=not quiet) as progress:
        if parquet is not None:
            from traceanalyze.pipeline.gather import write_events

            left_out = write_events(paths, parquet, overwrite=overwrite, progress=progress)
            _tell(left_out, parquet, lang, quiet=quiet)
        if annotate is not None:
            known = tuple(category or ())
            notes = perfetto.annotate(
                paths,
                annotate,
                overlay_only=overlay_only,
                categories=known,
                language=lang,
                progress=progress,
                overwrite=overwrite,
            )
            _tell(notes, annotate, lang, quiet=quiet)


def _tell(notes: Sequence[str], path: str, lang: str, *, quiet: bool) -> None:
    """Remarks on a file that was written."""
    for note in () if quiet else (*notes, Phrase("Wrote {path}", path)):
        typer.echo(in_language(note, lang) if isinstance(note, Phrase) else note, err=True)


def tensorboard(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="Folder that traceanalyze record wrote.")],
    *,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0: any that is free.")] = 6006,
    lang: options.LangOfHelp = "en",
) -> None:
    """Open a recording in TensorBoard's PyTorch profiler plugin, or say why that is not possible."""
    from traceanalyze.recording.bootstrap import open_tensorboard

    open_tensorboard(folder, port)
