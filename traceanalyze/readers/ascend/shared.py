"""What the text and the database form of an Ascend profile share; all texts are codes of one `Texts`."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.columns import Sparse, Strings, distinct_codes, find, strings_of
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.trace import Events, Instants, Trace
from traceanalyze.readers.ascend.info import About

ABSENT = -(2**62)
"""A whole number that a row does not have, in the columns of a `Block`."""
NO_TEXT = -1
"""The same for a text."""
NONE_32 = (1 << 32) - 1
"""How the profiler writes "none" for ids and ranks."""

OP, PYTHON, QUEUE, CANN = "cpu_op", "python_function", "task_queue_runtime", "cann_runtime"
KERNEL, COPY, SET = "kernel", "gpu_memcpy", "gpu_memset"
HCCL_TASK, CONTROL, OVERLAP, GC = "hccl_task", "npu_control", "overlap_analysis", "gc"
"""The categories of `Trace.events.cat` that the readers write."""


class Texts:
    """A dictionary of strings that grows: codes of `base` stay, new texts get the next codes."""

    def __init__(self, base: Strings | None = None) -> None:
        self._base = base or strings_of([b""])
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
        base, new = self._base, strings_of(list(self._new))
        offsets = np.concatenate((base.offsets, new.offsets[2:] + int(base.offsets[-1])))
        return Strings(np.concatenate((base.blob, new.blob)), offsets)


@dataclass(frozen=True, eq=False)
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
    first = np.cumsum([0, *map(len, blocks)], dtype=np.int64)
    fields = {}
    for name in dict.fromkeys(name for block in blocks for name in block.fields):
        parts = [
            (at, sparse(block.fields[name])) for at, block in zip(first, blocks, strict=False) if name in block.fields
        ]
        row = np.concatenate([column.row + at for at, column in parts]).astype(np.uint32)
        if len(row):
            fields[name] = Sparse(row, np.concatenate([column.value for _, column in parts]))
    return Events(
        ts=np.concatenate([block.ts for block in blocks]),
        dur=np.maximum(np.concatenate([block.dur for block in blocks]), 0),
        name=np.concatenate([block.name for block in blocks]),
        cat=np.concatenate([np.full(len(block), texts.code(block.cat), np.int32) for block in blocks]),
        track=np.concatenate([block.track for block in blocks]),
        fields=fields,
    )


def present(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of a whole column have a value."""
    if column.dtype == np.int32:
        return np.asarray(column >= 0)
    return ~np.isnan(column) if column.dtype == np.float64 else np.asarray(column != ABSENT)


class Columns:
    """Arguments of events, filled in for some rows at a time."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[NDArray[np.uint32], NDArray[Any]]]] = {}

    def put(self, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Values of some rows: int64 with `ABSENT`, float64 with NaN, or int32 text codes with `NO_TEXT`."""
        self._parts.setdefault(name, []).append((rows.astype(np.uint32), values))

    def fields(self) -> dict[str, Sparse]:
        """The columns that have a value; of several values for a row the last one."""
        made = {name: _in_order(*map(np.concatenate, zip(*parts, strict=True))) for name, parts in self._parts.items()}
        return {name: column for name, column in made.items() if len(column.row)}


def _in_order(row: NDArray[np.uint32], value: NDArray[Any]) -> Sparse:
    order = np.argsort(row, kind="stable")
    last = order[np.diff(row[order], append=np.uint32(NONE_32)) != 0]
    kept = last[present(value[last])]
    return Sparse(row[kept], value[kept])


def sparse(column: NDArray[Any]) -> Sparse:
    """A whole column as one that only some rows have."""
    rows = np.flatnonzero(present(column))
    return Sparse(rows.astype(np.uint32), column[rows])


