"""A baseline on disk: replaced as a whole, and never by two programs at once."""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyze.errors import InputError, UsageError
from traceanalyze.gate.baseline import Baseline, dump, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def read_baseline(path: str) -> Baseline:
    """The baseline of a file.

    Raises:
        InputError: It cannot be read, or is damaged.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return load(content, path)


def write_baseline(path: str, baseline: Baseline) -> None:
    """Write the file under a temporary name and rename it: nobody ever sees a part of it."""
    place = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(dump(baseline))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(place)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
        raise


def changed(path: str, change: Callable[[Baseline | None], Baseline]) -> Baseline:
    """Read, change and write a baseline while no other program does; None is read where there is no file yet."""
    with _locked(path):
        after = change(read_baseline(path) if Path(path).exists() else None)
        write_baseline(path, after)
    return after


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Wait for the lock file beside it. It stays: removing it would let two programs hold different ones."""
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place.parent / f".{place.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(f"{path}: cannot be locked: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
