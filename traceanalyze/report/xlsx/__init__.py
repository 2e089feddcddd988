"""The report as an Excel workbook; sheets of a comparison are named as in msprof-analyze, where that has them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from pathlib import PurePath

from xlsxwriter import Workbook

from traceanalyze.errors import some
from traceanalyze.locales import Texts
from traceanalyze.model.table import Table
from traceanalyze.report.model import Report, formatter_over
from traceanalyze.report.view import halves
from traceanalyze.report.xlsx.formats import (
    INSET,
    SIDE_FILLS,
    Field,
    Formats,
    SheetNames,
    clean,
    fields_of,
    link,
    readable,
)
from traceanalyze.report.xlsx.page import SUMMARY, Book, Page, put
from traceanalyze.report.xlsx.plan import (
    HEADER,
    MAX_RANKS,
    MAX_ROWS,
    MAX_SHEETS,
    Plan,
    RankPlan,
    RunPlan,
    Sheet,
    arranged,
    by_sheet,
    plan,
)
from traceanalyze.report.xlsx.rows import fields_down, finish, write_fields_down, write_header, write_sheet, write_title
from traceanalyze.report.xlsx.summary import parts_chart, write_check, write_small, write_summary

__all__ = ["MAX_RANKS", "MAX_ROWS", "render"]

_WIDTHS = (30, 44, 44, 44)


def write_capture(book: Book) -> None:
    """Write the sheet for all runs."""
    page = Page(book, book.add(book.plan.capture), _WIDTHS)
    page.title(book.words["capture"])
    home = book.plan.runs[0].summary
    page.link(0, home, f"← {home}")
    page.row += 1
    for run in book.plan.runs:
        _run(page, run, named=len(book.plan.runs) > 1)


def _run(page: Page, run: RunPlan, *, named: bool) -> None:
    if named:
        page.section(run.report.name)
    for note in run.report.note_messages:
        page.sentence(run.formatter.message(note))
    for sheet in run.recording:
        page.section(sheet.formatter.title(sheet.table))
        write_fields_down(page, sheet)
    for rank in run.ranks:
        _rank(page, rank, f" · {rank.report.path}" if len(run.ranks) > 1 else "")


def _rank(page: Page, rank: RankPlan, label: str) -> None:
    book = page.book
    if rank.report.checks:
        page.section(book.words["quality"] + label)
        for check in rank.report.checks:
            write_check(page, rank, check)
    # A line a table, though several may have one reason.
    missing = [line for sheet in rank.sheets for line in rank.formatter.absent([sheet.table])]
    page.listed(book.words["not_measured"] + label, missing)
    page.listed(book.words["measure_more"] + label, rank.formatter.hints(rank.report.hints))


_DICTIONARY_WIDTHS = (26, 40, 9, 84, 26, 42)


def write_dictionary(book: Book) -> None:
    """Write the sheet; tables of several ranks have their columns listed once, unless their units differ."""
    found = (
        (sheet, sheet.name or fallback)
        for run in book.plan.runs
        for sheets, fallback in ((run.recording, book.plan.capture), (run.sheets, ""))
        for sheet in sheets
        if sheet.rows
    )
    write_columns(book, book.plan.columns, book.plan.runs[0].summary, found)


def write_columns(book: Book, name: str, home: str, sheets: Iterable[tuple[Sheet, str]]) -> None:
    """Write the columns of tables, each with the sheet that shows it; what another tool calls them if any has that."""
    listed = list(_columns(sheets))
    aliases = any(field.column.alias for _, _, field in listed)
    page = book.add(name)
    write_title(book, page, book.words["column_dictionary"], home)
    keys = ("table", "column", "unit", "meaning", "data_name", *(("in_msprof",) if aliases else ()))
    for col, key in enumerate(keys):
        write_header(book, page, col, book.words[key], right=False)
        page.set_column(col, col, _DICTIONARY_WIDTHS[col])
    row = HEADER
    for row, (sheet, where, field) in enumerate(listed, start=HEADER + 1):
        to = sheet.link() if sheet.name else link(where)
        page.write_url(row, 0, to, book.formats["link"], sheet.called if sheet.name else where)
        page.write_string(row, 1, field.heading, book.formats.get(bold=True, **INSET))
        put(page, row, 2, field.unit, book.formats.cell(None))
        page.write_string(
            row, 3, book.texts.meaning(sheet.table, field.column), book.formats.get(text_wrap=True, **INSET)
        )
        page.write_string(row, 4, field.column.key, book.formats["aside"])
        if field.column.alias:
            page.write_string(row, 5, field.column.alias, book.formats["aside"])
    page.autofilter(HEADER, 0, row, len(keys) - 1)
    finish(page, HEADER)


def _columns(sheets: Iterable[tuple[Sheet, str]]) -> Iterator[tuple[Sheet, str, Field]]:
    """Columns in the order of the sheets, each table's once."""
    listed = set()
    for sheet, where in sheets:
        for field in _fields(sheet):
            what = (sheet.table.key, field.column.key, field.unit, field.whole)
            if what not in listed:
                listed.add(what)
                yield sheet, where, field


