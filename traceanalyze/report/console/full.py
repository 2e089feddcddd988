"""The whole report as text: what `--all` prints."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from traceanalyze.locales import Texts
from traceanalyze.model.table import Message, Row, Table, Value
from traceanalyze.model.vocabulary import Detail, Level
from traceanalyze.report.console.style import Style, display_width, padded
from traceanalyze.report.console.tables import WIDE, absent_lines, pick, table_lines
from traceanalyze.report.format import Formatter, printable
from traceanalyze.report.model import Doubt, RankReport, Report, Side, formatter_of, formatter_over
from traceanalyze.report.view import View, compared, with_columns

HEIGHT = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_MOST = 120


def curve_lines(table: Table, formatter: Formatter, style: Style) -> list[str]:
    """The two columns `Table.plot` names over the table's first column, as long as the room allows."""
    if len(table) < 2:
        return []
    at, outer, inner = (table.numbers(key) for key in (table.keys[0], *table.plot))
    top = max(outer)
    kind = table[table.plot[0]].kind
    labels = {HEIGHT - 1: formatter.value(kind, top), 0: formatter.value(kind, 0)}
    margin = max(map(len, labels.values()))
    width = min(style.width - margin - 2, _MOST)
    places = _buckets(at, width)
    above, below = _highest(outer, places, width), _highest(inner, places, width)
    wall = "┤" if style.unicode else "|"
    lines = []
    for level in range(HEIGHT - 1, -1, -1):
        label = labels.get(level, "")
        cells = "".join(_cell(below[x], above[x], level, top, style) for x in range(width))
        lines.append(f"{label:>{margin}} {wall}{cells.rstrip()}")
    return lines


def _cell(inside: int, outside: int, level: int, top: int, style: Style) -> str:
    """One character: how far the filled part reaches into it, else whether the shaded one does."""
    low = level / HEIGHT
    filled = (inside / top - low) * HEIGHT if top else 0.0
    if not style.unicode:
        return "#" if filled >= 0.5 else "." if top and outside / top > low else " "
    if filled >= 1 / 8:
        return _EIGHTHS[min(int(filled * 8), 8)]
    return "░" if top and outside / top > low else " "


