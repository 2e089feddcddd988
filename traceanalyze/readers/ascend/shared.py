"""What the text and the database form of an Ascend profile share: columns in, `Trace` out.

A form's reader collects `Block`s of rows, one a category, and hands them to `joined_events`; it makes flows and
allocator records, and gives everything to `assemble`. All texts are codes of one `Texts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.frozen import frozen
from traceanalyze.model.collectives import VendorCollectives
from traceanalyze.model.columns import Sparse, Strings, distinct_codes
from traceanalyze.model.trace import (
    Device,
    Events,
    Flows,
    Instants,
    ModuleMemory,
    Origin,
    OtherExport,
    ReadReport,
    Trace,
    VendorNumbers,
)
from traceanalyze.readers.ascend.info import About

ABSENT = -(2**62)
"""A whole number that a row does not have, in the columns of a `Block`."""
NO_TEXT = -1
"""The same for a text."""
NONE_32 = (1 << 32) - 1
"""How the profiler writes "none" for ids and ranks."""
MEMORY_RECORD = "[memory]"

OP, PYTHON, QUEUE, CANN = "cpu_op", "python_function", "task_queue_runtime", "cann_runtime"
KERNEL, COPY, SET = "kernel", "gpu_memcpy", "gpu_memset"
HCCL_TASK, CONTROL, OVERLAP, GC = "hccl_task", "npu_control", "overlap_analysis", "gc"
"""The categories of `Trace.events.cat` that the readers write."""


class Texts:
    """A dictionary of strings that grows: codes of `base` stay, new texts get the next codes."""

    def __init__(self, base: Strings | None = None) -> None:
        self._base = base or Strings(np.zeros(0, np.uint8), np.zeros(2, np.int64))
        self._new: dict[bytes, int] = {b"": 0}

    def code(self, text: str | bytes) -> int:
        """Code of a text. A text that `base` holds too may get a second code."""
        raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return self._new.setdefault(raw, len(self._base) + len(self._new) - 1)

    def codes(self, texts: Iterable[str | bytes | None]) -> NDArray[np.int32]:
        """Codes of texts; `NO_TEXT` for None."""
        return np.array([NO_TEXT if text is None else self.code(text) for text in texts], np.int32)

    def mapped(self, codes: NDArray[np.int32], change: Callable[[str], str | None]) -> NDArray[np.int32]:
        """Codes of `change(text)` of strings of `base`, worked out once a distinct text; None is `NO_TEXT`."""
        known = codes >= 0
        distinct, position = distinct_codes(codes[known], len(self._base))
        out = np.full(len(codes), NO_TEXT, np.int32)
        out[known] = self.codes(change(self._base.text(int(code))) for code in distinct)[position]
        return out

    def table(self) -> Strings:
        """All of them; the position is the code."""
        new = list(self._new)[1:]
        ends = np.cumsum([len(text) for text in new], dtype=np.int64) + int(self._base.offsets[-1])
        blob = np.concatenate((self._base.blob, np.frombuffer(b"".join(new), np.uint8)))
        return Strings(blob, np.concatenate((self._base.offsets, ends)))


@frozen
class Block:
    """Rows of one category, columns of equal length.

    `ts`, `dur` int64 ns; `name` int32 codes; `track` int32 positions in the list of tracks. `fields` are the arguments
    by canonical name, as whole columns: int64 with `ABSENT`, float64 with NaN, or int32 text codes with `NO_TEXT`.
    `part_of` counts rows of all blocks joined, so the reader adds the place where the block of collectives begins.
    """

    cat: str
    ts: NDArray[np.int64]
    dur: NDArray[np.int64]
    name: NDArray[np.int32]
    track: NDArray[np.int32]
    fields: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ts)


def joined_events(blocks: Sequence[Block], texts: Texts) -> Events:
    """All blocks as one table of events, in the order given; negative durations become 0."""
    first = np.concatenate(([0], np.cumsum([len(block) for block in blocks], dtype=np.int64)))
    names = dict.fromkeys(name for block in blocks for name in block.fields)
    fields = {}
    for name in names:
        having = [
            (block.fields[name], int(at)) for block, at in zip(blocks, first, strict=False) if name in block.fields
        ]
        parts = [(column, at, np.flatnonzero(present(column))) for column, at in having]
        row = np.concatenate([rows + at for _, at, rows in parts]).astype(np.uint32)
        if len(row):
            fields[name] = Sparse(row, np.concatenate([column[rows] for column, _, rows in parts]))
    return Events(
        ts=_stacked([block.ts for block in blocks], np.int64),
        dur=np.maximum(_stacked([block.dur for block in blocks], np.int64), 0),
        name=_stacked([block.name for block in blocks], np.int32),
        cat=_stacked([np.full(len(block), texts.code(block.cat)) for block in blocks], np.int32),
        track=_stacked([block.track for block in blocks], np.int32),
        fields=fields,
    )


def _stacked(parts: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.empty(0, dtype)


def present(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of a whole column have a value."""
    if column.dtype == np.int32:
        return np.asarray(column >= 0)
    return ~np.isnan(column) if column.dtype == np.float64 else np.asarray(column != ABSENT)


class Columns:
    """Arguments of events, filled in for some rows at a time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._columns: dict[str, NDArray[Any]] = {}

    def put(self, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Values of some rows: int64 with `ABSENT`, float64 with NaN, or int32 text codes with `NO_TEXT`."""
        column = self._columns.get(name)
        if column is None:
            fill = NO_TEXT if values.dtype == np.int32 else np.nan if values.dtype == np.float64 else ABSENT
            column = self._columns[name] = np.full(self._size, fill, values.dtype)
        column[rows] = values

    def fields(self) -> dict[str, Sparse]:
        """The columns that have a value."""
        made = {name: sparse(column) for name, column in self._columns.items()}
        return {name: column for name, column in made.items() if len(column.row)}