def index_of(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position in `keys` of each wanted value, the first of equal ones; -1 where it is absent or not there."""
    return np.where(wanted != ABSENT, find(wanted, keys), -1)


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


def of_busier_core(counters: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Counters with one time of each unit that cube cores and vector cores both have: the longer one."""
    both = {name.removesuffix("_aic") for name in counters if name.endswith("_aic")}
    out = {name: column for name, column in counters.items() if not name.endswith(("_aic", "_aiv"))}
    return out | {name: np.maximum(counters[f"{name}_aic"], counters[f"{name}_aiv"]) for name in both}


def core_clock(counters: Mapping[str, NDArray[np.int64]], blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Clock of the cores in MHz that the profiler turned a kernel's cycles into time with; time is that of a block.

    By its cube cores, else its vector cores, of which there are two to a cube core: more blocks take turns.
    """
    cube = _clock(counters["aic_cycles"], counters["aicore_time"], blocks)
    most = 2 * int(blocks[cube != ABSENT].max(initial=_CUBE_CORES))
    vector = _clock(counters["aiv_cycles"], counters["aiv_time"], np.where(blocks <= most, blocks, 0))
    return np.where(cube == ABSENT, vector, cube)


def _clock(cycles: NDArray[np.int64], time: NDArray[np.int64], blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    known = (cycles > 0) & (time >= _TIMED_NS) & (blocks > 0)
    clock = np.rint(cycles * 1e3 / np.where(known, time.astype(np.float64) * blocks, 1))
    return np.where(known & (clock < _NO_CLOCK_MHZ), clock, ABSENT).astype(np.int64)


_CUBE_CORES = 20
"""Fewest of the devices whose profiles count the cycles of vector cores (910B4)."""
_TIMED_NS = 1000
"""Shorter times, in whole ns, tell the clock to less than a thousandth."""
_NO_CLOCK_MHZ = 10_000
"""No core is so fast: the counters of a damaged file."""


def copy_direction(text: str) -> str | None:
    """`host to device` and its spellings as the `HtoD` of Kineto; None where it names no direction."""
    words = re.sub(r"[^a-z]", "", text.lower())
    found = re.search(r"(host|device|h|d)(?:to|2)(host|device|h|d)", words)
    return None if found is None else f"{found[1][0].upper()}to{found[2][0].upper()}"


Records = dict[str, NDArray[np.int64]]
"""Columns of allocator records: ts, bytes (given out +, given back -, 0 for a record of the totals alone), device,
device_type (1 for the accelerator, 0 for the host, as PyTorch's records), and the totals allocated and reserved."""


def joined_records(changes: Sequence[Records], totals: Records | None) -> Records:
    """Records that change a size, and totals at other times; rows without a time or a size are left out.

    `changes` are of the rows of one table: its number stands for the address, which the profile does not tell.
    """
    parts = [_usable(records | {"address": np.arange(len(records["ts"]))}) for records in changes]
    if totals is not None:
        known = np.concatenate([np.empty(0, np.int64), *(part["ts"] for part in parts)])
        new = np.where(np.isin(totals["ts"], known), ABSENT, totals["bytes"])
        parts.append(_usable(totals | {"bytes": new, "address": np.full_like(new, ABSENT)}))
    names = ("ts", "bytes", "address", "device", "device_type", "allocated", "reserved")
    return {name: np.concatenate([np.empty(0, np.int64), *(part[name] for part in parts)]) for name in names}


def _usable(records: Records) -> Records:
    rows = (records["ts"] != ABSENT) & (records["bytes"] != ABSENT)
    return {name: column[rows] for name, column in records.items()}


def memory_instants(records: Records, texts: Texts, track: int) -> Instants:
    """Allocator records in order of time; of several at one instant the ones that change the size come first."""
    order = np.lexsort((records["bytes"] == 0, records["ts"]))
    totals = {name: np.where(records[name] < 0, ABSENT, records[name]) for name in ("allocated", "reserved")}
    names = ("bytes", "address", "device", "device_type", "allocated", "reserved")
    return Instants(
        ts=records["ts"][order],
        name=np.full(len(order), texts.code("[memory]"), np.int32),
        cat=np.full(len(order), texts.code("cpu_instant_event"), np.int32),
        track=np.full(len(order), track, np.int32),
        fields={name: sparse((records | totals)[name][order]) for name in names},
    )


def no_instants() -> Instants:
    """None at all."""
    empty = np.empty(0, np.int32)
    return Instants(np.empty(0, np.int64), empty, empty, empty, {})


def completed(trace: Trace, about: About) -> Trace:
    """The trace with what the profile says of itself; absolute times become relative to the first event."""
    base = int(trace.events.ts.min()) if len(trace.events) else 0
    return replace(
        trace,
        origin=trace.origin._replace(
            format="ascend",
            level=about.level,
            rank=about.rank,
            rank_source=about.rank_source,
            world_size=about.world_size,
            backend="hccl" if about.groups or about.world_size else None,
        ),
        read=trace.read._replace(notes=(*about.notes, *trace.read.notes)),
        events=replace(trace.events, ts=trace.events.ts - base),
        instants=trace.instants._replace(ts=trace.instants.ts - base),
        flows=trace.flows._replace(ts=trace.flows.ts - base),
        base_ns=base,
        groups=about.groups,
        options=about.options,
        versions=about.versions,
        environment=about.environment,
    )
