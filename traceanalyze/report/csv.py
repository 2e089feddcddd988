"""A table as CSV: every row and column, names and values as in JSON, for programs and spreadsheets alike."""

from __future__ import annotations

import csv
import io
import math

from traceanalyze.model.table import NotMeasured, Table, Value

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet run a text instead of showing it."""


def render(table: Table) -> bytes:
    """The table in UTF-8 with the mark by which Excel knows it; what was not measured is empty."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(column.key for column in table.columns)
    writer.writerows([_cell(value) for value in row] for row in table.known_rows)
    return out.getvalue().encode("utf-8-sig", errors="replace")


def _cell(value: Value) -> int | float | str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}" if value.startswith(_FORMULA) else value
        case float():
            return value if math.isfinite(value) else None
        case tuple():
            return "; ".join(f"{key}={amount}" for key, amount in value)
        case NotMeasured():
            return None
    return value
