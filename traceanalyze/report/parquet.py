"""A table as Parquet, its columns typed; needs pyarrow."""

import io
from typing import Any

from traceanalyze.model.table import SIZES, TIMES, Kind, Table, Value, plain

_WHOLE = {*TIMES, *SIZES, Kind.COUNT}
_FRACTIONS = {Kind.SHARE, Kind.RATIO, Kind.NUMBER, Kind.QUANTITY}


def render(table: Table) -> bytes:
    """The table with every row; what was not measured is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {}
    for column in table.columns:
        values = [_plain(column.kind, value) for value in table.column(column.key)]
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


def _plain(kind: Kind, value: Value) -> object:
    found = plain(kind, value)
    return found.encode("utf-8", errors="replace").decode() if isinstance(found, str) else found
