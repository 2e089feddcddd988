"""Pickles of plain values only: nothing in the file can name a function, so nothing in it can run.

Not one of 85 real snapshots needs a global. The limits on memory are for files that ask for more than they hold.
"""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from traceanalyze.errors import InputError, Phrase
from traceanalyze.readers.streams import Stream

_REMEDY = Phrase("dump it again with torch.cuda.memory._dump_snapshot, which writes plain values only")
_ROOM = 1 << 30
_PER_BYTE = 16
"""Loaded values take 2.6–3.9 bytes a byte of the file; a file that asks for four times as much is not a snapshot."""
_PER_PACKED_BYTE = 400
"""The same for compressed files, which hold at most some 30 bytes a byte."""


class _RefusedError(Exception):
    """A global or persistent id in the file; the text names it."""


class _PlainUnpickler(pickle.Unpickler):
    """Without anything to call, the opcodes that call or build objects have nothing to work on."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise _RefusedError(Phrase("the global {name}", f"{module_name}.{global_name}"))

    def persistent_load(self, pid: Any) -> NoReturn:
        raise _RefusedError(Phrase("a persistent id ({type})", type(pid).__name__))


class _Raw(io.RawIOBase):
    """A stream as the unpickler wants it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.readinto(memoryview(buffer))


def load_plain(stream: Stream, name: str, stored_bytes: int | None) -> object:
    """The value a pickle holds; the size of its file, None if unknown, bounds the memory that loading may take.

    Raises:
        InputError: The pickle is truncated or damaged, names code to run, or asks for absurd amounts of memory.
    """
    room = None if stored_bytes is None else stored_bytes * (_PER_PACKED_BYTE if stream.compressed else _PER_BYTE)
    try:
        with _without_collector(), _at_most(room):
            return _PlainUnpickler(io.BufferedReader(_Raw(stream), 1 << 18)).load()
    except _RefusedError as error:
        raise InputError(
            "{name}: this pickle asks for {error}, which is refused; {remedy}", name, error.args[0], _REMEDY
        ) from None
    except EOFError:
        fault = Phrase(" ({fault})", stream.fault) if stream.fault else ""
        raise InputError("{name}: this pickle ends early{fault}; copy or dump it again", name, fault) from None
    except MemoryError:
        raise InputError(
            "{name}: this pickle needs more memory than its size allows for; {remedy}", name, _REMEDY
        ) from None
    except Exception as error:
        # Damaged bytes make the unpickler raise almost anything, from UnpicklingError to IndexError.
        reason = Phrase("truncated or damaged ({error})", error) if str(error) else Phrase("damaged")
        raise InputError("{name}: this pickle is {reason}; copy or dump it again", name, reason) from error


@contextmanager
def _without_collector() -> Iterator[None]:
    """Millions of small values and no garbage: with the cyclic collector loading takes 3.5 times as long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _at_most(room: int | None) -> Iterator[None]:
    """Let the process grow by this many bytes and some; where the system cannot limit it, it is not limited."""
    try:
        import resource
    except ImportError:  # Windows
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = _address_space()
    if room is None or now is None:
        yield
        return
    limit = now + room + _ROOM
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    """Bytes of address space the process has now; None where the system does not tell."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  a file of the kernel
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return None
