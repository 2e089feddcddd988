"""Allocator snapshots (`torch.cuda.memory._dump_snapshot`, `torch_npu`): pickles and JSON of every generation.

Pickles are of plain values only: nothing in the file can name a function, so nothing in it can run. Not one of 85 real
snapshots needs a global. The limits on memory are for files that ask for more than they hold.
"""

import gc
import io
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any, NoReturn

import numpy as np

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.snapshot import Snapshot, SnapshotDevice
from traceanalyze.readers.detect import Kind, explain, sniff
from traceanalyze.readers.snapshot import columns, native
from traceanalyze.readers.snapshot.columns import Rows, StackTable
from traceanalyze.readers.snapshot.native import Recorded, UnusualError
from traceanalyze.readers.source import Source
from traceanalyze.readers.streams import Stream, open_stream

_REMEDY = Phrase("dump it again with torch.cuda.memory._dump_snapshot, which writes plain values only")
_ROOM = 1 << 28
_PER_BYTE = 16
"""Loaded values take 2.6–5.9 bytes a byte of the file; a file that asks for far more is not a snapshot."""
_PER_PACKED_BYTE, _MOST_PACKED = (400, 70), 700_000_000
"""The same for compressed files of some 30 bytes a byte: the first, up to that many bytes in all, or the second."""


_LONGEST = 64 << 20
"""Bytes of one value; snapshots hold numbers, names and source lines."""


class _RefusedError(Exception):
    """A global, persistent id or huge value in the file; the text names it."""


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
        if len(buffer) > _LONGEST:
            raise _RefusedError(Phrase("a value of {size:,} bytes", len(buffer)))
        return self._stream.readinto(memoryview(buffer))


def load_plain(stream: Stream, name: str, stored_bytes: int | None) -> object:
    """The value a pickle holds; the size of its file, None if unknown, bounds the memory that loading may take.

    Raises:
        InputError: The pickle is truncated or damaged, names code to run, or asks for absurd amounts of memory.
    """
    try:
        with _without_collector(), _at_most(_room(stream, stored_bytes)), _unseen_errors():
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


def _room(stream: Stream, stored_bytes: int | None) -> int | None:
    if stored_bytes is None:
        return None
    if not stream.compressed:
        return stored_bytes * _PER_BYTE
    small, large = (stored_bytes * each for each in _PER_PACKED_BYTE)
    return max(min(small, _MOST_PACKED), large)


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


@contextmanager
def _unseen_errors() -> Iterator[None]:
    """Python prints an error of its own where a bytearray finds no memory; the exception that follows tells it."""
    shown, sys.excepthook = sys.excepthook, lambda *_: None
    try:
        yield
    finally:
        sys.excepthook = shown


