"""Hold the native reader of snapshots against the unpickler and Python's JSON: `snapshots.py COUNT [SEED]`.

The files are mutated. Stops at the first difference, leaves the file behind, and fails.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulate.allocator.dump import dump
from tests.simulate.allocator.pool import Allocator
from tests.simulate.allocator.programs import Loop, train
from traceanalyze.errors import InputError
from traceanalyze.readers import snapshot as reader
from traceanalyze.readers.source import Source

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "snapshots"
_ROWS = 30
"""Events and segments kept of a file: small ones are read often."""
_ODD = (
    *(0, -1, 1, 255, 65536, 2**31, 2**42 - 1, 2**42, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), 2**90),
    *(True, False, None, "", "x", "N/A", "alloc", "oom", "ü\ud800", 1.5, b"x", [], {}, (), (1,), (1, 2), (1, True)),
    *(
        (1, 2, 3),
        [0, 0],
        [[]],
        {"action": "alloc", "size": 5},
        {"filename": "a.py"},
        [{"name": "f"}],
        'File "a", line 3, in b',
    ),
)
_KEYS = (
    *("action", "addr", "size", "stream", "time_us", "frames", "device_free", "pool_id", "segment_pool_id", "name"),
    *("user_metadata", "compile_context", "filename", "line", "fx_original_trace", "blocks", "history", "state", ""),
    *("device_traces", "segments", "trace_alloc_overflowed", "x"),
)
_OPCODES = b"\x80\x95\x94\x8c\x8a\x85\x86\x87\x88\x89hjqrKMJXGN}])(usaet.0123RbQcoi\x81\x82\x8d\x96\x97\x8e\x91\x93"


def plain(value: Any, name: str = "") -> Any:
    """A snapshot, or part of it, that can be compared. Ids of calls differ: only which are equal counts."""
    if isinstance(value, np.ndarray):
        if name == "call":
            first: dict[int, int] = {}
            return [-1 if each == -1 else first.setdefault(each, len(first)) for each in value.tolist()]
        return value.dtype.str, value.tolist()
    if hasattr(value, "_asdict"):
        return {key: plain(each, key) for key, each in value._asdict().items()}
    if hasattr(value, "__dataclass_fields__"):
        return {each.name: plain(getattr(value, each.name), each.name) for each in fields(value)}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    return repr(value)


def difference(found: Any, expected: Any, where: str = "") -> str:
    """The first place where two meanings differ."""
    if type(found) is type(expected) and isinstance(found, dict | list) and len(found) == len(expected):
        for key in found if isinstance(found, dict) else range(len(found)):
            if found[key] != expected[key]:
                return difference(found[key], expected[key], f"{where}.{key}")
    return f"{where}: {found!s:.200} instead of {expected!s:.200}"


def corpus() -> list[Any]:
    """Contents of the simulator's snapshots and, where they are, of the real ones; all cut short."""
    found = [dump(train(Loop(steps=2), Allocator()))]
    found += [pickle.loads(path.read_bytes()) for path in sorted(SHARED.glob("*.pickle"))]
    return [_cut(content) for content in found]


def _cut(content: Any) -> Any:
    if isinstance(content, list):
        return content[:_ROWS]
    kept = dict(content)
    kept["segments"] = kept["segments"][:_ROWS]
    kept["device_traces"] = [trace[-_ROWS:] for trace in kept["device_traces"]]
    if "external_annotations" in kept:
        kept["external_annotations"] = kept["external_annotations"][:_ROWS]
    return kept


def _places(content: Any, rng: random.Random) -> tuple[Any, Any]:
    """A container somewhere in the content, and a key of it."""
    here, key = content, None
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return content, next(iter(content)) if isinstance(content, dict) else 0
        key = rng.choice(keys)
        below = here[key]
        if not isinstance(below, dict | list) or rng.random() < 0.1:
            return here, key
        here = below


