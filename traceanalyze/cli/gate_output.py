"""Where the formats of a gate go: stdout, files, and the summary of a GitHub step."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.cli.files import write_whole
from traceanalyze.cli.output import refuse_input
from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.gate.results import GateResult
    from traceanalyze.locales import Texts

FORMATS = ("console", "json", "markdown", "junit", "github", "sarif")
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


@frozen
class Wanted:
    """One format and the file it goes to; None: stdout."""

    format: str
    path: Path | None = None


def wanted(formats: Sequence[str], inputs: Sequence[str]) -> tuple[Wanted, ...]:
    """What `--format F[=PATH]` asks for.

    Raises:
        UsageError: There is no such format, or the file is an input.
    """
    found = []
    for text in formats or ("console",):
        name, equals, path = text.partition("=")
        if name not in FORMATS or (equals and not path):
            raise UsageError(f"--format {text}: write F or F=PATH with one of {', '.join(FORMATS)}")
        if path:
            refuse_input(Path(path), inputs)
        found.append(Wanted(name, Path(path) if path and path != "-" else None))
    return tuple(found)


def write_gate(result: GateResult, targets: Sequence[Wanted], texts: Texts) -> None:
    """Write every format; a reader of stdout that has gone does not change the verdict."""
    for target in targets:
        content = _rendered(result, target, texts)
        if target.path is not None:
            write_whole(target.path, content.encode("utf-8", errors="replace"))
            sys.stderr.write(f"Wrote {target.path}\n")
        elif target.format == "markdown" and os.environ.get(SUMMARY_VARIABLE):
            _append(Path(os.environ[SUMMARY_VARIABLE]), content)
        else:
            _show(content)


def _append(path: Path, content: str) -> None:
    """Other steps of the job write to the same file."""
    try:
        with path.open("ab") as file:
            file.write(content.encode("utf-8", errors="replace"))
    except OSError as error:
        raise UsageError(f"{SUMMARY_VARIABLE} {path}: cannot be written: {error.strerror}") from error


def _show(content: str) -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    try:
        sys.stdout.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the pipe is gone; the exit code still counts, so the rest goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _rendered(result: GateResult, target: Wanted, texts: Texts) -> str:
    from traceanalyze.report.gate import console, github, json, junit, markdown, sarif

    if target.format == "console":
        from traceanalyze.report.console import file_style, style_for

        return console.render(result, texts, style_for(sys.stdout) if target.path is None else file_style())
    renderers = {
        "json": json.render,
        "markdown": markdown.render,
        "junit": junit.render,
        "github": github.render,
        "sarif": sarif.render,
    }
    return renderers[target.format](result, texts)
