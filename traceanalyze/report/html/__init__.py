"""The report as one HTML file that needs nothing else: no network, and no script to be read.

Verdict first, then the tables of all ranks or both sides and of each rank, quality last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from traceanalyze.locales import Texts
from traceanalyze.model.table import Message, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.html import sides
from traceanalyze.report.html.curve import curve_html
from traceanalyze.report.html.frame import Place, document, element, safe, sentence
from traceanalyze.report.html.ranks import heat_map, rank_chart
from traceanalyze.report.html.steps import step_chart
from traceanalyze.report.html.tables import MAX_ROWS, listed, short_title, table_section
from traceanalyze.report.html.timeline import Picture, by_table, links, pictures_of, timeline_html
from traceanalyze.report.model import Doubt, RankReport, Report, formatter_of, formatter_over

__all__ = ["MAX_RANKS", "MAX_ROWS", "render"]

MAX_RANKS = 8
"""Ranks whose tables are in a page."""
_HEADLINE = 3
"""Sentences of a verdict that are set large."""
_PARTS = 12
"""Causes named in a cell."""
_GROUPS_OF = {"allocator_group_curve": "allocator_groups"}
"""Table with bands → table that describes them."""
_CHARTS = {"ranks": rank_chart, "rank_steps": heat_map}
"""Tables over ranks that have a picture."""


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one HTML document."""
    names = _names(reports)
    runs = [
        _Run(report, texts, report.command if report.sides else f"run{at}" if at else "run", names[at])
        for at, report in enumerate(reports)
    ]
    body = "\n".join(run.html() for run in runs)
    places = [place for run in runs for place in run.contents]
    version = f"traceanalyze {reports[0].version}" if reports else "traceanalyze"
    return document(f"traceanalyze · {', '.join(names)}", body, places, version=version, texts=texts)


def _names(reports: Sequence[Report]) -> list[str]:
    """Short names of the runs; whole ones where these would be alike."""
    short = [report.name if report.sides else PurePath(report.name).name or report.name for report in reports]
    return [name if short.count(name) == 1 else report.name for name, report in zip(short, reports, strict=True)]


