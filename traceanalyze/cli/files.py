"""Files that appear only when they are complete."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.errors import UsageError
from traceanalyze.report import folder as tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_INDEX_START = 200


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


def write_folder(path: Path, files: Mapping[str, Callable[[], bytes]]) -> None:
    """Write the files of a report, each whole, into a folder that is made if need be."""
    _refuse_foreign(path, files)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {path}: cannot be made: {error.strerror}") from error
    for name, content in files.items():
        write_whole(path / name, content())


def _refuse_foreign(path: Path, names: Iterable[str]) -> None:
    """Only an older report is replaced, never a file that somebody else put there under the same name."""
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
