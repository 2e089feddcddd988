"""The commands and their help, declared with typer."""

from typing import Annotated

import typer

from traceanalyze.cli import baseline, options
from traceanalyze.cli.analyze import analyze, history, merge
from traceanalyze.cli.compare import compare
from traceanalyze.cli.gate import gate
from traceanalyze.cli.guard import guarded
from traceanalyze.cli.help import Command, Group
from traceanalyze.cli.mcp import mcp
from traceanalyze.cli.memory import memory
from traceanalyze.cli.postmortem import postmortem
from traceanalyze.cli.query import query
from traceanalyze.cli.record import record
from traceanalyze.cli.rule import rule
from traceanalyze.cli.viewing import convert, open_, tensorboard
from traceanalyze.cli.whatif import whatif
from traceanalyze.version import __version__

app = typer.Typer(
    name="traceanalyze",
    cls=Group,
    help=(
        "Where did the step's time go? Analyses PyTorch profiler traces.\n\n"
        "`traceanalyze PATH…` is short for `traceanalyze analyze PATH…`."
    ),
    **{**options.GROUP, "add_completion": True},
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("analyze", cls=Command)(guarded(analyze))
app.command("merge", cls=Command)(guarded(merge))
app.command("history", cls=Command)(guarded(history))
app.command("compare", cls=Command)(guarded(compare))
app.command("memory", cls=Command)(guarded(memory))
app.command("postmortem", cls=Command)(guarded(postmortem))
app.command("whatif", cls=Command)(guarded(whatif))
app.command("convert", cls=Command)(guarded(convert))
app.command("query", cls=Command)(guarded(query))
app.command("mcp", cls=Command)(guarded(mcp))
app.command("open", cls=Command)(guarded(open_))
app.command("rule", cls=Command)(guarded(rule))
# What follows the command to record is that command's, options too.
app.command("record", cls=Command, context_settings={"allow_interspersed_args": False})(guarded(record))
app.command("tensorboard", cls=Command)(guarded(tensorboard))
app.command("gate", cls=Command)(guarded(gate))
app.add_typer(baseline.app, name="baseline")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"traceanalyze {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", "-V", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
    lang: options.LangOfHelp = "en",
) -> None:
    """Options before a command; those that print something have ended the run by now."""
