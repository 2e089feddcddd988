"""Formats of cells, each made once, as a workbook stores every one that is made; and texts that Excel takes."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured, Quantity, Row, Table, Value, Word
from traceanalyze.model.units import MEMORY_SIZES, SIZES, TIMES, Unit, quantity
from traceanalyze.report.format import Formatter, column_units

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format

HEADER_FILL = "#DCE6F1"
RULE = "#7F7F7F"
DIM = "#6F6F6F"
LINK = "#0563C1"
TIME_BAR = "#9DC3E6"
SHARE_BAR = "#C5B7DE"
SIDE_FILLS = {"base": "#E2EFDA", "candidate": "#FFF2CC"}
"""Of both sides of a comparison."""
SIDE_COLOURS = {"base": "#70AD47", "candidate": "#FFC000"}
WORSE, BETTER, FAINT = "#C00000", "#2E7D32", "#808080"
SCALE = ("#DDEBF7", "#FFFFFF", "#FCE4D6")
"""Low, middle and high of a ratio; neither is good or bad."""
PARTS = {
    "compute": "#4472C4",
    "communication": "#ED7D31",
    "memory_ops": "#FFC000",
    "data_loading": "#C00000",
    "sync": "#7030A0",
    "dispatch": "#00A3A3",
    "idle": "#A6A6A6",
    "host_sync": "#7030A0",
    "peer_wait": "#ED7D31",
    "host_api": "#00A3A3",
    "host_op": "#4472C4",
    "untraced": "#A6A6A6",
}
"""Colour of each part of a step, the same in every chart."""
STAGE_FILLS = {
    "phase_forward": "#B4C7E7",
    "phase_backward": "#A9D8BC",
    "phase_optimizer": "#D0B8E0",
    "bubble": "#F4B6B6",
    "send": "#F8CBAD",
    "recv": "#FFE699",
    "send_recv": "#F8CBAD",
}
"""Behind what a stage of a pipeline does."""
INSET = {"align": "left", "indent": 1}
"""Of text beside a number."""
LEVELS = {"WARN": "#9C5700", "ERROR": "#C00000"}

_NAMED: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 14},
    "section": {"bold": True, "font_size": 12, "bottom": 1, "bottom_color": RULE},
    "note": {"font_color": DIM},
    "aside": {"font_color": DIM, **INSET},
    "wrapped": {"text_wrap": True},
    "link": {"font_color": LINK, "underline": 1},
    "missing": {"font_color": DIM, "italic": True, "align": "right"},
}
"""Titles, headings, remarks beside tables and numbers, sentences, links, what was not measured."""


class Formats:
    """Formats of one workbook by their properties."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._made: dict[tuple[tuple[str, Any], ...], Format] = {}

    def get(self, **properties: Any) -> Format:
        """The format with these properties; vertically all cells start at the top."""
        key = tuple(sorted(properties.items()))
        if key not in self._made:
            self._made[key] = self._workbook.add_format({"valign": "top", **properties})
        return self._made[key]

    def __getitem__(self, name: str) -> Format:
        """One that has a name."""
        return self.get(**_NAMED[name])

    def header(self, *, right: bool, indent: int = 0, fill: str = HEADER_FILL) -> Format:
        """Heading of a column of text or of numbers."""
        shown = {"bold": True, "valign": "bottom", "text_wrap": True, "bg_color": fill, "bottom": 1}
        return self.get(**shown, bottom_color=RULE, **aligned(right=right, indent=indent))

    def colour(self, colour: str) -> Format:
        """Of text that says worse or better; for conditional formats, which change nothing else."""
        return self._conditional("font_color", colour)

    def fill(self, colour: str) -> Format:
        """Behind a word; the same."""
        return self._conditional("bg_color", colour)

    def _conditional(self, name: str, colour: str) -> Format:
        key = (("conditional", name), ("colour", colour))
        if key not in self._made:
            self._made[key] = self._workbook.add_format({name: colour})
        return self._made[key]

    def group(self, fill: str) -> Format:
        """Heading over the columns of one side."""
        return self.get(bold=True, bg_color=fill, align="left")

    def indented(self, level: int) -> Format:
        """What names a row that lies inside another."""
        return self.get(**aligned(right=False, indent=level))

    def cell(self, number_format: str | None, *, first: bool = False, total: bool = False) -> Format:
        """A value; text keeps away from the number before it, and what names the row stands at the left."""
        shown: dict[str, Any] = {"num_format": number_format} if number_format else {}
        shown |= {"bold": True, "top": 1, "top_color": RULE} if total else {}
        right = number_format is not None and not first
        return self.get(**shown, **aligned(right=right, indent=0 if first or right else 1))

    def fitting(self, form: Format | None, cell: Cell) -> Format | None:
        """That of a cell among those of a column."""
        return self.cell(cell.number_format) if isinstance(cell, InUnit) else form

    def row(self, fields: Sequence[Field], *, total: bool = False) -> list[Format]:
        """Those of a row's cells, or of what the columns sum to."""
        return [self.cell(field.number_format, first=col == 0, total=total) for col, field in enumerate(fields)]


