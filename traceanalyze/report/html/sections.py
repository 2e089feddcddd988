"""Pieces that pages are put together from: a table under its heading, what there is none of, lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.report.html.frame import element, safe, sentence
from traceanalyze.report.html.tables import rows_of, table_html

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.model.table import Table
    from traceanalyze.report.format import Formatter

_ASIDE = regex(r" \(|（")


def short_title(table: Table, formatter: Formatter) -> str:
    """A title without what it says in brackets, for a list of contents."""
    return _ASIDE.split(formatter.title(table))[0]


def table_section(table: Table, chart: str, formatter: Formatter, at: str, whole: float | None = None) -> str:
    """Pictures are open; numbers behind them and what is left out of a short view are to be opened.

    Args:
        table: What is shown.
        chart: A picture of it that is safe already, if there is one.
        formatter: How values are written.
        at: Target of links.
        whole: What a whole bar in the table stands for, where tables share it.
    """
    words = formatter.texts.messages
    heading = element("h3", safe(formatter.title(table)))
    if table.stack and chart:
        elsewhere = element("p", safe(words["page_numbers_elsewhere"]), class_="aside")
        return element("section", heading + chart + elsewhere, id=at)
    if table.told:
        sentences = "".join(element("p", sentence(formatter.message(note))) for note in table.notes)
        inside = element("summary", safe(words["page_numbers"]))
        rows = table_html(replace(table, notes=()), formatter, whole)
        return element("section", f"{heading}{sentences}<details>{inside}{rows}</details>", id=at)
    numbers = table_html(table, formatter, whole)
    if chart:
        inside = element("summary", safe(words["page_numbers"]))
        return element("section", f"{heading}{chart}<details>{inside}{numbers}</details>", id=at)
    if table.detail:
        count = f"<small>{len(rows_of(table)):,}</small>"
        return element("details", f"<summary>{heading} {count}</summary>{numbers}", id=at, class_="table")
    return element("section", heading + numbers, id=at)


def missing(tables: Sequence[Table], formatter: Formatter) -> Iterator[str]:
    """Tables without rows, by the reason."""
    texts = formatter.texts
    reasons: dict[str, list[str]] = {}
    for table in tables:
        if isinstance(table.rows, NotMeasured):
            reasons.setdefault(texts.reasons[table.rows.reason], []).append(formatter.topic(table))
        elif not table.rows:
            reasons.setdefault(texts.messages["no_rows"], []).append(formatter.topic(table))
    return (formatter.said_of(titles, reason) for reason, titles in reasons.items())


def listed(items: Sequence[str]) -> str:
    """Sentences as a list."""
    return element("ul", "".join(element("li", sentence(item)) for item in items))
