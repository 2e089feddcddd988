"""The first sheet: verdict, where the step's time went, key figures, quality, and the way to every other sheet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceanalyze.model.vocabulary import Level
from traceanalyze.report.model import Doubt
from traceanalyze.report.xlsx.formats import (
    DIM,
    HEADER_FILL,
    LEVELS,
    NOT_MEASURED,
    PARTS,
    SHARE_BAR,
    SIDE_FILLS,
    Field,
    fields_of,
)
from traceanalyze.report.xlsx.page import Book, Page
from traceanalyze.report.xlsx.plan import MAX_RANKS, RankPlan, RunPlan, Sheet
from traceanalyze.report.xlsx.rows import HEADER, bar, fields_down, mark_worse

if TYPE_CHECKING:
    from xlsxwriter.chart_column import ChartColumn

_HEIGHT = 260
_ROW_PIXELS, _CHAR_PIXELS, _CELL_PADDING = 20, 7, 5


def step_chart(book: Book, split: Sheet, steps: Sheet, widths: Sequence[int]) -> ChartColumn | None:
    """A chart of the parts named in the split; None where no step has any."""
    fields = fields_of(steps.table, steps.rows, steps.formatter)
    by_key = {field.column.key: col for col, field in enumerate(fields)}
    first, last = HEADER + 1, HEADER + len(steps.rows)
    chart = book.workbook.add_chart({"type": "column", "subtype": "stacked"})
    drawn = 0
    for part in split.table.column("part"):
        col = by_key.get(f"{part}_ns")
        if col is None or not any(row[fields[col].index] for row in steps.rows):
            continue
        drawn += 1
        colour = PARTS.get(str(part))
        chart.add_series(
            {
                "name": book.texts.terms.get(str(part), str(part)),
                "categories": [steps.name, first, 0, last, 0],
                "values": [steps.name, first, col, last, col],
                "gap": 40,
                **({"fill": {"color": colour}} if colour else {}),
            }
        )
    if not drawn:
        return None
    unit = next((field.unit for field in fields if field.column.key.endswith("_ns")), "")
    chart.set_x_axis({"name": fields[0].heading, "name_font": {"bold": False, "color": DIM}})
    return drawn_in(chart, book.words["step_chart"], unit, "#,##0", widths)


def drawn_in(chart: ChartColumn, title: str, unit: str, number_format: str, widths: Sequence[int]) -> ChartColumn:
    """The chart with its title, axis and size, as wide as these columns."""
    chart.set_title({"name": title, "name_font": {"size": 11, "bold": True}})
    chart.set_y_axis(
        {
            "name": unit,
            "min": 0,
            "name_font": {"bold": False, "color": DIM, "rotation": -90},
            "num_format": number_format,
            "major_gridlines": {"visible": True, "line": {"color": "#E0E0E0"}},
            "line": {"none": True},
        }
    )
    chart.set_legend({"position": "bottom"})
    wide = sum(width * _CHAR_PIXELS + _CELL_PADDING for width in widths)
    chart.set_size({"width": wide, "height": _HEIGHT})
    return chart


def insert(page: Page, chart: ChartColumn, description: str) -> None:
    """A chart below what was written last."""
    page.row += 1
    page.sheet.insert_chart(page.row, 0, chart, {"description": description})
    page.row += _HEIGHT // _ROW_PIXELS + 1


_WIDTHS = (40, 16, 16, 70)


def write_summary(book: Book, run: RunPlan) -> None:
    """Write the summary of a run."""
    page = Page(book, book.add(run.summary), _WIDTHS)
    page.title(f"traceanalyze · {run.report.name}")
    formatter = run.ranks[0].formatter
    for sentence in run.report.verdict_messages:
        page.sentence(formatter.message(sentence), book.formats.get(bold=True, text_wrap=True))
    if len(run.ranks) == 1:
        _about(page, run.ranks[0])
    for note in run.report.note_messages:
        page.sentence(formatter.message(note))
    if len(run.report.focus) > MAX_RANKS:
        page.sentence(book.words["ranks_left_out"].format(kept=MAX_RANKS, count=len(run.report.focus)))
    _other_runs(page, run)
    for rank in run.ranks:
        if len(run.ranks) > 1:
            page.section(rank.report.path)
            _about(page, rank)
            for sentence in rank.report.verdict_messages:
                page.sentence(rank.formatter.message(sentence))
        _split(page, rank)
        _findings(page, rank)
        _figures(page, rank)
        _quality(page, rank)
    _contents(page, run)


def _about(page: Page, rank: RankPlan) -> None:
    page.sentence(
        rank.formatter.about(rank.report.headline, PurePath(rank.report.path).name), page.book.formats["note"]
    )


def _other_runs(page: Page, run: RunPlan) -> None:
    for other in page.book.plan.runs:
        if other is not run:
            page.link(0, other.summary, f"{other.summary} · {other.report.name}")
            page.row += 1


def _split(page: Page, rank: RankPlan) -> None:
    """The split as a table, and below it step by step as a chart."""
    split, steps, book = rank.sheet("split"), rank.sheet("steps"), page.book
    if split is None:
        return
    page.section(split.formatter.title(split.table))
    fields = fields_of(split.table, split.rows, split.formatter)
    first = write_small(page, split, fields, [book.texts.meanings.get(f"split.{row[0]}", "") for row in split.rows])
    share = next((col for col, field in enumerate(fields) if field.column.key == split.table.bar), None)
    if share is not None:
        shown = {**bar(SHARE_BAR), "max_type": "num", "max_value": 1}
        page.sheet.conditional_format(first, share, first + len(split.rows) - 1, share, shown)
    for note in split.table.notes:
        page.sentence(split.formatter.message(note), book.formats.get(text_wrap=True, font_color="#404040"))
    if steps is not None:
        chart = step_chart(book, split, steps, page.widths)
        if chart is not None:
            insert(page, chart, book.words["step_chart"])


_SHOWN = 5
"""Findings on the first sheet."""


def _findings(page: Page, rank: RankPlan) -> None:
    """What costs most in words; all of it has a sheet of its own."""
    sheet = rank.sheet("findings")
    if sheet is None:
        return
    page.section(sheet.formatter.title(sheet.table))
    rules = sheet.table.column("rule_id")
    told = [one.in_words(page.book.texts) for one in rank.report.said]
    for one in [one for one in told if one.rule in rules][:_SHOWN]:
        page.sentence(f"{one.grade} · {one.title}: {one.sentence} {one.price}".strip())


def write_small(page: Page, sheet: Sheet, fields: Sequence[Field], meanings: Sequence[str] = ()) -> int:
    """A table among other contents, what its rows mean beside it; the row of its first line."""
    formats = page.book.formats
    heads = []
    for col, field in enumerate(fields):
        right, fill = field.number_format is not None, SIDE_FILLS.get(field.column.side or "", HEADER_FILL)
        heads.append(formats.header(right=right, indent=int(not right and col > 0), fill=fill))
    headings, forms = [field.header for field in fields], formats.row(fields)
    if meanings:
        headings.append(page.book.words["meaning"])
        heads.append(formats.header(right=False, indent=1))
        forms.append(formats["aside"])
    page.line(headings, heads)
    first = page.row
    for place, row in enumerate(sheet.rows):
        cells = [field.cell(row[field.index], sheet.formatter) for field in fields]
        page.line([*cells, *meanings[place : place + 1]], forms)
    if sheet.table.total is not None:
        total = [field.cell(sheet.table.total[field.index], sheet.formatter) for field in fields]
        page.line(total, formats.row(fields, total=True))
    mark_worse(page.book, page.sheet, fields, first, page.row - 1)
    return first


def _figures(page: Page, rank: RankPlan) -> None:
    """The main figures of the records, step times first."""
    book = page.book
    records = [sheet for sheet in rank.sheets if sheet.is_record and sheet.rows]
    shown = sorted(records, key=lambda sheet: sheet.table.key != "step_statistics")
    if not shown:
        return
    page.section(book.words["key_figures"])
    for sheet in shown:
        for field, (cell, *_) in fields_down(sheet):
            if not field.column.minor and cell != NOT_MEASURED:
                meaning = book.texts.meaning(sheet.table, field.column)
                unit = field.unit if field.unit != "%" else ""
                number = book.formats.get(num_format=field.number_format or "General", align="right")
                page.line(
                    [field.heading, cell, unit, meaning],
                    [book.formats.get(), number, book.formats.cell(None), book.formats["aside"]],
                )


def _quality(page: Page, rank: RankPlan) -> None:
    """Warnings in full, mere notes counted; all are in the capture sheet."""
    book, checks = page.book, rank.report.checks
    page.section(book.words["quality"])
    loud = [check for check in checks if check.level > Level.INFO]
    for check in loud:
        write_check(page, rank, check)
    count = len(checks) - len(loud)
    text = book.words["capture_notes" if count else "capture_link"].format(count=count)
    page.link(0, book.plan.capture, text)
    page.row += 1


def write_check(page: Page, rank: RankPlan, check: Doubt) -> None:
    """One check: level, number, and what was found."""
    book = page.book
    level = book.texts.levels[check.level.name]
    colour = LEVELS.get(check.level.name)
    form = book.formats.get(bold=True, font_color=colour) if colour else book.formats["note"]
    page.sheet.write_string(page.row, 0, f"{level} {check.id}", form)
    page.sentence(rank.formatter.fill(book.texts.checks[check.message.key], check.message), start=1)


def _contents(page: Page, run: RunPlan) -> None:
    """Links to all sheets, and why there is none for the others."""
    book = page.book
    page.section(book.words["contents"])
    headings = [book.words["sheet"], book.words["rows"], None, book.words["contents_of"]]
    page.line(headings, [book.formats.header(right=col == 1, indent=col // 3) for col in range(4)])
    for sheet in run.sheets:
        if sheet.name is not None:
            page.link(0, sheet.name, sheet.name)
            count = len(sheet.rows) + sheet.left_out
            about = sheet.formatter.title(sheet.table)
            page.line([None, count, None, about], [None, book.formats.cell("#,##0"), None, book.formats.cell(None)])
    for name, text in ((book.plan.columns, "column_dictionary"), (book.plan.capture, "capture")):
        page.link(0, name, name)
        page.line([None, None, None, book.words[text]], [None, None, None, book.formats.cell(None)])
    absent = [sheet for sheet in run.sheets if sheet.name is None]
    for sheet in absent:
        page.line([sheet.formatter.topic(sheet.table)], [book.formats["note"]])
        page.row -= 1
        page.sentence(why_absent(book, sheet), book.formats.get(font_color=DIM, text_wrap=True), start=1)


def why_absent(book: Book, sheet: Sheet) -> str:
    """Why a table has no sheet."""
    absent = sheet.table.absent
    return sheet.formatter.missing([absent.reason]) if absent else book.words["no_rows"]
