"""What two scans must have in common, and the documents to try it on."""

from __future__ import annotations

import gzip
import io
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from traceanalyze.readers.scan import native, twin
from traceanalyze.readers.scan.result import MAX_VALUE_BYTES, Field, Kind, Part, Read, Scan

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from traceanalyze.model.columns import Sparse

INT64_MIN = -(2**63)
ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT.parent / "shared" / "traces"

EVENT_FIELDS = (
    Field("correlation", Kind.INT, ("correlation",)),
    Field("external_id", Kind.INT, ("External id", "external id")),
    Field("device", Kind.INT, ("device",)),
    Field("stream", Kind.INT, ("stream",)),
    Field("bytes", Kind.INT, ("bytes", "size")),
    Field("sequence", Kind.INT, ("Sequence number",)),
    Field("fwd_thread", Kind.INT, ("Fwd thread id",)),
    Field("shapes", Kind.TEXT, ("Input Dims",)),
    Field("dtypes", Kind.TEXT, ("Input type",)),
    Field("stack", Kind.TEXT, ("Call stack",)),
    Field("module", Kind.TEXT, ("Module Hierarchy",)),
    Field("collective", Kind.TEXT, ("Collective name",)),
    Field("group", Kind.TEXT, ("Process Group Name",)),
)
INSTANT_FIELDS = (
    Field("bytes", Kind.INT, ("Bytes",)),
    Field("addr", Kind.INT, ("Addr",)),
    Field("total_allocated", Kind.INT, ("Total Allocated",)),
    Field("total_reserved", Kind.INT, ("Total Reserved",)),
    Field("device_type", Kind.INT, ("Device Type",)),
    Field("device", Kind.INT, ("Device Id",)),
)

# Fields that no profiler has: every kind, aliases across fields, keys with several kinds, a key of both lists.
ODD_EVENT_FIELDS = (
    *EVENT_FIELDS,
    Field("occupancy", Kind.REAL, ("est. achieved occupancy %", "x")),
    Field("x_text", Kind.TEXT, ("x", "stream")),
    Field("x_int", Kind.INT, ("x", "y", "x")),
    Field("y_any", Kind.TEXT, ("y",)),
)
ODD_INSTANT_FIELDS = (*INSTANT_FIELDS, Field("x", Kind.REAL, ("x", "Bytes")), Field("y", Kind.TEXT, ("y",)))


def scan_native(
    text: bytes,
    block_bytes: int = 1 << 18,
    *,
    learn: bool = True,
    odd: bool = True,
    max_value_bytes: int = MAX_VALUE_BYTES,
    cuts: Sequence[int] = (),
) -> Scan:
    """The native scan of a text, fed in blocks of the given size; in parts that begin at `cuts`."""
    event_fields, instant_fields = (ODD_EVENT_FIELDS, ODD_INSTANT_FIELDS) if odd else (EVENT_FIELDS, INSTANT_FIELDS)
    bounds = list(pairwise((*cuts, len(text))))
    root = "object" if text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "list"

    def part(begin: int, end: int) -> Read:
        return io.BytesIO(text[begin:end]).readinto

    return native.scan(
        io.BytesIO(text[: cuts[0]] if cuts else text).readinto,
        event_fields=event_fields,
        instant_fields=instant_fields,
        max_value_bytes=max_value_bytes,
        block_bytes=block_bytes,
        learn=learn,
        parts=[Part(begin, root, partial(part, begin, end)) for begin, end in bounds] if cuts else (),
    )


def scan_twin(text: bytes, *, odd: bool = True, max_value_bytes: int = MAX_VALUE_BYTES) -> Scan:
    """The twin's scan of a text."""
    event_fields, instant_fields = (ODD_EVENT_FIELDS, ODD_INSTANT_FIELDS) if odd else (EVENT_FIELDS, INSTANT_FIELDS)
    return twin.scan(
        io.BytesIO(text).readinto,
        event_fields=event_fields,
        instant_fields=instant_fields,
        max_value_bytes=max_value_bytes,
    )


