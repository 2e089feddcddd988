"""The errors a user can meet, each carrying the exit code the command line returns for it."""

from __future__ import annotations


class TraceAnalyzeError(Exception):
    """Base of every expected error; the text is one line a user can act on."""

    exit_code = 2


class InputError(TraceAnalyzeError):
    """The input cannot be used: says which file, where in it, why, and what to do."""


class UsageError(TraceAnalyzeError):
    """The options contradict each other or the input, for example a step that does not exist."""
