"""Where a report goes: text for a terminal, a file, or a folder of tables."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, Self, cast

from traceanalyze.errors import Phrase, UsageError
from traceanalyze.locales import Texts
from traceanalyze.report.formats import FORMATS, TABLES, endings, names, renderer
from traceanalyze.report.view import View
from traceanalyze.whole_file import whole_file

if TYPE_CHECKING:
    from traceanalyze.report.model import Report

_INDEX_START = 200
_LISTING = "tables.json"
"""Names the files of a folder that this tool wrote; written last, so that it never names what is not there."""
_SCHEMA = "traceanalyze.tables/1"
_EACH_A_FILE = Phrase("every table is a file of its own; give a folder, such as tables/")
_SLASHES = ("/", "\\")
"""A name that ends so is a folder's, whatever it looks like."""
_OF_ENDING = {each.ending: each.name for each in FORMATS.values() if each.ending}


def write_whole(path: Path, content: bytes) -> None:
    """Write a report: nobody ever sees a part of it."""
    with whole_file(path) as file:
        file.write(content)


def write_folder(path: Path, files: Mapping[str, Callable[[], bytes]]) -> Phrase:
    """Write the files of a report, each whole, into a folder that is made if need be; what was written.

    Tables that an older report left there and this one does not have are removed; nothing else ever is.
    """
    _refuse_foreign(path, files)
    before = _written_before(path)
    # All of them first: nothing is there of a report that cannot be rendered.
    contents = {name: content() for name, content in files.items()}
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError("{path}: cannot be made: {why}", path, error.strerror) from error
    for name, content in contents.items():
        write_whole(path / name, content)
    for name in sorted(before - set(files)):
        _remove(path / name)
    listing = {"schema": _SCHEMA, "files": sorted(files)}
    write_whole(path / _LISTING, f"{json.dumps(listing, indent=1)}\n".encode())
    return Phrase("Wrote {count} files to {path}", len(files) + 1, path)


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
    return Path(name).name == name and "\\" not in name and _OF_ENDING.get(Path(name).suffix) in TABLES


def _remove(file: Path) -> None:
    try:
        if file.is_file() and not file.is_symlink():
            file.unlink()
    except OSError as error:
        raise UsageError("{file}: cannot be removed: {why}", file, error.strerror) from error


def _refuse_foreign(path: Path, files: Iterable[str]) -> None:
    """Only an older report is replaced, never a file that somebody else put there under the same name."""
    names = (*files, _LISTING)
    # Imported here: help and usage errors need no report.
    from traceanalyze.report import folder

    index = path / folder.INDEX
    if index.is_file():
        with index.open("rb") as file:
            if folder.is_index(file.read(_INDEX_START)):
                return
    taken = next((name for name in names if (path / name).exists()), None)
    if taken is not None:
        raise UsageError("{path}: {taken} is there and is not from an older report; choose another folder", path, taken)


_COMMENT = "\n<!-- traceanalyze {version} -->"
_SIGNED = {"console": "\ntraceanalyze {version}", "markdown": _COMMENT, "brief": _COMMENT}
"""Last line of files in formats that have no other place for who wrote them."""
_MARK = b"traceanalyze"
"""In every report, so that the next one knows what it may replace."""
_LOOKED_AT = 1 << 16
"""Bytes of the begin and of the end of a file."""


def refuse_other(path: Path) -> None:
    """Nobody's file is lost to a report by accident; an older report, or an empty file, is replaced."""
    if not path.is_file() or path.stat().st_size == 0 or not os.access(path, os.R_OK):
        return
    if _MARK not in (_properties(path) if path.suffix.lower() == ".xlsx" else _ends(path)):
        raise UsageError("{path}: is there and is no report of traceanalyze; --overwrite replaces it", path)


def _inflated(path: Path) -> IO[bytes]:
    # Imported here: most reports replace nothing.
    from isal import igzip

    return cast("Callable[[Path], IO[bytes]]", igzip.IGzipFile)(path)


