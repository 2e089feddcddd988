"""Snapshots by the native library: events as columns straight from the opcodes of a pickle or JSON, the rest as values.

The unpickler and Python's JSON are its twins: whatever the library does not know how to keep raises `UnusualError`,
never a guess.
"""

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from traceanalyze.model import native
from traceanalyze.model.snapshot import Action, History
from traceanalyze.readers.snapshot.columns import ACTIONS, StackTable, pool_index

_BLOCK = 1 << 18
# As in snapshot.h.
_DICT, _EVENT, _FRAME, _MAP, _LIST, _EVENTS, _STACK, _VALUES, _POOL, _TUPLE = range(10)
_NUMBER = (1 << 28) - 1
_TIME, _POOL_ID, _SEGMENT_POOL, _TOLD = 1, 2, 4, 8
# Numbers of the arrays, as in scan.h.
_TEXTS, _FRAMES, _STACKS, _POOLS, _PAIRS, _OBJECTS, _CHUNKS, _TAGS, _PAYLOADS, _COLUMNS = 0, 2, 4, 6, 8, *range(10, 15)
_TYPES: tuple[DTypeLike, ...] = (
    *(np.int32, np.int64, np.int64, np.int64, np.int64, np.int32, np.int32, np.int32, np.uint8, np.int32),
    *(np.int64, np.int64),
)
_VALUE: tuple[Callable[[int], object], ...] = (
    lambda _: None,
    lambda _: False,
    lambda _: True,
    lambda payload: payload,
    lambda payload: payload % (1 << 64),
    lambda payload: struct.unpack("d", struct.pack("q", payload))[0],
)
_TEXT, _OBJECT = 6, 7


class UnusualError(Exception):
    """The library cannot read this file; its twin can, or says what is wrong."""


MOST_DEVICES = 64
"""Each costs the time that all texts of the file take."""


class Recorded:
    """Events of one device that follow each other in the file."""

    def __init__(self, file: "_File", begin: int, count: int) -> None:
        self._file, self._begin, self._count = file, begin, count

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> tuple[int, int]:
        """The first row, and the one after the last."""
        return self._begin, self._begin + self._count

    def history(self, stacks: StackTable, pools: dict[tuple[int, int], int]) -> History:
        """As `columns.history`."""
        file, rows = self._file, slice(*self.rows)
        names, address, size, stream, time, frames, told, pool, has, stack = (each[rows] for each in file.columns[:-2])
        free_row, free = file.columns[-2:]
        coded = np.full(len(file.texts), int(Action.UNKNOWN), np.uint8)
        unknown: dict[str, int] = {}
        counts = np.bincount(names, minlength=len(coded))
        for code in _in_order(names, len(coded)):
            name = file.text(code)
            if name in ACTIONS:
                coded[code] = ACTIONS[name]
            else:
                unknown[name[:40]] = unknown.get(name[:40], 0) + int(counts[code])
        action = coded[names]
        own = np.flatnonzero((free_row >= rows.start) & (free_row < rows.stop))
        own = own[action[free_row[own] - rows.start] == Action.OOM]
        pairs, texts = self._told(told, has)
        known = self._stacks(stack, stacks)
        return History(
            action=action,
            address=address,
            size=size,
            stream=stream,
            time=time if len(has) and (has & _TIME).all() else None,
            stack=known,
            call=frames if file.shared else known,
            device_free=dict(zip((free_row[own] - rows.start).tolist(), free[own].tolist(), strict=True)),
            pool=self._pools(pool, has, pools),
            unknown=unknown,
            told=pairs,
            texts=texts,
        )

    def _stacks(self, codes: NDArray[np.int32], stacks: StackTable) -> NDArray[np.int32]:
        known = np.full(len(self._file.stacks), -1, np.int32)
        for code in _in_order(codes, len(known)):
            known[code] = stacks.code(self._file.stack(code))
        return known[codes]

    def _told(
        self, codes: NDArray[np.int32], has: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int32] | None, tuple[tuple[str, str], ...]]:
        if not (has & _TOLD).any():
            return None, ()
        file = self._file
        found: dict[tuple[str, str], int] = {}
        known = np.zeros(len(file.pairs), np.int32)
        for code in _in_order(codes, len(known)):
            said, unit = (file.text(text) for text in file.pairs.numbers(code, np.int64)) if code else ("", "")
            known[code] = found.setdefault((said, "" if unit == "N/A" else unit), len(found))
        return known[codes], tuple(found)

    def _pools(
        self, codes: NDArray[np.int32], has: NDArray[np.uint8], pools: dict[tuple[int, int], int]
    ) -> NDArray[np.int32] | None:
        keys = has & (_POOL_ID | _SEGMENT_POOL)
        if not len(has) or not keys[0]:
            return None
        if not np.isin(keys, (0, keys[0])).all():
            raise UnusualError
        known = np.zeros(len(self._file.pools), np.int32)
        for code in _in_order(codes, len(known)):
            known[code] = pool_index(self._file.pool(code) if code else None, pools)
        return known[codes]


