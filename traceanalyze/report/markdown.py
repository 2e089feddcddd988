"""Reports as GitHub-flavoured Markdown, for issues and pull requests: the verdict, then the tables, capped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import SIZES, TIMES, Kind, NotMeasured, Row, Table, Value
from traceanalyze.model.units import Unit
from traceanalyze.report.format import Formatter, column_units, formatter_of
from traceanalyze.report.model import Report

MAX_ROWS = 20
"""Rows of a table: a page is read, not searched; the other formats have all of them."""
_NUMBERS = frozenset({*TIMES, *SIZES, Kind.SHARE, Kind.RATIO, Kind.COUNT, Kind.NUMBER})
_SPECIAL = regex(r"([\\`*_{}\[\]<>#|~$])")
# GitHub makes links of bare addresses, mentions and numbers of issues; an empty comment is not shown and parts them.
_LINKED = regex(r"(?P<before>@|\\#(?=\d)|:(?=//)|\bwww(?=\.))", re.IGNORECASE)
# What opens a list, a rule or a heading where a line begins; a number with its sign or its decimals does not.
_BLOCK = regex(r"^(?P<number>\d+(?=[.)](?:\s|$))|(?=[-+=](?!\d)))(?P<mark>[-+=.)])")


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one document."""
    return "\n".join(block for report in reports for block in _run(report, texts))


def plain(text: str) -> str:
    """Text on one line that is neither markup nor a link, whatever a trace holds."""
    shown = "".join(char if char.isprintable() else _shown(char) for char in text)
    escaped = _SPECIAL.sub(r"\\\1", " ".join(shown.split()).replace("&", "&amp;"))
    return _LINKED.sub(r"\g<before><!-- -->", _BLOCK.sub(r"\g<number>\\\g<mark>", escaped))


def _shown(char: str) -> str:
    return " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"


def _run(report: Report, texts: Texts) -> Iterator[str]:
    first = report.ranks[report.focus[0]]
    formatter = formatter_of(first, texts)
    yield f"# {plain(report.name)}\n"
    yield f"**{plain(formatter.sentences(report.verdict))}**\n"
    for note in report.notes:
        yield f"{plain(formatter.message(note))}\n"
    yield from _tables(report.summary, formatter, "##")
    for number in report.focus:
        rank = report.ranks[number]
        own = formatter_of(rank, texts)
        yield f"## {plain(own.about(rank, rank.path))}\n"
        if len(report.focus) > 1:
            yield f"**{plain(own.sentences(rank.verdict))}**\n"
        yield from _tables(rank.tables, own, "###")
        yield from listed(texts.messages["measure_more"], own.hints(rank))


def _tables(tables: Sequence[Table], formatter: Formatter, mark: str) -> Iterator[str]:
    """Those of a short view; then what was not measured, by the reason."""
    reasons: dict[str, list[str]] = {}
    for table in tables:
        if isinstance(table.rows, NotMeasured):
            reasons.setdefault(formatter.texts.reasons[table.rows.reason], []).append(formatter.topic(table))
        elif table.rows and not (table.detail or table.plot or table.stack):
            yield from table_blocks(table, formatter, mark)
    missing = [formatter.said_of(titles, reason) for reason, titles in reasons.items()]
    yield from listed(formatter.texts.messages["not_measured"], missing)


def table_blocks(table: Table, formatter: Formatter, mark: str) -> Iterator[str]:
    """A table under its heading, and below it what was left out, why values are missing, and its notes."""
    yield f"{mark} {plain(formatter.title(table))}\n"
    if table.in_words:
        yield from (plain(formatter.message(note)) + "\n" for note in table.notes)
        return
    rows = () if isinstance(table.rows, NotMeasured) else table.rows
    shown = rows[:MAX_ROWS]
    every = (*shown, *((table.total,) if table.total else ()))
    units = column_units(table.columns, every, formatter.resolution_ns)
    columns = [
        (index, column, units.get(column.scale) if column.kind in TIMES else None)
        for index, column in enumerate(table.columns)
        if not column.machine and any(row[index] is not None for row in every)
    ]
    heads = []
    for _, column, unit in columns:
        name = unit.name if unit else "%" if column.kind == Kind.SHARE else ""
        heads.append(f"{formatter.texts.heading(column)} ({name})" if name else formatter.texts.heading(column))
    lines = [_row(heads), _row_raw("---:" if column.kind in _NUMBERS else "---" for _, column, _ in columns)]
    inside = _levels(table, shown)
    for place, row in enumerate(every):
        cells = [plain(_cell(formatter, column.kind, row[index], unit)) for index, column, unit in columns]
        cells[0] = "&emsp;" * inside.get(place, 0) + cells[0]
        lines.append(_row_raw(cells))
    yield "\n".join(lines) + "\n"
    if len(rows) > len(shown):
        yield plain(formatter.texts.messages["rows_left_out"].format(kept=len(shown), count=f"{len(rows):,}")) + "\n"
    absent = {value.reason: None for row in shown for value in row if isinstance(value, NotMeasured)}
    if absent:
        yield plain(formatter.legend(absent)) + "\n"
    for note in table.notes:
        yield plain(formatter.message(note)) + "\n"


def _levels(table: Table, shown: Sequence[Row]) -> dict[int, int]:
    """How deep rows lie under those before them, by their place."""
    if table.level is None:
        return {}
    at = [column.key for column in table.columns].index(table.level)
    depths = (row[at] for row in shown)
    return {place: depth for place, depth in enumerate(depths) if isinstance(depth, int)}


def _cell(formatter: Formatter, kind: Kind, value: Value, unit: Unit | None) -> str:
    """One value; the label of a total is a word of the tool, among texts of the trace."""
    text = formatter.cell(kind, value, unit)
    return formatter.texts.terms.get(text, text) if kind == Kind.TEXT else text


def _row(cells: Sequence[str]) -> str:
    return _row_raw(plain(cell) for cell in cells)


def _row_raw(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def listed(title: str, items: Sequence[str]) -> Iterator[str]:
    """Sentences as a list under a title; nothing where there are none."""
    if items:
        lines = "\n".join(f"- {plain(item)}" for item in items)
        yield f"**{plain(title)}**\n\n{lines}\n"
