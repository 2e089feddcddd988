"""The native scanner: feeds text to the shared library and wraps its columns as NumPy arrays without a copy."""

import ctypes
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from traceanalyze.model import native
from traceanalyze.model.columns import Sparse, Strings
from traceanalyze.model.trace import Events, Flows, Instants
from traceanalyze.readers.scan.result import (
    MAX_VALUE_BYTES,
    REASONS,
    Field,
    Kind,
    Metadata,
    Part,
    Read,
    Scan,
    Watch,
    unwatched,
)

_FAILURES: Mapping[int, tuple[type[Exception], str]] = {
    1: (MemoryError, "no memory left for the columns of the trace"),
    2: (OverflowError, "the trace has more events or distinct strings than its columns can number"),
    3: (ValueError, "too many keys, or fields that contradict each other"),
}
_ROOTS = ("none", "object", "list")

# Numbers of the arrays, as in scan.h; of a table with several columns that of the first.
_STRING_BLOB, _STRING_OFFSETS, _TRACKS = 0, 1, 2
_EVENTS, _INSTANTS, _FLOWS = 3, 8, 12
_METADATA, _METADATA_TEXTS, _HEADER_TEXTS, _PHASE_TEXTS, _PHASE_COUNTS, _FIELDS = 17, 18, 20, 22, 24, 25

_VALUE_TYPES: Mapping[Kind, DTypeLike] = {Kind.INT: np.int64, Kind.REAL: np.float64, Kind.TEXT: np.int32}


class _Key(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_char_p),
        ("key_size", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("list", "field", "kind")),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        ("keys", ctypes.POINTER(_Key)),
        ("key_count", ctypes.c_uint64),
        ("event_fields", ctypes.c_uint32),
        ("instant_fields", ctypes.c_uint32),
        ("max_value_bytes", ctypes.c_uint64),
        ("learn", ctypes.c_uint32),
        ("root", ctypes.c_uint32),
        ("begin", ctypes.c_uint64),
    ]


class _Next(ctypes.Structure):
    _fields_ = [("space", ctypes.c_void_p), ("needs", ctypes.c_uint64)]


class _Summary(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in REASONS),
        ("size", ctypes.c_uint64),
        ("fault", ctypes.c_int64),
        *((name, ctypes.c_uint32) for name in ("root", "truncated", "fractional")),
    ]


@cache
def _library() -> ctypes.CDLL | None:
    """The library with the scanner's functions declared, None where there is none."""
    library = native.library()
    if library is None:
        return None
    pointer = ctypes.c_void_p
    signatures: Mapping[str, tuple[Any, ...]] = {
        "open": (ctypes.c_int, ctypes.POINTER(_Options), ctypes.POINTER(pointer)),
        "feed": (ctypes.c_int, pointer, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(_Next)),
        "join": (ctypes.c_int, pointer, pointer, ctypes.POINTER(ctypes.c_uint32)),
        "finish": (ctypes.c_int, pointer),
        "summarize": (ctypes.c_int, pointer, ctypes.POINTER(_Summary)),
        "take": (ctypes.c_int, pointer, ctypes.POINTER(native.Array)),
        "close": (None, pointer),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, f"trace_scan_{name}")
        function.restype = result
        function.argtypes = arguments
    return library


def available() -> bool:
    """Whether the native scanner can be used here."""
    return _library() is not None


def _check(status: int) -> None:
    if status:
        kind, text = _FAILURES.get(status, (RuntimeError, f"the native scanner failed (status {status})"))
        raise kind(text)


@lru_cache(8)
def _keys(*lists: tuple[Field, ...]) -> ctypes.Array[_Key]:
    """Of the fields of events and of instants: the same for one recording after another."""
    keys = [
        _Key(raw, len(raw), number, index, field.kind)
        for number, fields in enumerate(lists)
        for index, field in enumerate(fields)
        for raw in (key.encode("utf-8", "surrogateescape") for key in field.keys)
    ]
    return (_Key * len(keys))(*keys)


