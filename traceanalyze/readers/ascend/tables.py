"""The CSV files of an Ascend profile as columns: by name, whatever the version calls and orders them."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.model.trace import VendorNumbers, VendorStep
from traceanalyze.readers.ascend.shared import ABSENT, Records, joined_records

_BLOCK = 1 << 19
_BOM = b"\xef\xbb\xbf"
_QUOTE, _COMMA, _LINE_END, _RETURN = b'",\n\r'
_NOTHING = frozenset({"", "N/A", "NA", "None", "null", "4294967295", "nan"})
_KB, MB = 1 << 10, 1 << 20
_DIGITS = 18
"""Of whole microseconds, at most: Python refuses to convert thousands of them."""
_AROUND_TIMES = b' \t\r"'
Cell = TypeVar("Cell")


class Table(NamedTuple):
    """Columns by canonical name, cells as written; only those the file has. `short` counts rows cut off."""

    columns: Mapping[str, list[bytes]]
    rows: int
    short: int = 0

    def _converted(self, name: str, convert: Callable[[bytes], Cell], absent: Cell) -> list[Cell]:
        """A column, each distinct cell converted once."""
        column = self.columns.get(name)
        if column is None:
            return [absent] * self.rows
        known = {cell: convert(cell) for cell in set(column)}
        return [known[cell] for cell in column]

    def texts(self, name: str) -> list[str | None]:
        """A column of texts, None where there is no value."""
        return self._converted(name, lambda cell: None if (text := cell_text(cell)) in _NOTHING else text, None)

    def integers(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers, `ABSENT` where there is none."""
        return np.array(self._converted(name, _integer, ABSENT), np.int64)

    def reals(self, name: str) -> NDArray[np.float64]:
        """A column of numbers, NaN where there is none."""
        return np.array(self._converted(name, _real, np.nan), np.float64)

    def durations(self, name: str) -> NDArray[np.int64]:
        """A column of microseconds as ns, `ABSENT` where there is none."""
        return _rounded(self.reals(name), 1000)

    def times(self, name: str) -> NDArray[np.int64]:
        """A column of absolute microseconds as exact ns, `ABSENT` where there is none."""
        column = self.columns.get(name)
        if column is None:
            return np.full(self.rows, ABSENT, np.int64)
        return np.array([_time(cell) for cell in column], np.int64)

    def sizes(self, name: str, unit: int) -> NDArray[np.int64]:
        """A column of sizes as bytes, `ABSENT` where there is none."""
        return _rounded(self.reals(name), unit)


def _rounded(values: NDArray[np.float64], unit: int) -> NDArray[np.int64]:
    known = np.isfinite(values) & (np.abs(values) < 2**62 / unit)
    return np.where(known, np.rint(np.where(known, values, 0) * unit), ABSENT).astype(np.int64)


def _integer(cell: bytes) -> int:
    text = cell_text(cell)
    try:
        value = int(text) if text not in _NOTHING else ABSENT
    except ValueError:
        return ABSENT
    return value if -(1 << 62) < value < 1 << 62 else ABSENT


def _real(cell: bytes) -> float:
    try:
        return float(cell_text(cell))
    except ValueError:
        return np.nan


def _time(cell: bytes) -> int:
    """Exact ns of decimal microseconds; a number in scientific notation, as a spreadsheet saves it, is no time."""
    whole, point, fraction = cell.strip(_AROUND_TIMES).partition(b".")
    if not whole.isdigit() or len(whole) > _DIGITS or (point and not fraction.isdigit()):
        return ABSENT
    time = int(whole + fraction[:3].ljust(3, b"0"))
    return time if time < 1 << 62 else ABSENT


