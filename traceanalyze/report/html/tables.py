"""Tables of a report as HTML, under their headings: numbers sort as numbers, long ones stop and say so."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NUMBERS, TIMES, Column, Kind, Layout, NotMeasured, Quantity, Row, Table, Value
from traceanalyze.model.units import Unit
from traceanalyze.report.format import Formatter, shown_columns
from traceanalyze.report.html.frame import aside, element, safe, sentence
from traceanalyze.report.view import below_side, side_runs


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
_RECORDS_ABREAST = 3
"""Records shown as names and values beside each other; more are rows."""
_LONG = 36
"""Letters of a text that is broken into lines."""


def table_html(table: Table, formatter: Formatter, whole: float | None = None) -> str:
    """The table, and below it what was left out, why values are missing, and its notes.

    `whole` is what a whole bar stands for: by default all of a share, the largest of amounts.
    """
    shown = table.known_rows[:MAX_ROWS]
    is_record = table.layout == Layout.RECORD and len(shown) <= _RECORDS_ABREAST
    drawn = _record(table, shown, formatter) if is_record else _rows(table, shown, formatter, whole)
    return f'<div class="wide">{drawn}</div>' + "".join(_below(table, shown, formatter))


def _below(table: Table, shown: Sequence[Row], formatter: Formatter) -> Iterator[str]:
    if len(table) > len(shown):
        left_out = formatter.texts.messages["rows_left_out"]
        yield aside(left_out.format(kept=f"{len(shown):,}", count=f"{len(table):,}"))
    yield from map(aside, formatter.legends(shown))
    for note in table.notes:
        yield element("p", sentence(formatter.message(note)))


def _rows(table: Table, shown: Sequence[Row], formatter: Formatter, whole: float | None) -> str:
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
            cells[0] = cells[0].replace("<td", f'<td style="--level:{depth}"', 1)
        if any(meanings):
            cells.append(element("td", safe(meaning), class_="aside"))
        opened = '<tr class="faint">' if table.is_faint(row) else "<tr>"
        body.append(f"{opened}{''.join(cells)}</tr>")
    foot = ""
    if table.total is not None:
        cells = [_cell(column, table.total[index], unit, formatter) for index, column, unit, _ in columns]
        foot = f"<tfoot><tr>{''.join(cells)}{'<td></td>' if any(meanings) else ''}</tr></tfoot>"
    sortable = table.level is None and len(shown) > 1
    opening = '<table class="sortable">' if sortable else "<table>"
    lines = "\n".join(body)
    return f"{opening}<thead>{above}<tr>{''.join(head)}</tr></thead>\n<tbody>\n{lines}\n</tbody>{foot}</table>"


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


def _cell(column: Column, value: Value, unit: Unit | None, formatter: Formatter, *, whole: float | None = None) -> str:
    """One value, as a bar beside `whole` if there is one; the number behind it is the one JSON has."""
    if value is None:
        return "<td></td>"
    if isinstance(value, NotMeasured):
        return element("td", "n/m", class_="nm", title=formatter.texts.reasons.get(value.reason, value.reason))
    if column.kind == Kind.QUANTITY:
        sorted_by = f' data-value="{float(value.number)!r}"' if isinstance(value, Quantity) else ""
        return f'<td class="n"{sorted_by}>{safe(formatter.cell(column, value, unit))}</td>'
    if column.kind not in NUMBERS or not isinstance(value, int | float):
        text, label = safe(formatter.cell(column, value, unit)), formatter.label(column, value)
        whole_name = None if label is None else str(value)
        return element("td", text, class_="long" if len(text) > _LONG else None, title=whole_name)
    shown = safe(formatter.cell(column, value, unit))
    share = None if whole is None else abs(value) / whole if column.kind in TIMES else value
    style = "" if share is None else f' style="--share:{min(max(share, 0), 1):.4f}"'
    kind = "n" if share is None else "n bar"
    # What is shown as equal is neither.
    if column.par is not None and value != column.par and shown != safe(formatter.cell(column, column.par, unit)):
        kind += " worse" if value > column.par else " better"
    return f'<td class="{kind}" data-value="{value!r}"{style}>{shown}</td>'


def _record(table: Table, shown: Sequence[Row], formatter: Formatter) -> str:
    """Names and values; minor values of zero say nothing."""
    lines = []
    for index, column in enumerate(table.columns):
        values = [row[index] for row in shown]
        if column.machine or all(value in (None, "") or (value == 0 and column.minor) for value in values):
            continue
        cells = "".join(_recorded(column, value, formatter) for value in values)
        name = element("th", safe(formatter.texts.heading(table, column)), scope="row")
        meaning = element("td", safe(formatter.texts.meaning(table, column)), class_="aside")
        lines.append(f"<tr>{name}{cells}{meaning}</tr>")
    return f'<table class="record"><tbody>{"".join(lines)}</tbody></table>'


def _recorded(column: Column, value: Value, formatter: Formatter) -> str:
    """A value with its unit."""
    if column.kind in NUMBERS and isinstance(value, int | float):
        return f'<td class="n" data-value="{value!r}">{safe(formatter.value(column.kind, value))}</td>'
    return _cell(column, value, None, formatter)


_ASIDE = regex(r" \(|（")


def short_title(table: Table, formatter: Formatter) -> str:
    """A title without what it says in brackets, for a list of contents."""
    return _ASIDE.split(formatter.title(table))[0]


def table_section(table: Table, chart: str, formatter: Formatter, at: str, whole: float | None = None) -> str:
    """Pictures (`chart`) are open; numbers behind them and what is left out of a short view are to be opened."""
    words = formatter.texts.messages
    heading = element("h3", safe(formatter.title(table)))
    if table.stack and chart:
        return element("section", heading + chart + aside(words["page_numbers_elsewhere"]), id=at)
    if table.in_words:
        chart = "".join(element("p", sentence(formatter.message(note))) for note in table.notes)
        table = replace(table, notes=())
    numbers = table_html(table, formatter, whole)
    if chart or table.in_words:
        inside = element("summary", safe(words["page_numbers"]))
        return element("section", f"{heading}{chart}<details>{inside}{numbers}</details>", id=at)
    if table.detail:
        count = f"<small>{len(table):,}</small>"
        return element("details", f"<summary>{heading} {count}</summary>{numbers}", id=at, class_="table")
    return element("section", heading + numbers, id=at)


def listed(items: Collection[str]) -> str:
    """Sentences as a list."""
    return element("ul", "".join(element("li", sentence(item)) for item in items))
