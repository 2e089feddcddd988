"""Which sheets a workbook has, in order, under which names, and how much of each table they hold."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.table import Layout, Row, Table, sentences
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import RankReport, Report, formatter_of, formatter_over
from traceanalyze.report.xlsx.formats import SheetNames, link, readable

MAX_ROWS = 5000
"""Rows of a table in a sheet: more are slow to write and to open, and nobody reads them."""
MAX_RANKS = 8
"""Ranks whose tables get sheets."""
RECORDS_ABREAST = 3
"""Records shown as names and values beside each other; more are rows."""
MAX_SHEETS = 15
"""Sheets of a workbook: the tabs of more do not fit a screen, and links to hidden ones do nothing in Excel."""
HEADER = 3
"""Row of the header where a table has a sheet of its own: title, links and an empty row are above it."""
_SHORT = 40
_PARTS = 12
"""Causes named in a cell."""


class Theme(NamedTuple):
    """What tables are about that share a sheet."""

    name: str
    """Of the sheet, the same in every language, so that programs find it."""
    title: str
    colour: str
    """Of the tabs."""
    keys: str
    """Pattern of the keys of its tables; the first theme that fits has a table."""


_SAY = sentences(
    theme_findings="Findings and what they rest on",
    theme_ranks="The ranks side by side",
    theme_step="Where the step's time goes",
    theme_idle="Why the device is idle",
    theme_program="The program: operators, modules, lines",
    theme_device="Work on the device",
    theme_memory="Memory",
    theme_more="More tables",
)
_THEMES = tuple(
    Theme(name, _SAY[f"theme_{key}"], colour, keys)
    for name, key, colour, keys in (
        (
            "All findings",
            "findings",
            "#C00000",
            "finding|rules_not|not_judged|actions|cause_|(?<!idle_)causes|migration",
        ),
        (
            "Between ranks",
            "ranks",
            "#ED7D31",
            "^rank|^pipeline|^sends|^collective_waits|links?$|link_rates|^clock|files$",
        ),
        ("Parts of the step", "step", "#4472C4", "^(split|totals|phases|steps|step_[sp]|critical|device_sp|overall)"),
        ("Idle time", "idle", "#A6A6A6", "idle|gaps|sync|launch|utilisation|pauses|runtime|^api"),
        ("Program", "program", "#70AD47", "^(operator|module(?!_memory)|source|call|annotations|inference|steady)"),
        ("Device work", "device", "#7030A0", "kernel|collectives|communication|copies|^device|rates|^vendor|process"),
        ("Memory use", "memory", "#FFC000", "memory|allocator|segment|pinners"),
        ("More tables", "more", "#00A3A3", ""),
    )
)
MORE = _THEMES[-1]


def theme_of(table: Table) -> Theme:
    """What a table is about by the words of its key, so that tables of plug-ins have one, too."""
    return next(theme for theme in _THEMES if re.search(theme.keys, table.key))


@dataclass(frozen=True)
class Sheet:
    """A table with its place in the workbook; one that has nothing to show has no name."""

    table: Table
    formatter: Formatter
    name: str | None
    """Of the sheet it is in."""
    rows: tuple[Row, ...]
    """Those shown."""
    left_out: int = 0
    groups: tuple[tuple[str, str], ...] = ()
    """Sides of a comparison and what stands above their columns."""
    called: str = ""
    """Its name among all tables."""
    top: int = 0
    """Row of its title: where others are above it, not the first."""

    @property
    def header(self) -> int:
        """Row of its header."""
        return self.top + 1 + bool(self.groups) if self.top else HEADER

    @property
    def height(self) -> int:
        """Rows it takes among others, with empty ones below it."""
        shown = sum(not column.machine for column in self.table.columns) if self.is_record else len(self.rows)
        return 1 + bool(self.groups) + 1 + shown + 2 * (self.table.total is not None) + len(self.remarks) + 2

    @property
    def remarks(self) -> list[str]:
        """Why rows or values are missing, and what the table itself notes."""
        legends = [] if self.is_record else self.formatter.legends(self.rows)
        return [*legends, *map(self.formatter.message, () if self.is_record else self.table.notes)]

    def link(self, row: int | None = None) -> str:
        """Address of its title, or of one of its rows."""
        return link(self.name or "", f"A{(self.top if row is None else self.header + 1 + row) + 1}")

    @property
    def is_record(self) -> bool:
        """Whether it reads best as a list of names and values."""
        return self.table.layout == Layout.RECORD and len(self.rows) <= RECORDS_ABREAST


class RankPlan(NamedTuple):
    """A rank shown in detail."""

    report: RankReport
    formatter: Formatter
    sheets: tuple[Sheet, ...]

    def sheet(self, key: str) -> Sheet | None:
        """Sheet of a table, if it is there and has rows."""
        return next((sheet for sheet in self.sheets if sheet.table.key == key and sheet.rows), None)


class RunPlan(NamedTuple):
    """A run's part of the workbook."""

    report: Report
    formatter: Formatter
    """Of what is over all ranks."""
    summary: str
    """Name of its summary sheet."""
    shared: tuple[Sheet, ...]
    """Tables over all ranks."""
    ranks: tuple[RankPlan, ...]
    recording: tuple[Sheet, ...]
    """Records of files, which the capture sheet shows."""

    @property
    def sheets(self) -> tuple[Sheet, ...]:
        """Every table in the order of the workbook, those without a sheet among them."""
        return (*self.shared, *(sheet for rank in self.ranks for sheet in rank.sheets))


