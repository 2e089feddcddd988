"""The formats of reports. A format is what renders it, and an entry here: commands, endings and messages follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

REPORT, COMPARE, GATE, TABLE = "report", "compare", "gate", "table"


class Format(NamedTuple):
    """A format and what renders it."""

    name: str
    renderers: Mapping[str, tuple[str, ...]]
    """What is rendered → `module:function` below this package, called with it and the texts; then the names of what
    else the function takes: `style`, `view`. A format with a renderer of tables writes a file for each of them."""
    ending: str = ""
    """Of file names that mean this format."""
    place: int = 0
    """In lists of endings."""
    needs: str = ""
    """Package that has to be installed."""
    binary: bool = False
    """Not for a terminal."""
    traces: bool = False
    """Offered for reports on traces alone."""


FORMATS = {
    each.name: each
    for each in (
        Format(
            "console",
            {
                REPORT: ("console:render_all", "style", "view"),
                COMPARE: ("console.compare:render", "style", "view"),
                GATE: ("regression.console:render", "style"),
            },
            ending=".txt",
            place=5,
        ),
        Format(
            "json",
            {REPORT: ("json:render",), COMPARE: ("json:render_compare",), GATE: ("regression.json:render",)},
            ending=".json",
            place=3,
        ),
        Format(
            "xlsx", {REPORT: ("xlsx:render",), COMPARE: ("xlsx.compare:render",)}, ending=".xlsx", place=0, binary=True
        ),
        Format("csv", {TABLE: ("csv:render",)}, ending=".csv"),
        Format("parquet", {TABLE: ("parquet:render",)}, ending=".parquet", needs="pyarrow"),
        Format("svg", {REPORT: ("flame:render",)}, ending=".svg", place=4, traces=True),
        Format("html", {REPORT: ("html:render",), COMPARE: ("html:render_compare",)}, ending=".html", place=1),
        Format(
            "markdown",
            {
                REPORT: ("markdown:render",),
                COMPARE: ("markdown:render_compare", "view"),
                GATE: ("regression.markdown:render",),
            },
            ending=".md",
            place=2,
        ),
        Format("junit", {GATE: ("regression.ci:junit",)}),
        Format("github", {GATE: ("regression.ci:github",)}),
        Format("sarif", {GATE: ("regression.ci:sarif",)}),
    )
}
TABLES = tuple(each.name for each in FORMATS.values() if TABLE in each.renderers)
"""Formats of which each table is a file."""


def names(*whats: str, traces: bool = False) -> tuple[str, ...]:
    """Formats that something of these is rendered in; with those offered for traces alone if asked for."""
    return tuple(each.name for each in FORMATS.values() if {*whats} & {*each.renderers} and (traces or not each.traces))


def endings(what: str, *, first: str = "", traces: bool = False, last: str = ", ") -> str:
    """Endings of files that hold all of `what`, as a list in a sentence whose last mark is `last`."""
    chosen = [FORMATS[name] for name in names(what, traces=traces) if FORMATS[name].ending]
    chosen.sort(key=lambda each: (each.name != first, each.place))
    return last.join((", ".join(each.ending for each in chosen[:-1]), chosen[-1].ending))


def renderer(format_: str, what: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
    """What renders it, and the names of what it takes beside that and the texts."""
    place, *takes = FORMATS[format_].renderers[what]
    module, _, function = place.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), function), tuple(takes)
