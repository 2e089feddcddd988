"""Reports as GitHub-flavoured Markdown, for issues and pull requests: the verdict, then the tables, capped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from traceanalyze.locales import Texts
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NUMBERS, Table
from traceanalyze.report.format import Formatter, formatter_of, printable, shown_columns
from traceanalyze.report.model import CompareReport, Report
from traceanalyze.report.view import Half, View, distinct_names, halves, overview, shallow, with_columns

MAX_ROWS = 20
"""Rows of a table: a page is read, not searched; the other formats have all of them."""
_MARK = "###"
"""Level of headings of a comparison: they stand within a comment."""
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
    escaped = _SPECIAL.sub(r"\\\1", " ".join(printable(text).split()).replace("&", "&amp;"))
    return _LINKED.sub(r"\g<before><!-- -->", _BLOCK.sub(r"\g<number>\\\g<mark>", escaped))


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
    for table in tables:
        if len(table) and not (table.detail or table.plot or table.stack):
            yield from table_blocks(table, formatter, mark)
    yield from listed(formatter.texts.messages["not_measured"], formatter.absent(tables))


def table_blocks(table: Table, formatter: Formatter, mark: str) -> Iterator[str]:
    """A table under its heading, and below it what was left out, why values are missing, and its notes."""
    yield f"{mark} {plain(formatter.title(table))}\n"
    if table.in_words:
        yield from (plain(formatter.message(note)) + "\n" for note in table.notes)
        return
    shown = table.known_rows[:MAX_ROWS]
    every = (*shown, *((table.total,) if table.total else ()))
    columns = shown_columns(table, every, formatter.resolution_ns)
    headings = ((formatter.texts.heading(column), unit) for _, column, _, unit in columns)
    lines = [[plain(f"{heading} ({unit})" if unit else heading) for heading, unit in headings]]
    lines.append(["---:" if column.kind in NUMBERS else "---" for _, column, *_ in columns])
    for row in every:
        cells = [plain(formatter.cell(column, row[index], unit)) for index, column, unit, _ in columns]
        cells[0] = "&emsp;" * (table.depth(row) or 0) + cells[0]
        lines.append(cells)
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
    if len(table) > len(shown):
        yield plain(formatter.texts.messages["rows_left_out"].format(kept=len(shown), count=f"{len(table):,}")) + "\n"
    for below in (*formatter.legends(shown), *map(formatter.message, table.notes)):
        yield plain(below) + "\n"


def listed(title: str, items: Sequence[str]) -> Iterator[str]:
    """Sentences as a list under a title; nothing where there are none."""
    if items:
        lines = "\n".join(f"- {plain(item)}" for item in items)
        yield f"**{plain(title)}**\n\n{lines}\n"


def render_compare(report: CompareReport, texts: Texts, view: View | None = None) -> str:
    """A comparison as one short document, for a pull request or a chat."""
    return "\n".join(_compared(report, Formatter(texts, report.resolution_ns, parts=1), (view or View()).top))


def _compared(report: CompareReport, formatter: Formatter, top: int) -> Iterator[str]:
    words, tables = formatter.texts.messages, report.tables
    yield f"**{plain(formatter.sentences(report.verdict))}**\n"
    yield "\n".join(_sides(report, formatter)) + "\n"
    for note in report.notes:
        yield f"{plain(formatter.message(note))}\n"
    yield from listed(words["caveats"], [formatter.message(item) for item in report.caveats])
    for table in overview(tables):
        yield from table_blocks(_major(shallow(table)), formatter, _MARK)
    for half in halves(tables["causes"]):
        yield from _causes(half, formatter, top)
    yield from listed(words["advice"], [formatter.message(item) for item in report.advice])
    yield from listed(words["not_compared"], formatter.absent(report.listing))
    yield from listed(words["quality"], [formatter.message(item) for item in report.quality])


def _sides(report: CompareReport, formatter: Formatter) -> Iterator[str]:
    names = distinct_names(*report.paths)
    for key, name, pieces in zip(("base", "candidate"), names, report.sides, strict=True):
        rest = [formatter.message(piece) for piece in pieces if piece.key != "side_path"]
        yield f"- {plain(formatter.said_of([formatter.texts.messages[key]], ' · '.join([name, *rest])))}"


def _causes(half: Half, formatter: Formatter, top: int) -> Iterator[str]:
    words = formatter.texts.messages
    if not half.weighty:
        yield f"{plain(words[f'no_{half.key}'])}\n"
        return
    shown = half.first(top)
    yield from table_blocks(_major(half.table.take(range(shown))), formatter, _MARK)
    if len(half.table) > shown:
        yield plain(words["more_rows"].format(count=len(half.table) - shown, all=len(half.table))) + "\n"


def _major(table: Table) -> Table:
    """The columns that tell most."""
    return with_columns(table, [index for index, column in enumerate(table.columns) if not column.minor])