def _fields(sheet: Sheet) -> Iterator[Field]:
    if sheet.is_record:
        yield from (field for field, _ in fields_down(sheet))
    else:
        yield from fields_of(sheet.table, sheet.rows, sheet.formatter)


_FILES_NAMED = 5


def write_runs(workbook: Workbook, reports: Sequence[Report], texts: Texts) -> None:
    """Write all sheets of the reports of all runs."""
    workbook.set_properties(_properties(reports))
    book = Book(workbook, Formats(workbook), texts, plan(reports, texts))
    for run in book.plan.runs:
        write_summary(book, run)
    for run in book.plan.runs:
        write_tables(book, run.sheets, run.summary)
    write_dictionary(book)
    write_capture(book)


def write_tables(book: Book, sheets: Iterable[Sheet], home: str) -> None:
    """Write the sheets of tables, theme by theme."""
    for name, group in by_sheet(sheets):
        write_sheet(book, group, name, home)


def _properties(reports: Sequence[Report]) -> dict[str, object]:
    paths = [PurePath(rank.path).name for report in reports for rank in report.ranks]
    title = "traceanalyze · " + ", ".join(report.name for report in reports)
    return properties(title, some(paths, _FILES_NAMED), reports[0].version)


def properties(title: str, subject: str, version: str) -> dict[str, object]:
    """What the file says about itself: tool, version and input."""
    tool = f"traceanalyze {version}"
    shown = {"title": clean(title), "subject": clean(subject), "author": tool, "comments": tool}
    # Not the time of writing: the same input gives the same bytes.
    return {**shown, "created": datetime(1980, 1, 1)}


_SUMMARY = "Summary"
_FIRST = ("gate_metrics", "step_difference", "gate_parts")
_WHOLE = "gate_metrics"
_AFTER_CAUSES = ("finding_compare", "sync_compare", "rank_compare", "memory_peak", "link_rates", "unmatched")
_IN_SUMMARY = (*_FIRST, *_AFTER_CAUSES)
_IN_PARAMETERS = ("compare_sides", "compare_options", "gate_result")
_PARAMETER_WIDTHS = (36, 56, 56)
_SUMMARY_WIDTHS = (44, 24, 16, 16, 16, 14, 14, 18)
_CAUSES = 5
"""Causes named in each direction."""
_SHOWN_OF_CAUSES = (
    *("contribution", "part", "base_time_ns", "candidate_time_ns", "diff_ns"),
    *("step_change_share", "ratio", "change"),
)


def write_sides(workbook: Workbook, report: Report, texts: Texts) -> None:
    """Write all sheets: summary, tables, parameters, columns."""
    workbook.set_properties(
        properties(
            f"traceanalyze {report.command} · {' · '.join(side.name or side.key for side in report.sides)}",
            " · ".join(side.path for side in report.sides),
            report.version,
        )
    )
    taken = SheetNames()
    taken.take(_SUMMARY)
    book = Book(workbook, Formats(workbook), texts, Plan((), taken.take("Columns"), taken.take("Parameters")))
    sheets = _sheets(report, texts, taken)
    _write_summary(book, report, sheets)
    write_tables(book, map(_whole, sheets.values()), _SUMMARY)
    _write_parameters(book, report, sheets)
    listed = sorted(sheets.values(), key=lambda sheet: _place(sheet.table))
    shown = ((_whole(sheet), _where(book, sheet)) for sheet in listed if sheet.rows)
    write_columns(book, book.plan.columns, _SUMMARY, shown)


