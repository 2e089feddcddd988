"""The commands and their help, declared with typer."""

from __future__ import annotations

from typing import Annotated

import typer

from traceanalyze import __version__
from traceanalyze.cli import baseline
from traceanalyze.cli.analyze import analyze
from traceanalyze.cli.compare import compare
from traceanalyze.cli.convert import convert
from traceanalyze.cli.gate import gate
from traceanalyze.cli.guard import guarded
from traceanalyze.cli.memory import memory
from traceanalyze.cli.one_line import OneLine
from traceanalyze.cli.open_ import open_
from traceanalyze.cli.postmortem import postmortem
from traceanalyze.cli.record import record
from traceanalyze.cli.rule import rule
from traceanalyze.cli.tensorboard import tensorboard

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
app.command("analyze", cls=OneLine)(guarded(analyze))
app.command("compare", cls=OneLine)(guarded(compare))
app.command("memory", cls=OneLine)(guarded(memory))
app.command("postmortem", cls=OneLine)(guarded(postmortem, name="traceanalyze postmortem"))
app.command("convert", cls=OneLine)(guarded(convert))
app.command("open", cls=OneLine)(guarded(open_))
app.command("rule", cls=OneLine)(guarded(rule))
# What follows the command to record is that command's, options too.
app.command("record", cls=OneLine, context_settings={"allow_interspersed_args": False})(guarded(record))
app.command("tensorboard", cls=OneLine)(guarded(tensorboard))
app.command("gate", cls=OneLine)(guarded(gate, name="traceanalyze gate"))
app.add_typer(baseline.app, name="baseline")


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
