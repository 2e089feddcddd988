"""Reports as JSON, schema `traceanalyze.report/2`: everything there is, durations as exact nanoseconds.

What was not measured is null, with the reason beside it under the same name and `_reason`. `schema.json` beside this
module describes it as a JSON Schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from traceanalyze.locales import Texts
from traceanalyze.model.table import TIMES, Column, Kind, Message, NotMeasured, Table, Value, plain
from traceanalyze.report.format import Formatter
from traceanalyze.report.model import formatter_of, formatter_over

if TYPE_CHECKING:
    from traceanalyze.report.model import Doubt, RankReport, Report, Side

SCHEMA = "traceanalyze.report/2"
SCHEMAS = (SCHEMA, "traceanalyze.report/1", "traceanalyze.compare/1")
"""This one, and those of older versions."""

Json = dict[str, Any]


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one JSON document."""
    first = reports[0]
    document = {
        "schema": SCHEMA,
        "tool": {"name": "traceanalyze", "version": first.version},
        "command": first.command,
        "reports": [_report(report, texts) for report in reports],
        **_former(first.former, formatter_over(first, texts)),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _report(report: Report, texts: Texts) -> Json:
    formatter = formatter_over(report, texts)
    return {
        "name": report.name,
        "answer": report.answer or None,
        "verdict": _messages(report.verdict_messages, formatter),
        "notes": _messages(report.note_messages, formatter),
        "sides": [_side(side, formatter) for side in report.sides],
        "tables": {table.key: _table(table, formatter) for table in report.summary},
        "remarks": {key: _messages(found, formatter) for key, found in report.remarks.items()},
        "in_detail": list(report.focus),
        "findings": [one.as_json() for one in report.findings_in(texts.language)],
        "ranks": [_rank(rank, texts) for rank in report.ranks],
    }


def _side(side: Side, formatter: Formatter) -> Json:
    return {"side": side.key, "path": side.path, "name": side.name, "about": _messages(side.about, formatter)}


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


def _rank(rank: RankReport, texts: Texts) -> Json:
    formatter = formatter_of(rank, texts)
    return {
        "rank": rank.rank,
        "path": rank.path,
        "mode": rank.mode.name.lower(),
        "resolution_ns": rank.resolution_ns,
        "verdict": _messages(rank.verdict_messages, formatter),
        "tables": {table.key: _table(table, formatter) for table in rank.tables},
        "together": None if rank.together is None else rank.together._asdict(),
        "checks": [_check(check, formatter) for check in rank.checks],
        "to_measure_more": [
            {"key": key, "text": text, "values": {}} for text, key in formatter.hints(rank.hints).items()
        ],
    }


def _check(check: Doubt, formatter: Formatter) -> Json:
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
    return _messages(cast("tuple[Message, ...]", value), formatter) if kind == Kind.LIST else _plain(kind, value)


def _with_unit(name: str, kind: Kind) -> str:
    return f"{name}_ns" if kind in TIMES and not name.endswith("_ns") else name


def _table(table: Table, formatter: Formatter) -> Json:
    if isinstance(table.rows, NotMeasured):
        return {"rows": None, "reason": table.rows.reason, "text": formatter.texts.reasons[table.rows.reason]}
    out: Json = {"rows": [_row(table.columns, row) for row in table.rows]}
    if table.total is not None:
        out["total"] = _row(table.columns, table.total)
    if table.notes:
        out["notes"] = _messages(table.notes, formatter)
    return out


def _row(columns: Sequence[Column], row: Sequence[Value]) -> Json:
    out: Json = {}
    for column, value in zip(columns, row, strict=True):
        out[column.key] = _plain(column.kind, value)
        if isinstance(value, NotMeasured):
            out[f"{column.key}_reason"] = value.reason
    return out


def _plain(kind: Kind, value: Value) -> object:
    found = plain(kind, value)
    return dict(found) if kind == Kind.BREAKDOWN and isinstance(found, tuple) else found
