"""A comparison as Markdown for a pull request or a chat: verdict, what was compared, the overall table, the causes."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyze.locales import Texts
from traceanalyze.model.table import NotMeasured, Table
from traceanalyze.report.format import Formatter
from traceanalyze.report.markdown import listed, plain, table_blocks
from traceanalyze.report.model import CompareReport
from traceanalyze.report.view import Half, View, distinct_names, halves, shallow, with_columns

MARK = "###"
"""Level of headings: they stand within a comment."""
_SHOWN = ("overall_metrics", "memory_peak", "link_rates")


def render(report: CompareReport, texts: Texts, view: View | None = None) -> str:
    """The comparison as one short document."""
    return "\n".join(_blocks(report, Formatter(texts, report.resolution_ns, parts=1), (view or View()).top))


def _blocks(report: CompareReport, formatter: Formatter, top: int) -> Iterator[str]:
    words, tables = formatter.texts.messages, report.tables
    yield f"**{plain(formatter.sentences(report.verdict))}**\n"
    yield "\n".join(_sides(report, formatter)) + "\n"
    for note in report.notes:
        yield f"{plain(formatter.message(note))}\n"
    yield from listed(words["caveats"], [formatter.message(item) for item in report.caveats])
    found = [tables[key] for key in _SHOWN if key in tables and _has_rows(tables[key])]
    if not any(table.key == "overall_metrics" for table in found):
        found.insert(0, tables["step_difference"])
    for table in found:
        yield from table_blocks(_brief(shallow(table)), formatter, MARK)
    for half in halves(tables["causes"]):
        yield from _causes(half, formatter, top)
    yield from listed(words["advice"], [formatter.message(item) for item in report.advice])
    yield from listed(words["not_compared"], _missing(report, formatter))
    yield from listed(words["quality"], [formatter.message(item) for item in report.quality])


def _sides(report: CompareReport, formatter: Formatter) -> Iterator[str]:
    names = distinct_names(*report.paths)
    for key, name, pieces in zip(("base", "candidate"), names, report.sides, strict=True):
        rest = [formatter.message(piece) for piece in pieces if piece.key != "side_path"]
        yield f"- {plain(formatter.said_of([formatter.texts.messages[key]], ' · '.join([name, *rest])))}"


def _causes(half: Half, formatter: Formatter, top: int) -> Iterator[str]:
    words, rows = formatter.texts.messages, half.table.rows
    if isinstance(rows, NotMeasured) or not half.weighty:
        yield f"{plain(words[f'no_{half.key}'])}\n"
        return
    shown = half.first(top)
    yield from table_blocks(_brief(half.table.take(range(shown))), formatter, MARK)
    if half.count > shown:
        yield plain(words["more_rows"].format(count=half.count - shown, all=half.count)) + "\n"


def _brief(table: Table) -> Table:
    """The columns that tell most."""
    return with_columns(table, [index for index, column in enumerate(table.columns) if not column.minor])


def _missing(report: CompareReport, formatter: Formatter) -> list[str]:
    """Sections that cannot be compared, each with its reason, once."""
    reasons: dict[str, list[str]] = {}
    for table in report.listing:
        if isinstance(table.rows, NotMeasured):
            reasons.setdefault(formatter.texts.reasons[table.rows.reason], []).append(formatter.topic(table))
    return [formatter.said_of(titles, reason) for reason, titles in reasons.items()]


def _has_rows(table: Table) -> bool:
    return not isinstance(table.rows, NotMeasured) and bool(table.rows)
