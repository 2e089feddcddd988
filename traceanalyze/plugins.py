"""What other installed distributions add to the tool: objects named by groups of entry points.

`traceanalyze.rules`
    modules with rules (`rules/rule.py`), or packages whose modules have them
`traceanalyze.classifiers`
    a `Classifier` each (`model/classifier.py`): what names of kernels, operators and ranges mean
`traceanalyze.readers`
    a `Reader` each (`readers/plugin.py`): recordings of another format
`traceanalyze.evidence`
    rows of a table, or a `Format` (`incident/__init__.py`): what else a dead job leaves

One that cannot be used is left out, `faults` tells why, and the others are not touched by it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

from traceanalyze.errors import Phrase

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

RULES = "traceanalyze.rules"
CLASSIFIERS = "traceanalyze.classifiers"
READERS = "traceanalyze.readers"
EVIDENCE = "traceanalyze.evidence"
FAILURES = (Exception, SystemExit)
"""What the code of others may raise without stopping this tool."""


class Fault(NamedTuple):
    """A plug-in that cannot be used, or that failed when it was."""

    group: str
    name: str
    """Of the entry point."""
    error: str
    """One line."""


class _Found(NamedTuple):
    """What was looked up, what was made of it, and what has gone wrong since."""

    entries: tuple[EntryPoint, ...]
    """Of the tool's groups, by name."""
    made: dict[str, tuple[Any, ...]]
    """By group."""
    faults: dict[Fault, None]
    """In the order in which they were met, each once."""


@cache
def found() -> _Found:
    """The plug-ins that are installed; looked up once, as every installed distribution has to be opened."""
    if not _announced():
        return _Found((), {}, {})
    # Imported here: with it come zipfile and email, 15 ms of every run, and most computers have no plug-in.
    from importlib.metadata import entry_points

    every = entry_points()
    own = (entry for group in (RULES, CLASSIFIERS, READERS, EVIDENCE) for entry in every.select(group=group))
    return _Found(tuple(sorted(own, key=lambda entry: entry.name)), {}, {})


def _announced() -> bool:
    """Whether any installed distribution may name a plug-in; in doubt they do: `importlib.metadata` has the last word.

    Looks into the files that it reads, for the heading of a group.
    """
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    return any(_announced_in(folder or ".") for folder in sys.path)


def _announced_in(folder: str) -> bool:
    try:
        with os.scandir(folder) as members:
            names = [each.name for each in members if each.name.lower().endswith(("dist-info", "egg-info"))]
    except OSError:
        # What is not a folder may be an archive with distributions in it.
        return Path(folder).exists()
    return any(_names_plugin(f"{folder}/{name}/entry_points.txt") for name in names)


def _names_plugin(entry_points: str) -> bool:
    try:
        with open(entry_points, "rb") as text:  # noqa: PTH123  of hundreds, most not there: `Path` takes twice as long
            return b"[traceanalyze." in text.read()
    except OSError:
        return False


def load(group: str, use: Callable[[str, Any], T]) -> tuple[T, ...]:
    """What `use` makes of the name of each entry point of a group, and of the object that it names.

    An entry point that cannot be imported, or that `use` raises an error for, is left out and is among the `faults`.
    It is done once a group, so a group has one `use`.
    """
    known = found()
    if group not in known.made:
        made = []
        for entry in known.entries:
            if entry.group == group:
                try:
                    with stdout_aside():
                        made.append(use(entry.name, entry.load()))
                except FAILURES as error:
                    failed(group, entry.name, error)
        known.made[group] = tuple(made)
    return known.made[group]


def stdout_aside() -> redirect_stdout[TextIO]:
    """While code of others runs: what it prints goes to stderr, as stdout is for reports."""
    return redirect_stdout(sys.stderr)


def failed(group: str, name: str, error: BaseException, about: str = "") -> None:
    """Note that a plug-in failed, or the part of it that the error is about."""
    found().faults[Fault(group, name, f"{about}: {one_line(error)}" if about else one_line(error))] = None


def faults(*groups: str) -> tuple[Fault, ...]:
    """Plug-ins of some groups that failed so far; of all where none is named."""
    return tuple(fault for fault in found().faults if not groups or fault.group in groups)


def failed_elsewhere(known: Iterable[Fault]) -> None:
    """Note what failed in another process that works for this one."""
    found().faults.update(dict.fromkeys(known))


def notes() -> tuple[Phrase, ...]:
    """What to tell a user about the plug-ins that failed so far."""
    return tuple(
        Phrase(
            "the plug-in {name} ({group}) failed, so what it adds is missing: {error}", one.name, one.group, one.error
        )
        for one in found().faults
    )


def one_line(error: BaseException) -> str:
    """Type and text of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")
