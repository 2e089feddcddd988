"""A table as CSV: every row and column, names and values as in JSON, for programs and spreadsheets alike."""

import csv
import io
import math

from traceanalyze.model.table import Kind, Quantity, Table, Value, plain

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet run a text instead of showing it."""


def render(table: Table) -> bytes:
    """The table in UTF-8 with the mark by which Excel knows it; what was not measured is empty."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    kinds = [column.kind for column in table.columns]
    writer.writerow(column.key for column in table.columns)
    writer.writerows(map(_cell, kinds, row) for row in table.known_rows)
    return out.getvalue().encode("utf-8-sig", errors="replace")


def _cell(kind: Kind, value: Value) -> object:
    match value:
        case bool():
            return "true" if value else "false"
        case str() if kind != Kind.QUANTITY:
            return f"'{value}" if value.startswith(_FORMULA) else value
        case float():
            return value if math.isfinite(value) else None
        case tuple() if not isinstance(value, Quantity):
            return "; ".join(f"{key}={amount}" for key, amount in value)
    return plain(kind, value)