def _in_order(codes: NDArray[np.int32], count: int) -> list[int]:
    """The codes that occur, as they first do."""
    first = np.full(count, len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    return list(map(int, order[: int((first < len(codes)).sum())]))


class _Sequences:
    """Distinct sequences by their codes; 0 is the empty one."""

    def __init__(self, blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.blob, self._offsets = blob, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def raw(self, code: int) -> bytes:
        return self.blob[self._offsets[code] : self._offsets[code + 1]].tobytes()

    def numbers(self, code: int, dtype: DTypeLike) -> list[int]:
        return list(map(int, np.frombuffer(self.raw(code), dtype)))

    def starts(self) -> NDArray[np.uint8]:
        """First bytes of those that are not empty."""
        starts = self._offsets[:-1][np.diff(self._offsets) > 0]
        return self.blob[starts]


class _File:
    """What the library made of a file; equal stacks and frames are one list and one dictionary."""

    def __init__(self, take: Callable[..., NDArray[Any]], *, shared: bool) -> None:
        self.shared = shared
        """Lists may be the same object, as those of one call are."""

        def sequences(first: int) -> _Sequences:
            return _Sequences(take(first, np.uint8), take(first + 1, np.int64))

        self.texts, self.frames, self.stacks = sequences(_TEXTS), sequences(_FRAMES), sequences(_STACKS)
        self.pools, self.pairs = sequences(_POOLS), sequences(_PAIRS)
        self._objects = take(_OBJECTS, np.int64)
        self._chunks = take(_CHUNKS, np.int64, width=3)
        self._tags, self._payloads = take(_TAGS, np.uint8), take(_PAYLOADS, np.int64)
        self.columns = [take(_COLUMNS + place, dtype) for place, dtype in enumerate(_TYPES)]
        self.columns[4] *= 1000  # µs
        self._built: dict[int, Any] = {}
        self._stack_of: dict[int, list[dict[str, object]]] = {}
        self._frame_of: dict[int, dict[str, object]] = {}
        self._text_of: dict[int, str] = {}
        self._check_texts()

    def _check_texts(self) -> None:
        """All of them are texts, also those that nobody asks for: else the unpickler refuses the file."""
        try:
            self.texts.blob.tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise UnusualError from None
        if (self.texts.starts() & 0xC0 == 0x80).any():
            raise UnusualError

    def text(self, code: int) -> str:
        found = self._text_of.get(code)
        if found is None:
            found = self._text_of[code] = self.texts.raw(code).decode("utf-8", "surrogatepass")
        return found

    def pool(self, code: int) -> tuple[int, ...]:
        return tuple(self.pools.numbers(code, np.int64))

    def stack(self, code: int) -> list[dict[str, object]]:
        found = self._stack_of.get(code)
        if found is None:
            found = self._stack_of[code] = [self._frame(each) for each in self.stacks.numbers(code, np.int32)]
        return found

    def _frame(self, code: int) -> dict[str, object]:
        found = self._frame_of.get(code)
        if found is None:
            name, file, line, origin = self.frames.numbers(code, np.int32)
            members = {"name": self.text(name), "filename": self.text(file), "line": line}
            found = self._frame_of[code] = {**members, "fx_original_trace": self.text(origin)}
        return found

    def whole(self, root: int) -> Any:
        """The object that the file is; afterwards only events, stacks and texts are left here."""
        found = self._value(root)
        # What was built refers to this file: without it, nobody has to look for garbage.
        del self._objects, self._chunks, self._tags, self._payloads, self._built
        return found

    def _value(self, number: int) -> Any:
        """The object of this number, with all that is in it."""
        if number in self._built:
            return self._built[number]
        packed = int(self._objects[number])
        kind, first, second = packed >> 56, packed >> 28 & _NUMBER, packed & _NUMBER
        if kind in {_EVENT, _FRAME}:
            raise UnusualError
        made: Any
        if kind in {_DICT, _MAP}:
            made = self._built[number] = {}
            items = self._items(first) if kind == _MAP else iter(())
            made.update(zip(items, items, strict=True))
        elif kind in {_LIST, _VALUES}:
            made = self._built[number] = []
            made.extend(self._items(first) if kind == _VALUES else ())
        elif kind == _EVENTS:
            made = Recorded(self, first, second)
        elif kind == _STACK:
            made = self.stack(first)
        else:
            made = self.pool(first) if kind == _POOL else tuple(self._items(first))
        self._built[number] = made
        return made

    def _items(self, chunk: int) -> Iterator[Any]:
        while chunk >= 0:
            begin, count, chunk = self._chunks[chunk].tolist()
            rows = slice(begin, begin + count)
            for tag, payload in zip(self._tags[rows].tolist(), self._payloads[rows].tolist(), strict=True):
                if tag == _TEXT:
                    yield self.text(payload)
                else:
                    yield self._value(payload) if tag == _OBJECT else _VALUE[tag](payload)


def _refuse_rows(settings: object) -> None:
    """Of frames and events only what columns hold is left, while settings are kept as they are."""
    seen, left = set[int](), [settings]
    while left:
        value = left.pop()
        if isinstance(value, list | tuple | Recorded):
            raise UnusualError
        if isinstance(value, dict) and id(value) not in seen:
            seen.add(id(value))
            left.extend(value.values())


def load(readinto: Callable[[memoryview], int], *, is_json: bool) -> object:
    """The value of a snapshot, as its twin gives it; lists of events are `Recorded`, in JSON pairs of numbers tuples.

    Raises:
        UnusualError: Only the twin can tell.
    """
    library = native.library()
    if library is None:
        raise UnusualError
    handle = ctypes.c_void_p()
    library.trace_snapshot_space.restype = ctypes.c_void_p
    if library.trace_snapshot_open(ctypes.c_uint32(is_json), ctypes.byref(handle)):
        raise UnusualError
    try:
        root = ctypes.c_int64(-1)
        while root.value < 0:
            address = library.trace_snapshot_space(handle, ctypes.c_uint64(_BLOCK))
            if address is None:
                raise UnusualError
            block = memoryview((ctypes.c_ubyte * _BLOCK).from_address(address)).cast("B")
            count = readinto(block)
            block.release()
            failed = library.trace_snapshot_feed(handle, ctypes.c_uint64(count), ctypes.byref(root))
            if failed or (root.value < 0 and not count):
                raise UnusualError

        def take(array_id: int, dtype: DTypeLike, *, width: int = 0) -> NDArray[Any]:
            found = native.Array()
            if library.trace_snapshot_take(handle, ctypes.c_uint32(array_id), ctypes.byref(found)):
                raise UnusualError
            return native.owned(found, dtype, width=width)

        found = _File(take, shared=not is_json).whole(root.value)
        _refuse_rows(found.get("allocator_settings") if isinstance(found, dict) else None)
        return found
    finally:
        library.trace_snapshot_close(handle)