def meaning(scan: Scan, *, odd: bool = True) -> dict[str, Any]:
    """A scan with its codes replaced by what they stand for."""
    texts = np.empty(len(scan.strings), object)
    texts[:] = [scan.strings.raw(code) for code in range(len(scan.strings))]
    ids = scan.flows.id
    # A text is named by its code, which two scanners may choose differently.
    named = (ids - INT64_MIN).astype(np.uint64) < len(texts)
    kinds = {
        "events": {field.name: field.kind for field in (ODD_EVENT_FIELDS if odd else EVENT_FIELDS)},
        "instants": {field.name: field.kind for field in (ODD_INSTANT_FIELDS if odd else INSTANT_FIELDS)},
    }
    found: dict[str, Any] = {}
    for table in ("events", "instants", "flows"):
        columns = getattr(scan, table)
        for column in type(columns).__annotations__:
            values = getattr(columns, column)
            where = f"{table}.{column}"
            if column == "fields":
                for name, sparse in values.items():
                    found[f"{where}.{name}"] = _sparse(sparse, kinds[table][name], texts)
            elif column in {"name", "cat"}:
                found[where] = texts[values].tolist()
            else:
                found[where] = (values.dtype.str, values.tolist())
    found["flows.id"] = [texts[i - INT64_MIN] if text else i for i, text in zip(ids.tolist(), named, strict=True)]
    found["tracks"] = texts[scan.tracks].tolist()
    for rest in ("metadata", "header", "phases", "counts", "fault", "root", "truncated", "size", "fractional"):
        found[rest] = getattr(scan, rest)
    found["metadata"] = list(scan.metadata)
    return found


def _sparse(sparse: Sparse, kind: Kind, texts: Any) -> Any:
    values = texts[sparse.value] if kind is Kind.TEXT else sparse.value.view(np.int64)  # tells -0.0 from 0.0
    return sparse.row.dtype.str, sparse.row.tolist(), values.tolist()


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """The first thing in which two meanings differ, "" if there is none."""
    for key in sorted(one.keys() | other.keys()):
        if one.get(key) != other.get(key):
            return f"{key}: {str(one.get(key))[:500]} != {str(other.get(key))[:500]}"
    return ""


def read(path: Path) -> bytes:
    """The text of a trace, inflated if need be."""
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def real_traces() -> list[Path]:
    """The traces at hand, smallest first; none where the collection is absent."""
    found = [path for pattern in ("*.json", "*.json.gz") for path in TRACES.rglob(pattern)]
    return sorted(found, key=lambda path: path.stat().st_size)


def head(text: bytes, size: int) -> bytes:
    """About `size` bytes of a trace: the root, the first events, and whatever is cut off."""
    begin = text.find(b'"traceEvents"')
    return b"{" + text[begin : begin + size] if begin >= 0 else text[:size]


