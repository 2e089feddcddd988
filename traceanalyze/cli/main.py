"""Entry point: which command is meant."""

import atexit
import gc
import os
import sys
from pathlib import Path

from traceanalyze.cli import guard
from traceanalyze.cli.analysis import Shown, report_on
from traceanalyze.errors import Phrase

DEFAULT_COMMAND = "analyze"
COMMANDS = frozenset(
    {
        DEFAULT_COMMAND,
        "baseline",
        "compare",
        "convert",
        "gate",
        "history",
        "mcp",
        "memory",
        "merge",
        "open",
        "postmortem",
        "query",
        "record",
        "rule",
    }
    | {"tensorboard", "whatif"}
)
"""Those of `app`, which takes long to import."""
GLOBAL = frozenset({"-h", "--help", "-V", "--version", "--install-completion", "--show-completion"})
"""Options that stand without a command."""
_FLAGS = {"-q": "quiet", "--quiet": "quiet", "-v": "verbose", "--verbose": "verbose", "--all": "whole"}


def with_default_command(arguments: list[str]) -> list[str]:
    """`PATH…` and `--option … PATH…` mean `analyze …`; command names and global options stand for themselves."""
    if not arguments or arguments[0] in {*COMMANDS, *GLOBAL}:
        return arguments
    return [DEFAULT_COMMAND, *arguments]


def meant_command(arguments: list[str]) -> str | None:
    """The command whose name is nearly that of the first argument, if this is neither a command nor a path."""
    if not arguments or arguments[0] in COMMANDS or not arguments[0].isalpha():
        return None
    # Imported here: most arguments are paths that no command could be meant by.
    from difflib import get_close_matches

    near = get_close_matches(arguments[0], sorted(COMMANDS), n=1, cutoff=0.75)
    return near[0] if near and not Path(arguments[0]).exists() else None


def plain(arguments: list[str]) -> tuple[list[str], set[str]] | None:
    """Paths and flags of `PATH…` with nothing but -q, -v and --all; None for all that typer has to make out."""
    paths = [each for each in arguments if each not in _FLAGS]
    if not paths or arguments[0] in COMMANDS or any(each.startswith("-") for each in paths):
        return None
    return paths, {_FLAGS[each] for each in arguments if each in _FLAGS}


def configured() -> bool:
    """Whether options of `analyze` may stand elsewhere."""
    own = {name for name in os.environ if name.startswith("TRACEANALYZE_")}
    return bool(own - {guard.DEBUG_VARIABLE, "TRACEANALYZE_REQUIRE"}) or guard.may_be_configured(DEFAULT_COMMAND)


def main() -> None:
    """Run the command line and exit."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Closed by whoever started this (`2>&-`): what is said there goes nowhere.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  open until the end
    # A run makes nearly no garbage in cycles; looking for it would take a tenth of a short one, and again at the end.
    gc.disable()
    atexit.register(gc.freeze)
    arguments = guard.language_behind(sys.argv[1:])
    meant = meant_command(arguments)
    if meant is not None:
        said = Phrase("{name}: no such file, folder or command; did you mean `{command}`?", arguments[0], meant)
        sys.stderr.write(guard.in_language(Phrase("error: {error}", said), guard.chosen_language(arguments)) + "\n")
        sys.exit(2)
    if arguments[:1] != ["record"]:
        # NumPy's linear algebra, which nothing here uses, would start a thread for every core: 50 ms of CPU time on two
        # of them. The program that `record` starts keeps its own setting.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    short = plain(arguments)
    if short is not None and not configured():
        paths, flags = short
        guard.guarded(report_on)(
            paths, shown=Shown(quiet="quiet" in flags, verbose="verbose" in flags, whole="whole" in flags)
        )
        sys.exit()
    # Imported here: with typer come 80 ms (pydantic, email, …) that the most common command does without.
    from traceanalyze.cli.app import app

    app(with_default_command(arguments), prog_name="traceanalyze")