def _ends(path: Path) -> bytes:
    head = tail = b""
    try:
        with _inflated(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            while block := file.read(_LOOKED_AT):
                head, tail = head or block, tail[-_LOOKED_AT:] + block
    except (OSError, EOFError):
        return b""
    return head + tail


def _properties(workbook: Path) -> bytes:
    # Imported here: most reports replace no workbook.
    import zlib
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(workbook) as opened:
            return b"".join(opened.read(name) for name in opened.namelist() if name.startswith("docProps/"))
    except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
        return b""


class Target(NamedTuple):
    """File or folder (None: stdout) and format."""

    path: Path | None
    format: str
    make_folder: Path | None = None
    """To be made before."""

    @classmethod
    def of(
        cls,
        output: str | None,
        format_: str | None,
        *,
        inputs: Sequence[str],
        command: str = "analyze",
        option: str = "--output ",
        overwrite: bool = False,
    ) -> Self:
        """Check what the user asked for, with an option that a path follows, before any work is done.

        What is there and is no report is replaced only where the user says so (`overwrite`).
        """
        known = FORMATS[format_ or "console"]
        if known.needs and find_spec(known.needs) is None:
            raise UsageError(
                "--format {format}: needs {needs}, which is not installed (pip install {needs})", format_, known.needs
            )
        if output is None or output == "-":
            if known.binary:
                raise UsageError(
                    "--format {format}: give a file name, {option}report{ending}", format_, option, known.ending
                )
            if format_ in TABLES:
                raise UsageError("--format {format}: give a folder, {name}", format_, f"{option}tables/")
            return cls(None, format_ or "console")
        if not output:
            raise UsageError("give a path")
        path = Path(output)
        refuse_input(path, inputs)
        if not path.parent.is_dir():
            raise UsageError("{output}: the folder {parent} does not exist", output, path.parent)
        if format_ in TABLES or path.is_dir() or output.endswith(_SLASHES):
            return cls(path, _folder_format(output, path, format_))
        format_ = _file_format(output, path, format_, command)
        if not overwrite:
            refuse_other(path)
        return cls(path, format_)


def targets(
    outputs: Sequence[str] | None,
    format_: str | None,
    *,
    inputs: Sequence[str],
    command: str = "analyze",
    overwrite: bool = False,
) -> tuple[Target, ...]:
    """Each file or folder that the user asked for; stdout where there is none."""
    once_each(outputs or ())
    return tuple(
        Target.of(each, format_, inputs=inputs, command=command, overwrite=overwrite) for each in outputs or (None,)
    )


def once_each(outputs: Sequence[str]) -> None:
    """Refuse an output that is given twice: the one would replace the other."""
    for at, each in enumerate(outputs):
        if each in outputs[:at]:
            raise UsageError("-o {path}: given twice; give every file once", each)


def _folder_format(output: str, path: Path, format_: str | None) -> str:
    chosen = format_ or "csv"
    if chosen not in TABLES:
        raise UsageError("{output}: this is a folder; give a file name for --format {chosen}", output, chosen)
    if path.exists() and not path.is_dir():
        raise UsageError("{output}: this is a file; --format {chosen} needs a folder", output, chosen)
    if not path.exists() and path.suffix.lower() in _OF_ENDING and not output.endswith(_SLASHES):
        raise UsageError("{output}: {advice}", output, _EACH_A_FILE)
    return chosen


def _file_format(output: str, path: Path, format_: str | None, command: str) -> str:
    meant = _OF_ENDING.get(path.suffix.lower())
    chosen = format_ or (meant if meant in names(command) else None)
    if meant in TABLES:
        raise UsageError("{output}: {advice}", output, _EACH_A_FILE)
    if chosen is None:
        raise UsageError(
            "{output}: end the name in {known} (a file) or in / (a folder), or give --format",
            output,
            endings(command, choice=True),
        )
    if chosen != meant and any(name is not None and FORMATS[name].binary for name in (chosen, meant)):
        raise UsageError("{output}: --format {chosen} and the name's ending do not go together", output, chosen)
    return chosen


def refuse_input(path: Path, inputs: Iterable[str]) -> None:
    """A report must not replace what it was made from."""
    for given in map(Path, inputs):
        if path.exists() and given.exists() and path.samefile(given):
            raise UsageError("{path}: this is an input; choose another name", path)


def write(reports: "Sequence[Report]", target: Target, texts: Texts, view: View) -> Phrase:
    """Render the reports into the file or folder of the target; what was written."""
    if target.path is None:
        raise ValueError("no path")
    # Folders and globs show only now which files they stood for.
    refuse_input(target.path, (rank.path for report in reports for rank in report.ranks))
    refuse_input(target.path, (side.path for report in reports for side in report.sides))
    if target.format in TABLES:
        from traceanalyze.report import folder

        return write_folder(target.path, folder.files(reports, texts, target.format))
    content = rendered(reports, target, texts, view)
    write_whole(target.path, content if isinstance(content, bytes) else content.encode("utf-8", errors="replace"))
    return Phrase("Wrote {path}", target.path)


def write_to(
    report: "Report", path: str | os.PathLike[str], texts: Texts, top: int, *, whole: bool, overwrite: bool = False
) -> None:
    """Write one report to a file or folder by its ending."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError("{value}: write one path", str(path))
    target = Target.of(os.fspath(path), None, inputs=(), command=report.command, overwrite=overwrite)
    write([report], target, texts, View(top=top, whole=whole))


def rendered(reports: "Sequence[Report]", target: Target, texts: Texts, view: View) -> str | bytes:
    """What goes to the target; its style is that of the terminal, where it goes there."""
    render, takes = renderer(target.format), FORMATS[target.format].takes
    given: dict[str, object] = {"view": view}
    if "style" in takes:
        from traceanalyze.report.console import file_style, style_for

        given["style"] = style_for(sys.stdout) if target.path is None else file_style()
        # A file has no end of the screen.
        given["view"] = view if target.path is None else view._replace(whole=True)
    content: str | bytes = render(reports, texts, **{name: given[name] for name in takes})
    signed = _SIGNED.get(target.format) if target.path is not None else None
    if signed is None or isinstance(content, bytes):
        return content
    return f"{content}{signed.format(version=reports[0].version)}\n"
