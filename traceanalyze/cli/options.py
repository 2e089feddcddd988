"""Options that several commands have, declared once."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from traceanalyze.report.formats import endings, names

if TYPE_CHECKING:
    ReportFormat: TypeAlias = str
    TraceFormat: TypeAlias = str
    CompareFormat: TypeAlias = str
else:
    ReportFormat = StrEnum("ReportFormat", names("memory"))
    TraceFormat = StrEnum("TraceFormat", names("analyze"))
    CompareFormat = StrEnum("CompareFormat", names("compare"))
_FORMAT = typer.Option("--format", help="What to write; default: by the name of --output, else console.")
FormatOption = Annotated[ReportFormat | None, _FORMAT]
TraceFormatOption = Annotated[TraceFormat | None, _FORMAT]
Output = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|DIR/",
        help=(
            f"Write to FILE ({endings('memory', first='html')}), or all tables into the folder DIR/ (CSV or Parquet); "
            "repeatable."
        ),
    ),
]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there, even if it is no report of this tool.")
]
Top = Annotated[int, typer.Option(metavar="N", min=1, help="Rows in ranked tables.")]
Lang = Annotated[str, typer.Option(metavar="LANG", help="Language of the report: en or zh.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the verdict.")]
All = Annotated[bool, typer.Option("--all", help="The whole report, not one screen of it; in JSON every row.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="All tables and notes.")]
StepMarker = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Host ranges that are steps, in place of ProfilerStep#N.")
]
DataRegex = Annotated[str | None, typer.Option(metavar="REGEX", help="Host ranges that are data loading, too.")]
CommRegex = Annotated[str | None, typer.Option(metavar="REGEX", help="Kernels that are communication.")]
NotCommRegex = Annotated[str | None, typer.Option(metavar="REGEX", help="Kernels that are not communication.")]
Category = Annotated[
    list[str] | None, typer.Option(metavar="NAME=CLASS", help="What an unknown event category is; repeatable.")
]
DevicePeaks = Annotated[
    str | None, typer.Option(metavar="FILE", help="Peak rates of devices (TOML), beside those of the tool.")
]
Streams = Annotated[
    str | None, typer.Option(metavar="LIST", help="Device work of these streams only; the rest is as if unrecorded.")
]
NameRegex = Annotated[
    str | None, typer.Option(metavar="REGEX", help="Device work of these names only, the rest as if unrecorded.")
]
Time = Annotated[
    str | None, typer.Option(metavar="FROM-TO", help="This time only, since the first event: 10ms-1.5s, 2s-.")
]
Capacity = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory of the device, such as 80GiB; snapshots do not tell.")
]
Select = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="Only these rules: id, slug or how ids begin (SYN); repeatable."),
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="RULE", help="Not these rules, written the same way; repeatable.")
]
Workers = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Processes at most. Default: as many as there are cores.")
]
Cache = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Where results of ranks are kept from run to run. Default: the user's cache."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep nothing, and take nothing from there.")]
Ranks = Annotated[str | None, typer.Option(metavar="LIST", help="Ranks to use: 0,3-7.")]
Warmup = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Steps left out at the start of every run. Default: 1.")
]
Recordings = Annotated[
    list[str], typer.Argument(metavar="PATH…", help="A trace, or the folder or files of the ranks of one run.")
]
LangOfHelp = Annotated[str, typer.Option(metavar="LANG", help="Language of help and errors: en or zh.")]
LangOfTracks = Annotated[str, typer.Option(metavar="LANG", help="Language of the tracks: en or zh.")]
GROUP: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "add_completion": False,
}
"""Of a command that has commands."""


def spelled(name: str) -> tuple[str, str]:
    """An option's name with its words joined by dashes and by underscores: msprof-analyze has the latter."""
    words = name.removeprefix("--")
    return name, "--" + (words.replace("_", "-") if "_" in words else words.replace("-", "_"))


def both(name: str, help_: str, *short: str, **shown: Any) -> Any:
    """An option by its short names, and by its long one however that is spelled."""
    return typer.Option(*short, *spelled(name), help=help_, **shown)


def listed(names: list[str] | None) -> tuple[str, ...]:
    """`A,B` and `A` `B` are the same."""
    return tuple(part.strip() for name in names or () for part in name.split(",") if part.strip())
