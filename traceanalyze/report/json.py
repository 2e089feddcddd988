"""Reports as JSON, schema `traceanalyze.report/2`: durations as exact nanoseconds.

Long tables have their first rows and say how many were left out, so that the document stays below 300 kB where that can
be; `--all` writes every row. What was not measured is null, with the reason beside it under the same name and
`_reason`. `schema.json` beside this module describes it as a JSON Schema.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from traceanalyze.locales import Texts
from traceanalyze.model.table import TIMES, Column, Kind, Message, NotMeasured, Table, Value, plain
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import formatter_of, formatter_over
from traceanalyze.report.view import View

if TYPE_CHECKING:
    from traceanalyze.report.model import Doubt, RankReport, Report

SCHEMA = "traceanalyze.report/2"
SCHEMAS = (SCHEMA, "traceanalyze.report/1", "traceanalyze.compare/1")
"""This one, and those of older versions."""

Json = dict[str, Any]

_LIMIT = 300_000
_ROWS = (10**9, 1000, 500, 200, 100, 50, 20, 10, 5, 3, 1)
"""How many of a table are tried: as many as fit, of every table alike."""
_AROUND = 12
"""Bytes of indent, comma and end of line."""
_INTERVALS = 3
_WIDE = 500
_WHOLE = View(whole=True)
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def render(reports: "Sequence[Report]", texts: Texts, view: View = _WHOLE) -> str:
    """Reports of all runs as one JSON document."""
    first = reports[0]
    document = {
        "schema": SCHEMA,
        "tool": {"name": "traceanalyze", "version": first.version},
        "command": first.command,
        "reports": [_report(report, texts, None if view.whole else _INTERVALS) for report in reports],
        **_former(first.former, formatter_over(first, texts)),
    }
    if not view.whole:
        _shorten(document)
    return "\n".join(_lines(document)) + "\n"


def _shorten(document: Json) -> None:
    """Leave out rows of long tables until the document is short enough; of a rank not in detail the more."""
    found = [
        (table, table["rows"], shares)
        for report in document["reports"]
        for part, shares in _parts(report)
        for table in part["tables"].values()
        if table["rows"]
    ]
    for table, _, _ in found:
        table["rows"] = []
    rest = sum(len(line.encode()) + 1 for line in _lines(document))
    sizes = [[len(_encode(row).encode()) + _AROUND for row in rows] for _, rows, _ in found]
    for most in _ROWS:
        kept = [max(most // shares, 1) for _, _, shares in found]
        if rest + sum(sum(each[:count]) for each, count in zip(sizes, kept, strict=True)) <= _LIMIT:
            break
    for (table, rows, _), count in zip(found, kept, strict=True):
        table["rows"] = rows[:count]
        if len(rows) > count:
            table["rows_left_out"] = len(rows) - count


def _parts(report: Json) -> Iterator[tuple[Json, int]]:
    """What has tables, and among how many its rows are shared."""
    ranks = report["ranks"]
    yield report, 1
    yield from ((rank, 1 if place in report["in_detail"] else len(ranks)) for place, rank in enumerate(ranks))


def _lines(value: Any) -> list[str]:
    """A row or what is short is one line, other values are broken up."""
    members = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    if not any(isinstance(each, dict | list) for _, each in members):
        return [_encode(value)]
    parts = [_lines(each) for _, each in members]
    if isinstance(value, dict):
        for (key, _), lines in zip(members, parts, strict=True):
            lines[0] = f"{_encode(key)}: {lines[0]}"
    begin, end = "{}" if isinstance(value, dict) else "[]"
    if sum(map(len, chain(*parts))) <= _WIDE and all(len(lines) == 1 for lines in parts):
        return [f"{begin}{', '.join(chain(*parts))}{end}"]
    for lines in parts[:-1]:
        lines[-1] += ","
    return [begin, *(f" {line}" for line in chain(*parts)), end]


def _report(report: "Report", texts: Texts, intervals: int | None) -> Json:
    formatter = formatter_over(report, texts)
    return {
        "name": report.name,
        "answer": report.answer or None,
        "verdict": _messages(report.verdict_messages, formatter),
        "notes": _messages(report.note_messages, formatter),
        "sides": [
            {"side": side.key, "path": side.path, "name": side.name, "about": _messages(side.about, formatter)}
            for side in report.sides
        ],
        "tables": {table.key: as_json(table, formatter) for table in report.summary},
        "remarks": {key: _messages(found, formatter) for key, found in report.remarks.items()},
        "in_detail": list(report.focus),
        "findings": [one.as_json(intervals) for one in report.findings_in(texts.language)],
        "ranks": [_rank(rank, texts) for rank in report.ranks],
    }


def _former(value: Any, formatter: Formatter) -> Any:
    """Plain values, with texts in place of messages."""
    match value:
        case Message():
            return formatter.message(value)
        case Mapping():
            return {key: _former(each, formatter) for key, each in value.items()}
        case list():
            return [_former(each, formatter) for each in value]
    return value


def _rank(rank: "RankReport", texts: Texts) -> Json:
    formatter = formatter_of(rank, texts)
    return {
        "rank": rank.rank,
        "path": rank.path,
        "mode": rank.mode.name.lower(),
        "resolution_ns": rank.resolution_ns,
        "verdict": _messages(rank.verdict_messages, formatter),
        "tables": {table.key: as_json(table, formatter) for table in rank.tables},
        "together": None if rank.together is None else rank.together._asdict(),
        "checks": [_check(check, formatter) for check in rank.checks],
        "to_measure_more": [
            {"key": key, "text": text, "values": {}} for text, key in formatter.hints(rank.hints).items()
        ],
    }


def _check(check: "Doubt", formatter: Formatter) -> Json:
    message = _message(check.message, formatter, formatter.texts.checks)
    return {"id": check.id, "level": check.level.name.lower(), **message}


def _messages(found: Sequence[Message], formatter: Formatter) -> list[Json]:
    return [_message(each, formatter, formatter.texts.messages) for each in found]


def _message(message: Message, formatter: Formatter, templates: Mapping[str, str]) -> Json:
    return {
        "key": message.key,
        "text": formatter.fill(templates[message.key], message),
        "values": {_with_unit(name, kind): _value(kind, value, formatter) for name, kind, value in message.values},
    }


def _value(kind: Kind, value: Value, formatter: Formatter) -> object:
    if kind == Kind.LIST and isinstance(value, tuple):
        return _messages(cast("tuple[Message, ...]", value), formatter)
    return _plain(kind, value)


def _with_unit(name: str, kind: Kind) -> str:
    return f"{name}_ns" if kind in TIMES and not name.endswith("_ns") else name


def as_json(table: Table, formatter: Formatter) -> Json:
    """Rows by the keys of their columns, what they sum to, and notes; the reason where nothing was measured."""
    if isinstance(table.rows, NotMeasured):
        return {"rows": None, "reason": table.rows.reason, "text": formatter.texts.reasons[table.rows.reason]}
    out: Json = {"rows": [_row(table.columns, row, formatter) for row in table.rows]}
    if table.total is not None:
        out["total"] = _row(table.columns, table.total, formatter)
    if table.notes:
        out["notes"] = _messages(table.notes, formatter)
    return out


def _row(columns: Sequence[Column], row: Sequence[Value], formatter: Formatter) -> Json:
    out: Json = {}
    for column, value in zip(columns, row, strict=True):
        out[column.key] = _value(column.kind, value, formatter)
        if isinstance(value, NotMeasured):
            out[f"{column.key}_reason"] = value.reason
    return out


def _plain(kind: Kind, value: Value) -> object:
    found = plain(kind, value)
    return dict(found) if kind == Kind.BREAKDOWN and isinstance(found, tuple) else found
