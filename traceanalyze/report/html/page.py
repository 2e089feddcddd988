"""The whole page: verdict first, then the tables of all ranks and of each rank in detail, data quality last."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.format import Formatter
from traceanalyze.report.html.curve import curve_html
from traceanalyze.report.html.steps import step_chart
from traceanalyze.report.html.tables import rows_of, table_html
from traceanalyze.report.html.text import element, safe, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Finding, Message, RankReport, Report, Table

_LANG = {"zh": "zh-CN"}
"""Languages whose code in a page names the script as well."""
_ASIDE = re.compile(r" \(|（")
MAX_RANKS = 8
"""Ranks whose tables are in a page."""
_PARTS = 12
"""Causes named in a cell."""
_GROUPS_OF = {"allocator_group_curve": "allocator_groups"}
"""Table with bands → table that describes them."""


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one HTML document."""
    names = _names(reports)
    runs = [_Run(report, texts, f"run{at}" if at else "run", names[at]) for at, report in enumerate(reports)]
    body = "\n".join(run.html() for run in runs)
    links = "".join(
        f'<li class="level{level}"><a href="#{at}">{safe(title)}</a></li>'
        for run in runs
        for level, at, title in run.contents
    )
    contents = element("nav", f"<strong>{safe(texts.messages['page_contents'])}</strong><ol>{links}</ol>")
    title = safe(f"traceanalyze · {', '.join(names)}")
    version = safe(f"traceanalyze {reports[0].version}" if reports else "traceanalyze")
    style, script = _asset("page.css"), _asset("page.js")
    # What is not in this file is never fetched, and no other script runs, whatever a trace holds.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="{_LANG.get(texts.language, texts.language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n{contents}\n<main>\n{body}\n"
        f'<footer class="aside">{version}</footer>\n</main>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _asset(name: str) -> str:
    return files("traceanalyze.report.html").joinpath(name).read_text(encoding="utf-8")


def _names(reports: Sequence[Report]) -> list[str]:
    """Short names of the runs; whole ones where these would be alike."""
    short = [PurePath(report.name).name or report.name for report in reports]
    return [name if short.count(name) == 1 else report.name for name, report in zip(short, reports, strict=True)]


@dataclass(frozen=True, slots=True)
class _Run:
    report: Report
    texts: Texts
    id: str
    name: str
    contents: list[tuple[int, str, str]] = field(default_factory=list)
    """Level, target and title of what the page holds, filled while it is written."""

    def html(self) -> str:
        report = self.report
        first = report.ranks[report.focus[0]]
        formatter = self._formatter(first)
        several = len(report.focus) > 1
        parts = [self._heading("h1", self.id, self.name, 1)]
        parts.append(self._verdict(report.verdict, formatter))
        parts += [] if several else [self._about(first)]
        parts += [element("p", sentence(formatter.message(note))) for note in report.notes]
        if len(report.focus) > MAX_RANKS:
            left_out = self.texts.messages["page_ranks_left_out"]
            parts.append(element("p", safe(left_out.format(kept=MAX_RANKS, count=len(report.focus)))))
        parts += self._tables(report.summary, formatter, self.id)
        for number in report.focus[:MAX_RANKS]:
            parts += self._rank(report.ranks[number], f"{self.id}-{number}", with_verdict=several)
        return element("article", "\n".join(parts))

    def _formatter(self, rank: RankReport) -> Formatter:
        return Formatter(self.texts, rank.resolution_ns, _PARTS)

    def _heading(self, tag: str, at: str, title: str, level: int) -> str:
        self.contents.append((level, at, title))
        return element(tag, safe(title), id=at)

    def _verdict(self, sentences: Sequence[Message], formatter: Formatter) -> str:
        return element("p", sentence(formatter.sentences(sentences)), class_="verdict")

    def _about(self, rank: RankReport) -> str:
        """File, rank, device and windows in one line; the whole path on demand."""
        text = self._formatter(rank).about(rank, PurePath(rank.path).name)
        return element("p", safe(text), class_="aside", title=rank.path)

    def _rank(self, rank: RankReport, at: str, *, with_verdict: bool) -> Iterator[str]:
        formatter, words = self._formatter(rank), self.texts.messages
        if with_verdict:
            yield self._heading("h2", at, formatter.about(rank, PurePath(rank.path).name), 2)
            yield self._verdict(rank.verdict, formatter)
        yield from self._tables(rank.tables, formatter, at)
        if rank.checks:
            checks = "".join(self._check(check, formatter) for check in rank.checks)
            yield self._heading("h3", f"{at}-quality", words["quality"], 3) + f'<ul class="checks">{checks}</ul>'
        missing = list(self._missing(rank.tables, formatter))
        if missing:
            yield self._heading("h3", f"{at}-missing", words["not_measured"], 3) + _listed(missing)
        hints = formatter.hints(rank)
        if hints:
            yield self._heading("h3", f"{at}-more", words["measure_more"], 3) + _listed(hints)

    def _tables(self, tables: Sequence[Table], formatter: Formatter, at: str) -> Iterator[str]:
        by_key = {table.key: table for table in tables}
        for table in tables:
            if rows_of(table):
                chart = ""
                if table.plot or table.stack:
                    chart = curve_html(table, by_key.get(_GROUPS_OF.get(table.key, "")), formatter)
                elif table.key == "steps" and "split" in by_key:
                    chart = step_chart(by_key["split"], table, formatter)
                yield self._table(table, chart, formatter, f"{at}-{table.key}")

    def _table(self, table: Table, chart: str, formatter: Formatter, at: str) -> str:
        """Pictures are open; numbers behind them and what is left out of a short view are to be opened."""
        title = formatter.title(table)
        self.contents.append((3, at, _ASIDE.split(title)[0]))
        heading = element("h3", safe(title))
        if table.stack and chart:
            elsewhere = element("p", safe(self.texts.messages["page_numbers_elsewhere"]), class_="aside")
            return element("section", heading + chart + elsewhere, id=at)
        numbers = table_html(table, formatter)
        if chart:
            inside = element("summary", safe(self.texts.messages["page_numbers"]))
            return element("section", f"{heading}{chart}<details>{inside}{numbers}</details>", id=at)
        if table.detail:
            count = f"<small>{len(rows_of(table)):,}</small>"
            return element("details", f"<summary>{heading} {count}</summary>{numbers}", id=at, class_="table")
        return element("section", heading + numbers, id=at)

    def _check(self, check: Finding, formatter: Formatter) -> str:
        level = safe(f"{self.texts.levels[check.level.name]} {check.id}")
        text = sentence(formatter.fill(self.texts.checks[check.message.key], check.message))
        return f'<li class="{check.level.name.lower()}"><strong>{level}</strong> {text}</li>'

    def _missing(self, tables: Sequence[Table], formatter: Formatter) -> Iterator[str]:
        """Tables without rows, by the reason."""
        reasons: dict[str, list[str]] = {}
        for table in tables:
            if isinstance(table.rows, NotMeasured):
                reasons.setdefault(self.texts.reasons[table.rows.reason], []).append(formatter.topic(table))
            elif not table.rows:
                reasons.setdefault(self.texts.messages["no_rows"], []).append(formatter.topic(table))
        return (formatter.said_of(titles, reason) for reason, titles in reasons.items())


def _listed(items: Sequence[str]) -> str:
    return element("ul", "".join(element("li", sentence(item)) for item in items))
