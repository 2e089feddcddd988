"""The CSV files of an Ascend profile as columns: by name, whatever the version calls and orders them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
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
_TIME = regex(rb'[ \t"]*(\d{1,16})\.(\d{3})\d*[ \t\r"]*')
_ZERO, _NINE = np.uint8(48), 9
_TIMES = frozenset({"start", "at", "until"})
"""Columns of absolute times."""
_LOST = ABSENT - 1
"""In such a column: a cell says something, but no time."""


class Column(NamedTuple):
    """Cells as written: the distinct ones, and which of them each row has."""

    cells: Sequence[bytes]
    code: NDArray[np.int32]


class Table(NamedTuple):
    """Columns by canonical name, only those the file has: cells as written, or times as `_times` reads them."""

    columns: Mapping[str, Column | NDArray[np.int64]]
    rows: int
    name: str
    """Of the file."""
    notes: list[str]
    """What cannot be read is told here."""

    def coded(self, name: str) -> tuple[list[str | None], NDArray[np.int64]]:
        """A column of texts: the distinct ones, None where there is no value, and which of them each row has."""
        column = self.columns.get(name)
        if not isinstance(column, Column):
            return [None], np.zeros(self.rows, np.int64)
        texts = [None if (text := cell_text(cell)) in _NOTHING else text for cell in column.cells]
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return list(place), np.array([place[text] for text in texts], np.int64)[column.code]

    def texts(self, name: str) -> list[str | None]:
        """A column of texts, None where there is no value."""
        distinct, code = self.coded(name)
        return [distinct[one] for one in code.tolist()]

    def integers(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers, `ABSENT` where there is none."""
        return self._numbers(name, lambda cells: np.array(list(map(_integer, cells)), np.int64))

    def reals(self, name: str) -> NDArray[np.float64]:
        """A column of numbers, NaN where there is none."""
        column = self.columns.get(name)
        return _reals(column.cells)[column.code] if isinstance(column, Column) else np.full(self.rows, np.nan)

    def durations(self, name: str) -> NDArray[np.int64]:
        """A column of microseconds as ns, `ABSENT` where there is none."""
        return self.sizes(name, 1000)

    def times(self, name: str) -> NDArray[np.int64]:
        """A column of absolute microseconds as exact ns, `ABSENT` where there is none."""
        column = self.columns.get(name)
        if not isinstance(column, np.ndarray):
            return np.full(self.rows, ABSENT, np.int64)
        lost = column == _LOST
        self._tell(name, int(np.count_nonzero(lost)))
        return np.where(lost, ABSENT, column)

    def sizes(self, name: str, unit: int) -> NDArray[np.int64]:
        """A column of numbers of some unit as whole bytes or ns, `ABSENT` where there is none."""
        return self._numbers(name, lambda cells: _rounded(_reals(cells), unit))

    def _numbers(self, name: str, convert: Callable[[Sequence[bytes]], NDArray[np.int64]]) -> NDArray[np.int64]:
        """A column, each distinct cell converted once; cells that say something, but no number, are told."""
        column = self.columns.get(name)
        if not isinstance(column, Column):
            return np.full(self.rows, ABSENT, np.int64)
        values = convert(column.cells)
        lost = np.zeros(len(values), np.bool_)
        for one in np.flatnonzero(values == ABSENT).tolist():
            lost[one] = cell_text(column.cells[one]) not in _NOTHING
        self._tell(name, int(np.count_nonzero(lost[column.code])))
        return values[column.code]

    def _tell(self, name: str, lost: int) -> None:
        if lost:
            told = Lost(
                "{name}: {count:,} number(s) cannot be read (was it saved by a spreadsheet?): {column}",
                *(self.name, lost, name.replace("_", " ")),
            )
            self.notes.extend({told}.difference(self.notes))


def _reals(cells: Sequence[bytes]) -> NDArray[np.float64]:
    return np.array(list(map(_real, cells)), np.float64)


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
    if whole.isdigit() and len(whole) <= _DIGITS and (not point or fraction.isdigit()):
        time = int(whole + fraction[:3].ljust(3, b"0"))
        if time < 1 << 62:
            return time
    return ABSENT if cell_text(cell) in _NOTHING else _LOST


