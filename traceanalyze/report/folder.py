"""The report as a folder: every table whole in a file of its own, as CSV or Parquet, and the report as JSON."""

import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from csv import writer as writer_of
from functools import partial
from typing import TYPE_CHECKING, Any

from traceanalyze.locales import Texts
from traceanalyze.model.table import SIZES, TIMES, Kind, Quantity, Table, Value, plain
from traceanalyze.report import json
from traceanalyze.report.formats import renderer

Contents = Callable[[], bytes]

if TYPE_CHECKING:
    from traceanalyze.report.model import Report

INDEX = "report.json"
"""Marks a folder as one of this tool's."""


def files(reports: "Sequence[Report]", texts: Texts, format_: str) -> dict[str, Contents]:
    """Names of the files and what makes the contents of each; the index first."""
    found: dict[str, Contents] = {INDEX: lambda: json.render(reports, texts).encode("utf-8", errors="replace")}
    render = renderer(format_)
    for prefix, table in _named(reports, texts):
        name, number = f"{prefix}{table.key}.{format_}", 1
        while name in found:
            number += 1
            name = f"{prefix}{table.key}_{number}.{format_}"
        found[name] = partial(render, table)
    return found


def is_index(start: bytes) -> bool:
    """Whether a file that begins so was written as an index."""
    return any(f'"{schema}"'.encode() in start for schema in json.SCHEMAS)


def _named(reports: "Sequence[Report]", texts: Texts) -> Iterator[tuple[str, Table]]:
    """Every table with what comes before its key: run and rank where there are several."""
    for number, report in enumerate(reports, start=1):
        run = f"{number}_{_safe(report.name)}_" if len(reports) > 1 else ""
        if report.said:
            # Imported here: help needs no tables.
            from traceanalyze.report.finding import as_table

            yield run, as_table(report.findings_in(texts.language))
        for table in report.summary:
            yield run, table
        for index, rank in enumerate(report.ranks):
            label = f"recording{index}_" if rank.rank is None else f"rank{rank.rank}_"
            for table in rank.tables:
                yield run + (label if len(report.ranks) > 1 else ""), table


def _safe(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:60] or "run"


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet run a text instead of showing it."""


def csv(table: Table) -> bytes:
    """The table in UTF-8 with the mark by which Excel knows it; what was not measured is empty."""
    out = io.StringIO(newline="")
    writer = writer_of(out)
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


_WHOLE = {*TIMES, *SIZES, Kind.COUNT}
_FRACTIONS = {Kind.SHARE, Kind.RATIO, Kind.NUMBER, Kind.QUANTITY}


def parquet(table: Table) -> bytes:
    """The table with every row, its columns typed; what was not measured is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for column in table.columns:
        values = [_typed(column.kind, value) for value in table.column(column.key)]
        arrays[column.key] = pa.array(values, _type(pa, column.kind, values))
    out = io.BytesIO()
    pq.write_table(pa.table(arrays), out, compression="zstd")
    return out.getvalue()


def _type(pa: Any, kind: Kind, values: list[object]) -> Any:
    """Type of a column; what is counted is whole unless it is a mean."""
    if kind in _FRACTIONS or (kind in _WHOLE and any(isinstance(value, float) for value in values)):
        return pa.float64()
    if kind in _WHOLE:
        return pa.int64()
    if kind == Kind.FLAG:
        return pa.bool_()
    return pa.map_(pa.string(), pa.int64()) if kind == Kind.BREAKDOWN else pa.string()


def _typed(kind: Kind, value: Value) -> object:
    found = plain(kind, value)
    return found.encode("utf-8", errors="replace").decode() if isinstance(found, str) else found
