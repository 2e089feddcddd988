"""Where a report goes: stdout, a file, or a folder of tables."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen
from traceanalyze.report import folder as tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Report
    from traceanalyze.report.view import View

_INDEX_START = 200
_LISTING = "tables.json"
"""Names the files of a folder that this tool wrote; written last, so that it never names what is not there."""
_SCHEMA = "traceanalyze.tables/1"
_REMOVABLE = frozenset({".csv", ".parquet"})


def write_whole(path: Path, content: bytes) -> None:
    """Write under a temporary name beside the file, then rename: nobody ever sees a part of it."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise UsageError(f"--output {path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101 - mkstemp makes it private, a report is not
        os.replace(temporary, path)  # noqa: PTH105 - both names are strings here
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"--output {path}: cannot be written: {error.strerror}") from error
        raise


def write_folder(path: Path, files: Mapping[str, Callable[[], bytes]]) -> int:
    """Write the files of a report, each whole, into a folder that is made if need be; how many there are now.

    Tables that an older report left there and this one does not have are removed; nothing else ever is.
    """
    _refuse_foreign(path, files)
    before = _written_before(path)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {path}: cannot be made: {error.strerror}") from error
    for name, content in files.items():
        write_whole(path / name, content())
    for name in sorted(before - set(files)):
        _remove(path / name)
    listing = {"schema": _SCHEMA, "files": sorted(files)}
    write_whole(path / _LISTING, f"{json.dumps(listing, indent=1)}\n".encode())
    return len(files) + 1


def _written_before(path: Path) -> set[str]:
    """Tables in a folder that an older report wrote, as its listing says; none where there is no such listing."""
    try:
        listing = json.loads((path / _LISTING).read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    if not isinstance(listing, dict) or listing.get("schema") != _SCHEMA or not isinstance(listing.get("files"), list):
        return set()
    return {name for name in listing["files"] if isinstance(name, str) and _is_table(name)}


def _is_table(name: str) -> bool:
    """A plain name of a file as reports write them: a listing must not lead out of its folder."""
    return Path(name).name == name and "\\" not in name and Path(name).suffix in _REMOVABLE


def _remove(file: Path) -> None:
    try:
        if file.is_file() and not file.is_symlink():
            file.unlink()
    except OSError as error:
        raise UsageError(f"--output {file}: cannot be removed: {error.strerror}") from error


def _refuse_foreign(path: Path, files: Iterable[str]) -> None:
    """Only an older report is replaced, never a file that somebody else put there under the same name."""
    names = (*files, _LISTING)
    index = path / tables.INDEX
    if index.is_file():
        with index.open("rb") as file:
            if tables.is_index(file.read(_INDEX_START)):
                return
    taken = next((name for name in names if (path / name).exists()), None)
    if taken is not None:
        raise UsageError(f"--output {path}: {taken} is there and is not from an older report; choose another folder")


def _umask() -> int:
    """The process's umask, which can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
