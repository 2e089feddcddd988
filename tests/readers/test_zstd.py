"""Zstandard files are read by content, several frames are one text, and damage is said."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import traceanalyze
from tests.builder import TraceBuilder
from traceanalyze.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from pathlib import Path


def text(launches: int = 300) -> bytes:
    b = TraceBuilder()
    b.step(1, 0, 100)
    for index in range(launches):
        b.launch(index / 10, 0.05, index / 4, 0.2, name=f"kernel_{index}")
    return b.text().encode()


@pytest.mark.parametrize("name", ["trace.json.zst", "trace.json", "trace.gz"])
@pytest.mark.parametrize("frames", [1, 3])
def test_the_same_trace_comes_out(tmp_path: Path, name: str, frames: int) -> None:
    plain = tmp_path / "plain.json"
    plain.write_bytes(text())
    size = len(text()) // frames + 1
    packed = b"".join(zstd.compress(text()[at : at + size]) for at in range(0, len(text()), size))
    (tmp_path / name).write_bytes(packed)
    (found,), (wanted,) = (traceanalyze.load(path).traces for path in (tmp_path / name, plain))
    assert found.events.ts.tolist() == wanted.events.ts.tolist()
    assert found.origin.compressed
    assert found.origin.text_bytes == len(text())


def test_a_cut_stream_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.zst"
    packed = zstd.compress(text(launches=6000))
    path.write_bytes(packed[: len(packed) * 2 // 3])
    (trace,) = traceanalyze.load(path).traces
    assert trace.read.truncated
    assert 0 < len(trace.events) < 12_000


def test_damage_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.zst"
    packed = bytearray(zstd.compress(text()))
    packed[8:40] = b"\xff" * 32
    path.write_bytes(bytes(packed))
    with pytest.raises(InputError, match="zstd"):
        traceanalyze.load(path)
