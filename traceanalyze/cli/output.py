"""Where a report goes: stdout, a file, or a folder of tables."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Report
    from traceanalyze.report.view import View

_SUFFIXES = {".json": "json", ".txt": "console", ".xlsx": "xlsx", ".svg": "svg", ".html": "html", ".md": "markdown"}
TABLES = ("csv", "parquet")
"""Formats of which each table is a file."""
_TABLE_SUFFIXES = (".csv", ".parquet")
_EACH_A_FILE = "every table is a file of its own; give a folder, such as tables/"


@frozen
class Target:
    """File or folder (None: stdout) and format."""

    path: Path | None
    format: str

    @classmethod
    def of(cls, output: str | None, format_: str | None, *, inputs: Sequence[str]) -> Self:
        """Check what the user asked for before any work is done."""
        if format_ == "parquet" and find_spec("pyarrow") is None:
            raise UsageError("--format parquet: needs pyarrow, which is not installed (pip install pyarrow)")
        if output is None or output == "-":
            if format_ == "xlsx":
                raise UsageError("--format xlsx: give a file name, --output report.xlsx")
            if format_ in TABLES:
                raise UsageError(f"--format {format_}: give a folder, --output tables/")
            return cls(None, format_ or "console")
        path = Path(output)
        refuse_input(path, inputs)
        if not path.parent.is_dir():
            raise UsageError(f"--output {output}: the folder {path.parent} does not exist")
        if format_ in TABLES or path.is_dir() or output.endswith(("/", "\\")):
            return cls(path, _folder_format(output, path, format_))
        return cls(path, _file_format(output, path, format_))


def _folder_format(output: str, path: Path, format_: str | None) -> str:
    chosen = format_ or "csv"
    if chosen not in TABLES:
        raise UsageError(f"--output {output}: this is a folder; give a file name for --format {chosen}")
    if path.exists() and not path.is_dir():
        raise UsageError(f"--output {output}: this is a file; --format {chosen} needs a folder")
    if not path.exists() and path.suffix.lower() in {*_TABLE_SUFFIXES, *_SUFFIXES}:
        raise UsageError(f"--output {output}: {_EACH_A_FILE}")
    return chosen


def _file_format(output: str, path: Path, format_: str | None) -> str:
    suffix = path.suffix.lower()
    chosen = format_ or _SUFFIXES.get(suffix)
    if suffix in _TABLE_SUFFIXES:
        raise UsageError(f"--output {output}: {_EACH_A_FILE}")
    if chosen is None:
        raise UsageError(
            f"--output {output}: end the name in .xlsx, .html, .md, .json, .svg or .txt (a file) or in / (a folder), "
            "or give --format"
        )
    if (chosen == "xlsx") != (suffix == ".xlsx"):
        raise UsageError(f"--output {output}: --format {chosen} and the name's ending do not go together")
    return chosen


def refuse_input(path: Path, inputs: Iterable[str]) -> None:
    """A report must not replace what it was made from."""
    for given in map(Path, inputs):
        if path.exists() and given.exists() and path.samefile(given):
            raise UsageError(f"--output {path}: this is an input; choose another name")


def write(reports: Sequence[Report], target: Target, texts: Texts, view: View) -> None:
    """Render the reports and put them where they belong."""
    if target.path is None:
        # Names in traces may hold what the terminal's encoding does not know.
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        sys.stdout.write(_text(reports, target, texts, view))
        sys.stdout.flush()
        return
    from traceanalyze.cli.files import write_folder, write_whole

    if target.format in TABLES:
        from traceanalyze.report import folder

        count = write_folder(target.path, folder.files(reports, texts, target.format))
        sys.stderr.write(f"Wrote {count} files to {target.path}\n")
        return
    # Folders and globs show only now which files they stood for.
    refuse_input(target.path, (rank.path for report in reports for rank in report.ranks))
    write_whole(target.path, _content(reports, target, texts, view))
    sys.stderr.write(f"Wrote {target.path}\n")


def _content(reports: Sequence[Report], target: Target, texts: Texts, view: View) -> bytes:
    if target.format == "xlsx":
        from traceanalyze.report import xlsx

        return xlsx.render(reports, texts)
    return _text(reports, target, texts, view).encode("utf-8", errors="replace")


def _text(reports: Sequence[Report], target: Target, texts: Texts, view: View) -> str:
    if target.format == "json":
        from traceanalyze.report import json

        return json.render(reports, texts)
    if target.format == "svg":
        from traceanalyze.report import flame

        return flame.render(reports, texts)
    if target.format == "html":
        from traceanalyze.report import html

        return html.render(reports, texts)
    if target.format == "markdown":
        from traceanalyze.report import markdown

        return markdown.render(reports, texts)
    from traceanalyze.report import console

    style = console.style_for(sys.stdout) if target.path is None else console.file_style()
    return console.render_all(reports, texts, style, view)