class _Scanner:
    """A scan in the library."""

    def __init__(
        self,
        event_fields: Sequence[Field],
        instant_fields: Sequence[Field],
        max_value_bytes: int,
        *,
        learn: bool,
        root: int = 0,
        begin: int = 0,
    ) -> None:
        library = _library()
        if library is None:
            raise RuntimeError(f"the native scanner is not available: {native.LIBRARY} cannot be loaded")
        self._library = library
        keys = _keys(tuple(event_fields), tuple(instant_fields))
        counts = len(keys), len(event_fields), len(instant_fields)
        options = _Options(keys, *counts, min(max(max_value_bytes, 0), 2**63), learn, root, begin)
        self._handle = ctypes.c_void_p()
        _check(library.trace_scan_open(ctypes.byref(options), ctypes.byref(self._handle)))
        self._stopped = False
        weakref.finalize(self, library.trace_scan_close, self._handle)

    def stop(self) -> None:
        """Let what is being read in a thread end with the block it is at."""
        self._stopped = True

    def read(self, readinto: Read, block_bytes: int, watch: Watch = unwatched) -> None:
        """Scan what `readinto` gives, block by block, in the scanner's own buffer."""
        feed, room, following = self._library.trace_scan_feed, ctypes.c_ubyte * block_bytes, _Next()
        _check(feed(self._handle, 0, block_bytes, into := ctypes.byref(following)))
        while not self._stopped:
            block = memoryview(room.from_address(following.space)).cast("B")
            filled = readinto(block)
            block.release()
            if not filled:
                break
            _check(feed(self._handle, filled, block_bytes, into))
            watch(following.needs)

    def join(self, following: "_Scanner") -> bool:
        """Take over what the scan of the text behind has found; not if this one does not lead to its beginning."""
        joined = ctypes.c_uint32()
        _check(self._library.trace_scan_join(self._handle, following._handle, ctypes.byref(joined)))
        return bool(joined)

    def summary(self) -> _Summary:
        """What the scan is to count; its text is complete with this."""
        _check(self._library.trace_scan_finish(self._handle))
        summary = _Summary()
        _check(self._library.trace_scan_summarize(self._handle, ctypes.byref(summary)))
        return summary

    def arrays(self, fields: int) -> "_Arrays":
        """Those of the result, with so many fields; to be asked for once."""
        found = (native.Array * (_FIELDS + 2 * fields))()
        _check(self._library.trace_scan_take(self._handle, found))
        return _Arrays(found)


