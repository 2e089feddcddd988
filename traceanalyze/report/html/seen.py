"""Where in a page the trace is shown around findings: below the first table that names their rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.report.html.tables import rows_of
from traceanalyze.report.html.text import element, safe
from traceanalyze.report.html.timeline import timeline_html
from traceanalyze.report.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceanalyze.report.format import Formatter
    from traceanalyze.report.model import FindingExcerpt, RankReport, Table


class Seen(NamedTuple):
    """One picture of a page."""

    excerpt: FindingExcerpt
    at: str
    """Where links lead."""
    rank: int | None


def of_rank(rank: RankReport, at: str) -> tuple[list[Seen], list[Seen]]:
    """Pictures of a rank that stand among its own tables, and those whose rule none of these names."""
    named = {rule for table in rank.tables for rule in rules_of(table)}
    every = [Seen(one, f"{at}-at-{index}", rank.rank) for index, one in enumerate(rank.excerpts)]
    return [one for one in every if one.excerpt.rule in named], [one for one in every if one.excerpt.rule not in named]


def rules_of(table: Table) -> frozenset[object]:
    """Ids of the rules that a table names."""
    named = bool(rows_of(table)) and any(column.key == "rule_id" for column in table.columns)
    return frozenset(table.column("rule_id")) if named else frozenset()


def by_table(tables: Sequence[Table], seen: Sequence[Seen]) -> Mapping[str, Sequence[Seen]]:
    """Pictures by the first table that names their rule."""
    found: dict[str, list[Seen]] = {}
    for one in seen:
        first = next((table.key for table in tables if one.excerpt.rule in rules_of(table)), None)
        if first is not None:
            found.setdefault(first, []).append(one)
    return found


def pictures(seen: Sequence[Seen], formatter: Formatter) -> Iterator[str]:
    """The pictures themselves."""
    return (timeline_html(one.excerpt, formatter, one.at) for one in seen)


def links(led: Sequence[Seen], formatter: Formatter) -> str:
    """A line that leads to pictures elsewhere in the page; nothing without any."""
    if not led:
        return ""
    words = formatter.texts.messages
    named = [f"{one.excerpt.rule} {formatter.value(Kind.TERM, one.excerpt.finding)}{_rank(one, words)}" for one in led]
    found = [f'<a href="#{one.at}">{safe(name)}</a>' for one, name in zip(led, named, strict=True)]
    return element("p", f"{safe(words['excerpt_links'])} {safe(words['group_mark']).join(found)}")


def _rank(one: Seen, words: Mapping[str, str]) -> str:
    return "" if one.rank is None else words["rank"].format(rank=one.rank)