def _buckets(position: Sequence[int], width: int) -> list[int]:
    """Column of each row, by its place along the first column."""
    first, last = position[0], max(position[-1], position[0] + 1)
    return [min((at - first) * width // (last - first), width - 1) for at in position]


def _highest(values: Sequence[int], places: Sequence[int], width: int) -> list[int]:
    """Highest value of each column; a column without a row keeps the last value before it."""
    highest = [-1] * width
    last_of: dict[int, int] = {}
    for value, place in zip(values, places, strict=True):
        highest[place] = max(highest[place], value)
        last_of[place] = value
    current = values[0]
    for place in range(width):
        if highest[place] < 0:
            highest[place] = current
        current = last_of.get(place, current)
    return highest


ANSWER_COLOURS = {"fail": "red", "inconclusive": "yellow", "pass": "green"}
_BRIEF = {
    "communication_compare": (
        "collective group size_bytes base_total_ns candidate_total_ns diff_ns ratio exposed_diff_ns base_calls "
        "candidate_calls"
    ),
    "module_compare_statistic": (
        "module op base_self_ns candidate_self_ns self_diff_ns ratio base_total_ns direction_of_pass"
    ),
    "module_compare": "module base_op base_self_ns candidate_self_ns self_diff_ns ratio candidate_op direction_of_pass",
    "operator_compare_statistic": "op base_device_ns candidate_device_ns diff_ns ratio base_calls candidate_calls",
    "operator_compare": "order base_op candidate_op base_device_ns candidate_device_ns diff_ns ratio",
    "memory_compare_statistic": "op base_bytes candidate_bytes diff_bytes ratio base_calls candidate_calls",
    "memory_compare": "order base_op base_size_bytes candidate_op candidate_size_bytes diff_size_bytes ratio",
    "api_compare": "api base_self_ns candidate_self_ns self_diff_ns self_ratio base_calls candidate_calls",
    "kernel_compare": (
        "kernel base_total_ns candidate_total_ns diff_ns total_ratio base_calls candidate_calls work shapes"
    ),
    "kernel_type_compare": "kernel_type base_total_ns candidate_total_ns diff_ns total_ratio work",
}
"""Columns that tell most of tables of a comparison; the others are in the workbook and in JSON."""


def _brief(table: Table) -> Table:
    """The columns that tell most."""
    chosen = [table.keys.index(key) for key in _BRIEF.get(table.key, "").split()]
    return with_columns(table, chosen) if chosen else table


_LEVEL_COLOURS = {Level.INFO: "dim", Level.WARN: "yellow", Level.ERROR: "red"}


def render(report: Report, texts: Texts, style: Style, view: View | None = None) -> str:
    """The report as text, ending in a newline."""
    return _Page(report, texts, style, view or View()).text()


class Printer(NamedTuple):
    """Prints the parts of a page, as values are written and as the place and the reader want them."""

    formatter: Formatter
    style: Style
    view: View
    told: dict[str, Value]
    """Whole names by the labels of tables that were printed."""

    def painted(self, text: str, colour: str) -> str:
        """Text broken at the width, each line in the colour."""
        lines = self.style.wrap(printable(text)).splitlines()
        return "\n".join(self.style.paint(line, colour) for line in lines)

    def verdict(self, sentences: Sequence[Message], colour: str = "bold") -> str:
        """Sentences in a row, set off."""
        return self.painted(self.formatter.sentences(sentences), colour)

    def listed(self, title: str, items: Collection[str], colour: str = "") -> Iterator[str]:
        """Sentences as a list under a title; nothing where there are none."""
        if items:
            wrapped = [self.style.wrap(printable(item), "  ", first="- ") for item in items]
            lines = [self.style.paint(line, colour) for item in wrapped for line in item.splitlines()]
            yield "\n".join([self.style.paint(self.formatter.texts.messages[title], "bold"), *lines])

    def about(self, rank: RankReport, room: int = 0) -> str:
        """File, rank, device and windows in one line."""
        path = self.style.shorten(printable(PurePath(rank.path).name), room or self.style.width // 2)
        return self.painted(self.formatter.about(rank.headline, path), "dim")

    def sides(self, sides: Sequence[Side], most: int = 99) -> Iterator[str]:
        """What was compared, each in so many lines at most."""
        words = [self.formatter.texts.messages[side.word] for side in sides]
        width = max(map(display_width, words), default=0)
        names = self.style.apart([printable(side.name) for side in sides], self.style.width // 2)
        for word, name, side in zip(words, names, sides, strict=True):
            pieces = [name, *map(self.formatter.message, side.about)]
            label = f"{padded(word, width)}  "
            text = printable(" · ".join(filter(None, pieces)))
            lines = self.style.clip(text, most, " " * display_width(label), first=label)
            yield "\n".join(self.style.paint(line, "dim") for line in lines)

    def table(self, table: Table, top: int | None = None) -> str:
        """The rows of a table that the view shows, under its title; at most `top` of ranked ones."""
        words, wrap = self.formatter.texts.messages, self.style.wrap
        notes = [wrap(printable(self.formatter.message(note))) for note in table.notes]
        title = self.formatter.title(table)
        if table.in_words:
            return "\n".join([self.painted(title, "bold"), *notes])
        picked = pick(table, top or self.view.top, everything=self.view.detail == Detail.VERBOSE)
        every = len(picked.rows) + picked.left_out
        if picked.worst_first:
            title = words["slowest_of"].format(title=title, count=len(picked.rows), all=f"{every:,}")
        lines = [self.painted(title, "bold"), *table_lines(table, picked, self.formatter, self.style)]
        if picked.left_out and not picked.worst_first:
            lines.append(self.painted(words["more_rows"].format(count=f"{picked.left_out:,}", all=every), "dim"))
        lines += [self.painted(line, "dim") for line in absent_lines(table, picked, self.formatter, self.style)]
        return "\n".join([*lines, *self._whole_names(table, picked.rows), *notes])

    def _whole_names(self, table: Table, rows: Sequence[Row]) -> Iterator[str]:
        """What labels stand for, where a table above has not said so, for those who ask for everything."""
        verbose = self.view.detail == Detail.VERBOSE
        columns = [*enumerate(table.columns)] if verbose else []
        names = ((self.formatter.label(column, row[at]), row[at]) for at, column in columns for row in rows)
        for label, name in dict.fromkeys(names):
            if label is not None and self.told.get(label) != name:
                self.told[label] = name
                yield self.painted(f"  {label}: {printable(str(name))}", "dim")


class _Page(NamedTuple):
    report: Report
    texts: Texts
    style: Style
    view: View

    def text(self) -> str:
        report = self.report
        printer = Printer(formatter_over(report, self.texts, self._parts), self.style, self.view, {})
        blocks = [printer.verdict(report.verdict_messages, ANSWER_COLOURS.get(report.answer, "bold"))]
        several = len(report.focus) > 1
        intro = (
            [*printer.sides(report.sides)]
            if report.sides or several
            else [printer.about(report.ranks[at]) for at in report.focus]
        )
        intro += [self.style.wrap(printable(printer.formatter.message(note))) for note in report.note_messages]
        blocks += ["\n".join(intro)] if intro else []
        blocks += self._compared(printer) if report.sides else self._tables(report.summary, printer)
        for index in report.focus:
            blocks += self._rank(report.ranks[index], with_verdict=several)
        return "\n\n".join(blocks) + "\n"

    @property
    def _parts(self) -> int:
        return 2 if self.style.width >= WIDE else 1

    def _compared(self, printer: Printer) -> Iterator[str]:
        """Tables over both sides, what was not compared, and the remarks."""
        everything = self.view.detail == Detail.VERBOSE
        for shown in compared(self.report, everything=everything):
            if isinstance(shown, Table):
                yield printer.table(_brief(shown) if everything else shown)
            elif shown.weighty:
                yield printer.table(shown.table, shown.first(self.view.top))
            else:
                yield self.texts.messages[f"no_{shown.key}"]
        remarks = {
            key: [printer.formatter.message(each) for each in found] for key, found in self.report.remarks.items()
        }
        yield from printer.listed("advice", remarks.pop("advice", []))
        yield from printer.listed("not_compared", printer.formatter.absent(self.report.summary))
        for key, found in remarks.items():
            yield from printer.listed(key, found, "yellow" if key == "caveats" else "")

    def _rank(self, rank: RankReport, *, with_verdict: bool) -> Iterator[str]:
        printer = Printer(formatter_of(rank, self.texts, self._parts), self.style, self.view, {})
        formatter = printer.formatter
        if with_verdict:
            yield printer.about(rank)
            yield printer.verdict(rank.verdict_messages)
        yield from self._tables(rank.tables, printer)
        # A line a table, though several may have one reason.
        missing = [line for table in rank.tables if not table.detail for line in formatter.absent([table])]
        yield from printer.listed("not_measured", missing)
        if rank.checks:
            yield from self._quality(rank, printer)
        yield from printer.listed("measure_more", formatter.hints(rank.hints))

    def _tables(self, tables: Sequence[Table], printer: Printer) -> Iterator[str]:
        for table in tables:
            if table.plot:
                lines = curve_lines(table, printer.formatter, self.style)
                if lines:
                    yield "\n".join([printer.painted(printer.formatter.title(table), "bold"), *lines])
            elif table.stack:
                # Bands differ by colours and names, for which there is no room.
                continue
            elif len(table) and (not table.detail or self.view.detail == Detail.VERBOSE):
                yield printer.table(table)

    def _quality(self, rank: RankReport, printer: Printer) -> Iterator[str]:
        """Checks; mere notes only count in a short view."""
        everything = self.view.detail == Detail.VERBOSE
        shown = [check for check in rank.checks if everything or check.level > Level.INFO]
        lines = [self._check(check, printer.formatter) for check in shown]
        if len(shown) < len(rank.checks):
            count = len(rank.checks) - len(shown)
            lines.append(printer.painted(self.texts.messages["more_notes"].format(count=count), "dim"))
        yield "\n".join([self.style.paint(self.texts.messages["quality"], "bold"), *lines])

    def _check(self, check: Doubt, formatter: Formatter) -> str:
        level = self.texts.levels[check.level.name]
        text = printable(formatter.fill(self.texts.checks[check.message.key], check.message))
        first = f"{level} {check.id}  "
        wrapped = self.style.wrap(text, " " * display_width(first), first=first)
        return self.style.paint(level, _LEVEL_COLOURS[check.level]) + wrapped[len(level) :]
