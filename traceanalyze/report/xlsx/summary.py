"""The first sheet: verdict, where the step's time went, key figures, quality, and the way to every other sheet."""

from collections.abc import Sequence
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message, Value, sentences
from traceanalyze.model.units import between, column_unit
from traceanalyze.model.vocabulary import Level
from traceanalyze.ranks.results import spans
from traceanalyze.report.finding import Finding
from traceanalyze.report.model import Doubt
from traceanalyze.report.xlsx.formats import (
    DIM,
    HEADER_FILL,
    INSET,
    LEVELS,
    NOT_MEASURED,
    PARTS,
    SHARE_BAR,
    SIDE_COLOURS,
    SIDE_FILLS,
    Field,
    fields_of,
)
from traceanalyze.report.xlsx.page import LINE_POINTS, SUMMARY, Book, Page, put
from traceanalyze.report.xlsx.plan import MAX_RANKS, MAX_ROWS, RankPlan, RunPlan, Sheet, by_sheet
from traceanalyze.report.xlsx.rows import bar, fields_down, mark_worse

if TYPE_CHECKING:
    from xlsxwriter.chart_column import ChartColumn

_HEIGHT = 260
_ROW_PIXELS, _CHAR_PIXELS, _CELL_PADDING = 20, 7, 5


def step_chart(book: Book, split: Sheet, steps: Sheet, widths: Sequence[int]) -> "ChartColumn | None":
    """A chart of the parts named in the split; None where no step has any."""
    fields = fields_of(steps.table, steps.rows, steps.formatter)
    by_key = {field.column.key: col for col, field in enumerate(fields)}
    first, last = steps.header + 1, steps.header + len(steps.rows)
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


def drawn_in(chart: "ChartColumn", title: str, unit: str, number_format: str, widths: Sequence[int]) -> "ChartColumn":
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


def parts_chart(page: Page, parts: Sheet, first: int, title: str) -> None:
    """A column a part for either side, else for each time or size, drawn from the table that begins in row `first`."""
    book, last = page.book, first + len(parts.rows) - 1
    fields = list(enumerate(fields_of(parts.table, parts.rows, parts.formatter)))
    sides = [each for each in fields if each[1].column.side is not None]
    drawn = sides or [each for each in fields if each[1].column.kind in {Kind.DURATION, Kind.MEMORY}]
    chart = book.workbook.add_chart({"type": "column"})
    for (col, field), colour in zip(drawn, SIDE_COLOURS.values(), strict=False):
        chart.add_series(
            {
                "name": book.words[field.column.side] if field.column.side else field.heading,
                "categories": [page.sheet.name, first, 0, last, 0],
                "values": [page.sheet.name, first, col, last, col],
                "gap": 60,
                "fill": {"color": colour},
            }
        )
    insert(page, drawn_in(chart, title, drawn[0][1].unit, "#,##0.###", page.widths), title)


def insert(page: Page, chart: "ChartColumn", description: str) -> None:
    """A chart below what was written last."""
    page.row += 1
    page.sheet.insert_chart(page.row, 0, chart, {"description": description})
    page.row += _HEIGHT // _ROW_PIXELS + 1


_WIDTHS = (40, 16, 16, 70)
_EVEN_WIDTHS = (36, 28, 14, 14, 14, 14, 24)
"""Where wide tables are on it."""


def write_summary(book: Book, run: RunPlan) -> None:
    """Write the summary of a run."""
    supposed = any(sheet.table.key == _OVERVIEW[0] for sheet in run.shared)
    page = Page(book, book.add(run.summary, SUMMARY), _EVEN_WIDTHS if supposed else _WIDTHS)
    page.title(f"traceanalyze · {run.report.name}")
    formatter = run.formatter
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
    _overview(page, run)
    _findings(page, run)
    for rank in run.ranks:
        _quality(page, rank, alone=len(run.ranks) == 1)
    for rank in run.ranks:
        _figures(page, rank)
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


_OVERVIEW = ("whatif", "whatif_split", "memory_categories")
"""Tables that are on the first sheet, too, but for the first one with a chart."""


def _overview(page: Page, run: RunPlan) -> None:
    for sheet in run.sheets:
        if sheet.table.key in _OVERVIEW and sheet.rows:
            title = sheet.formatter.title(sheet.table)
            page.section(title)
            fields = fields_of(sheet.table, sheet.rows, sheet.formatter)
            first = write_small(page, sheet, [field for field in fields if not field.column.minor])
            if sheet.table.key != _OVERVIEW[0]:
                parts_chart(page, sheet, first, title)


_SHOWN = 12
"""Findings on the first sheet."""
_NAMED = 6
"""Of those that have no room there."""
_CAPTURE = "CAP"
"""Rules about the recording itself."""
_SAY = sentences(
    book_todo="What to do, by what it saves",
    book_todo_unpriced="What to do",
    book_minor="Only lesser findings",
    book_saving="saving {per} ({unit}), share",
    book_range="from–to",
    book_what="what",
    book_why="why, and what to do",
    book_where="In: {place}.",
    book_more="{count} more: {titles}",
)


