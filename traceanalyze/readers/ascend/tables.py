"""The CSV files of an Ascend profile as columns: by name, whatever the version calls and orders them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from traceanalyze.errors import Lost
from traceanalyze.model.patterns import regex
from traceanalyze.model.trace import VendorNumbers, VendorStep
from traceanalyze.readers.ascend.shared import ABSENT, Records, joined_records

_BLOCK = 1 << 19
_BOM = b"\xef\xbb\xbf"
_QUOTE, _COMMA, _LINE_END, _RETURN = b'",\n\r'
_NOTHING = frozenset({"", "N/A", "NA", "None", "null", "4294967295", "nan"})
_KB, MB = 1 << 10, 1 << 20
_DIGITS = 18
"""Of whole microseconds, at most: Python refuses to convert thousands of them."""
_LONGEST_ROW = 1 << 20
_QUOTED = regex(rb'"[^"]*(?:""[^"]*)*"\s*')
_CELL = regex(rb'(?:^|,)("[^"]*(?:""[^"]*)*"(?=\r?$|,)|[^,]*)')
_AROUND_TIMES = b' \t\r"'
Cell = TypeVar("Cell")


class Table(NamedTuple):
    """Columns by canonical name, cells as written; only those the file has."""

    columns: Mapping[str, list[bytes]]
    rows: int
    name: str
    """Of the file."""
    notes: list[str]
    """What cannot be read is told here."""

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
        return self._told(name, np.array(self._converted(name, _integer, ABSENT), np.int64))

    def reals(self, name: str) -> NDArray[np.float64]:
        """A column of numbers, NaN where there is none."""
        return np.array(self._converted(name, _real, np.nan), np.float64)

    def durations(self, name: str) -> NDArray[np.int64]:
        """A column of microseconds as ns, `ABSENT` where there is none."""
        return self._told(name, _rounded(self.reals(name), 1000))

    def times(self, name: str) -> NDArray[np.int64]:
        """A column of absolute microseconds as exact ns, `ABSENT` where there is none."""
        column = self.columns.get(name)
        if column is None:
            return np.full(self.rows, ABSENT, np.int64)
        return self._told(name, np.array([_time(cell) for cell in column], np.int64))

    def sizes(self, name: str, unit: int) -> NDArray[np.int64]:
        """A column of sizes as bytes, `ABSENT` where there is none."""
        return self._told(name, _rounded(self.reals(name), unit))

    def _told(self, name: str, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values of a column; cells that say something, but no number that can be meant, are told."""
        cells = self.columns.get(name, ())
        lost = sum(cell_text(cells[row]) not in _NOTHING for row in np.flatnonzero(values == ABSENT).tolist() if cells)
        if lost:
            told = Lost(
                "{name}: {count:,} number(s) cannot be read (was it saved by a spreadsheet?): {column}",
                *(self.name, lost, name.replace("_", " ")),
            )
            self.notes.extend({told}.difference(self.notes))
        return values


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


