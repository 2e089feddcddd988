"""Entry point: the commands, and which of them is meant."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from traceanalyze import __version__
from traceanalyze.cli.analyze import analyze
from traceanalyze.cli.guard import guarded

DEFAULT_COMMAND = "analyze"

app = typer.Typer(
    name="traceanalyze",
    help=(
        "Where did the step's time go? Analyses PyTorch profiler traces.\n\n"
        "`traceanalyze PATH…` is short for `traceanalyze analyze PATH…`."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("analyze")(guarded(analyze))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"traceanalyze {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options before a command; those that print something have ended the run by now."""


def with_default_command(arguments: list[str]) -> list[str]:
    """`PATH…` and `--option … PATH…` mean `analyze …`; command names and global options stand for themselves."""
    commands = {command.name for command in app.registered_commands}
    if not arguments or arguments[0] in {*commands, "-h", "--help", "--version"}:
        return arguments
    return [DEFAULT_COMMAND, *arguments]


def main() -> None:
    """Run the command line and exit."""
    app(with_default_command(sys.argv[1:]), prog_name="traceanalyze")