def _findings(page: Page, run: RunPlan) -> None:
    """What costs time or memory, what is worth most first: linked to what it rests on, with saving and advice."""
    book, formatter = page.book, run.formatter

    def say(key: str, **values: tuple[Kind, Value]) -> str:
        return formatter.message(Message(_SAY[f"book_{key}"], tuple((name, *value) for name, value in values.items())))

    number, wrapped = book.formats.cell, book.formats.get(text_wrap=True, **INSET)
    shown = {id(one) for rank in run.ranks for one in rank.report.said}
    others = {id(one) for rank in run.report.ranks for one in rank.said} - shown
    told = [one.in_words(book.texts) for one in run.report.said if id(one) not in others]
    every = [one for one in told if not one.rule.startswith(_CAPTURE)]
    if not every:
        return
    # Lesser ones are shown where there is nothing else.
    told = [one for one in every if one.severity != "note"] or every
    savings = [one.saving.ns for one in told if one.saving]
    page.section(
        say("minor" if told == every and told[0].severity == "note" else "todo" if savings else "todo_unpriced")
    )
    unit = column_unit(max(savings, default=0), formatter.resolution_ns)
    priced = [say("saving", unit=(Kind.TEXT, unit.name)), say("range")] if savings else [None, None]
    heads = [say("what"), *priced, say("why")]
    page.sheet.set_row(page.row, LINE_POINTS * (2 if savings else 1))
    page.line(heads, [book.formats.header(right=0 < col < 3, indent=col // 3) for col in range(4)])
    for at, one in enumerate(told[:_SHOWN]):
        where = [say("where", place=(Kind.PLACE, line)) for line in one.scope.source_lines[:1]]
        ranks = spans([*map(str, one.scope.ranks)]) if len(run.ranks) > 1 else ""
        grade = one.grade + (book.words["rank"].format(rank=ranks) if ranks else "")
        page.link(0, _evidence(run, one, [each for each in told[:at] if each.rule == one.rule]), one.title)
        page.sheet.write_string(page.row + 1, 0, grade, book.formats["note"])
        below = page.row + 2
        if one.saving is not None:
            put(page.sheet, page.row, 1, one.saving.ns / unit.ns, number("#,##0." + "0" * unit.digits))
            put(page.sheet, page.row, 2, between(*one.saving[1:], unit), book.formats.get(align="right"))
            put(page.sheet, page.row + 1, 1, one.share, number("0.0%"))
        else:
            size = next((each.text for each in one.evidence if each.unit == "bytes"), None)
            put(page.sheet, page.row, 1, size, book.formats.get(align="right"))
        for text in (formatter.joined((one.sentence, one.price)), *where, *(f"→ {each}" for each in one.advice)):
            page.sentence(text, wrapped, start=3)
        page.row = max(page.row, below)
    rest = [one for one in every if one not in told[:_SHOWN]]
    if rest:
        titles = list(dict.fromkeys(one.title for one in rest))
        named = book.words["list_mark"].join([*titles[:_NAMED], *["…"] * (len(titles) > _NAMED)])
        page.sentence(say("more", count=(Kind.COUNT, len(rest)), titles=(Kind.TEXT, named)))


def _evidence(run: RunPlan, one: Finding, before: Sequence[Finding]) -> str:
    """Where its proof begins, else the row that lists it, after those of findings of the same rule on its ranks."""
    before = [each for each in before if each.scope.ranks == one.scope.ranks]
    ranks = [rank for rank in run.ranks if not one.scope.ranks or rank.report.rank in (*one.scope.ranks, None)]
    sheets = [*run.shared, *chain(*(rank.sheets for rank in ranks))]
    listed = [sheet for sheet in sheets if sheet.name and "rule_id" in sheet.table.keys]
    for sheet in sorted(listed, key=lambda sheet: "evidence" not in sheet.table.key):
        if one.rule in (rules := sheet.table.column("rule_id")[:MAX_ROWS]):
            first = rules.index(one.rule)
            place = first + sum(len(each.evidence) if "evidence" in sheet.table.key else 1 for each in before)
            return sheet.link(place if rules[place : place + 1] == (one.rule,) else first)
    return next((sheet.link() for sheet in sheets if sheet.name and "findings" in sheet.table.key), run.summary)


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
    mark_worse(page.book, page.sheet, sheet, fields, first, page.row - 1)
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


def _quality(page: Page, rank: RankPlan, *, alone: bool) -> None:
    """Warnings in full, and mere notes where there is one rank, else counted; all are in the capture sheet."""
    book, checks = page.book, rank.report.checks
    page.section(book.words["quality"])
    shown = checks if alone else [check for check in checks if check.level > Level.INFO]
    for check in shown:
        write_check(page, rank, check)
    count = len(checks) - len(shown)
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
    headings = [book.words[key] for key in ("table", "rows", "sheet", "contents_of")]
    page.line(headings, [book.formats.header(right=col == 1, indent=col // 2) for col in range(4)])
    for sheet in (each for _, group in by_sheet(run.sheets) for each in group):
        page.link(0, sheet.link(), sheet.called)
        cells = [None, len(sheet.rows) + sheet.left_out, sheet.name, sheet.formatter.title(sheet.table)]
        page.line(cells, [None, book.formats.cell("#,##0"), book.formats["aside"], book.formats.cell(None)])
    for name, text in ((book.plan.columns, "column_dictionary"), (book.plan.capture, "capture")):
        page.link(0, name, name)
        page.line([None, None, None, book.words[text]], [None, None, None, book.formats.cell(None)])
    page.listed(
        book.words["not_measured"],
        run.formatter.absent([sheet.table for sheet in run.sheets if sheet.name is None], empty=True),
    )