def _whole(sheet: Sheet) -> Sheet:
    """With the columns for programs where the table has its own sheet beside the summary."""
    if sheet.table.key != _WHOLE:
        return sheet
    columns = tuple(replace(column, machine=False) for column in sheet.table.columns)
    return replace(sheet, table=replace(sheet.table, columns=columns))


def _place(table: Table) -> int:
    """Tables in the summary come first, those about the comparison itself last."""
    return 0 if table.key in _IN_SUMMARY else 2 if table.key in _IN_PARAMETERS else 1


def _where(book: Book, sheet: Sheet) -> str:
    """Name of the sheet that shows a table."""
    return sheet.name or (_SUMMARY if sheet.table.key in _IN_SUMMARY else book.plan.capture)


def _sheets(report: Report, texts: Texts, names: SheetNames) -> dict[str, Sheet]:
    """All tables by key, causes and what to win first; those without rows, or shown in other sheets, have no name."""
    formatter = formatter_over(report, texts)
    groups = tuple(
        (side.key, texts.messages[f"group_{side.key}"].format(path=side.name))
        for side in report.sides
        if side.key in SIDE_FILLS
    )
    found, own = dict[str, Sheet](), list[str]()
    for table in sorted(report.summary, key=lambda table: (table.key != "causes", table.key != "migration")):
        rows = table.known_rows
        # `operator_compare_statistic` as msprof-analyze writes it, whose users look for these names.
        known = "".join(word.capitalize() for word in table.key.split("_"))
        name = readable(table.key.removeprefix("gate_")) if report.command == "gate" else known
        left_out = max(len(rows) - MAX_ROWS, 0)
        found[table.key] = Sheet(table, formatter, None, rows[:MAX_ROWS], left_out, groups, name)
        if _place(table) == 1 or table.key == _WHOLE:
            own.append(table.key)
    placed = arranged([found[key] for key in own], names, "", MAX_SHEETS - 3)
    return {**found, **dict(zip(own, placed, strict=True))}


def _write_parameters(book: Book, report: Report, sheets: dict[str, Sheet]) -> None:
    page = Page(book, book.add(book.plan.capture), _PARAMETER_WIDTHS)
    page.title(book.words["parameters"])
    page.link(0, _SUMMARY, f"← {_SUMMARY}")
    page.row += 1
    formatter = formatter_over(report, book.texts)
    for key in _IN_PARAMETERS:
        sheet = sheets.get(key)
        if sheet is None or not sheet.rows:
            continue
        page.section(formatter.title(sheet.table))
        if sheet.is_record:
            write_fields_down(page, sheet)
        else:
            for option, value in sheet.rows:
                page.line([str(option), str(value)], [book.formats.get(), book.formats["wrapped"]])
    for key, found in report.remarks.items():
        if key != "advice":
            page.listed(book.words[key], map(formatter.message, found))
    # A line a table, though several may have one reason.
    absent = [line for table in report.summary if _place(table) == 1 for line in formatter.absent([table])]
    page.listed(book.words["not_compared"], absent)


