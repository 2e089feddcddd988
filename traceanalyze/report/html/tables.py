"""Tables of a report as HTML, under their headings: numbers sort as numbers, long ones stop and say so.

First rows stand in the page as they are; the rest is packed, and the script makes rows of it when they are asked for.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NUMBERS, TIMES, Column, Kind, Layout, NotMeasured, Quantity, Row, Table, Value
from traceanalyze.model.units import Unit
from traceanalyze.report.format import Formatter, printable, shown_columns
from traceanalyze.report.html.frame import aside, data, element, folded, safe, sentence
from traceanalyze.report.view import OVERVIEW, below_side, side_runs


def sides_above(columns: Sequence[Column], texts: Texts, *, more: int = 0) -> str:
    """Sides above the headings of columns, and of `more` without one; empty where no side has neighbouring columns."""
    runs = side_runs(columns)
    if not any(side is not None and count > 1 for side, count in runs):
        return ""
    cells = [
        element("td", "", colspan=str(count))
        if side is None
        else element("th", safe(texts.messages[side]), scope="colgroup", colspan=str(count), class_=f"side {side}")
        for side, count in [*runs, *([(None, more)] if more else [])]
    ]
    return f"<tr>{''.join(cells)}</tr>"


MAX_ROWS = 500
"""Rows of a table in a page: more are slow to open, and nobody reads them."""
FIRST_ROWS, FIRST_SHUT = 8, 3
"""Rows that need no script, and that are printed; and of what is to be opened."""
_FEW_ROWS = 12
"""Rows up to which all are."""
_RECORDS_ABREAST = 3
"""Records shown as names and values beside each other; more are rows."""


class _Cell(NamedTuple):
    """One value: its text, and the number that it sorts by."""

    text: str = ""
    value: int | float | None = None
    css: str | None = None
    title: str | None = None
    style: str | None = None

    def html(self) -> str:
        value = None if self.value is None else repr(self.value)
        return element("td", safe(self.text), class_=self.css, data_value=value, style=self.style, title=self.title)

    def packed(self) -> object:
        """As short as it can be written: most are a text, or a number and its text."""
        value = self.value if self.value is not None and isfinite(self.value) else None
        text = printable(self.text)
        if not (self.title or self.style) and self.css in {None, "n"}:
            return text if self.css is None else [text, value]
        return [text, value, self.css, self.title and printable(self.title), self.style]


def table_html(table: Table, formatter: Formatter, whole: float | None = None, first: int = FIRST_ROWS) -> str:
    """The table, and below it what was left out, why values are missing, and its notes.

    `whole` is what a whole bar stands for: by default all of a share, the largest of amounts. The `first` rows need no
    script.
    """
    shown = table.known_rows[:MAX_ROWS]
    is_record = table.layout == Layout.RECORD and len(shown) <= _RECORDS_ABREAST
    drawn = _record(table, shown, formatter) if is_record else _rows(table, shown, formatter, whole, first)
    return drawn + "".join(_below(table, shown, formatter))


def _below(table: Table, shown: Sequence[Row], formatter: Formatter) -> Iterator[str]:
    yield from map(aside, formatter.legends(shown))
    for note in table.notes:
        yield element("p", sentence(formatter.message(note)))


def _wide(drawn: str, *, focus: bool) -> str:
    """Room in which what is too wide can be moved; what holds nothing that has the focus takes it itself."""
    return element("div", drawn, class_="wide", tabindex="0" if focus else None)


def _rows(table: Table, shown: Sequence[Row], formatter: Formatter, whole: float | None, first: int) -> str:
    """A line a row; hierarchies must keep their order."""
    every = (*shown, *((table.total,) if table.total else ()))
    columns = shown_columns(table, every, formatter.resolution_ns)
    meanings = [formatter.texts.meanings.get(f"{table.key}.{row[0]}", "") for row in shown]
    above = sides_above([column for _, column, *_ in columns], formatter.texts, more=int(any(meanings)))
    head = [_heading(table, column, unit, formatter, below=bool(above)) for _, column, _, unit in columns]
    if any(meanings):
        head.append(element("th", safe(formatter.texts.messages["meaning"]), scope="col"))
    wholes = {
        index: whole or _longest(column, shown, index) for index, column, *_ in columns if column.key == table.bar
    }
    body = []
    for row, meaning in zip(shown, meanings, strict=True):
        cells = [_cell(col, row[index], unit, formatter, whole=wholes.get(index)) for index, col, unit, _ in columns]
        depth = table.depth(row)
        if depth is not None:
            cells[0] = cells[0]._replace(style=f"--level:{depth}")
        body.append([*cells, *([_Cell(meaning, css="aside")] if any(meanings) else [])])
    faint = [at for at, row in enumerate(shown) if table.is_faint(row)]
    lines = "\n".join(
        element("tr", "".join(cell.html() for cell in cells), class_="faint" if at in faint else None)
        for at, cells in enumerate(body[:first])
    )
    foot = ""
    if table.total is not None:
        cells = [_cell(column, table.total[index], unit, formatter) for index, column, unit, _ in columns]
        total = "".join(cell.html() for cell in cells)
        foot = f"<tfoot><tr>{total}{'<td></td>' if any(meanings) else ''}</tr></tfoot>"
    sortable = table.level is None and len(shown) > 1
    opening = '<table class="sortable">' if sortable else "<table>"
    drawn = f"{opening}<thead>{above}<tr>{''.join(head)}</tr></thead>\n<tbody>\n{lines}\n</tbody>{foot}</table>"
    return _wide(drawn, focus=not sortable) + _rest(table, body, faint, formatter, first)


def _rest(
    table: Table, body: Sequence[Sequence[_Cell]], faint: Collection[int], formatter: Formatter, first: int
) -> str:
    """How many rows are not seen yet, and these for the script."""
    if len(table) <= first:
        return ""
    left_out, count = formatter.texts.messages["rows_left_out"], f"{len(table):,}"
    packed = {
        "rows": [[cell.packed() for cell in cells] for cells in body[first:]],
        "faint": [at - first for at in faint if at >= first],
        "left": left_out.format(kept=f"{len(body):,}", count=count) if len(table) > len(body) else "",
    }
    return f'<p class="aside cut">{safe(left_out.format(kept=f"{first:,}", count=count))}{data(packed)}</p>'


def _heading(table: Table, column: Column, unit: str, formatter: Formatter, *, below: bool) -> str:
    """Heading with the unit its cells have, and what the column holds; `below` that of its side if it has one."""
    heading = below_side(table, column, formatter.texts) if below else formatter.texts.heading(table, column)
    text = " ".join(filter(None, (safe(heading), f"<small>{safe(unit)}</small>" if unit else "")))
    meaning = formatter.texts.meaning(table, column) or None
    return element("th", text, scope="col", class_="n" if column.kind in NUMBERS else None, title=meaning)


def _longest(column: Column, rows: Sequence[Row], index: int) -> float:
    """What a whole bar stands for: everything, or of amounts the largest of them."""
    known = [abs(value) for value in (row[index] for row in rows) if isinstance(value, int | float)]
    return 1.0 if column.kind == Kind.SHARE else max([1, *known])


def _cell(
    column: Column, value: Value, unit: Unit | None, formatter: Formatter, *, whole: float | None = None
) -> _Cell:
    """One value, as a bar beside `whole` if there is one; the number behind it is the one JSON has."""
    if value is None:
        return _Cell()
    if isinstance(value, NotMeasured):
        return _Cell("n/m", css="nm", title=formatter.texts.reasons.get(value.reason, value.reason))
    shown = formatter.cell(column, value, unit)
    if column.kind == Kind.QUANTITY:
        return _Cell(shown, float(value.number) if isinstance(value, Quantity) else None, "n")
    if column.kind not in NUMBERS or not isinstance(value, int | float):
        return _Cell(shown, title=None if formatter.label(column, value) is None else str(value))
    share = None if whole is None else abs(value) / whole if column.kind in TIMES else value
    style = None if share is None else f"--share:{min(max(share, 0), 1):.4f}"
    kind = "n" if share is None else "n bar"
    # What is shown as equal is neither.
    if column.par is not None and value != column.par and shown != formatter.cell(column, column.par, unit):
        kind += " worse" if value > column.par else " better"
    return _Cell(shown, value, kind, style=style)


def _record(table: Table, shown: Sequence[Row], formatter: Formatter) -> str:
    """Names and values; minor values of zero say nothing."""
    lines = []
    for index, column in enumerate(table.columns):
        values = [row[index] for row in shown]
        if column.machine or all(value in (None, "") or (value == 0 and column.minor) for value in values):
            continue
        cells = "".join(_recorded(column, value, formatter).html() for value in values)
        name = element("th", safe(formatter.texts.heading(table, column)), scope="row")
        meaning = element("td", safe(formatter.texts.meaning(table, column)), class_="aside")
        lines.append(f"<tr>{name}{cells}{meaning}</tr>")
    return _wide(f'<table class="record"><tbody>{"".join(lines)}</tbody></table>', focus=True)


def _recorded(column: Column, value: Value, formatter: Formatter) -> _Cell:
    """A value with its unit."""
    if column.kind in NUMBERS and isinstance(value, int | float):
        return _Cell(formatter.value(column.kind, value), value, "n")
    return _cell(column, value, None, formatter)


_ASIDE = regex(r" \(|（")


def short_title(table: Table, formatter: Formatter) -> str:
    """A title without what it says in brackets, for a list of contents."""
    return _ASIDE.split(formatter.title(table))[0]


def table_section(
    table: Table,
    chart: str,
    formatter: Formatter,
    at: str,
    whole: float | None = None,
    *,
    heading: str = "h3",
    shut: bool = False,
) -> str:
    """Pictures (`chart`) are open; numbers behind them and what is left out of a short view are to be opened.

    All of it is to be opened where it is `shut`.
    """
    words = formatter.texts.messages
    title = element(heading, safe(formatter.title(table)))
    if table.stack and chart:
        numbers = aside(words["page_numbers_elsewhere"])
    else:
        if table.in_words:
            chart = "".join(element("p", sentence(formatter.message(note))) for note in table.notes)
            table = replace(table, notes=())
        closed = shut or bool(chart) or table.detail or table.in_words
        read = table.key in OVERVIEW or len(table) <= _FEW_ROWS
        first = FIRST_SHUT if closed else MAX_ROWS if read else FIRST_ROWS
        numbers = table_html(table, formatter, whole, first)
        if (chart or table.in_words) and not shut:
            numbers = folded(safe(words["page_numbers"]), numbers)
    if shut or (table.detail and not chart):
        return folded(f"{title} <small>{len(table):,}</small>", chart + numbers, id=at, class_="table")
    return element("section", title + chart + numbers, id=at)


def listed(items: Collection[str]) -> str:
    """Sentences as a list."""
    return element("ul", "".join(element("li", sentence(item)) for item in items))
