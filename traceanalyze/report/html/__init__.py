"""The report as one HTML file that needs nothing else: no network, and no script to be read.

Verdict first, then the tables of all ranks or both sides and of each rank, quality last.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from traceanalyze.locales import Texts
from traceanalyze.model.table import Message, NotMeasured, Table
from traceanalyze.report.finding import Finding
from traceanalyze.report.format import Formatter
from traceanalyze.report.html import sides
from traceanalyze.report.html.cards import Scene, cards, pictures, span_of
from traceanalyze.report.html.curve import curve_html
from traceanalyze.report.html.frame import Place, aside, document, element, folded, safe, sentence
from traceanalyze.report.html.memory import TITLE as MEMORY
from traceanalyze.report.html.memory import memory_html
from traceanalyze.report.html.ranks import heat_map, pipeline_chart, rank_chart, step_chart
from traceanalyze.report.html.tables import MAX_ROWS, listed, short_title, table_section
from traceanalyze.report.html.timeline import FINDINGS, TITLE, Mark, overview_html
from traceanalyze.report.model import Doubt, RankReport, Report, Said, formatter_of, formatter_over

__all__ = ["MAX_RANKS", "MAX_ROWS", "render"]

MAX_RANKS = 8
"""Ranks whose tables are in a page."""
_HEADLINE = 3
"""Sentences of a verdict that are set large."""
_PARTS = 12
"""Causes named in a cell."""
_CHARTS = {"ranks": rank_chart, "rank_steps": heat_map, "pipeline": pipeline_chart}
"""Tables over ranks that have a picture."""
_ON_CARDS = frozenset(
    {"findings", "capture_findings", "finding_evidence", "rank_findings", "rank_finding_evidence", "memory_findings"}
)
"""Tables whose rows stand on cards."""
_IN_PICTURE = frozenset({"allocator_group_curve"})
"""Tables that the picture of every block shows, and more."""
_CURVE = "allocator_curve"
"""The same without a script: to be opened below that picture."""
_CAPTURE = "CAP"
"""Family of the rules about the recording itself."""
_FIRST = frozenset({"split", "run_causes"})
"""Tables above the cards."""

Cards = list[tuple[str, Finding]]
"""Findings by where their cards are."""


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one HTML document."""
    names = _names(reports)
    runs = [
        _Run(
            report,
            texts,
            report.command if report.sides else f"run{at}" if at else "run",
            names[at],
            later=at > 0,
            share=max(sum(len(each.focus[:MAX_RANKS]) for each in reports), 1),
        )
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


def _begin(rank: RankReport) -> int | None:
    """When the first event of a rank begins, ns."""
    if rank.timeline is not None:
        return rank.timeline.excerpt.start
    place = next((one.place for one in rank.excerpts), None)
    return None if place is None else place.excerpt.start + place.start - place.since_first


@dataclass(frozen=True)
class _Run:
    report: Report
    texts: Texts
    id: str
    name: str
    later: bool
    """There is another one above it."""
    share: int = 1
    """Parts of all runs that the page shows."""
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
        parts += [element("p", sentence(formatter.message(note))) for note in report.note_messages]
        if len(report.focus) > MAX_RANKS:
            left_out = self.texts.messages["page_ranks_left_out"]
            parts.append(element("p", safe(left_out.format(kept=MAX_RANKS, count=len(report.focus)))))
        shown = {number: f"{self.id}-{number}" for number in report.focus[:MAX_RANKS]}
        of_ranks = {number: self._found(report.ranks[number].said, at) for number, at in shown.items()}
        known = {id(one) for rank in report.ranks for one in rank.said}
        own = self._found([one for one in report.said if id(one) not in known], self.id)
        rules = {one.rule for _, one in own}
        elsewhere = [
            pair for found in of_ranks.values() for pair in found if pair[1].rule in rules and span_of(pair[1])
        ]
        drawn = {one.id: f"{self.id}-{device}-memory" for device, one in self._of_devices(shown)}
        scene = Scene(formatter, picture=drawn, heading="h3", shut=self.later)
        made = [self._cards(own, report.summary, scene, self.id, "h2"), pictures(elsewhere, formatter)]
        parts += self._tables(report.summary, formatter, self.id, "".join(made), heading="h2", shut=self.later)
        for place, (number, at) in enumerate(shown.items()):
            shut = self.later or place > 0
            parts += self._rank(report.ranks[number], at, of_ranks[number], with_verdict=several, shut=shut)
        return element("article", "\n".join(parts))

    def _of_devices(self, shown: Collection[int]) -> Iterator[tuple[int, Finding]]:
        """What a snapshot's devices have to say, by the part of the page that a device has."""
        for at, found in enumerate(self.report.of_devices):
            if at in shown and self.report.ranks[at].memory:
                yield from ((at, one.in_words(self.texts)) for one in found)

    def _found(self, said: Sequence[Said], at: str) -> Cards:
        """Findings in words, by where their cards will be."""
        return [(f"{at}-finding-{number}", one.in_words(self.texts)) for number, one in enumerate(said)]

    def _cards(self, found: Cards, tables: Sequence[Table], scene: Scene, at: str, heading: str) -> str:
        """The cards under their heading, and what the findings save together; those about the recording last."""
        if not found:
            return ""
        title = self.texts.messages[FINDINGS]
        costly = [pair for pair in found if not pair[1].rule.startswith(_CAPTURE)]
        capture = [pair for pair in found if pair[1].rule.startswith(_CAPTURE)]
        parts = [self._heading(heading, f"{at}-findings", title, 3), *cards(costly, scene)]
        notes = (note for table in tables if table.key in _ON_CARDS for note in table.notes)
        at_once = [note for note in notes if note.key.startswith("together_")]
        parts += [element("p", sentence(scene.formatter.message(note))) for note in at_once]
        parts += cards(capture, replace(scene, shut=True))
        return "".join(parts)

    def _compared(self, formatter: Formatter) -> Iterator[str]:
        """Everything between the list of contents and the end, of two sides."""
        report, words = self.report, self.texts.messages
        yield self._heading("h1", self.id, self.name, 1)
        verdict = sentence(formatter.sentences(report.verdict_messages))
        yield element("p", verdict, class_=" ".join(filter(None, ("verdict", report.answer))))
        yield self._sides(formatter)
        yield from (element("p", sentence(formatter.message(note))) for note in report.note_messages)
        yield from self._remarks("advice", formatter)
        for caveats in self._remarks("caveats", formatter):
            yield element("section", caveats, class_="caveats")
        yield from (self._shown(each, formatter) for each in sides.headline(report, formatter))
        yield from (self._shown(each, formatter) for each in sides.details(report))
        absent = formatter.absent(sides.sections(report), empty=True)
        if absent:
            yield self._heading("h2", f"{self.id}-missing", words["not_compared"], 3) + listed(absent)
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
            heading = self._heading("h2", f"{self.id}-{key}", self.texts.messages[key], 3)
            yield heading + listed([formatter.message(each) for each in sentences])

    def _shown(self, shown: sides.Shown | str, formatter: Formatter) -> str:
        if isinstance(shown, str):
            return element("p", safe(shown))
        at = f"{self.id}-{shown.table.key}"
        self.contents.append((3, at, short_title(shown.table, formatter)))
        return table_section(shown.table, shown.chart, formatter, at, shown.whole, heading="h2")

    def _formatter(self, rank: RankReport) -> Formatter:
        return formatter_of(rank, self.texts, _PARTS)

    def _heading(self, tag: str, at: str, title: str, level: int) -> str:
        self.contents.append((level, at, title))
        return element(tag, safe(title), id=at)

    def _verdict(self, sentences: Sequence[Message], formatter: Formatter) -> str:
        head, rest = sentences[:_HEADLINE], sentences[_HEADLINE:]
        first = element("p", sentence(formatter.sentences(head)), class_="verdict")
        return first + (element("p", sentence(formatter.sentences(rest)), class_="verdict-more") if rest else "")

    def _rank(self, rank: RankReport, at: str, found: Cards, *, with_verdict: bool, shut: bool) -> Iterator[str]:
        formatter, words = self._formatter(rank), self.texts.messages
        about = safe(formatter.about(rank.headline, PurePath(rank.path).name))
        self.contents.append((2, at, formatter.about(rank.headline, PurePath(rank.path).name)))
        yield element("h2", about, id=at, title=rank.path, class_="rank")
        if with_verdict:
            yield self._verdict(rank.verdict_messages, formatter)
        overview = f"{at}-timeline" if rank.timeline is not None and rank.timeline.excerpt.lanes and not shut else None
        scene = Scene(formatter, rank.excerpts, overview, _begin(rank), heading="h4", shut=shut)
        made = self._cards(found, rank.tables, scene, at, "h3")
        if rank.timeline is not None and overview is not None:
            whole, marks = rank.timeline, [Mark(one, place) for place, one in found]
            self.contents.append((3, overview, words[TITLE]))
            made += overview_html(whole.excerpt, (whole.start, whole.end), marks, formatter, overview, "h3")
        made += self._memory(rank, formatter, f"{at}-memory", shut=shut)
        yield from self._tables(rank.tables, formatter, at, made, heading="h3", shut=shut)
        if rank.checks:
            checks = "".join(self._check(check, formatter) for check in rank.checks)
            yield self._heading("h3", f"{at}-quality", words["quality"], 3) + f'<ul class="checks">{checks}</ul>'
        absent = formatter.absent(rank.tables, empty=True)
        if absent:
            yield self._heading("h3", f"{at}-missing", words["not_measured"], 3) + listed(absent)
        hints = formatter.hints(rank.hints)
        if hints:
            yield self._heading("h3", f"{at}-more", words["measure_more"], 3) + listed(hints)

    def _memory(self, rank: RankReport, formatter: Formatter, at: str, *, shut: bool) -> str:
        """A snapshot's device block by block."""
        if not rank.memory:
            return ""
        title = self.texts.messages[MEMORY]
        self.contents.append((3, at, title))
        history, heading = rank.memory[0], element("h3", safe(title))
        if isinstance(history, NotMeasured):
            return element("section", heading + aside(formatter.missing([history.reason])), id=at)
        picture = memory_html(history, formatter, self.share)
        if shut:
            return folded(heading, picture, id=at, class_="table script")
        return element("section", heading + picture, id=at, class_="script")

    def _tables(
        self, tables: Sequence[Table], formatter: Formatter, at: str, found: str, *, heading: str, shut: bool
    ) -> Iterator[str]:
        """Tables with their pictures, and what was `found` below the one that says where the time went."""
        drawn = 'class="memory"' in found
        by_key = {table.key: table for table in tables}
        above = any(table.key in _FIRST and len(table) for table in tables)
        yield "" if above else found
        for table in tables:
            if len(table) and table.key not in _ON_CARDS | _IN_PICTURE:
                chart = ""
                if table.plot or table.stack:
                    chart = curve_html(table, formatter)
                elif table.key == "steps" and "split" in by_key:
                    chart = step_chart(by_key["split"], table, formatter)
                elif table.key in _CHARTS:
                    chart = _CHARTS[table.key](table, formatter)
                closed = shut or (drawn and table.key == _CURVE)
                yield self._table(table, chart, formatter, f"{at}-{table.key}", heading=heading, shut=closed)
                if table.key in _FIRST:
                    yield found

    def _table(self, table: Table, chart: str, formatter: Formatter, at: str, *, heading: str, shut: bool) -> str:
        self.contents.append((3, at, short_title(table, formatter)))
        return table_section(table, chart, formatter, at, heading=heading, shut=shut)

    def _check(self, check: Doubt, formatter: Formatter) -> str:
        level = safe(f"{self.texts.levels[check.level.name]} {check.id}")
        text = sentence(formatter.fill(self.texts.checks[check.message.key], check.message))
        return f'<li class="{check.level.name.lower()}"><strong>{level}</strong> {text}</li>'