def _write_summary(book: Book, report: Report, sheets: dict[str, Sheet]) -> None:
    """Verdict, the parts of both steps side by side, main causes, quality, the way to every sheet."""
    page = Page(book, book.add(_SUMMARY, SUMMARY), _SUMMARY_WIDTHS)
    page.title(f"traceanalyze · {book.words[f'{report.command}_title']}")
    formatter = formatter_over(report, book.texts)
    for sentence in report.verdict_messages:
        page.sentence(formatter.message(sentence), book.formats.get(bold=True, text_wrap=True))
    for side, colour in zip(report.sides, SIDE_FILLS.values(), strict=False):
        fill = book.formats.get(bg_color=colour, text_wrap=True)
        page.sheet.write_string(page.row, 0, book.words[side.word], book.formats.get(bold=True, bg_color=colour))
        # A path ends in its short name; what the user calls a side stands in no path.
        named = [side.name] if not side.path.endswith(side.name) else []
        page.sentence(" · ".join([*named, side.path, *map(formatter.message, side.about)]), fill, start=1)
    for note in report.note_messages:
        page.sentence(formatter.message(note))
    for key in _FIRST:
        if key in sheets and sheets[key].rows:
            first = _section(page, sheets[key])
            for note in sheets[key].table.notes:
                page.sentence(formatter.message(note))
            if key in {"step_difference", "gate_parts"}:
                parts_chart(page, sheets[key], first, book.words["compare_chart"])
    if "causes" in sheets:
        _causes(page, sheets["causes"])
    _after_causes(page, report, sheets)
    _contents(page, sheets)
    # A long name in the last column would make the page as wide as itself, and all else tiny.
    page.sheet.print_area(0, 0, page.sheet.dim_rowmax, page.sheet.dim_colmax)


def _after_causes(page: Page, report: Report, sheets: dict[str, Sheet]) -> None:
    """Advice, small tables, and the other remarks."""
    formatter, words = formatter_over(report, page.book.texts), page.book.words
    remarks = {key: map(formatter.message, found) for key, found in report.remarks.items()}
    page.listed(words["advice"], remarks.pop("advice", ()))
    for key in _AFTER_CAUSES:
        if key in sheets and sheets[key].rows:
            _section(page, sheets[key])
    for key, found in remarks.items():
        page.listed(words[key], found)


def _section(page: Page, sheet: Sheet) -> int:
    """A small table under its title; the row of its first line."""
    page.section(sheet.formatter.title(sheet.table))
    return write_small(page, sheet, fields_of(sheet.table, sheet.rows, sheet.formatter))


def _causes(page: Page, causes: Sheet) -> None:
    """The largest causes of weight in each direction, in the units of all of them."""
    if causes.name is None:
        return
    every = fields_of(causes.table, causes.rows, causes.formatter)
    by_key = {field.column.key: field for field in every if not field.whole}
    fields = tuple(by_key[key] for key in _SHOWN_OF_CAUSES)
    for half in halves(causes.table):
        page.section(page.book.texts.tables[half.key])
        rows = half.table.known_rows[: min(_CAUSES, half.weighty)]
        if rows:
            write_small(page, replace(causes, table=half.table, rows=rows), fields)
        else:
            page.sentence(page.book.words[f"no_{half.key}"])
        if len(half.table) > len(rows):
            page.link(0, causes.link(), f"→ {causes.name}")
            page.row += 1


def _contents(page: Page, sheets: dict[str, Sheet]) -> None:
    """Links to all sheets, and once for each reason why there is none for the others."""
    book, about = page.book, page.book.formats.cell(None)
    page.section(book.words["contents"])
    own = [sheet for sheet in sheets.values() if sheet.name is not None or _place(sheet.table) == 1]
    for sheet in own:
        if sheet.name is not None:
            page.link(0, sheet.link(), sheet.called)
            page.sheet.write_number(page.row, 1, len(sheet.rows) + sheet.left_out, book.formats.cell("#,##0"))
            page.sheet.write_string(page.row, 2, sheet.formatter.title(sheet.table), about)
            page.row += 1
    for name, text in ((book.plan.capture, "parameters"), (book.plan.columns, "column_dictionary")):
        page.link(0, name, name)
        page.sheet.write_string(page.row, 2, book.words[text], about)
        page.row += 1
    absent = [sheet.table for sheet in own if sheet.name is None]
    page.listed(book.words["not_compared"], own[0].formatter.absent(absent, empty=True))


OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}


def render(reports: Sequence[Report], texts: Texts) -> bytes:
    """Reports of all runs, or of two sides, as one workbook, the same bytes for the same reports."""
    target = BytesIO()
    with Workbook(target, OPTIONS) as workbook:
        if reports[0].sides:
            write_sides(workbook, reports[0], texts)
        else:
            write_runs(workbook, reports, texts)
    return target.getvalue()
