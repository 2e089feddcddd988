"""Files that appear only when they are complete."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.errors import UsageError
from traceanalyze.report import folder as tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