def sparse(column: NDArray[Any]) -> Sparse:
    """A whole column as one that only some rows have."""
    rows = np.flatnonzero(present(column))
    return Sparse(rows.astype(np.uint32), column[rows])


def index_of(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in `keys` of each wanted value, the first of equal ones; -1 where it is absent or not there."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = (keys[order[at]] == wanted) & (wanted != ABSENT)
    return np.where(found, order[at], -1)


def values_at(column: NDArray[Any], at: NDArray[np.int64], missing: float) -> NDArray[Any]:
    """Values at positions, `missing` where the position is -1."""
    if len(column) == 0:
        return np.full(len(at), missing, column.dtype)
    return np.where(at >= 0, column[np.maximum(at, 0)], np.array(missing, column.dtype))


def shapes_as_json(text: str) -> str | None:
    """`32,3,224,224;64` (items separated by `;`, perhaps with line ends) as `[[32, 3, 224, 224], [64]]`."""
    items = text.strip().strip('"').split(";")
    try:
        return json.dumps([[int(size) for size in item.split(",") if size.strip()] for item in items])
    except ValueError:
        return None


def dtypes_as_json(text: str) -> str:
    """`float;Scalar` as `["float", "Scalar"]`."""
    return json.dumps([item.strip() for item in text.strip().strip('"').split(";")])


def kernel_dtypes(text: str) -> str:
    """`FLOAT;DT_BF16` as the profiler writes it, without the `DT_` that only some versions have."""
    return ";".join(item.strip().removeprefix("DT_") for item in text.split(";"))


def copy_direction(text: str) -> str | None:
    """`host to device` and its spellings as the `HtoD` of Kineto; None where it names no direction."""
    words = re.sub(r"[^a-z]", "", text.lower())
    found = re.search(r"(host|device|h|d)(?:to|2)(host|device|h|d)", words)
    return None if found is None else f"{found[1][0].upper()}to{found[2][0].upper()}"


@frozen
class Allocations:
    """Records of the allocator: int64 columns of equal length, sizes in bytes, totals -1 where unknown."""

    ts: NDArray[np.int64]
    bytes: NDArray[np.int64]
    """Given out (+) or given back (-); 0 for a record of the totals alone."""
    device: NDArray[np.int64]
    device_type: NDArray[np.int64]
    """1 for the accelerator, 0 for the host, as PyTorch's records."""
    allocated: NDArray[np.int64]
    reserved: NDArray[np.int64]


def memory_instants(records: Allocations, texts: Texts, track: int) -> Instants:
    """Allocator records in order of time; of several at one instant the ones that change the size come first."""
    order = np.lexsort((records.bytes == 0, records.ts))
    count = len(order)
    columns = {
        "bytes": records.bytes,
        "device": records.device,
        "device_type": records.device_type,
        "allocated": np.where(records.allocated < 0, ABSENT, records.allocated),
        "reserved": np.where(records.reserved < 0, ABSENT, records.reserved),
    }
    return Instants(
        ts=records.ts[order],
        name=np.full(count, texts.code(MEMORY_RECORD), np.int32),
        cat=np.full(count, texts.code("cpu_instant_event"), np.int32),
        track=np.full(count, track, np.int32),
        fields={name: sparse(column[order]) for name, column in columns.items()},
    )


def no_instants() -> Instants:
    """None at all."""
    empty = np.empty(0, np.int32)
    return Instants(np.empty(0, np.int64), empty, empty, empty, {})


@frozen
class Parts:
    """Everything a form's reader found."""

    texts: Texts
    tracks: NDArray[np.int32]
    """(n, 2) string codes: the texts of process id and thread id of each track."""
    events: Events
    instants: Instants
    flows: Flows
    process_names: Mapping[str, str]
    thread_names: Mapping[tuple[str, str], str]
    devices: tuple[Device, ...] = ()
    vendor: VendorNumbers | None = None
    vendor_collectives: VendorCollectives | None = None
    other_export: OtherExport | None = None
    module_memory: tuple[ModuleMemory, ...] = ()
    process_memory: tuple[ModuleMemory, ...] = ()


def assemble(parts: Parts, about: About, origin: Origin, read: ReadReport) -> Trace:
    """The trace of one rank.

    Args:
        parts: The tables; times are absolute ns, and become relative to the first event.
        about: What the profile says of itself (`info.read_about`).
        origin: Path as the user names it, form (`text`, `db`), sizes; rank and the like are taken from `about`.
        read: What reading had to leave out.
    """
    base = int(parts.events.ts.min()) if len(parts.events) else 0
    return Trace(
        origin=replace(
            origin,
            format="ascend",
            level=about.level,
            rank=about.rank,
            rank_source=about.rank_source,
            world_size=about.world_size,
            backend="hccl" if about.groups or about.world_size else None,
        ),
        read=replace(read, notes=(*about.notes, *read.notes)),
        strings=parts.texts.table(),
        tracks=parts.tracks,
        events=replace(parts.events, ts=parts.events.ts - base),
        instants=replace(parts.instants, ts=parts.instants.ts - base),
        flows=replace(parts.flows, ts=parts.flows.ts - base),
        base_ns=base,
        resolution_ns=1,
        devices=parts.devices,
        process_names=parts.process_names,
        thread_names=parts.thread_names,
        groups=about.groups,
        options=about.options,
        versions=about.versions,
        vendor=parts.vendor,
        vendor_collectives=parts.vendor_collectives,
        other_export=parts.other_export,
        module_memory=parts.module_memory,
        process_memory=parts.process_memory,
        environment=about.environment,
    )