def aligned(*, right: bool, indent: int = 0) -> dict[str, Any]:
    """Properties of a format: the side, and how far from it."""
    return {"align": "right" if right else "left", **({"indent": indent} if indent else {})}


class InUnit(float):
    """A number that is shown with a unit of its own."""

    number_format: str

    @classmethod
    def of(cls, value: Quantity) -> InUnit:
        """With as many decimals as it has in words."""
        digits, _, unit = quantity(value.number, value.unit, change=value.change).partition(" ")
        behind = "%" if unit == "%" else f'" {unit}"' if unit else ""
        text = _decimals(0 if "e" in digits else len(digits.partition(".")[2])) + behind
        scale = 100 if value.unit == "percent" else dict((*TIMES, *MEMORY_SIZES)).get(unit, 1)
        made = cls(value.number / scale)
        made.number_format = _signed(Kind.CHANGE if value.change else Kind.QUANTITY, text)
        return made


Cell = int | float | str | None

NOT_MEASURED = "n/m"
EXACT = 10**15
"""From here on Excel, which keeps 15 digits, would show another number."""

_MOST_DIGITS = 3
_SHARE_FORMAT = "0.0%"
_COMPARED_TIME, _COMPARED_CALL = Unit("ms", 10**6, 2), Unit("µs", 10**3, 2)
_COMPARED_SIZES = {"MB", "MiB"}
"""Units of both sides of a comparison, whatever the values are."""
_ENDS = ("low_ns", "high_ns")
"""Ends of a range, for programs elsewhere: there the text of the value has them, but a number cannot."""
_CHANGES = {Kind.CHANGE, Kind.BYTES_CHANGE, Kind.MEMORY_CHANGE}


@dataclass(frozen=True)
class Field:
    """A column of a sheet."""

    column: Column
    index: int
    """Of the column in the table."""
    heading: str
    unit: str = ""
    number_format: str | None = None
    """None: text."""
    scale: int = 1
    """What values are divided by."""
    digits: bool = False
    """Text that is all numbers, to be sorted as such."""
    whole: bool = False
    """Whole names beside a column of labels."""

    @property
    def header(self) -> str:
        """Heading with the unit; percentages carry theirs in every cell."""
        return f"{self.heading} ({self.unit})" if self.unit and self.column.kind != Kind.SHARE else self.heading

    def cell(self, value: Value, formatter: Formatter) -> Cell:
        """A value as its cell has it; None stays empty."""
        if value is None:
            return None
        if isinstance(value, NotMeasured | Quantity):
            return InUnit.of(value) if isinstance(value, Quantity) else NOT_MEASURED
        if self.number_format is None or isinstance(value, bool | tuple | Word):
            return clean(formatter.label(self.column, value) or formatter.value(self.column.kind, value)) or None
        if isinstance(value, str):
            return int(value) if self.digits and _is_number(value) else clean(value) or None
        if not math.isfinite(value):
            return None
        number = value / self.scale if self.scale != 1 else value
        return number if abs(number) < EXACT else str(value)


def fields_of(table: Table, rows: Sequence[Row], formatter: Formatter) -> tuple[Field, ...]:
    """Columns of a table as a sheet shows them; those for programs only are left to CSV and JSON."""
    every = rows if table.total is None else (*rows, table.total)
    units = column_units(table.columns, every, formatter.resolution_ns)
    if any(column.side for column in table.columns):
        # Scripts read these, and the next pair must not change what a column is in.
        units = {**dict.fromkeys(units, _COMPARED_CALL), "time": _COMPARED_TIME}
    alike = _alike(table.columns)
    fields, names = list[Field](), list[Field]()
    for index, column in enumerate(table.columns):
        if column.machine and column.key not in _ENDS:
            continue
        fields.append(field_of(table, index, [row[at] for row in rows for at in alike[index]], units, formatter))
        if any(formatter.label(column, row[index]) for row in rows):
            heading = formatter.texts.messages["whole_name"].format(heading=fields[-1].heading)
            named = replace(column, kind=Kind.NAME, minor=True, alias="")
            names.append(Field(named, index, heading, whole=True))
    return (*fields, *names)


def _alike(columns: Sequence[Column]) -> list[list[int]]:
    """For each column the places of those that hold the same of either side of a comparison: they have one unit."""
    keys = [(column.key.removeprefix(f"{column.side}_"), column.side is None) for column in columns]
    return [[at for at, key in enumerate(keys) if key == own] for own in keys]