@dataclass(frozen=True)
class _Run:
    report: Report
    texts: Texts
    id: str
    name: str
    contents: list[Place] = field(default_factory=list)
    """Level, target and title of what the page holds, filled while it is written."""

    def html(self) -> str:
        if self.report.sides:
            return element("article", "\n".join(self._compared(formatter_over(self.report, self.texts, _PARTS))))
        report = self.report
        formatter = formatter_over(report, self.texts, _PARTS)
        several = len(report.focus) > 1
        parts = [self._heading("h1", self.id, self.name, 1)]
        parts.append(self._verdict(report.verdict_messages, formatter))
        parts += [self._about(report.ranks[at]) for at in report.focus if not several]
        parts += [element("p", sentence(formatter.message(note))) for note in report.note_messages]
        if len(report.focus) > MAX_RANKS:
            left_out = self.texts.messages["page_ranks_left_out"]
            parts.append(element("p", safe(left_out.format(kept=MAX_RANKS, count=len(report.focus)))))
        ids = {number: f"{self.id}-{number}" for number in report.focus[:MAX_RANKS]}
        shown = {number: pictures_of(report.ranks[number], at) for number, at in ids.items()}
        own = [one for here, _ in shown.values() for one in here]
        left = [one for _, elsewhere in shown.values() for one in elsewhere]
        parts += self._tables(report.summary, formatter, self.id, left, own)
        for number, (here, _) in shown.items():
            parts += self._rank(report.ranks[number], ids[number], here, with_verdict=several)
        return element("article", "\n".join(parts))

    def _compared(self, formatter: Formatter) -> Iterator[str]:
        """Everything between the list of contents and the end, of two sides."""
        report, words = self.report, self.texts.messages
        yield self._heading("h1", self.id, self.name, 1)
        verdict = sentence(formatter.sentences(report.verdict_messages))
        yield element("p", verdict, class_=" ".join(filter(None, ("verdict", report.answer))))
        yield self._sides(formatter)
        yield from (element("p", sentence(formatter.message(note))) for note in report.note_messages)
        for caveats in self._remarks("caveats", formatter):
            yield element("section", caveats, class_="caveats")
        yield from (self._shown(each, formatter) for each in sides.headline(report, formatter))
        yield from self._remarks("advice", formatter)
        yield from (self._shown(each, formatter) for each in sides.details(report))
        absent = formatter.absent(sides.sections(report), empty=True)
        if absent:
            yield self._heading("h3", f"{self.id}-missing", words["not_compared"], 3) + listed(absent)
        for key in report.remarks:
            if key not in {"caveats", "advice"}:
                yield from self._remarks(key, formatter)
        yield from (self._shown(each, formatter) for each in sides.inputs(report))

    def _sides(self, formatter: Formatter) -> str:
        """Which is which; the whole path on demand."""
        found = []
        for side in self.report.sides:
            name = [element("strong", safe(side.name), title=side.path)] if side.name else []
            rest = [sentence(formatter.message(piece)) for piece in side.about]
            label = element("dt", safe(self.texts.messages[side.word]))
            found.append(label + element("dd", " · ".join([*name, *rest])))
        return element("dl", "".join(found), class_="sides")

    def _remarks(self, key: str, formatter: Formatter) -> Iterator[str]:
        """Sentences as a list under their heading; nothing where there are none."""
        sentences = self.report.remarks.get(key)
        if sentences:
            heading = self._heading("h3", f"{self.id}-{key}", self.texts.messages[key], 3)
            yield heading + listed([formatter.message(each) for each in sentences])

    def _shown(self, shown: sides.Shown | str, formatter: Formatter) -> str:
        if isinstance(shown, str):
            return element("p", safe(shown))
        at = f"{self.id}-{shown.table.key}"
        self.contents.append((3, at, short_title(shown.table, formatter)))
        return table_section(shown.table, shown.chart, formatter, at, shown.whole)

    def _formatter(self, rank: RankReport) -> Formatter:
        return formatter_of(rank, self.texts, _PARTS)

    def _heading(self, tag: str, at: str, title: str, level: int) -> str:
        self.contents.append((level, at, title))
        return element(tag, safe(title), id=at)

    def _verdict(self, sentences: Sequence[Message], formatter: Formatter) -> str:
        head, rest = sentences[:_HEADLINE], sentences[_HEADLINE:]
        first = element("p", sentence(formatter.sentences(head)), class_="verdict")
        return first + (element("p", sentence(formatter.sentences(rest)), class_="verdict-more") if rest else "")

    def _about(self, rank: RankReport) -> str:
        """File, rank, device and windows in one line; the whole path on demand."""
        text = self._formatter(rank).about(rank.headline, PurePath(rank.path).name)
        return element("p", safe(text), class_="aside", title=rank.path)

    def _rank(self, rank: RankReport, at: str, pictures: Sequence[Picture], *, with_verdict: bool) -> Iterator[str]:
        formatter, words = self._formatter(rank), self.texts.messages
        if with_verdict:
            yield self._heading("h2", at, formatter.about(rank.headline, PurePath(rank.path).name), 2)
            yield self._verdict(rank.verdict_messages, formatter)
        yield from self._tables(rank.tables, formatter, at, pictures, ())
        if rank.checks:
            checks = "".join(self._check(check, formatter) for check in rank.checks)
            yield self._heading("h3", f"{at}-quality", words["quality"], 3) + f'<ul class="checks">{checks}</ul>'
        absent = formatter.absent(rank.tables, empty=True)
        if absent:
            yield self._heading("h3", f"{at}-missing", words["not_measured"], 3) + listed(absent)
        hints = formatter.hints(rank.hints)
        if hints:
            yield self._heading("h3", f"{at}-more", words["measure_more"], 3) + listed(hints)

    def _tables(
        self, tables: Sequence[Table], formatter: Formatter, at: str, drawn: Sequence[Picture], led: Sequence[Picture]
    ) -> Iterator[str]:
        """Tables with their pictures: those `drawn` stand here, links lead to those of `led` elsewhere in the page."""
        by_key = {table.key: table for table in tables}
        here, elsewhere = by_table(tables, drawn), by_table(tables, led)
        for table in tables:
            if len(table):
                chart = ""
                if table.plot or table.stack:
                    chart = curve_html(table, by_key.get(_GROUPS_OF.get(table.key, "")), formatter)
                elif table.key == "steps" and "split" in by_key:
                    chart = step_chart(by_key["split"], table, formatter)
                elif table.key in _CHARTS:
                    chart = _CHARTS[table.key](table, formatter)
                yield self._table(table, chart, formatter, f"{at}-{table.key}")
                yield from (timeline_html(one.excerpt, formatter, one.at) for one in here.get(table.key, ()))
                yield links(elsewhere.get(table.key, ()), formatter)

    def _table(self, table: Table, chart: str, formatter: Formatter, at: str) -> str:
        self.contents.append((3, at, short_title(table, formatter)))
        return table_section(table, chart, formatter, at)

    def _check(self, check: Doubt, formatter: Formatter) -> str:
        level = safe(f"{self.texts.levels[check.level.name]} {check.id}")
        text = sentence(formatter.fill(self.texts.checks[check.message.key], check.message))
        return f'<li class="{check.level.name.lower()}"><strong>{level}</strong> {text}</li>'