def read_table(path: Path, wanted: Mapping[str, Sequence[str]], block: int = _BLOCK) -> Table | None:
    """Read some columns of a CSV file with array operations, in a fifth of the time of the standard reader.

    Kernel tables have 47 columns, of which a third is needed, and up to a million rows. None when there is no header.
    Quoted cells may hold commas and line ends; both kinds of line ends may be mixed. `wanted` has for each canonical
    name those that the column goes by in the header; `block` bytes are worked on at a time, more if a row is longer.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        first = file.readline().removeprefix(_BOM).decode("utf-8", "replace")
        header = [cell.strip() for cell in next(csv.reader([first]), [])]
        if not header:
            return None
        places = {
            name: header.index(alias) for name, aliases in wanted.items() for alias in aliases[::-1] if alias in header
        }
        columns: dict[str, list[bytes]] = {name: [] for name in places}
        counts = [_add(columns, text, places, len(header)) for text in _whole_rows(file, block)]
        return Table(columns, rows=sum(rows for rows, _ in counts), short=sum(short for _, short in counts))


def _whole_rows(file: BinaryIO, block: int) -> Iterator[bytes]:
    """The text in pieces that end with a row; a last row without a line end gets one."""
    rest = b""
    while more := file.read(block):
        rest += more
        end = _last_row_end(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest + b"\n"


def _last_row_end(text: bytes) -> int:
    """Where the last complete row ends, 0 if there is none: after a line end outside quotes."""
    end = text.rfind(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return end


def _add(columns: dict[str, list[bytes]], text: bytes, places: Mapping[str, int], width: int) -> tuple[int, int]:
    """Append the wanted cells of some rows; gives the number of complete rows and of those that are cut off."""
    raw = np.frombuffer(text, np.uint8)
    separator = (raw == _COMMA) | (raw == _LINE_END)
    quotes = raw == _QUOTE
    if quotes.any():
        # Inside quotes the number of quotes so far is odd; eight bits are enough to tell.
        separator &= np.cumsum(quotes, dtype=np.uint8) % 2 == 0
    at = np.flatnonzero(separator)
    last = np.flatnonzero(raw[at] == _LINE_END)
    first = np.concatenate(([0], last[:-1] + 1))
    begin = np.concatenate(([0], at[last[:-1]] + 1))
    count = last - first + 1
    whole = count >= width
    size = at[last] - begin
    blank = (count == 1) & ((size == 0) | ((size == 1) & (raw[begin] == _RETURN)))
    first, begin = first[whole], begin[whole]
    for name, place in places.items():
        start = begin if place == 0 else at[first + place - 1] + 1
        ends = at[first + place]
        columns[name] += [text[a:b] for a, b in zip(start.tolist(), ends.tolist(), strict=True)]
    return len(first), int((~whole & ~blank).sum())


def cell_text(cell: bytes) -> str:
    """What a cell says: without its quotes and the blanks and tabs around it."""
    plain = cell.strip()
    if plain[:1] == b'"' and plain[-1:] == b'"' and len(plain) > 1:
        plain = plain[1:-1].replace(b'""', b'"').strip()
    return plain.decode("utf-8", "replace")


KERNELS = {
    "op_type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"),
    "start": ("Start Time(us)", "Task Start Time(us)"),
    "device": ("Device_id", "Device Id"),
    "stream": ("Stream ID", "Stream Id"),
    "task": ("Task ID", "Task Id"),
    "step": ("Step Id",),
    "block_dim": ("Block Dim", "Block Num"),
    "kernel_shapes": ("Input Shapes",),
    "kernel_dtypes": ("Input Data Types",),
    "aicore_time": ("aicore_time(us)", "aic_time(us)"),
    "aiv_time": ("aiv_time(us)",),
    "mac_time": ("aic_mac_time(us)", "mac_time(us)"),
    "vec_time": ("aiv_vec_time(us)", "vec_time(us)"),
    "cube_utilisation": ("cube_utilization(%)",),
}
"""Columns of kernel_details (and op_summary)."""
_STEPS = {
    "step": ("Step",),
    "device": ("Device_id",),
    "computing": ("Computing",),
    "communication": ("Communication",),
    "not_overlapped": ("Communication(Not Overlapped)",),
    "overlapped": ("Overlapped",),
    "free": ("Free",),
    "stage": ("Stage",),
    "bubble": ("Bubble",),
    "preparing": ("Preparing",),
}
"""The members of `VendorStep`, in their order."""


def step_times(path: Path) -> VendorNumbers | None:
    """The profile's own step times; None when the file has none."""
    table = read_table(path, _STEPS)
    if table is None or table.rows == 0:
        return None
    numbers = [table.integers("device"), *(table.durations(name) for name in list(_STEPS)[2:])]
    stated = ([None if value == ABSENT else value for value in column.tolist()] for column in numbers)
    rows = zip(map(step_number, table.texts("step")), *stated, strict=True)
    return VendorNumbers(path.name, tuple(VendorStep(*row) for row in rows))


def step_number(text: str | None) -> int | None:
    """`50`, `step50`, `ProfilerStep#50` as 50."""
    digits = (text or "").strip().removeprefix("ProfilerStep#").removeprefix("step")
    return int(digits) if digits.isdecimal() else None


_GRAPH_ENGINE = "cann::"
"""Begin of the names of what the graph engine allocates from a pool of its own; all other rows are PyTorch's."""
_OPERATOR_MEMORY = {
    "name": ("Name",),
    "size": ("Size(KB)",),
    "at": ("Allocation Time(us)",),
    "until": ("Release Time(us)",),
    "allocated": ("Allocation Total Allocated(MB)",),
    "reserved": ("Allocation Total Reserved(MB)",),
    "allocated_after": ("Release Total Allocated(MB)",),
    "reserved_after": ("Release Total Reserved(MB)",),
    "device": ("Device Type",),
}
MEMORY_RECORD = {
    "component": ("Component",),
    "at": ("Timestamp(us)",),
    "allocated": ("Total Allocated(MB)",),
    "reserved": ("Total Reserved(MB)",),
    "device": ("Device Type",),
}
POOL = "PTA"
"""The allocator of PyTorch in memory_record; GE and the sum of both are other curves."""


def allocator_records(operators: Path | None, totals: Table | None) -> Records:
    """Records of PyTorch's allocator: what operators allocate and release, and memory_record's totals at other times.

    Raises:
        OSError: The table of operators cannot be read.
    """
    changes = []
    if operators is not None and (table := read_table(operators, _OPERATOR_MEMORY)) is not None:
        size = table.sizes("size", _KB)
        size[[(text or "").startswith(_GRAPH_ENGINE) for text in table.texts("name")]] = ABSENT
        released = np.where(size == ABSENT, ABSENT, -size)
        changes.append(_records(table, "at", size, "allocated", "reserved"))
        changes.append(_records(table, "until", released, "allocated_after", "reserved_after"))
    if totals is None:
        return joined_records(changes, None)
    pool = np.array([text == POOL for text in totals.texts("component")], np.bool_)
    return joined_records(changes, _records(totals, "at", np.where(pool, 0, ABSENT), "allocated", "reserved"))


def _records(table: Table, at: str, size: NDArray[np.int64], allocated: str, reserved: str) -> Records:
    devices = np.array([device_of(text) for text in table.texts("device")], np.int64).reshape(-1, 2)
    return {
        "ts": table.times(at),
        "bytes": size,
        "device_type": devices[:, 0],
        "device": devices[:, 1],
        "allocated": table.sizes(allocated, MB),
        "reserved": table.sizes(reserved, MB),
    }


def device_of(text: str | None) -> tuple[int, int]:
    """`NPU:1` as (1, 1): kind as in PyTorch's records, and number."""
    kind, _, number = (text or "").partition(":")
    return int(kind.upper() != "CPU"), int(number) if number.strip().isdecimal() else 0
