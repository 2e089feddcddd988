"""Host events of a database: operators, Python functions, the task queue, CANN calls, marks, garbage collection."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.patterns import regex
from traceanalyze.readers.ascend.db_file import Columns, Reading, StringIds, block, known, select, selected, timed
from traceanalyze.readers.ascend.shared import (
    ABSENT,
    CANN,
    GC,
    NO_TEXT,
    OP,
    PYTHON,
    QUEUE,
    Block,
    Records,
    dtypes_as_json,
    index_of,
    joined_records,
    shapes_as_json,
    values_at,
)
from traceanalyze.readers.ascend.tables import GRAPH_ENGINE_POOL, POOL


def _stack_codes(reading: Reading, chain: NDArray[np.int64]) -> NDArray[np.int32]:
    """Code of the stack of each row by its `callchainId`; `NO_TEXT` for none."""
    table = reading.database.integers("PYTORCH_CALLCHAINS", ["id", "stack", "stackDepth"])
    frame = reading.strings.of(table["stack"])
    order = np.lexsort((table["stackDepth"], table["id"]))
    order = order[(frame[order] >= 0) & (table["id"][order] != ABSENT)]
    owner, frame = table["id"][order], frame[order]
    first = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))) if len(owner) else owner
    stacks, of = _distinct(frame, first)
    text = reading.strings.table.text
    codes = reading.strings.texts.codes(";\r\n".join(map(text, frames)) for frames in stacks)
    return values_at(codes[of], index_of(owner[first], chain), NO_TEXT)


def _distinct(frame: NDArray[np.int32], first: NDArray[np.int64]) -> tuple[list[list[int]], NDArray[np.int64]]:
    """Distinct stacks, and which one each chain is; `first` holds the places where chains begin.

    Stacks are distinguished by a hash, then verified frame by frame; if two of them share a hash, another is tried.
    """
    if len(first) == 0:
        return [], first
    length = np.diff(np.append(first, len(frame)))
    level = np.arange(len(frame)) - np.repeat(first, length)
    for seed in itertools.count():
        mixed = _mixed(frame.astype(np.uint64) + (level.astype(np.uint64) << np.uint64(32)) + np.uint64(seed << 56))
        _, example, of = np.unique(np.add.reduceat(mixed, first), return_index=True, return_inverse=True)
        like = example[of.reshape(-1)]
        if (length == length[like]).all() and (frame == frame[np.repeat(first[like], length) + level]).all():
            break
    stacks = [frame[first[one] : first[one] + length[one]].tolist() for one in example.tolist()]
    return stacks, of.reshape(-1)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter numbers over all 64 bits (the finaliser of SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))


_API = (
    *("startNs", "endNs", "globalTid", "connectionId", "name", "sequenceNumber", "fwdThreadId"),
    *("inputDtypes", "inputShapes", "callchainId", "type"),
)
_ANNOTATION = "user_annotation"
_OP, _QUEUE, _TRACE, _MARK = 50001, 50002, 50003, 50004
_TYPES = {_OP: OP, _QUEUE: QUEUE, _TRACE: PYTHON, _MARK: _ANNOTATION}
_LAYERS = {20000: "AscendCL", 15000: "Model", 10000: "Node", 5500: "Hccl", 5000: "Runtime"}
"""CANN's layers by the number in `CANN_API.type`, as the text export calls them."""
_LETTER = regex(r"[A-Za-z]")
_STEP = regex(rb"ProfilerStep#\d+")


def framework_events(reading: Reading, connections: Columns) -> tuple[list[Block], NDArray[np.int64]]:
    """PYTORCH_API by kind, and the key into CONNECTION_IDS of each operator, the rows of the first block.

    A kind that is not known becomes a category of its own, `pytorch_api_<number>`. `connections` is CONNECTION_IDS.
    """
    table = timed(reading, reading.database.integers("PYTORCH_API", _API))
    kind, strings = table["type"], reading.strings
    dtypes, shapes = _arguments(strings, table)
    fields: dict[str, NDArray[Any]] = {
        "sequence": table["sequenceNumber"],
        "fwd_thread": table["fwdThreadId"],
        "shapes": strings.texts.mapped(shapes, shapes_as_json),
        "dtypes": strings.texts.mapped(dtypes, dtypes_as_json),
        "stack": _stack_codes(reading, table["callchainId"]),
        "queue_id": np.where(kind == _QUEUE, _queue_ids(connections, table["connectionId"]), ABSENT),
    }
    whole = block("", table, strings.names(table["name"]), reading.threads(table["globalTid"]), fields)
    kinds = [_OP, *sorted(set(kind.tolist()) - {_OP})]
    blocks = [selected(whole, _TYPES.get(one, f"pytorch_api_{one}"), kind == one) for one in kinds]
    return blocks, table["connectionId"][kind == _OP]


def _arguments(strings: StringIds, table: Columns) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Codes of element types and shapes. CANN 8.0 writes each into the other's column: types are what has letters.

    Shapes that are missing beside types are the empty text, of calls whose only argument is a scalar.
    """
    columns = [strings.of(table[name]) for name in ("inputDtypes", "inputShapes")]
    filled = [column >= 0 for column in columns]
    letters = [strings.table.matches(np.maximum(column, 0), _LETTER.search) for column in columns]
    lettered = [have & letter for have, letter in zip(filled, letters, strict=True)]

    def first(wanted: list[NDArray[np.bool_]]) -> NDArray[np.int32]:
        return np.where(wanted[0], columns[0], np.where(wanted[1], columns[1], NO_TEXT)).astype(np.int32)

    dtypes, shapes = first(lettered), first([have & ~letter for have, letter in zip(filled, lettered, strict=True)])
    return dtypes, np.where((dtypes >= 0) & (shapes < 0), 0, shapes).astype(np.int32)


def _queue_ids(connections: Columns, connection: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number that Enqueue and Dequeue share in the text export; the id of the connection where it has none."""
    found = values_at(connections["connectionId"], index_of(connections["id"], connection), ABSENT)
    return np.where(found == ABSENT, connection, found)