def field_of(table: Table, index: int, values: Sequence[Value], units: dict[str, Unit], formatter: Formatter) -> Field:
    """One column; its unit and decimals are chosen by the values it has."""
    column = table.columns[index]
    heading = formatter.texts.heading(table, column)
    unit, number_format, scale = "", None, 1
    compared = any(each.side for each in table.columns)
    match column.kind:
        case Kind.DURATION | Kind.CHANGE:
            chosen = units[column.scale]
            unit, scale = chosen.name, chosen.ns
            if not compared and not any(isinstance(value, int) for value in values):
                unit = ""  # Nothing is shown in it.
            number_format = _signed(column.kind, _decimals(_duration_digits(values, chosen, formatter.resolution_ns)))
        case Kind.SHARE:
            unit, number_format = "%", _SHARE_FORMAT
        case Kind.RATIO:
            number_format = _decimals(2)
        case Kind.BYTES | Kind.BYTES_CHANGE | Kind.MEMORY | Kind.MEMORY_CHANGE:
            decimal = column.kind in {Kind.BYTES, Kind.BYTES_CHANGE}
            largest = max((abs(value) for value in values if isinstance(value, int | float)), default=0)
            known = SIZES if decimal else MEMORY_SIZES
            unit, scale = next((each for each in known if largest >= each[1]), ("B", 1))
            if compared:
                unit, scale = next(each for each in known if each[0] in _COMPARED_SIZES)
            number_format = _signed(column.kind, _decimals(2 if scale > 1 else 0))
        case Kind.QUANTITY:
            number_format = "@"
        case Kind.COUNT | Kind.NUMBER:
            number_format = _decimals(_digits(values))
        case Kind.TEXT if _all_numbers(values):
            return Field(column, index, heading, "", "0", digits=True)
    return Field(column, index, heading, unit, number_format, scale)


def _signed(kind: Kind, number_format: str) -> str:
    """Differences with their sign."""
    return f"+{number_format};-{number_format};{number_format}" if kind in _CHANGES else number_format


def _decimals(digits: int) -> str:
    return "#,##0" + ("." + "0" * digits if digits else "")


def _duration_digits(values: Sequence[Value], unit: Unit, resolution_ns: int) -> int:
    """Decimals of the unit, and more where short times share it with long ones, as far as the clock goes."""
    shortest = min((abs(value) for value in values if isinstance(value, int) and value), default=unit.ns)
    digits = unit.digits
    while digits < _MOST_DIGITS and shortest * 10**digits < unit.ns and resolution_ns * 10**digits < unit.ns:
        digits += 1
    return digits


def _digits(values: Sequence[Value]) -> int:
    """Decimals of plain numbers: none for whole ones, more for small ones."""
    known = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    if all(value == int(value) for value in known):
        return 0
    largest = max(known)
    return 1 if largest >= 100 else 2 if largest >= 1 else 4


def _all_numbers(values: Sequence[Value]) -> bool:
    """Whether texts are whole numbers only, as steps and ranks often are."""
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, str) and _is_number(value) for value in known)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10 and (text[0] != "0" or text == "0")


LONGEST = 32_767
"""Characters of a cell; Excel repairs, that is cuts, a file with longer ones."""

# All that XML 1.0 forbids, lone surrogates among it, which cannot be encoded either.
_ILLEGAL = regex("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FIRST_WIDE = "\u1100"
"""No character before it is wide."""
_BREAKS = regex("[\t\n\r]+")
_WORDS = regex(f"[{_FIRST_WIDE}-\U0010ffff]|[^\\s{_FIRST_WIDE}-\U0010ffff]+")


def clean(text: str) -> str:
    """Text of a trace in one line, without characters that a workbook must not contain."""
    if not text.isprintable():
        text = _BREAKS.sub(" ", _ILLEGAL.sub("", text))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def width(text: str) -> int:
    """Columns the text takes: East Asian characters take two."""
    if text.isascii() or max(text) < _FIRST_WIDE:
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def lines(text: str, room: int) -> int:
    """Lines that text wrapped in a cell of this width takes, at the most; East Asian text breaks between any two."""
    taken, used = 1, 0
    words = text.split() if width(text) == len(text) else _WORDS.findall(text)
    for word in words:
        size, space = width(word), int(bool(used) and word[0] < _FIRST_WIDE)
        if used and used + space + size > room:
            taken, used, space = taken + 1, 0, 0
        used += size + space
        full = max(used - 1, 0) // room
        taken, used = taken + full, used - full * room
    return taken


LONGEST_NAME = 31
_FORBIDDEN = regex(r"[\[\]:*?/\\]|[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RESERVED = "history"


class SheetNames:
    """Gives out names, each once; Excel compares them without case."""

    def __init__(self) -> None:
        self._taken = {_RESERVED}

    def take(self, wanted: str) -> str:
        """The wanted name, or the nearest to it that is free."""
        base = _FORBIDDEN.sub("_", wanted).strip("' ") or "Sheet"
        name, number = base[:LONGEST_NAME], 1
        while name.lower() in self._taken:
            number += 1
            ending = f" ({number})"
            name = base[: LONGEST_NAME - len(ending)] + ending
        self._taken.add(name.lower())
        return name


def readable(key: str) -> str:
    """A table's key as a name: the same in every language, so that programs find it."""
    return key.replace("_", " ").capitalize()


def link(name: str, cell: str = "A1") -> str:
    """Address of a cell in another sheet as hyperlinks have it."""
    return f"internal:'{name.replace(chr(39), chr(39) * 2)}'!{cell}"
