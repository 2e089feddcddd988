"""The formats of reports. A format is what renders it, and an entry here: commands, endings and messages follow."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from traceanalyze.errors import Phrase, listed

_GATE = ("gate",)


class Format(NamedTuple):
    """A format and what renders it."""

    name: str
    render: str
    """`module:function` below this package, called with reports and texts; of `tables` with one table."""
    takes: tuple[str, ...] = ()
    """Names of what else the function takes: `style`, `view`."""
    ending: str = ""
    """Of file names that mean this format."""
    place: int = 0
    """In lists of endings."""
    needs: str = ""
    """Package that has to be installed."""
    binary: bool = False
    """Not for a terminal."""
    tables: bool = False
    """A file for each table, in a folder."""
    only: tuple[str, ...] = ()
    """Commands that offer it; all where none are named."""


FORMATS = {
    each.name: each
    for each in (
        Format("console", "console:render_all", ("style", "view"), ending=".txt", place=5),
        Format("json", "json:render", ("view",), ending=".json", place=3),
        Format("xlsx", "xlsx:render", ending=".xlsx", place=0, binary=True),
        # Of `compare --layout msprof`, not for --format.
        Format("msprof", "xlsx.vendor:render", binary=True, only=("",)),
        Format("csv", "folder:csv", ending=".csv", tables=True),
        Format("parquet", "folder:parquet", ending=".parquet", needs="pyarrow", tables=True),
        Format("svg", "flame:render", ending=".svg", place=4, only=("analyze",)),
        Format("html", "html:render", ending=".html", place=1),
        Format("markdown", "markdown:render", ("view",), ending=".md", place=2),
        Format("brief", "markdown:brief"),
        Format("openmetrics", "openmetrics:render", ending=".prom", place=6, only=("analyze",)),
        Format("junit", "ci:junit", only=_GATE),
        Format("github", "ci:github", only=_GATE),
        Format("sarif", "ci:sarif", only=_GATE),
    )
}
TABLES = tuple(each.name for each in FORMATS.values() if each.tables)
"""Formats of which each table is a file."""


def names(command: str) -> tuple[str, ...]:
    """Formats that a command offers."""
    return tuple(each.name for each in FORMATS.values() if not each.only or command in each.only)


def endings(command: str, *, first: str = "", choice: bool = False) -> Phrase:
    """Endings of files that hold a whole report of a command, as a list in a sentence; of a `choice` with an or."""
    chosen = [FORMATS[name] for name in names(command) if FORMATS[name].ending and name not in TABLES]
    chosen.sort(key=lambda each: (each.name != first, each.place))
    found = [each.ending for each in chosen]
    return Phrase("{names} or {name}", listed(found[:-1]), found[-1]) if choice else listed(found)


def renderer(format_: str) -> Callable[..., Any]:
    """What renders it."""
    return function_of(FORMATS[format_].render)


def function_of(place: str) -> Callable[..., Any]:
    """A function by its `module:function` below this package, imported now: nobody waits for what is not used."""
    module, _, function = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"{__package__}.{module}"), function)
    return found
