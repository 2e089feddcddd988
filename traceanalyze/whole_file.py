"""Files that appear only when they are complete."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from traceanalyze.errors import UsageError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, under a temporary name beside `path`; it gets its name when it is whole and on the disk.

    A link stays one: what it leads to is replaced. That keeps its permissions; a new file has those of the umask. What
    is no file (a device, a pipe) is written to as it is.

    Raises:
        UsageError: It cannot be written.
    """
    # Imported here: a report on a terminal needs no files.
    import tempfile

    name = path
    with _told(name):
        mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        with _told(name), path.open("wb") as file:
            yield file
        return
    path = path.resolve() if path.is_symlink() else path
    with _told(name):
        # Of a long name as much as leaves room for the rest, whatever bytes its characters take.
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:60]}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes it private, a report is not.
            os.chmod(temporary, 0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))  # noqa: PTH101
            os.replace(temporary, path)  # noqa: PTH105 - both names are strings here
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _mode(path: Path) -> int | None:
    """Kind and permissions of what is there, or of what a link leads to; None where nothing is."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError("{said}: cannot be written: {why}", path, error.strerror) from error


def _umask() -> int:
    """The process's umask, which can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