HAND_MADE = (
    b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"stream":7}}]}',
    b'[{"name":"a","ph":"X","pid":"p","tid":null,"ts":"1736408883688177.930","dur":"145.57","args":{"x":1,"y":[]}},]',
    (
        b'\xef\xbb\xbf {"schemaVersion": 1, "traceEvents": [\n{"ph": "M", "name": "process_name", "pid": 1, "tid": 0,\n'
        b' "args": {"name": "py\\u0074hon \\ud83d\\ude00 \\ud800 \\q"}}\n  ], "end": [1, {"a": "b"}]}\n'
    ),
    b'[{"ph":"s","id":12,"ts":1,"pid":0,"tid":0},{"ph":"f","id":"0x1","ts":2},{"ph":"t","id":-0,"ts":3,"cat":"c"}]',
    b'[{"ph":"i","ts":1,"args":{"Bytes":-5,"Addr":18446744073709551615,"x":1e400,"y":"\\n"},"s":"t"},3,"x",[1],null]',
    b'{"a":1,"traceEvents":[{"ph":"X","ts":1,"dur":1},{"ph":"X","ts":x!},{"ph":"X","ts":3,"dur":0.0005}],"b":}',
    b'{"a":{"b":[1,2 3]},"traceEvents":[{"args":{"ph":"no"},"ph":"X","ts":1e3,"dur":2E-2}]}{',
    b'[{"ph":"X","ts":9223372036854775.807,"dur":0},{"ph":"X","ts":1,"dur":9223372036854775.807},{"ph":"X","ts":1}]',
    b'[{"ph":"X","ts":1,"dur":-1,"args":{"x":1},"args":{"x":2,"y":{"ph":"X"}}},{"ph":5},{"ph":""},{},{"ph":"B"}]',
    b'[{"ph":"B","ts":1,"name":"a","args":{"x":1}},{"ph":"X","ts":2,"dur":3},{"ph":"E","ts":9.5},{"ph":"E"}]',
    b'[{"ph":"X","name":"q\\"uote","ts":1,"dur":1,"args":{"Input Dims":[[2,3],[],"a,]"],"Input type":["x\\"]",""]}}]',
)

TOKENS = (
    *b'{}[]:,"\\ \n\t\r.-+eE0159',
    *(b'"ph"', b'"X"', b'"i"', b'"M"', b'"s"', b'"ts"', b'"dur"', b'"pid"', b'"tid"', b'"name"', b'"cat"', b'"args"'),
    *(b'"id"', b'"x"', b'"y"', b'"stream"', b'"traceEvents"', b'{"ph":', b'"traceEvents":[', b"null", b"NaN", b"[[]]"),
    *(b"1e5", b"-0", b"0.0005", b"1.0015", b"9223372036854775807", b"18446744073709551616", b"1e-400", b"}},{"),
    *(b"\\u0041", b"\\ud83d\\ude00", b"\\udc00", b"\\n", b'\\"', b"\xff", b"\x00", b"\xef\xbb\xbf", b" " * 257),
    *(b"[" * 65, b"]" * 65, b'{"args":{', b', "tid": ', b'", "ts": ', b"1234567890123456.789", b'"stream": 7,'),
)
_PIECES = tuple(bytes([token]) if isinstance(token, int) else token for token in TOKENS)
_TOKEN = re.compile(rb'"[^"]*"|[\w.+-]+|[ \n]+|.', re.DOTALL)


def mutated(text: bytes, rng: random.Random) -> bytes:
    """A text with one to six small accidents."""
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(data) + 1)
        size = rng.choice((1, 1, 2, 5, 20, 100))
        match rng.randrange(8):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + size]
            case 2:
                data[at:at] = data[at : at + size]
            case 3:
                data[at:at] = rng.choice(_PIECES)
            case 4:
                data[at : at + size] = rng.choice(_PIECES)
            case 5:
                other = rng.randrange(len(data) + 1)
                data[at:at] = data[other : other + rng.choice((5, 50, 300))]
            case 6 if rng.random() < 0.3:
                del data[at:]
            case _:
                _swap_tokens(data, rng)
    return bytes(data)


def _swap_tokens(data: bytearray, rng: random.Random) -> None:
    tokens = _TOKEN.findall(bytes(data))
    if tokens:
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
        data[:] = b"".join(tokens)


def documents(rng: random.Random) -> Iterator[bytes]:
    """Small documents without end: heads of real traces and hand-made ones, most of them mutated."""
    seeds = list(HAND_MADE)
    for path in real_traces():
        text = read(path)
        seeds += [head(text, size) for size in (300, 1500, 5000)]
        middle = text.find(b'"ph"', len(text) // 2) - 8
        seeds += [b"[" + text[max(middle, 0) :][:size] for size in (800, 3000)]
    while True:
        seed = rng.choice(seeds)
        if rng.random() < 0.2:  # an accident in a text that the automaton has learned from
            seed += b"," + seed
        yield mutated(seed, rng) if rng.random() < 0.95 else seed
