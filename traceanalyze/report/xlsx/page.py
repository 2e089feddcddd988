"""A sheet being written from top to bottom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.report.xlsx.formats import Cell, Formats, clean, lines, link
from traceanalyze.report.xlsx.plan import Plan

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

LINE_POINTS = 15
TITLE_POINTS = 21
A4 = 9
SUMMARY, ABOUT = "#1F3864", "#D9D9D9"
"""Tabs of summaries, and of what explains the other sheets."""


class Book(NamedTuple):
    """The workbook being written and what all its sheets need."""

    workbook: Workbook
    formats: Formats
    texts: Texts
    plan: Plan

    @property
    def words(self) -> Mapping[str, str]:
        """Phrases of the layout."""
        return self.texts.messages

    def add(self, name: str, colour: str = ABOUT) -> Worksheet:
        """A new sheet with its tab in a colour, set up to be printed as wide as the paper, name and page below."""
        sheet = self.workbook.add_worksheet(name)
        sheet.set_tab_color(colour)
        sheet.hide_gridlines(2)
        sheet.set_landscape()
        sheet.set_paper(A4)
        sheet.set_margins(left=0.4, right=0.4, top=0.5, bottom=0.6)
        sheet.fit_to_pages(1, 0)
        sheet.set_footer("&L&A&R&P / &N")
        return sheet


def put(sheet: Worksheet, row: int, col: int, cell: Cell, form: Format | None = None) -> None:
    """Write a cell as what it is; text never becomes a formula, a link or a number."""
    if cell is None or cell == "":
        if form is not None:
            sheet.write_blank(row, col, None, form)
    elif isinstance(cell, str):
        sheet.write_string(row, col, cell, form)
    else:
        sheet.write_number(row, col, cell, form)


@dataclass(slots=True)
class Page:
    """Where the next line of a sheet of mixed contents goes."""

    book: Book
    sheet: Worksheet
    widths: tuple[int, ...]
    row: int = 0

    def __post_init__(self) -> None:
        for col, width in enumerate(self.widths):
            self.sheet.set_column(col, col, width)

    def title(self, text: str) -> None:
        """First line of the sheet."""
        self.sheet.set_row(self.row, TITLE_POINTS)
        self.sheet.write_string(self.row, 0, clean(text), self.book.formats["title"])
        self.row += 1

    def section(self, text: str) -> None:
        """A heading across the page after an empty line."""
        self.row += 1
        for col in range(len(self.widths)):
            put(self.sheet, self.row, col, clean(text) if col == 0 else None, self.book.formats["section"])
        self.row += 1

    def sentence(self, text: str, form: Format | None = None, start: int = 0) -> None:
        """Text broken at the page's width, from a column on, in a row as high as it needs."""
        text, last = clean(text), len(self.widths) - 1
        # Widths count digits; letters are narrower, but hardly so where they are bold.
        reserve = 0.9 if form is not None and form.bold else 1.0
        needed = lines(text, round(reserve * sum(self.widths[start:])))
        self.sheet.set_row(self.row, LINE_POINTS * needed)
        if last > start:
            self.sheet.merge_range(self.row, start, self.row, last, "", form or self.book.formats["wrapped"])
        self.sheet.write_string(self.row, start, text, form or self.book.formats["wrapped"])
        self.row += 1

    def listed(self, title: str, sentences: Iterable[str]) -> None:
        """Sentences under a heading, if there are any."""
        for place, sentence in enumerate(sentences):
            if place == 0:
                self.section(title)
            self.sentence(sentence)

    def line(self, cells: Sequence[Cell], forms: Sequence[Format | None]) -> None:
        """One row of cells."""
        for col, (cell, form) in enumerate(zip(cells, forms, strict=True)):
            put(self.sheet, self.row, col, cell, self.book.formats.fitting(form, cell))
        self.row += 1

    def link(self, col: int, name: str, text: str) -> None:
        """A link to a sheet, or to a cell by its address, in the current row."""
        to = name if name.startswith(link("")[:9]) else link(name)
        self.sheet.write_url(self.row, col, to, self.book.formats["link"], clean(text))
