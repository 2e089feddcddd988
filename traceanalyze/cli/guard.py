"""Errors of a command as one line on stderr and an exit code; a traceback only for developers who ask for it."""

import _thread
import errno
import functools
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec

from traceanalyze.errors import Phrase, TraceAnalyzeError

DEBUG_VARIABLE = "TRACEANALYZE_DEBUG"
LANGUAGE_VARIABLE = "TRACEANALYZE_LANG"
CONFIGURED = frozenset({"analyze", "compare", "convert", "gate", "memory", "open", "postmortem", "whatif"})
"""Commands whose options may stand in a configuration file."""
INTERNAL_ERROR = 2
INTERRUPTED = 130
CANNOT_WRITE = 2
ENGLISH = "en"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

STATED: ContextVar[Mapping[str, str]] = ContextVar("STATED")
"""Options that the command line leaves to variables and the configuration, with where each stands and its value."""

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """The command, ending in an exit code whatever happens. Exit code 1 is never an error: gates have it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        _stop_in_order()
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            # The reader of the pipe is gone: let the interpreter's last flush go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (Exception, KeyboardInterrupt) as error:
            if _ends_command(error):
                raise
            raise SystemExit(tell(error, str(kwargs.get("lang", ENGLISH)))) from error

    return run


def _stop_in_order() -> None:
    """From now on what tells this process to stop does so as Ctrl-C does: what was begun is cleared away."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        each = getattr(signal, name, None)
        if each is not None and signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, _interrupt)


def _interrupt(number: int, _frame: object) -> None:
    """As Ctrl-C does, and again until the command ends: NumPy drops it while it looks for attributes of an enum."""

    def again() -> None:
        time.sleep(0.2)
        _thread.interrupt_main(signal.Signals(number))

    _thread.start_new_thread(again, ())
    # What is cleared away because of the first is not interrupted by the next.
    if not isinstance(sys.exc_info()[1], KeyboardInterrupt | SystemExit):
        raise KeyboardInterrupt


def drop_interrupt(lost: "sys.UnraisableHookArgs") -> None:
    """Say nothing of an interrupt that Python drops, as where it frees something: it comes again."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)


def tell(error: BaseException, language: str) -> int:
    """Print one line about an error, whatever its text holds; the exit code that it means."""
    # Python wraps what stops it while it makes a class.
    message, code = _said_of(error.__cause__ if isinstance(error.__cause__, KeyboardInterrupt) else error)
    line = _placed(" ".join(in_language(message, language).split()))
    sys.stderr.write("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line) + "\n")
    return code


def _placed(line: str) -> str:
    """An error about an option names where its value came from, as wrong usage does."""
    for option, place in STATED.get({}).items():
        value = place.partition("=")[2].strip()
        found = re.match(rf"(\w+[:：] ?){option}(?![\w-])(?P<all> {re.escape(value)}(?=[:：]))?(?P<some> )?", line)
        if found:
            return f"{found[1]}{place}{': ' if found['some'] else ''}{line[found.end() :]}"
    return line


def _said_of(error: BaseException) -> tuple[Phrase, int]:
    if isinstance(error, TraceAnalyzeError):
        return Phrase("error: {error}", error), error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return Phrase("interrupted"), INTERRUPTED
    if isinstance(error, MemoryError):
        return Phrase("error: not enough memory for this input"), INTERNAL_ERROR
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        place = error.filename or Phrase("the output")
        return Phrase("error: {error}", Phrase("{said}: cannot be written: {why}", place, error.strerror)), CANNOT_WRITE
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return Phrase("error: {error}", Phrase("{path}: {why}", error.filename, error.strerror)), INTERNAL_ERROR
    if os.environ.get(DEBUG_VARIABLE):
        # Imported here: most runs do without.
        import traceback

        traceback.print_exc()
    told = (type(error).__name__, error, DEBUG_VARIABLE)
    return Phrase("internal error: {type}: {error} (set {variable}=1 for the traceback)", *told), INTERNAL_ERROR


def chosen_language(arguments: Sequence[str]) -> str:
    """What the arguments choose with --lang, before they are made out, or the variable: English unless they do."""
    given = [*arguments[: [*arguments, "--"].index("--")], ""]
    named = [(each.partition("="), after) for each, after in zip(given, [*given[1:], ""], strict=True)]
    values = [value if equals else after for (name, equals, value), after in named if name == "--lang"]
    return values[-1] if values else os.environ.get(LANGUAGE_VARIABLE) or ENGLISH


def may_be_configured(command: str) -> bool:
    """Whether a configuration file speaks of a command, or of something called like it."""
    if command not in CONFIGURED:
        return False
    here = Path.cwd()
    files = (folder / name for folder in (here, *here.parents) for name in ("traceanalyze.toml", "pyproject.toml"))
    # What cannot be read is told by who reads it.
    readable = (file for file in files if file.is_file() and os.access(file, os.R_OK))
    return any(command.encode() in file.read_bytes().replace(b"traceanalyze", b"") for file in readable)


def language_behind(arguments: Sequence[str]) -> list[str]:
    """`--lang LANG COMMAND …` as `COMMAND --lang LANG …`; before other options it stays where it is."""
    many = 2 if arguments[:1] == ["--lang"] else 1 if arguments and arguments[0].startswith("--lang=") else 0
    name = arguments[many : many + 1]
    stays = not name or (name[0].startswith("-") and name[0] not in {"-h", "--help", "-V", "--version"})
    return [*arguments] if stays else [*name, *arguments[:many], *arguments[many + 1 :]]


def in_language(message: Phrase, language: str) -> str:
    """The message in a language; in English where that is not spoken."""
    if language == ENGLISH:
        return message
    # Imported here: what fails in English needs no texts.
    from traceanalyze.locales import catalogue

    return message.said(catalogue(language).get("phrases", {}))


def _ends_command(error: BaseException) -> bool:
    """Whether a command of typer ends itself with it; typer is not imported for this, as `PATH…` goes without."""
    typer = sys.modules.get("typer")
    return typer is not None and isinstance(error, typer.Exit)


def tell_slow_scanner(language: str, *, quiet: bool = False) -> None:
    """Say so when the native scanner is missing, as reading then takes far longer; functions then need not warn."""
    from traceanalyze.readers.scan import SLOW, backend

    if backend() == "python":
        warnings.filterwarnings("ignore", re.escape(SLOW))
        if not quiet:
            sys.stderr.write(in_language(Phrase("note: {text}", SLOW), language) + "\n")