def damage_values(content: Any, rng: random.Random) -> bytes:
    """Members and rows changed, lost, repeated, shared."""
    made = copy.deepcopy(content)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        here, key = _places(made, rng)
        what = rng.choice(("odd", "odd", "lost", "other", "named", "moved"))
        if what == "odd":
            here[key] = copy.deepcopy(rng.choice(_ODD))
        elif what == "lost":
            del here[key]
        elif what == "named" and isinstance(here, dict):
            here[rng.choice(_KEYS)] = here.pop(key)
        else:
            there, other = _places(made, rng)
            if what == "moved" or not isinstance(there, list):
                there[other] = here[key]
            else:
                there.insert(other, here[key])
        if not made:
            break
    try:
        return pickle.dumps(made, rng.choice((2, 3, 4, 4, 4, 5)))
    except RecursionError:
        return b"\x80\x04]."


def damage_bytes(text: bytes, rng: random.Random) -> bytes:
    """Opcodes and lengths changed."""
    made = bytearray(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, size = rng.randrange(len(made)), rng.choice((1, 1, 1, 2, 5, 9, 60))
        what = rng.choice(("byte", "byte", "opcode", "lost", "inserted", "repeated", "number", "cut"))
        if what == "byte":
            made[at] = rng.randrange(256)
        elif what == "opcode":
            made[at] = rng.choice(_OPCODES)
        elif what == "lost":
            del made[at : at + size]
        elif what == "inserted":
            made[at:at] = bytes(rng.choice(_OPCODES) for _ in range(size))
        elif what == "repeated":
            made[at:at] = made[at : at + 40 * size]
        elif what == "number":
            made[at : at + 4] = rng.choice((0, 1, 255, 2**20, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
        elif len(made) > 2 and rng.random() < 0.2:
            del made[at:]
        made = made or bytearray(b".")
    return bytes(made)


_TOKENS = (
    *(
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b" ",
        b"\t",
        b"\x00",
        b"\\",
        b"\\n",
        b"\\u00e9",
        b"\\ud83d\\ude00",
        b"\\ud83d",
    ),
    *(b"-0", b"01", b"1e5", b"0.25", b"1.0E-3", b"1.", b"NaN", b"null", b"true", b"18446744073709551615", "ü".encode()),
)


def as_json(text: bytes, rng: random.Random) -> bytes:
    """The same content as JSON, tokens and bytes changed in some; what JSON cannot hold stays a pickle."""
    try:
        content = json.dumps(pickle.loads(text), ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1)))
    except (TypeError, ValueError, RecursionError):
        return text
    made = bytearray(content.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((0, 0, 1, 2))):
        at, size = rng.randrange(len(made) + 1), rng.choice((0, 1, 2, 9))
        made[at : at + size] = rng.choice((rng.choice(_TOKENS), made[at : at + 40], rng.randbytes(1)))
    return bytes(made)


def files(rng: random.Random) -> Iterator[bytes]:
    """Mutated files without end."""
    contents = corpus()
    while True:
        content = rng.choice(contents)
        text = damage_values(content, rng)
        if rng.random() < 0.3:
            yield as_json(text, rng)
        else:
            yield damage_bytes(text, rng) if rng.random() < 0.4 else text


def compare(count: int, seed: int, path: Path) -> tuple[str, int]:
    """What differs first in `count` files (left in `path`), and how many were read natively."""
    made, natively = files(random.Random(seed)), 0
    for _ in range(count):
        text = next(made)
        path.write_bytes(text)
        source = Source(str(path), size=len(text))
        with reader.open_stream(source) as stream:
            found = reader._natively(stream, source, is_json=text[:1] in b"{[")
        if found is None:
            continue  # its twin has the word
        natively += 1
        try:
            expected = plain(reader.read_snapshot(source, natively=False))
        except InputError as error:
            expected = str(error)
        if plain(found) != expected:
            return difference(plain(found), expected), natively
    return "", natively


def main(count: int, seed: int) -> int:
    """Compare `count` files."""
    start = time.monotonic()
    with tempfile.NamedTemporaryFile(delete=False, suffix=".pickle") as file:
        path = Path(file.name)
    wrong, natively = compare(count, seed, path)
    if wrong:
        print(f"{path}\n{wrong[:4000]}")
        return 1
    path.unlink()
    print(f"{count} snapshots agree, {natively} read natively, {count / (time.monotonic() - start):.0f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