class _Arrays:
    """The arrays of a result, each to be asked for once."""

    def __init__(self, found: ctypes.Array[native.Array]) -> None:
        self._found = found

    def array(self, number: int, dtype: DTypeLike, *, width: int = 0) -> NDArray[Any]:
        """One-dimensional, or `width` columns wide."""
        return native.owned(self._found[number], dtype, width=width)

    def texts(self, first: int) -> list[bytes]:
        """Copies of texts that lie one after another, and behind them where each ends."""
        blob = self.array(first, np.uint8).tobytes()
        ends = self.array(first + 1, np.int64).tolist()
        return [blob[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]

    def columns(self, first: int, dtypes: Sequence[DTypeLike]) -> list[NDArray[Any]]:
        return [self.array(first + place, dtype) for place, dtype in enumerate(dtypes)]

    def table(self, first: int, dtypes: Sequence[DTypeLike], first_field: int, fields: Sequence[Field]) -> list[Any]:
        """Columns, and by name those of fields, two arrays each."""
        sparse, known = {}, dict[int, NDArray[np.uint32]]()
        for at, field in enumerate(fields):
            # Many fields are of the same events.
            rows = self.array(first_field + 2 * at, np.uint32)
            same = known.setdefault(len(rows), rows)
            rows = same if rows is not same and (rows == same).all() else rows
            sparse[field.name] = Sparse(rows, self.array(first_field + 2 * at + 1, _VALUE_TYPES[field.kind]))
        return [*self.columns(first, dtypes), sparse]


def _metadata(given: _Arrays, strings: Strings) -> list[Metadata]:
    codes = given.array(_METADATA, np.int32, width=3)
    text = {code: strings.raw(code) for code in {*codes.ravel().tolist()}}  # a few names and ids, again and again
    return [
        Metadata(text[name], text[pid], text[tid], args)
        for (name, pid, tid), args in zip(codes.tolist(), given.texts(_METADATA_TEXTS), strict=True)
    ]


def _phases(given: _Arrays) -> dict[str, int]:
    phases: Counter[str] = Counter()
    counts = given.array(_PHASE_COUNTS, np.int64).tolist()
    for raw, count in zip(given.texts(_PHASE_TEXTS), counts, strict=True):
        phases[raw.decode("utf-8", "replace")] += count  # different bytes may become the same text
    return dict(phases)


def _result(scanner: _Scanner, event_fields: Sequence[Field], instant_fields: Sequence[Field]) -> Scan:
    summary = scanner.summary()
    given, of_instants = scanner.arrays(len(event_fields) + len(instant_fields)), _FIELDS + 2 * len(event_fields)
    strings = Strings(given.array(_STRING_BLOB, np.uint8), given.array(_STRING_OFFSETS, np.int64))
    time, code = np.int64, np.int32
    events, instants = (time, time, code, code, code), (time, code, code, code)
    header = given.texts(_HEADER_TEXTS)
    return Scan(
        strings=strings,
        tracks=given.array(_TRACKS, code, width=2),
        events=Events(*given.table(_EVENTS, events, _FIELDS, event_fields)),
        instants=Instants(*given.table(_INSTANTS, instants, of_instants, instant_fields)),
        flows=Flows(*given.columns(_FLOWS, (time, code, code, np.int64, np.uint8))),
        metadata=_metadata(given, strings),
        header=dict(zip(header[::2], header[1::2], strict=True)),
        phases=_phases(given),
        counts={reason: int(getattr(summary, reason)) for reason in REASONS},
        fault=None if summary.fault < 0 else summary.fault,
        root=_ROOTS[summary.root],
        truncated=bool(summary.truncated),
        size=summary.size,
        fractional=bool(summary.fractional),
    )


@contextmanager
def _in_threads(scanners: Sequence[_Scanner], work: Sequence[Callable[[], None]]) -> Iterator[None]:
    """Do each at the same time as what is inside, and wait for them; the first of their errors is raised.

    Where what is inside fails, or is interrupted, they stop: what they read into is gone with it.
    """
    errors: list[BaseException] = []

    def done(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as error:  # it belongs to whoever waits
            errors.append(error)

    threads = [threading.Thread(target=done, args=(one,), name="traceanalyze-scan", daemon=True) for one in work]
    for thread in threads:
        thread.start()
    try:
        yield
        for thread in threads:
            thread.join()
    finally:
        for one in scanners:
            one.stop()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def scan(
    readinto: Read,
    *,
    event_fields: Sequence[Field],
    instant_fields: Sequence[Field],
    max_value_bytes: int = MAX_VALUE_BYTES,
    block_bytes: int = 1 << 18,
    learn: bool = True,
    parts: Sequence[Part] = (),
    watch: Watch = unwatched,
) -> Scan:
    """As `readers.scan.scan`, in one pass and in bounded memory.

    A longer event or header value than `max_value_bytes` is malformed. Of `block_bytes` of text read at a time, the
    default fits the second-level cache. Without `learn`, every step is derived from the grammar, for tests.

    `parts` are read at the same time, each in a thread; `readinto` ends where the first of them begins. Where the text
    before does not lead to the beginning of one, as one that is broken there, that part is read again behind it.
    """

    def scanner(root: int = 0, begin: int = 0) -> _Scanner:
        return _Scanner(event_fields, instant_fields, max_value_bytes, learn=learn, root=root, begin=begin)

    whole = scanner()
    scanners = [scanner(_ROOTS.index(part.root), part.begin) for part in parts]
    work = [partial(one.read, part.open(), block_bytes) for one, part in zip(scanners, parts, strict=True)]
    with _in_threads(scanners, work):
        whole.read(readinto, block_bytes, watch)
    for part in parts:
        # Once joined, its memory is free for the columns that grow.
        if not whole.join(scanners.pop(0)):
            whole.read(part.open(), block_bytes)
    return _result(whole, event_fields, instant_fields)
