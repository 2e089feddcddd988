"""Makes big traces of small ones: `python tests/benchmarks/tile.py TRACE MEGABYTES OUT[.gz]` prints the bytes of text.

The text of the events is repeated as its producer laid it out, with times, ids and step numbers moved on, so that each
copy is a valid continuation of the one before.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_MB = 1_000_000
_NUMBERS = re.compile(
    rb'(?P<ts>"ts":\s*"?)(?P<at>\d+)'
    rb'|(?P<id>"(?:correlation|[Ee]xternal id|id|Python id|Python parent id|Ev Idx|Record function id)":\s*)'
    rb"(?P<key>[1-9]\d*)"
    rb"|(?P<step>ProfilerStep#)(?P<number>\d+)"
)


@dataclass(frozen=True, slots=True)
class Tile:
    """The events' text cut at every number that moves: `texts[0] numbers[0] texts[1] …`."""

    head: bytes
    texts: list[bytes]
    numbers: list[int]
    strides: list[int]
    """By how much each number moves from copy to copy."""
    tail: bytes

    def copies(self, count: int) -> Iterator[bytes]:
        """The text of the first, second, … copy, without the commas between."""
        for copy in range(count):
            moved = [
                b"%d" % (number + copy * stride) for number, stride in zip(self.numbers, self.strides, strict=True)
            ]
            yield b"".join(part for pair in zip(self.texts, [*moved, b""], strict=True) for part in pair)


def tile(path: Path) -> Tile:
    """Cut a trace into what repeats and what does not."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "surrogateescape")
    found = re.search(r'"traceEvents":\s*\[', text)
    begin = found.end() if found else text.index("[") + 1
    _, end = json.JSONDecoder(strict=False).raw_decode(text, begin - 1)
    body = text[begin : end - 1].rstrip().encode("utf-8", "surrogateescape")
    head, tail = (part.encode("utf-8", "surrogateescape") for part in (text[:begin], text[end - 1 :]))
    return Tile(head, *_cut(body), tail)


def _cut(body: bytes) -> tuple[list[bytes], list[int], list[int]]:
    texts, numbers, kinds, done = [], [], [], 0
    for match in _NUMBERS.finditer(body):
        kind = next(name for name in ("ts", "id", "step") if match[name] is not None)
        number = match["at"] or match["key"] or match["number"]
        start = match.end() - len(number)
        texts.append(body[done:start])
        numbers.append(int(number))
        kinds.append(kind)
        done = match.end()
    texts.append(body[done:])
    strides = {
        kind: _extent([number for number, own in zip(numbers, kinds, strict=True) if own == kind], kind)
        for kind in set(kinds)
    }
    return texts, numbers, [strides[kind] for kind in kinds]


def _extent(numbers: list[int], kind: str) -> int:
    """How far apart copies lie: times past the last one plus room for its duration, ids past the largest."""
    present = [number for number in numbers if number]
    if not present:
        return 0
    return max(present) + 1 if kind == "id" else max(present) - min(present) + (1_000_000 if kind == "ts" else 1)


def write(source: Path, size: int, out: BinaryIO) -> int:
    """Write copies of the events of `source` until there are `size` bytes; returns the bytes written."""
    cut = tile(source)
    one = sum(map(len, cut.texts)) + sum(len(str(number)) for number in cut.numbers)
    count = max(1, round((size - len(cut.head) - len(cut.tail)) / one))
    written = out.write(cut.head)
    for index, copy in enumerate(cut.copies(count)):
        written += out.write(b"," + copy if index else copy)
    return written + out.write(cut.tail)


class _Gzip:
    """Compresses as profilers do: zlib, usual level."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._packer = zlib.compressobj(6, zlib.DEFLATED, 31)

    def write(self, data: bytes) -> int:
        self._out.write(self._packer.compress(data))
        return len(data)

    def close(self) -> None:
        self._out.write(self._packer.flush())


def make(source: Path, size: int, target: Path) -> int:
    """Tile `source` to about `size` bytes of text in the file `target`, packed if its name ends in .gz."""
    with target.open("wb") as out:
        if target.suffix != ".gz":
            return write(source, size, out)
        packer = _Gzip(out)
        written = write(source, size, packer)  # type: ignore[arg-type]
        packer.close()
        return written


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), int(float(sys.argv[2]) * _MB), Path(sys.argv[3])))