def read_table(
    path: Path,
    wanted: Mapping[str, Sequence[str]],
    notes: list[str],
    block: int = _BLOCK,
    *,
    optional: Collection[str] = (),
) -> Table | None:
    """Read some columns of a CSV file with array operations, in a fifth of the time of the standard reader.

    Kernel tables have 47 columns, of which a third is needed, and up to a million rows. None when there is no header.
    Quoted cells may hold commas and line ends; both kinds of line ends may be mixed. `wanted` has for each canonical
    name those that the column goes by in the header; some versions lack the `optional` ones. `block` bytes are
    worked on at a time, more if a row is longer.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        first = file.readline().removeprefix(_BOM).decode("utf-8", "replace")
        header = [cell.strip().strip('"') for cell in first.split(",")] if first.strip() else []
        if not header:
            return None
        places = {
            name: header.index(alias) for name, aliases in wanted.items() for alias in aliases[::-1] if alias in header
        }
        if lacking := [name.replace("_", " ") for name in wanted if name not in {*places, *optional}]:
            notes.append(Lost("{name}: its header lacks {columns}", path.name, ", ".join(lacking)))
        columns: dict[str, list[bytes]] = {name: [] for name in places}
        counts = [_add(columns, text, places, len(header)) for text in _whole_rows(file, block, len(header)) if text]
    if short := sum(short for _, short in counts):
        notes.append(Lost("{name}: {count:,} row(s) with too few or too many cells left out", path.name, short))
    return Table(columns, sum(rows for rows, _ in counts), path.name, notes)


def _whole_rows(file: BinaryIO, block: int, width: int) -> Iterator[bytes]:
    """The text in pieces that end with a row; a last row without a line end gets one."""
    rest = b""
    while more := file.read(block):
        rest += more
        mended, used = _mended(rest[: rest.rfind(b"\n") + 1], width)
        yield mended
        rest = rest[used:]
    yield _mended(rest + b"\n" if rest else b"", width, last=True)[0]


def _mended(text: bytes, width: int, *, last: bool = False) -> tuple[bytes, int]:
    """Some lines with quotes that belong to nothing made part of their cells, and how much of the text that is.

    A line with an odd number of quotes begins or ends a row of several lines: both together have the cells of a row.
    Otherwise one of its quotes is a mark like any other. An open row at the end waits for more text.
    """
    raw = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(raw == _LINE_END)
    quotes = np.bincount(np.searchsorted(ends, np.flatnonzero(raw == _QUOTE)), minlength=len(ends))
    lines = [(int(ends[one - 1]) + 1 if one else 0, int(ends[one])) for one in np.flatnonzero(quotes % 2).tolist()]
    pieces: list[bytes] = []
    done = place = 0
    while place < len(lines):
        begin, end = lines[place]
        after = lines[place + 1][1] if place + 1 < len(lines) else None
        if after is None and not last and len(text) - begin < _LONGEST_ROW:
            return b"".join((*pieces, text[done:begin])), begin
        if (
            after is not None
            and (cells := _cells(text[begin:after]))
            and len(cells) == width
            and all(map(_sound, cells))
        ):
            place += 2
            continue
        cells = [cell if _sound(cell) else b'"' + cell.replace(b'"', b'""') + b'"' for cell in _cells(text[begin:end])]
        pieces += [text[done:begin], b",".join(cells)]
        done, place = end, place + 1
    return b"".join((*pieces, text[done:])), len(text)


def _cells(text: bytes) -> list[bytes]:
    """The cells of one row; a quote is one where it begins a cell, and its partner ends it."""
    return [found[1] for found in _CELL.finditer(text)]


def _sound(cell: bytes) -> bool:
    """Whether all quotes of a cell are around it, or doubled inside."""
    return b'"' not in cell or _QUOTED.fullmatch(cell) is not None


def _add(columns: dict[str, list[bytes]], text: bytes, places: Mapping[str, int], width: int) -> tuple[int, int]:
    """Append the wanted cells of some rows; gives the number of complete rows and of the others."""
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
    # A comma at the end makes one cell more; a lost line end many.
    whole = (count >= width) & (count <= width + 1)
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
    "kernel_formats": ("Input Formats",),
    "kernel_outputs": ("Output Shapes",),
    "kernel_output_dtypes": ("Output Data Types",),
    "aic_cycles": ("aic_total_cycles",),
    "aicore_time": ("aicore_time(us)", "aic_time(us)"),
    "aiv_time": ("aiv_time(us)",),
    "mac_time": ("aic_mac_time(us)", "mac_time(us)"),
    "vec_time": ("aiv_vec_time(us)", "vec_time(us)"),
    "scalar_time_aic": ("aic_scalar_time(us)", "scalar_time(us)"),
    "scalar_time_aiv": ("aiv_scalar_time(us)",),
    "mte1_time": ("aic_mte1_time(us)", "mte1_time(us)"),
    "mte2_time_aic": ("aic_mte2_time(us)", "mte2_time(us)"),
    "mte2_time_aiv": ("aiv_mte2_time(us)",),
    "mte3_time": ("aiv_mte3_time(us)", "mte3_time(us)"),
    "fixpipe_time": ("aic_fixpipe_time(us)",),
    "cube_utilisation": ("cube_utilization(%)",),
    "op_state": ("OP State",),
}
"""Columns of kernel_details (and op_summary)."""
OPTIONAL = KERNELS.keys() - {"op_type", "core", "start"}
"""Of these: what level 0 or some version lacks."""
ROWS = KERNELS | {"name": ("Name", "Op Name"), "dur": ("Duration(us)", "Task Duration(us)")}
"""With what the timeline tells, where there is one."""
COMMUNICATION = frozenset({"HCCL", "COMMUNICATION"})
"""Cores of collectives."""
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


def step_times(path: Path, notes: list[str]) -> VendorNumbers | None:
    """The profile's own step times; None when the file has none."""
    table = read_table(path, _STEPS, notes, optional=("device", "preparing"))
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


def allocator_records(operators: Path | None, totals: Table | None, notes: list[str]) -> Records:
    """Records of PyTorch's allocator: what operators allocate and release, and memory_record's totals at other times.

    Raises:
        OSError: The table of operators cannot be read.
    """
    changes = []
    if operators is not None and (table := read_table(operators, _OPERATOR_MEMORY, notes)) is not None:
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
