"""The ways of reading a trace that the scanner is compared with: `python readers.py NAME FILE` prints what one took.

Each runs in a process of its own, so that its memory can be told; imports are done before the clock starts.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_RING = 1 << 18
_PACKED = 1 << 16


def read_ring(path: str) -> Callable[[], int]:
    """`read()` into a ring of 256 KB: what the system needs to hand the bytes over."""

    def work() -> int:
        buffer, total = bytearray(_RING), 0
        with Path(path).open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
        return total

    return work


def inflate(path: str) -> Callable[[], int]:
    """`isal` inflate alone, in blocks of 256 KB (larger ones do not stay in the caches and run at half the speed)."""
    from isal import igzip_lib

    def work() -> int:
        unpacker, total = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP), 0
        with Path(path).open("rb", buffering=0) as file:
            while not unpacker.eof:
                total += len(unpacker.decompress(file.read(_PACKED) if unpacker.needs_input else b"", _RING))
        return total

    return work


def scanner(path: str) -> Callable[[], int]:
    """The native scanner fed by the product's own stream."""
    from traceanalyze.readers.header import EVENT_FIELDS, INSTANT_FIELDS
    from traceanalyze.readers.scan import native, scan
    from traceanalyze.readers.source import Source
    from traceanalyze.readers.streams import open_stream

    if not native.available():
        raise RuntimeError("the native scanner is not built")

    def work() -> int:
        with open_stream(Source(path, size=Path(path).stat().st_size)) as stream:
            found = scan(stream.readinto, event_fields=EVENT_FIELDS, instant_fields=INSTANT_FIELDS)
        return sum(found.phases.values())

    return work


def standard_json(path: str) -> Callable[[], int]:
    """The standard library's parser."""

    def work() -> int:
        document = json.loads(Path(path).read_bytes())
        events = document["traceEvents"] if isinstance(document, dict) else document
        return sum(1 for event in events if event.get("ph"))

    return work


def typed_msgspec(path: str) -> Callable[[], int]:
    """msgspec decoding the columns the scanner keeps into typed structures."""
    from tests.benchmarks.typed import DECODER

    def work() -> int:
        return sum(1 for event in DECODER.decode(Path(path).read_bytes()).events if event.ph)

    return work


READERS: dict[str, Callable[[str], Callable[[], int]]] = {
    "read": read_ring,
    "inflate": inflate,
    "scanner": scanner,
    "json": standard_json,
    "msgspec": typed_msgspec,
}


def main(name: str, path: str) -> None:
    work = READERS[name](path)
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    result = work()
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    json.dump({"wall": wall, "cpu": cpu, "result": result, "before": before.ru_maxrss * 1024}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