def _times(text: bytes, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """As `_time`, of many cells of a text: those laid out as the first one together."""
    at, size = np.full(len(begin), ABSENT, np.int64), end - begin
    first = int(np.argmax(size > 0)) if len(size) else 0
    layout = _TIME.fullmatch(text, begin[first], end[first]) if size.any() else None
    if layout is not None:
        rows = np.flatnonzero(size == size[first])
        cells = sliding_window_view(np.frombuffer(text, np.uint8), size[first])[begin[rows]]
        like = np.frombuffer(layout[0], np.uint8)
        # A digit where the first has one, else the same.
        alike = np.where(like - _ZERO <= _NINE, cells - _ZERO <= _NINE, cells == like).all(axis=1)
        places = np.array([*range(*layout.span(1)), *range(*layout.span(2))]) - begin[first]
        ns = (cells[:, places] - _ZERO) @ 10 ** np.arange(len(places))[::-1]
        at[rows] = np.where(alike & (ns >= 0) & (ns < 1 << 62), ns, ABSENT)
    for one in np.flatnonzero((at == ABSENT) & (size > 0)).tolist():
        at[one] = _time(text[begin[one] : end[one]])
    return at


class _Codes(dict[bytes, int]):
    """Numbers of the distinct cells of a column, as they come."""

    def __missing__(self, cell: bytes) -> int:
        self[cell] = code = len(self)
        return code

    def of(self, text: bytes, begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int32]:
        """Of cells of a text."""
        cells = [text[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        return np.fromiter(map(self.__getitem__, cells), np.int32, len(cells))


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
        codes = {name: _Codes() for name in places if name not in _TIMES}
        parts = {name: [np.empty(0, np.int32 if name in codes else np.int64)] for name in places}
        texts = (text for text in _whole_rows(file, block, len(header)) if text)
        counts = [_add(parts, codes, text, places, len(header)) for text in texts]
    if short := sum(short for _, short in counts):
        notes.append(Lost("{name}: {count:,} row(s) with too few or too many cells left out", path.name, short))
    whole = {name: np.concatenate(each) for name, each in parts.items()}
    columns = {name: Column(list(codes[name]), each) if name in codes else each for name, each in whole.items()}
    return Table(columns, sum(rows for rows, _ in counts), path.name, notes)


def joined(tables: Sequence[Table]) -> Table:
    """The rows of several tables, with the columns that all of them have."""
    names = [name for name in tables[0].columns if all(name in table.columns for table in tables)]
    columns = {name: _joined([table.columns[name] for table in tables]) for name in names}
    return tables[0]._replace(columns=columns, rows=sum(table.rows for table in tables))


def _joined(columns: Sequence[Any]) -> Column | NDArray[np.int64]:
    if not isinstance(columns[0], Column):
        return np.concatenate(columns)
    first = np.cumsum([0, *(len(one.cells) for one in columns)])
    code = [one.code + np.int32(start) for one, start in zip(columns, first, strict=False)]
    return Column([cell for one in columns for cell in one.cells], np.concatenate(code))


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


def _add(
    columns: Mapping[str, list[NDArray[Any]]],
    codes: Mapping[str, _Codes],
    text: bytes,
    places: Mapping[str, int],
    width: int,
) -> tuple[int, int]:
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
        columns[name].append((codes[name].of if name in codes else _times)(text, start, ends))
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
    "aiv_cycles": ("aiv_total_cycles",),
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
    "hf32": ("HF32 Eligible",),
}
"""Columns of kernel_details (and op_summary)."""
OPTIONAL = KERNELS.keys() - {"op_type", "core", "start"}
"""Of these: what level 0 or some version lacks."""
ROWS = KERNELS | {"name": ("Name", "Op Name"), "dur": ("Duration(us)", "Task Duration(us)")}
"""With what the timeline tells, where there is one."""
L2_CACHE = {"stream": KERNELS["stream"], "task": KERNELS["task"], "name": ("Op Name",), "hit_rate": ("Hit Rate",)}
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
    return int(digits) if digits.isdecimal() and len(digits) < 19 else None


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
POOL, GRAPH_ENGINE_POOL = "PTA", "GE"
"""The allocator of PyTorch in memory_record; GE and the sum of both are other curves."""


def allocator_records(operators: Path | None, totals: Table | None, notes: list[str]) -> Records:
    """Records of PyTorch's allocator: what operators allocate and release; memory_record's totals at other times."""
    changes = []
    if operators is not None and (table := read_table(operators, _OPERATOR_MEMORY, notes)) is not None:
        size = table.sizes("size", _KB)
        names, name = table.coded("name")
        size[np.array([(text or "").startswith(_GRAPH_ENGINE) for text in names], np.bool_)[name]] = ABSENT
        released = np.where(size == ABSENT, ABSENT, -size)
        changes.append(_records(table, "at", size, "allocated", "reserved"))
        changes.append(_records(table, "until", released, "allocated_after", "reserved_after"))
    if totals is None:
        return joined_records(changes, None)
    components, component = totals.coded("component")
    pool = np.array([text == POOL for text in components], np.bool_)[component]
    return joined_records(changes, _records(totals, "at", np.where(pool, 0, ABSENT), "allocated", "reserved"))


def _records(table: Table, at: str, size: NDArray[np.int64], allocated: str, reserved: str) -> Records:
    devices, device = table.coded("device")
    kind, number = np.array(list(map(device_of, devices)), np.int64).reshape(-1, 2)[device].T
    return {
        "ts": table.times(at),
        "bytes": size,
        "device_type": kind,
        "device": number,
        "allocated": table.sizes(allocated, MB),
        "reserved": table.sizes(reserved, MB),
    }


def device_of(text: str | None) -> tuple[int, int]:
    """`NPU:1` as (1, 1): kind as in PyTorch's records, and number."""
    kind, _, number = (text or "").partition(":")
    return int(kind.upper() != "CPU"), int(number) if number.strip().isdecimal() and len(number) < 10 else 0
