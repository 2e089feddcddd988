"""The report as JSON, schema `traceanalyze.report/1`: everything there is, durations as exact nanoseconds.

What was not measured is null, with the reason beside it under the same name and `_reason`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from traceanalyze.locales import Texts
from traceanalyze.model.table import TIMES, Column, Kind, Message, NotMeasured, Table, Value
from traceanalyze.report.format import Formatter, formatter_of

if TYPE_CHECKING:
    from traceanalyze.report.model import CompareReport, Finding, RankReport, Report

SCHEMA = "traceanalyze.report/1"
COMPARE_SCHEMA = "traceanalyze.compare/1"

Json = dict[str, Any]


def render(reports: Sequence[Report], texts: Texts) -> str:
    """Reports of all runs as one JSON document."""
    version = reports[0].version if reports else ""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "traceanalyze", "version": version},
        "runs": [_run(report, texts) for report in reports],
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def render_compare(report: CompareReport, texts: Texts) -> str:
    """A comparison as one JSON document, schema `traceanalyze.compare/1`."""
    formatter = Formatter(texts, report.resolution_ns)
    messages = texts.messages
    sides = report.tables["compare_sides"]
    document = {
        "schema": COMPARE_SCHEMA,
        "tool": {"name": "traceanalyze", "version": report.version},
        "verdict": [_message(item, formatter, messages) for item in report.verdict],
        **{side: _row(sides.columns, row) for side, row in zip(("base", "candidate"), sides.known_rows, strict=True)},
        "notes": [_message(item, formatter, messages) for item in report.notes],
        "advice": [_message(item, formatter, messages) for item in report.advice],
        "caveats": [_message(item, formatter, messages) for item in report.caveats],
        "quality": [_message(item, formatter, messages) for item in report.quality],
        "tables": {table.key: _table(table, formatter) for table in report.listing if table is not sides},
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _run(report: Report, texts: Texts) -> Json:
    formatter = formatter_of(report.ranks[report.focus[0]], texts)
    return {
        "name": report.name,
        "verdict": [_message(item, formatter, texts.messages) for item in report.verdict],
        "notes": [_message(item, formatter, texts.messages) for item in report.notes],
        "tables": {table.key: _table(table, formatter) for table in report.summary},
        "in_detail": list(report.focus),
        "ranks": [_rank(rank, texts) for rank in report.ranks],
    }


def _rank(rank: RankReport, texts: Texts) -> Json:
    formatter = formatter_of(rank, texts)
    return {
        "rank": rank.rank,
        "path": rank.path,
        "mode": rank.mode.name.lower(),
        "resolution_ns": rank.resolution_ns,
        "verdict": [_message(item, formatter, texts.messages) for item in rank.verdict],
        "tables": {table.key: _table(table, formatter) for table in rank.tables},
        "checks": [_check(check, formatter) for check in rank.checks],
        "to_measure_more": formatter.hints(rank),
    }


def _check(check: Finding, formatter: Formatter) -> Json:
    message = _message(check.message, formatter, formatter.texts.checks)
    return {"id": check.id, "level": check.level.name.lower(), **message}


def _message(message: Message, formatter: Formatter, templates: Mapping[str, str]) -> Json:
    return {
        "key": message.key,
        "text": formatter.fill(templates[message.key], message),
        "values": {_with_unit(name, kind): _plain(kind, value) for name, kind, value in message.values},
    }


def _with_unit(name: str, kind: Kind) -> str:
    return f"{name}_ns" if kind in TIMES and not name.endswith("_ns") else name


def _table(table: Table, formatter: Formatter) -> Json:
    if isinstance(table.rows, NotMeasured):
        return {"rows": None, "reason": table.rows.reason, "text": formatter.texts.reasons[table.rows.reason]}
    out: Json = {"rows": [_row(table.columns, row) for row in table.rows]}
    if table.total is not None:
        out["total"] = _row(table.columns, table.total)
    if table.notes:
        out["notes"] = [_message(note, formatter, formatter.texts.messages) for note in table.notes]
    return out


def _row(columns: Sequence[Column], row: Sequence[Value]) -> Json:
    out: Json = {}
    for column, value in zip(columns, row, strict=True):
        out[column.key] = _plain(column.kind, value)
        if isinstance(value, NotMeasured):
            out[f"{column.key}_reason"] = value.reason
    return out


def _plain(kind: Kind, value: Value) -> object:
    if isinstance(value, NotMeasured):
        return None
    return dict(value) if kind == Kind.BREAKDOWN and isinstance(value, tuple) else value