class Plan(NamedTuple):
    """The workbook."""

    runs: tuple[RunPlan, ...]
    columns: str
    capture: str


def plan(reports: Sequence[Report], texts: Texts) -> Plan:
    """Names and contents of all sheets."""
    names = SheetNames()
    several = len(reports) > 1
    # Summaries first, so that their plain names and those of the last sheets are theirs.
    summaries = [names.take(f"Summary {number}" if several else "Summary") for number in range(1, len(reports) + 1)]
    columns, capture = names.take("Columns"), names.take("Capture")
    room = (MAX_SHEETS - 2 - len(reports)) // len(reports)
    runs = tuple(
        _run(report, summary, names, f"{number} " if several else "", texts, room)
        for number, (report, summary) in enumerate(zip(reports, summaries, strict=True), start=1)
    )
    return Plan(runs, columns, capture)


def _run(report: Report, summary: str, names: SheetNames, prefix: str, texts: Texts, room: int) -> RunPlan:
    first = formatter_over(report, texts, _PARTS)
    recording = tuple(
        Sheet(table, first, None, table.known_rows)
        for table in report.summary
        if table.layout == Layout.RECORD and not table.absent
    )
    in_capture = {sheet.table.key for sheet in recording if sheet.is_record}
    shared = [_sheet(table, first, prefix) for table in report.summary if table.key not in in_capture]
    ranks = list(_ranks(report, prefix, texts))
    placed = iter(arranged([*shared, *(sheet for rank in ranks for sheet in rank.sheets)], names, prefix, room))
    return RunPlan(
        report,
        first,
        summary,
        tuple(next(placed) for _ in shared),
        tuple(rank._replace(sheets=tuple(next(placed) for _ in rank.sheets)) for rank in ranks),
        tuple(sheet for sheet in recording if sheet.is_record),
    )


def _ranks(report: Report, prefix: str, texts: Texts) -> Iterator[RankPlan]:
    several = len(report.focus) > 1
    for index in report.focus[:MAX_RANKS]:
        rank = report.ranks[index]
        formatter = formatter_of(rank, texts, _PARTS)
        label = f"r{index if rank.rank is None else rank.rank} " if several else ""
        yield RankPlan(rank, formatter, tuple(_sheet(table, formatter, prefix + label) for table in rank.tables))


def _sheet(table: Table, formatter: Formatter, prefix: str) -> Sheet:
    left_out = max(len(table) - MAX_ROWS, 0)
    return Sheet(table, formatter, None, table.known_rows[:MAX_ROWS], left_out, called=prefix + readable(table.key))


def arranged(sheets: Sequence[Sheet], names: SheetNames, prefix: str, room: int) -> list[Sheet]:
    """Every table in its place: where there is no room for a sheet each, tables of a theme share one.

    The main tables with the most rows, where filters and frozen headers help most, keep one of their own.
    """
    shown = [at for at, sheet in enumerate(sheets) if sheet.rows]
    themes = [theme_of(sheets[at].table) for at in shown]
    first = [each for each in _THEMES if each in themes][: max(room - 1, 0)]
    groups = dict[Theme, list[int]]()
    for at, each in zip(shown, themes, strict=True):
        groups.setdefault(each if each in first or len(set(themes)) <= room else MORE, []).append(at)
    alone = [group.pop() for group in groups.values() if len(group) == 1]
    while any(groups.values()) and len(alone) + sum(map(bool, groups.values())) < room:
        group = max((g for g in groups.values() if g), key=lambda g: max(_weight(sheets[at]) for at in g))
        alone.append(max(group, key=lambda at: _weight(sheets[at])))
        group.remove(alone[-1])
        if len(group) == 1:
            alone.append(group.pop())
    placed = list(sheets)
    for at in sorted(alone):
        placed[at] = replace(sheets[at], name=names.take(sheets[at].called))
    for each, group in groups.items():
        name, top = names.take(prefix + each.name) if group else "", HEADER + len(group)
        # Short tables first: nobody scrolls past a long one.
        for at in sorted(group, key=lambda at: len(sheets[at].rows) > _SHORT):
            placed[at] = replace(sheets[at], name=name, top=top)
            top += placed[at].height
    return placed


def by_sheet(sheets: Iterable[Sheet]) -> Iterator[tuple[str, list[Sheet]]]:
    """Tables by the sheet they are in, in their order, or theme by theme where any share one."""
    found = dict[str, list[Sheet]]()
    for sheet in sheets:
        if sheet.name is not None:
            found.setdefault(sheet.name, []).append(sheet)
    items = [(name, sorted(group, key=lambda sheet: sheet.top)) for name, group in found.items()]
    if any(group[0].top for _, group in items):
        items.sort(key=lambda item: (_THEMES.index(theme_of(item[1][0].table)), not item[1][0].top))
    yield from items


def _weight(sheet: Sheet) -> tuple[bool, int]:
    return not sheet.table.detail, len(sheet.rows)