def _address_space() -> int | None:
    """Bytes of address space the process has now; None where the system does not tell."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  a file of the kernel
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return None


__all__ = ["read_snapshot"]

_PICKLES = {Kind.SNAPSHOT, Kind.PICKLE}
_TEXTS = {Kind.SNAPSHOT_JSON, Kind.JSON, Kind.TRACE}
_NATIVE = {*_PICKLES, Kind.SNAPSHOT_JSON}
"""Other JSON is most likely no snapshot: it is told only when all of it was read."""
_ADVICE = Phrase("give the file torch.cuda.memory._dump_snapshot wrote")
_TEXT_ROOM = 64 << 20
_POINTER = 1 << 16
"""Stream handles of NPUs are pointers; those of CUDA are small numbers or 0, for the default stream."""


def read_snapshot(source: Source, progress: Callable[[int], None] | None = None, *, natively: bool = True) -> Snapshot:
    """Read one snapshot; `progress` is called with the bytes of the stored file read so far.

    It is read `natively` as far as that is possible, which gives the same.
    """
    with open_stream(source, progress) as stream:
        kind = sniff(stream.head, source.name)
        # What comes through a pipe cannot be read again where this fails.
        quickly = natively and kind in _NATIVE and source.size is not None
        if quickly and (found := _natively(stream, source, is_json=kind not in _PICKLES)) is not None:
            return found
        if quickly:
            value = None
        elif kind in _PICKLES:
            value = load_plain(stream, source.name, source.size)
        elif kind in _TEXTS:
            value = _load_json(stream, source)
        else:
            raise explain(kind, source.name, of_memory=True)
        rows_most = max(stream.text_bytes, 1)
    if quickly:
        return read_snapshot(source, progress, natively=False)
    return _snapshot(value, source.name, rows_most, identity=kind in _PICKLES)


def _natively(stream: Stream, source: Source, *, is_json: bool = False) -> Snapshot | None:
    """What a file holds, None where only its twin can tell, also what is wrong with it."""
    try:
        with _without_collector(), _at_most(_room(stream, source.size)):
            readinto = _bounded(stream, source.name) if is_json else stream.readinto
            value = native.load(readinto, is_json=is_json)
            return _snapshot(value, source.name, max(stream.text_bytes, 1), identity=not is_json)
    except (UnusualError, InputError, MemoryError, RecursionError):
        return None


_TEXT_PER_PACKED_BYTE = 300
"""Real snapshots as JSON hold up to 95 bytes of text in a byte of gzip."""


def _bounded(stream: Stream, name: str) -> Callable[[memoryview], int]:
    """Reads text, if it is not far more than a snapshot can be packed to."""

    def readinto(buffer: memoryview) -> int:
        count = stream.readinto(buffer)
        if stream.swells(stream.text_bytes, _TEXT_ROOM, _TEXT_PER_PACKED_BYTE):
            found = name, stream.text_bytes, stream.consumed, _ADVICE
            raise InputError(
                "{name}: {text:,} bytes of text in {packed:,} of the file are no snapshot; {advice}", *found
            )
        return count

    return readinto


def _text(stream: Stream, name: str) -> bytes:
    """All of the text."""
    buffer, parts, readinto = memoryview(bytearray(1 << 20)), [], _bounded(stream, name)
    while count := readinto(buffer):
        parts.append(bytes(buffer[:count]))
    return b"".join(parts)


def _load_json(stream: Stream, source: Source) -> object:
    try:
        with _without_collector(), _at_most(_room(stream, source.size)):
            return json.loads(_text(stream, source.name))
    except MemoryError:
        raise InputError(
            "{name}: this JSON needs more memory than its size allows for; {advice}", source.name, _ADVICE
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            "{name}: this is not the JSON of a snapshot ({error}); {advice}", source.name, error, _ADVICE
        ) from error


def _snapshot(value: object, name: str, rows_most: int, *, identity: bool) -> Snapshot:
    content: dict[str, Any] = (
        {"segments": value} if isinstance(value, list) else value if isinstance(value, dict) else {}
    )
    if "segments" not in content and "device_traces" not in content:
        raise InputError('{name}: it has neither "segments" nor "device_traces"; {advice}', name, _ADVICE)
    all_segments = _rows(content.get("segments", []), f"{name}: segments")
    traces = content.get("device_traces", [])
    if not isinstance(traces, list):
        raise InputError(
            '{name}: "device_traces" is {type}, not a list; {advice}', name, type(traces).__name__, _ADVICE
        )
    histories = [
        trace if isinstance(trace, Recorded) else _rows(trace, f"{name}: events of device {index}")
        for index, trace in enumerate(traces)
    ]
    pieces = [_rows(row.get("blocks", []), f"{name}: blocks") for row in all_segments]
    recorded = [trace for trace in histories if isinstance(trace, Recorded)]
    lists = [(f"{name}: segment", [all_segments]), (f"{name}: block", pieces)]
    lists += [
        (f"{name}: event of device {index}", [trace])
        for index, trace in enumerate(histories)
        if trace and not isinstance(trace, Recorded)
    ]
    _refuse_bomb(lists, rows_most - sum(map(len, recorded)) * _ROW_BYTES, name)
    spans = sorted(trace.rows for trace in recorded)
    if len(spans) > native.MOST_DEVICES or any(end > begin for (_, end), (begin, _) in pairwise(spans)):
        raise UnusualError
    stacks = StackTable(name, identity=identity)
    device_of = columns.numbers(all_segments, "device", f"{name}: segment", default=0).tolist()
    known = sorted({*device_of, *(index for index, trace in enumerate(histories) if trace)})
    if len(known) > native.MOST_DEVICES:
        raise InputError("{name}: it names {count} devices; {advice}", name, f"{len(known):,}", _ADVICE)
    owned: dict[int, list[tuple[dict[str, Any], Rows]]] = {device: [] for device in known}
    for row, group, owner in zip(all_segments, pieces, device_of, strict=True):
        owned[owner].append((row, group))
    events = dict(enumerate(histories))
    devices = tuple(_device(device, owned[device], events.get(device, []), stacks, name) for device in known)
    settings = content.get("allocator_settings")
    notes = _rows(content.get("external_annotations", []), f"{name}: annotations")
    ranges = columns.user_ranges(notes, f"{name}: annotation")
    unusable = len(notes) - (0 if ranges is None else len(ranges.name))
    pinned = content.get("host_segments") or content.get("host_traces")
    return Snapshot(
        path=name,
        vendor=_vendor(devices, settings),
        devices=devices,
        stacks=stacks.stacks(),
        settings=settings if isinstance(settings, dict) else {},
        annotations=ranges,
        overflowed=_overflowed(content),
        notes=(
            *(
                (Phrase("{count:,} annotation marks without a name or stage were left out", unusable),)
                if unusable
                else ()
            ),
            *((Phrase("pinned host memory is recorded, too; it is not analysed"),) if pinned else ()),
        ),
    )


def _overflowed(content: dict[str, Any]) -> bool | None:
    """Whether the ring buffer of any device forgot events: told by the settings, of all devices or of each."""
    settings = content.get("allocator_settings")
    told = [content, *([settings, *settings.values()] if isinstance(settings, dict) else ())]
    flags = [one.get("trace_alloc_overflowed") for one in told if isinstance(one, dict)]
    known = [flag for flag in flags if isinstance(flag, bool)]
    return any(known) if known else None


def _rows(value: object, where: str) -> Rows:
    """A list of dictionaries, checked."""
    if not isinstance(value, list | tuple):
        raise InputError("{where} are {type}, not a list; {advice}", where, type(value).__name__, _ADVICE)
    if not all(type(row) is dict for row in value):
        odd = next(row for row in value if type(row) is not dict)
        raise InputError("{where} hold {type}, not only dicts; {advice}", where, type(odd).__name__, _ADVICE)
    return value if isinstance(value, list) else list(value)


_ROW_BYTES = 16
"""A row takes more, even one of small numbers whose keys stood in the file before."""


def _refuse_bomb(lists: Sequence[tuple[str, Sequence[Rows]]], size: int, name: str) -> None:
    """Shared references let a small file stand for any number of rows: refuse it, naming the first that comes again."""
    count = sum(len(rows) for _, group in lists for rows in group)
    if count * _ROW_BYTES <= size:
        return
    if count <= size:
        for where, group in lists:
            seen: set[int] = set()
            for index, row in enumerate(chain(*group)):
                if id(row) in seen:
                    found = where, index, _ADVICE
                    raise InputError(
                        "{where} {index}: the same row stood in the file before, which repeats itself by reference; "
                        "{advice}",
                        *found,
                    )
                seen.add(id(row))
        return
    raise InputError(
        "{name}: {rows:,} rows in {most:,} bytes: the file repeats itself by reference; {advice}",
        *(name, count, size, _ADVICE),
    )


def _device(
    device: int, owned: list[tuple[dict[str, Any], Rows]], events: Rows | Recorded, stacks: StackTable, name: str
) -> SnapshotDevice:
    where = f"{name}: segment of device {device}"
    address = columns.numbers([row for row, _ in owned], "address", where, within=columns.ADDRESS)
    owned = [owned[index] for index in np.argsort(address, kind="stable").tolist()]
    groups, pools = [group for _, group in owned], {(0, 0): 0}
    found = columns.segments([row for row, _ in owned], pools, where)
    return SnapshotDevice(
        id=device,
        segments=found,
        blocks=columns.blocks(groups, found.address, stacks, f"{name}: block of device {device}"),
        history=events.history(stacks, pools)
        if isinstance(events, Recorded)
        else columns.history(events, stacks, pools, f"{name}: event of device {device}"),
        pools=tuple(pools),
    )


def _vendor(devices: tuple[SnapshotDevice, ...], settings: object) -> str:
    """An NPU writes neither times nor settings, and its streams are pointers; XPUs use the upper half of addresses."""
    if any((device.segments.address < 0).any() for device in devices):
        return "xpu"
    streams = np.concatenate([device.segments.stream for device in devices]) if devices else np.zeros(0, np.int64)
    timed = any(device.history.time is not None for device in devices)
    return "npu" if not timed and settings is None and len(streams) and (streams > _POINTER).all() else "cuda"