def cann_calls(reading: Reading) -> Block:
    """CANN_API, named as the text export does: `Node@launch`."""
    names = ("startNs", "endNs", "type", "globalTid", "connectionId", "name")
    table = timed(reading, reading.database.integers("CANN_API", names))
    layers = _LAYERS | {
        number: text.capitalize()
        for number, text in reading.database.vocabulary("ENUM_API_TYPE").items()
        if number not in _LAYERS or text.lower() == "communication"
    }
    plain = reading.strings.names(table["name"])
    name = np.zeros(len(plain), np.int32)
    for layer in set(table["type"].tolist()):
        calls = table["type"] == layer
        prefix = layers.get(layer, str(layer))
        name[calls] = reading.strings.texts.mapped(plain[calls], f"{prefix}@{{}}".format)
    return block(CANN, table, name, reading.threads(table["globalTid"]), {"correlation": known(table["connectionId"])})


def garbage_collections(reading: Reading) -> Block:
    """GC_RECORD."""
    table = timed(reading, reading.database.integers("GC_RECORD", ["startNs", "endNs", "globalTid"]))
    name = np.full(len(table["startNs"]), reading.strings.texts.code("GC"), np.int32)
    return block(GC, table, name, reading.threads(table["globalTid"]), {})


def marks(reading: Reading) -> Block:
    """MSTX_EVENTS: ranges that the program marked; a mark without an end lasts no time."""
    table = reading.database.integers("MSTX_EVENTS", ["startNs", "endNs", "message", "globalTid"])
    table["endNs"] = np.where(table["endNs"] == ABSENT, table["startNs"], table["endNs"])
    table = timed(reading, table)
    return block(_ANNOTATION, table, reading.strings.names(table["message"]), reading.threads(table["globalTid"]), {})


def step_markers(reading: Reading, framework: list[Block]) -> Block:
    """STEP_TIME as `ProfilerStep#N` on the main thread; nothing when the operators hold these already."""
    table = timed(reading, reading.database.integers("STEP_TIME", ["id", "startNs", "endNs"]))
    codes = [code for text, code in reading.strings.known.items() if _STEP.fullmatch(text)]
    if any(np.isin(part.name, codes).any() for part in framework):
        table = select(table, np.empty(0, np.int64))
    name = reading.strings.texts.codes(f"ProfilerStep#{number}" for number in table["id"].tolist())
    pid = main_thread(reading)
    return block(_ANNOTATION, table, name, reading.tracks_of(table["id"] * 0, lambda _: (pid, pid)), {})


def main_thread(reading: Reading) -> str:
    """Process id, and id of its main thread as on Linux: of the first process that has a thread of its own number."""
    processes = [pid for pid, _ in reading.tracks]
    return next((pid for pid in processes if (pid, pid) in reading.tracks), next(iter(processes), "0"))


_OPERATORS = (
    *("size", "allocationTime", "releaseTime", "allocationTotalAllocated", "allocationTotalReserved"),
    *("releaseTotalAllocated", "releaseTotalReserved", "deviceId"),
)


def allocator_records(reading: Reading) -> Records:
    """OP_MEMORY, and those records of MEMORY_RECORD's pool of PyTorch that are at other times.

    What the graph engine allocates, from a pool of its own, is told by the records of that pool, whose totals it has:
    in text by names.
    """
    table = reading.database.integers("OP_MEMORY", _OPERATORS)
    columns = ("timestamp", "totalAllocated", "totalReserved", "deviceId")
    engine = ("component", reading.strings.ids_of(GRAPH_ENGINE_POOL))
    records = {*_rows(reading.database.integers("MEMORY_RECORD", columns, only=engine), columns)}
    stated = ("allocationTime", "allocationTotalAllocated", "allocationTotalReserved", "deviceId")
    own = np.fromiter((row not in records for row in _rows(table, stated)), np.bool_, len(table["size"]))
    size = np.where(own, table["size"], ABSENT)
    released = np.where(size == ABSENT, ABSENT, -size)
    pool = ("component", reading.strings.ids_of(POOL))
    totals = reading.database.integers("MEMORY_RECORD", columns, only=pool)
    return joined_records(
        [
            _records(table, "allocationTime", size, "allocationTotalAllocated", "allocationTotalReserved"),
            _records(table, "releaseTime", released, "releaseTotalAllocated", "releaseTotalReserved"),
        ],
        _records(totals, "timestamp", np.zeros_like(totals["timestamp"]), "totalAllocated", "totalReserved"),
    )


def _rows(table: Columns, columns: Sequence[str]) -> Iterator[tuple[int, ...]]:
    return zip(*(table[column].tolist() for column in columns), strict=True)


def _records(table: Columns, at: str, size: NDArray[np.int64], allocated: str, reserved: str) -> Records:
    return {
        "ts": np.where(table[at] > 0, table[at], ABSENT),
        "bytes": size,
        "device_type": np.ones_like(size),
        "device": np.maximum(table["deviceId"], 0),
        "allocated": table[allocated],
        "reserved": table[reserved],
    }
