"""Scalars of TensorBoard's event files: records with checksums, and four fields of two protobuf messages.

tensorflow/tensorboard `event.proto`, `summary.proto`, `tensor.proto`; the lengths carry a CRC-32C. The end of a file is
torn wherever its writer was killed. Images and histograms, the bulk of large files, are passed over by their length.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Iterator
from typing import Final

import numpy as np

from traceanalyze.errors import InputError
from traceanalyze.incident.evidence import Event, Evidence, FileRead, Series, Source, What
from traceanalyze.incident.lines import YEAR_2200
from traceanalyze.readers.streams import Stream

_LONGEST: Final = 1 << 16
"""Bytes of a record of scalars; more is an image or a histogram."""
_TAGS: Final = 10_000
_NAMES: Final = {
    "loss_metrics/global_avg_loss": ("loss", ""),
    "throughput(tps)": ("throughput", "tokens/s"),
    "time_metrics/end_to_end(s)": ("step_time", "s"),
    "time_metrics/data_loading(s)": ("data_time", "s"),
    "lm loss": ("loss", ""),
    "iteration-time": ("step_time", "s"),
    "grad-norm": ("grad_norm", ""),
    "grad_norm": ("grad_norm", ""),
    "loss-scale": ("loss_scale", ""),
    "train/loss": ("loss", ""),
    "train/grad_norm": ("grad_norm", ""),
    "train_loss": ("loss", ""),
    "train_loss_step": ("loss", ""),
    "loss": ("loss", ""),
}
"""Usual tags: torchtitan, Megatron-LM, transformers, Lightning."""


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_CRC: Final = _table()


def masked_crc(data: bytes) -> int:
    """The checksum of a record's part."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def is_event_file(head: bytes) -> bool:
    """Whether a file begins with the record of an event file."""
    return len(head) >= 12 and masked_crc(head[:8]) == int.from_bytes(head[8:12], "little")


def read_events(stream: Stream, path: str, size: int) -> Evidence:
    """Series of all scalars, and where the writer began."""
    found: dict[str, tuple[array[int], array[int], array[float]]] = {}
    starts: list[Event] = []
    count = understood = 0
    first = last = None
    fault = ""
    try:
        for data, why in _records(stream):
            fault = why
            if why:
                break
            count += 1
            time, step, started, values = _event(data)
            if not 0 <= time < YEAR_2200 or abs(step) >= 1 << 62:
                continue
            ns = int(time * 1e9)
            first = ns if first is None else first
            last = ns
            if started:
                source = Source(path, count)
                starts.append(Event(What.RESTART, "the writer of the event file starts", source, ns, "utc", ns))
            told = False
            for tag, value in values:
                if tag in found or len(found) < _TAGS:
                    steps, times, column = found.setdefault(tag, (array("q"), array("q"), array("d")))
                    steps.append(step)
                    times.append(ns)
                    column.append(value)
                    told = True
            understood += told
    except InputError as error:
        fault = str(error)
    series = []
    for tag, columns in found.items():
        name, unit = _NAMES.get(tag, (tag, ""))
        arrays = np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], np.float64)
        series.append(Series(name, unit, *arrays, Source(path), clock="utc"))
    read = FileRead(path, "tensorboard", size, count, understood, fault=fault, clock="utc")
    return Evidence(tuple(starts), tuple(series), files=(read._replace(first_ns=first, last_ns=last),))


class _Bytes:
    """Bytes of a stream as they are asked for; fewer at its end."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._block = stream, memoryview(bytearray(1 << 18))
        self._rest = memoryview(b"")

    def take(self, count: int) -> bytes:
        parts, missing = list[bytes](), count
        while missing and self._more():
            parts.append(bytes(self._rest[:missing]))
            self._rest = self._rest[missing:]
            missing -= len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def skip(self, count: int) -> int:
        """Pass over bytes; how many of them there are not."""
        while count and self._more():
            passed = min(count, len(self._rest))
            self._rest, count = self._rest[passed:], count - passed
        return count

    def _more(self) -> bool:
        if not self._rest:
            self._rest = self._block[: self._stream.readinto(self._block)]
        return len(self._rest) > 0


def _records(stream: Stream) -> Iterator[tuple[bytes, str]]:
    """Records one by one, of long ones nothing; ends with why the rest cannot be read, where there is any."""
    source = _Bytes(stream)
    while head := source.take(12):
        if len(head) < 12:
            yield b"", f"the last record is torn: {len(head)} bytes are left"
            return
        if not is_event_file(head):
            yield b"", "a record is damaged: the rest is not read"
            return
        (length,) = struct.unpack_from("<Q", head)
        data = source.take(length) if length <= _LONGEST else b""
        missing = source.skip(length - len(data) + 4)
        if missing:
            yield b"", f"the last record is torn: {missing:,} bytes of it are missing"
            return
        yield data, ""


def _fields(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Fields of a message: number, kind on the wire, value of a varint, bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, kind, value, b""
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in {1, 5}:
            length = 8 if kind == 1 else 4
        else:
            return
        if at + length > len(data):
            return
        yield key >> 3, kind, 0, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return value, at


def _event(data: bytes) -> tuple[float, int, bool, list[tuple[str, float]]]:
    time, step, started, values = math.nan, 0, False, list[tuple[str, float]]()
    for number, kind, value, part in _fields(data):
        if number == 1 and kind == 1:
            (time,) = struct.unpack("<d", part)
        elif number == 2 and kind == 0:
            step = value
        elif number == 5 and kind == 2:
            scalars = (_scalar(summary) for field, _, _, summary in _fields(part) if field == 1)
            values += [one for one in scalars if one is not None]
        elif number == 7 and kind == 2:
            # SessionLog: 1 is START.
            started = any(field == 1 and status == 1 for field, _, status, _ in _fields(part))
    return time, step, started, values


def _scalar(summary: bytes) -> tuple[str, float] | None:
    tag, value, plugin, tensor = "", None, b"", None
    for number, kind, _, part in _fields(summary):
        if number == 1 and kind == 2:
            tag = part[:200].decode("utf-8", "replace")
        elif number == 2 and kind == 5:
            (value,) = struct.unpack("<f", part)
        elif number == 8 and kind == 2:
            tensor = part
        elif number == 9 and kind == 2:
            plugin = part
    if value is None and tensor is not None and b"scalars" in plugin:
        value = _tensor(tensor)
    return None if value is None or not tag else (tag, value)


def _tensor(data: bytes) -> float | None:
    """The number in a tensor of one: float or double, packed or as raw bytes."""
    dtype, raw = 0, b""
    for number, kind, value, part in _fields(data):
        if number == 1 and kind == 0:
            dtype = value
        elif number in {4, 5, 6} and kind in {1, 2, 5}:
            raw = part or raw
    form = {1: "<f", 2: "<d"}.get(dtype)
    if form is None or len(raw) < struct.calcsize(form):
        return None
    return float(struct.unpack_from(form, raw)[0])
