"""Files that appear only when they are complete."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from traceanalyze.errors import UsageError


@contextmanager
def whole_file(path: Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, under a temporary name beside `path`; it gets its name when all went well.

    Args:
        path: What it is to be called.
        sync: Wait until the disk has it.

    Raises:
        UsageError: It cannot be written.
    """
    # Imported here: a report on a terminal needs no files.
    import tempfile

    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise UsageError("{said}: cannot be written: {why}", path, error.strerror) from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # noqa: PTH101 - mkstemp makes it private, a report is not
        os.replace(temporary, path)  # noqa: PTH105 - both names are strings here
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError("{said}: cannot be written: {why}", path, error.strerror) from error
        raise


def _umask() -> int:
    """The process's umask, which can be read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
