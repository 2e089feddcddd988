"""Where a report goes: stdout, or a file that appears only when it is complete."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from traceanalyze.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Report
    from traceanalyze.report.view import View

_SUFFIXES = {".json": "json", ".txt": "console"}


@dataclass(frozen=True, slots=True)
class Target:
    """File (None: stdout) and format."""

    path: Path | None
    format: str

    @classmethod
    def of(cls, output: str | None, format_: str | None, *, inputs: Sequence[str]) -> Self:
        """Check what the user asked for before any work is done."""
        if output is None or output == "-":
            return cls(None, format_ or "console")
        path = Path(output)
        chosen = format_ or _SUFFIXES.get(path.suffix.lower())
        if chosen is None:
            raise UsageError(f"--output {output}: end the name in .json or .txt, or give --format")
        _refuse_input(path, inputs)
        if path.is_dir():
            raise UsageError(f"--output {output}: this is a folder; give a file name")
        if not path.parent.is_dir():
            raise UsageError(f"--output {output}: the folder {path.parent} does not exist")
        return cls(path, chosen)


def _refuse_input(path: Path, inputs: Iterable[str]) -> None:
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
        sys.stdout.write(_rendered(reports, target, texts, view))
        sys.stdout.flush()
        return
    # Folders and globs show only now which files they stood for.
    _refuse_input(target.path, (rank.path for report in reports for rank in report.ranks))
    write_whole(target.path, _rendered(reports, target, texts, view))
    sys.stderr.write(f"Wrote {target.path}\n")


def _rendered(reports: Sequence[Report], target: Target, texts: Texts, view: View) -> str:
    if target.format == "json":
        from traceanalyze.report import json

        return json.render(reports, texts)
    from traceanalyze.report import console

    style = console.style_for(sys.stdout) if target.path is None else console.file_style()
    return console.render_all(reports, texts, style, view)


def write_whole(path: Path, text: str) -> None:
    """Write under a temporary name beside the file, then rename: nobody ever sees a part of it."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise UsageError(f"--output {path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101 - mkstemp makes it private, a report is not
        os.replace(temporary, path)  # noqa: PTH105 - both names are strings here
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"--output {path}: cannot be written: {error.strerror}") from error
        raise


def _umask() -> int:
    """The process's umask, which can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
