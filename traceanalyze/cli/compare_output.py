"""Which profile is which, and where a comparison goes: stdout, a workbook in a folder, a file, a folder of tables."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from traceanalyze.cli.output import TABLES, Target, refuse_input
from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import CompareReport
    from traceanalyze.report.view import View

_NAME = "performance_comparison_result_"
"""What msprof-analyze calls its workbook, before the time."""
_ENDINGS = {"xlsx": ".xlsx", "html": ".html", "markdown": ".md", "json": ".json", "console": ".txt"}

_NAMED = ".xlsx, .html, .md, .json or .txt"
"""The same in a sentence."""


def sides(paths: Sequence[str], *, base: str | None, candidate: str | None) -> tuple[str, str]:
    """Base and candidate: both by position, or each by its option."""
    rest = list(paths)
    if base is None and rest:
        base = rest.pop(0)
    if candidate is None and rest:
        candidate = rest.pop(0)
    if base is None or candidate is None:
        raise UsageError("compare: give two profiles, BASE CANDIDATE, or -bp BASE -d CANDIDATE")
    if rest:
        raise UsageError(f"compare: two profiles at a time; there is also {rest[0]}")
    return base, candidate


@frozen
class CompareTarget:
    """Where the comparison is written beside the console, if anywhere."""

    target: Target
    make_folder: Path | None = None
    """Folder to be made before."""

    @classmethod
    def of(cls, output: str | None, format_: str | None, *, inputs: Sequence[str]) -> Self:
        """Check what the user asked for before any work is done."""
        if output is None or output == "-" or format_ in TABLES:
            return cls(Target.of(output, format_, inputs=inputs))
        path = Path(output)
        is_folder = path.is_dir() or output.endswith(("/", "\\"))
        if not is_folder and path.suffix.lower() in _ENDINGS.values():
            return cls(Target.of(output, format_, inputs=inputs))
        refuse_input(path, inputs)
        if not is_folder and (path.suffix or path.exists()):
            raise UsageError(f"--output {output}: end the name in {_NAMED} (a file) or in / (a folder)")
        chosen = format_ or "xlsx"
        name = f"{_NAME}{datetime.now(UTC):%Y%m%d%H%M%S}{_ENDINGS[chosen]}"
        return cls(Target(path / name, chosen), make_folder=path)


def write_compare(report: CompareReport, target: CompareTarget, texts: Texts, view: View) -> None:
    """Show the comparison, and write it where it belongs."""
    to = target.target
    if to.path is None and to.format != "console":
        _show(_text(report, to, texts, view))
        return
    _show(_text(report, Target(None, "console"), texts, view))
    if to.path is None:
        return
    from traceanalyze.cli.files import write_folder, write_whole

    refuse_input(to.path, report.paths)
    if to.format in TABLES:
        from traceanalyze.report import folder

        count = write_folder(to.path, folder.compare_files(report, texts, to.format))
        sys.stderr.write(f"Wrote {count} files to {to.path}\n")
        return
    if target.make_folder is not None:
        try:
            target.make_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--output {target.make_folder}: cannot be made: {error.strerror}") from error
    write_whole(to.path, _content(report, to, texts, view))
    sys.stderr.write(f"Wrote {to.path}\n")


def _show(text: str) -> None:
    # Names in traces may hold what the terminal's encoding does not know.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(text)
    sys.stdout.flush()


def _content(report: CompareReport, target: Target, texts: Texts, view: View) -> bytes:
    if target.format == "xlsx":
        from traceanalyze.report.xlsx.compare import render

        return render(report, texts)
    return _text(report, target, texts, view).encode("utf-8", errors="replace")


def _text(report: CompareReport, target: Target, texts: Texts, view: View) -> str:
    if target.format == "json":
        from traceanalyze.report import json

        return json.render_compare(report, texts)
    if target.format == "html":
        from traceanalyze.report import html

        return html.render_compare(report, texts)
    if target.format == "markdown":
        from traceanalyze.report import compare_markdown

        return compare_markdown.render(report, texts, view.top)
    from traceanalyze.report.console import file_style, style_for
    from traceanalyze.report.console.compare import render

    style = style_for(sys.stdout) if target.path is None else file_style()
    return render(report, texts, style, view)
