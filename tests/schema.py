"""The JSON Schema of reports, made of the tables that the package declares: `python -m tests.schema` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import traceanalyze.report
from tests.declared import declared_tables
from traceanalyze.model.table import SIZES, TIMES, Column, Kind, Table
from traceanalyze.report.json import SCHEMA

FILE = Path(traceanalyze.report.__file__).parent / "schema.json"
_TEXTS = (Kind.TEXT, Kind.NAME, Kind.KERNEL, Kind.PLACE, Kind.TERM)
_UNITS = dict.fromkeys(TIMES, "nanoseconds") | dict.fromkeys(SIZES, "bytes") | {Kind.SHARE: "a fraction of 1"}

Json = dict[str, Any]


def schema() -> Json:
    """The document's, with every declared table under `$defs`."""
    tables = sorted(declared_tables(), key=lambda table: table.key)
    messages, reference = _list(_ref("message")), {table.key: _table(_ref(f"row.{table.key}")) for table in tables}
    report = {
        "name": {"type": "string"},
        "answer": {"enum": ["pass", "fail", "inconclusive", None], "description": "of a gate"},
        "verdict": messages,
        "notes": {**messages, "description": "remarks on the input"},
        "sides": _list(_ref("side")),
        "tables": _ref("tables"),
        "remarks": {"type": "object", "additionalProperties": messages},
        "in_detail": {**_list({"type": "integer"}), "description": "indices of the ranks that pages of text show"},
        "findings": {**_list(_ref("finding")), "description": "on all ranks and about them, what is worth most first"},
        "ranks": _list(_ref("rank")),
    }
    rank = {
        "rank": {"type": ["integer", "null"]},
        "path": {"type": "string"},
        "mode": {"type": "string"},
        "resolution_ns": {"type": "integer"},
        "verdict": messages,
        "tables": _ref("tables"),
        "together": {**_ref("saving"), "description": "what all findings save at once"},
        "checks": _list(_ref("check")),
        "to_measure_more": messages,
    }
    message = {"key": {"type": "string"}, "text": {"type": "string"}, "values": {"type": "object"}}
    side = {name: {"type": "string"} for name in ("side", "path", "name")} | {"about": messages}
    text, texts, whole = {"type": "string"}, _list({"type": "string"}), {"type": "integer"}
    maybe = {"type": ["integer", "null"]}
    saving = {**_object(dict.fromkeys(("ns", "low_ns", "high_ns"), whole)), "type": ["object", "null"]}
    evidence = {
        "label": text,
        "value": {"type": ["number", "string"]},
        "unit": {"enum": ["nanoseconds", "bytes", "fraction", None]},
        "text": text,
        **dict.fromkeys(("start_ns", "end_ns"), maybe),
        "source_line": {"type": ["string", "null"]},
    }
    finding = {
        **dict.fromkeys(("id", "rule", "title", "sentence", "price"), text),
        "advice": texts,
        "saving": {**_ref("saving"), "description": "a step; null: not measured, or done once"},
        "cost_ns": {**maybe, "description": "a step"},
        "once": {"type": "boolean"},
        "share": {"type": ["number", "null"], "description": "of the step, as a fraction of 1"},
        "severity": {"enum": ["high", "medium", "low", "note"]},
        "confidence": {"enum": ["high", "medium", "low"]},
        "grade": {**text, "description": "both in words"},
        "scope": _object({"ranks": _list(whole), "steps": texts, "operators": texts, "source_lines": texts}),
        "evidence": _list(_object(evidence)),
        "link": _object(dict.fromkeys(("command", "page", "trace"), text)),
        "count": whole,
        "intervals_ns": {**_list(_list(whole)), "description": "begin and end; the longest ones"},
        "intervals_left_out": whole,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"https://pypi.org/project/traceanalyze/{SCHEMA}",
        "title": "What traceanalyze writes with --format json",
        **_object(
            {
                "schema": {"const": SCHEMA},
                "tool": _object({"name": {"const": "traceanalyze"}, "version": {"type": "string"}}),
                "command": {"enum": ["analyze", "compare", "memory", "postmortem", "whatif", "gate"]},
                "reports": _list(_ref("report")),
            },
            more=True,
        ),
        "$defs": {
            "report": _object(report),
            "rank": _object(rank),
            "side": _object(side),
            "message": _object(message),
            "finding": _object(finding),
            "saving": saving,
            "check": _object({"id": {"type": "string"}, "level": {"enum": ["info", "warn", "error"]}, **message}),
            "tables": {"type": "object", "properties": reference, "additionalProperties": False},
            **{f"row.{table.key}": _row(table) for table in tables},
        },
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _object(properties: Json, *, more: bool = False) -> Json:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        **({} if more else {"additionalProperties": False}),
    }


def _row(table: Table) -> Json:
    """A row; tables leave out columns that a kind of recording cannot have."""
    return {
        "title": table.title,
        "type": "object",
        "properties": {column.key: _cell(column) for column in table.columns},
        "patternProperties": {"_reason$": {"type": "string"}},
        "additionalProperties": False,
    }


def _table(rows: Json) -> Json:
    """Rows and what they sum to; or why there are none."""
    found = {
        "rows": {"type": ["array", "null"], "items": rows},
        "rows_left_out": {"type": "integer", "description": "how many more rows there are with --all"},
        "total": rows,
        "notes": _list(_ref("message")),
        "reason": {"type": "string", "description": "key of why it was not measured"},
        "text": {"type": "string", "description": "the same in words"},
    }
    return {"type": "object", "required": ["rows"], "properties": found, "additionalProperties": False}


def _cell(column: Column) -> Json:
    about = {"description": column.meaning} if column.meaning else {}
    unit = {"unit": _UNITS[column.kind]} if column.kind in _UNITS else {}
    items = {"items": _ref("message")} if column.kind == Kind.LIST else {}
    return {"type": [*_types(column), "null"], **items, **about, **unit}


def _types(column: Column) -> list[str]:
    match column.kind:
        case kind if kind in _TEXTS:
            return ["string"]
        case Kind.FLAG:
            return ["boolean"]
        case Kind.BREAKDOWN:
            return ["object"]
        case Kind.LIST:
            return ["array"]
        case kind if kind in TIMES:
            return ["integer"]
    return ["number"]


def text() -> str:
    """The schema as its file has it, a definition a line."""
    document = schema()
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in document.pop("$defs").items()
    ]
    above = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
    return above + ',\n "$defs": {\n  ' + ",\n  ".join(lines) + "\n }\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
