"""Errors of a command as one line on stderr and an exit code; a traceback only for developers who ask for it."""

from __future__ import annotations

import errno
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

from traceanalyze.errors import TraceAnalyzeError

DEBUG_VARIABLE = "TRACEANALYZE_DEBUG"
INTERNAL_ERROR = 2
INTERRUPTED = 130
CANNOT_WRITE = 2
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

P = ParamSpec("P")


def guarded(command: Callable[P, None], *, name: str = "") -> Callable[P, None]:
    """The command, ending in an exit code whatever happens. Exit code 1 is never an error: gates have it.

    Messages begin with `name`, where CI systems have to tell whose they are.
    """
    mark = f"{name}: " if name else ""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except TraceAnalyzeError as error:
            raise _failed(f"{mark}error: {error}", error.exit_code) from error
        except KeyboardInterrupt:
            raise (_failed(f"{mark}interrupted", INTERRUPTED) if name else SystemExit(INTERRUPTED)) from None
        except BrokenPipeError:
            # The reader of the pipe is gone: let the interpreter's last flush go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except MemoryError:
            raise _failed(f"{mark}error: not enough memory for this input", INTERNAL_ERROR) from None
        except Exception as error:
            if _ends_command(error):
                raise
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                place = error.filename or "the output"
                raise _failed(f"{mark}error: {place}: cannot be written: {error.strerror}", CANNOT_WRITE) from error
            if os.environ.get(DEBUG_VARIABLE):
                traceback.print_exc()
            hint = f"set {DEBUG_VARIABLE}=1 for the traceback"
            raise _failed(f"{mark}internal error: {type(error).__name__}: {error} ({hint})", INTERNAL_ERROR) from error

    return run


def _ends_command(error: Exception) -> bool:
    """Whether a command of typer ends itself with it; typer is not imported for this, as `PATH…` goes without."""
    typer = sys.modules.get("typer")
    return typer is not None and isinstance(error, typer.Exit)


def _failed(message: str, code: int) -> SystemExit:
    """Print one line, whatever the message holds, and end with the code."""
    line = " ".join(message.split())
    sys.stderr.write("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line) + "\n")
    return SystemExit(code)


def tell_slow_scanner() -> None:
    """Say so when the native scanner is missing, as reading then takes far longer."""
    from traceanalyze.readers.scan import backend

    if backend() == "python":
        sys.stderr.write(
            "note: the native scanner was not built (no C++ compiler at installation?); reading is far slower\n"
        )
