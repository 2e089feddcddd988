"""The whole report as a page of text: verdict first, then the tables, data quality last."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.frozen import frozen
from traceanalyze.model.vocabulary import Level
from traceanalyze.report.console.curve import curve_lines
from traceanalyze.report.console.style import printable
from traceanalyze.report.console.tables import WIDE, absent_lines, pick, table_lines
from traceanalyze.report.console.wrap import display_width
from traceanalyze.report.format import Formatter, formatter_of
from traceanalyze.report.view import Detail, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.locales import Texts
    from traceanalyze.report.console.style import Style
    from traceanalyze.report.model import Finding, Message, RankReport, Report, Table

_LEVEL_COLOURS = {Level.INFO: "dim", Level.WARN: "yellow", Level.ERROR: "red"}


def render(report: Report, texts: Texts, style: Style, view: View | None = None) -> str:
    """The report as text, ending in a newline."""
    return _Page(report, texts, style, view or View()).text()


@frozen
class _Page:
    report: Report
    texts: Texts
    style: Style
    view: View

    def text(self) -> str:
        report = self.report
        first = report.ranks[report.focus[0]]
        formatter = self._formatter(first)
        blocks = [self._verdict(formatter, report.verdict)]
        if self.view.detail == Detail.QUIET:
            return blocks[0] + "\n"
        several = len(report.focus) > 1
        intro = [] if several else [self._about(first)]
        intro += [self.style.wrap(formatter.message(note)) for note in report.notes]
        blocks += ["\n".join(intro)] if intro else []
        blocks += self._tables(report.summary, formatter)
        for index in report.focus:
            blocks += self._rank(report.ranks[index], with_verdict=several)
        return "\n\n".join(blocks) + "\n"

    def _formatter(self, rank: RankReport) -> Formatter:
        return formatter_of(rank, self.texts, parts=2 if self.style.width >= WIDE else 1)

    def _verdict(self, formatter: Formatter, sentences: tuple[Message, ...]) -> str:
        return self._painted(formatter.sentences(sentences), "bold")

    def _painted(self, text: str, colour: str) -> str:
        """Text broken at the width, each line in the colour."""
        lines = self.style.wrap(printable(text)).splitlines()
        return "\n".join(self.style.paint(line, colour) for line in lines)

    def _about(self, rank: RankReport) -> str:
        """File, rank, device and windows in one line."""
        path = self.style.shorten(printable(PurePath(rank.path).name), self.style.width // 2)
        return self._painted(self._formatter(rank).about(rank, path), "dim")

    def _rank(self, rank: RankReport, *, with_verdict: bool) -> Iterator[str]:
        formatter = self._formatter(rank)
        if with_verdict:
            yield self._about(rank)
            yield self._verdict(formatter, rank.verdict)
        yield from self._tables(rank.tables, formatter)
        missing = [table for table in rank.tables if isinstance(table.rows, NotMeasured) and not table.detail]
        if missing:
            yield self._listed("not_measured", [self._missing(table, formatter) for table in missing])
        if rank.checks:
            yield from self._quality(rank, formatter)
        hints = formatter.hints(rank)
        if hints:
            yield self._listed("measure_more", hints)

    def _tables(self, tables: tuple[Table, ...], formatter: Formatter) -> Iterator[str]:
        for table in tables:
            empty = isinstance(table.rows, NotMeasured) or not table.rows
            if table.plot:
                yield from self._curve(table, formatter)
            elif table.stack:
                # Bands are told apart by colours and names, for which there is no room.
                continue
            elif not empty and (not table.detail or self.view.detail == Detail.VERBOSE):
                yield self._table(table, formatter)

    def _curve(self, table: Table, formatter: Formatter) -> Iterator[str]:
        lines = curve_lines(table, formatter, self.style)
        if lines:
            yield "\n".join([self._painted(formatter.title(table), "bold"), *lines])

    def _table(self, table: Table, formatter: Formatter) -> str:
        if table.told:
            sentences = [self.style.wrap(formatter.message(note)) for note in table.notes]
            return "\n".join([self._painted(formatter.title(table), "bold"), *sentences])
        picked = pick(table, self.view.top, everything=self.view.detail == Detail.VERBOSE)
        title = formatter.title(table)
        if picked.worst_first:
            counts = {"count": len(picked.rows), "all": len(picked.rows) + picked.left_out}
            title = self.texts.messages["slowest_of"].format(title=title, **counts)
        lines = [self._painted(title, "bold"), *table_lines(table, picked, formatter, self.style)]
        if picked.left_out and not picked.worst_first:
            more = self.texts.messages["more_rows"]
            counts = {"count": picked.left_out, "all": len(picked.rows) + picked.left_out}
            lines.append(self._painted(more.format(**counts), "dim"))
        lines += [self._painted(line, "dim") for line in absent_lines(table, picked, formatter, self.style)]
        lines += [self.style.wrap(formatter.message(note)) for note in table.notes]
        return "\n".join(lines)

    def _missing(self, table: Table, formatter: Formatter) -> str:
        reason = table.rows.reason if isinstance(table.rows, NotMeasured) else ""
        return formatter.said_of([formatter.topic(table)], self.texts.reasons[reason])

    def _quality(self, rank: RankReport, formatter: Formatter) -> Iterator[str]:
        """Checks; mere notes only count in a short view."""
        everything = self.view.detail == Detail.VERBOSE
        shown = [check for check in rank.checks if everything or check.level > Level.INFO]
        lines = [self._check(check, formatter) for check in shown]
        if len(shown) < len(rank.checks):
            count = len(rank.checks) - len(shown)
            lines.append(self._painted(self.texts.messages["more_notes"].format(count=count), "dim"))
        yield "\n".join([self.style.paint(self.texts.messages["quality"], "bold"), *lines])

    def _check(self, check: Finding, formatter: Formatter) -> str:
        level = self.texts.levels[check.level.name]
        text = printable(formatter.fill(self.texts.checks[check.message.key], check.message))
        first = f"{level} {check.id}  "
        wrapped = self.style.wrap(text, " " * display_width(first), first=first)
        return self.style.paint(level, _LEVEL_COLOURS[check.level]) + wrapped[len(level) :]

    def _listed(self, title: str, items: list[str]) -> str:
        wrapped = [self.style.wrap(item, "  ", first="- ") for item in items]
        return "\n".join([self.style.paint(self.texts.messages[title], "bold"), *wrapped])
