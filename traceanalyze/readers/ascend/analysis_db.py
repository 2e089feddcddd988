"""The numbers of its own that a profile keeps in analysis.db: times of its steps, and its tables of collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path

from traceanalyze.errors import InputError
from traceanalyze.model.collectives import VendorCollectives
from traceanalyze.model.trace import VendorNumbers, VendorStep
from traceanalyze.readers.ascend.comm_tables import Row, vendor_collectives
from traceanalyze.readers.ascend.db_file import Database, open_database
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.tables import step_number

_COLUMNS = (
    *("computing", "communication", "communication_not_overlapped", "overlapped"),
    *("free", "stage", "bubble", "preparing"),
)
"""Of StepTraceTime, as the members of `VendorStep` are ordered."""


def step_times(path: Path, notes: list[str]) -> VendorNumbers | None:
    """Rows of StepTraceTime, which are microseconds; None when there are none. A damaged file is noted."""
    try:
        with open_database(path) as database:
            steps = _steps(database)
    except InputError as error:
        notes.append(error.phrase)
        return None
    return VendorNumbers(f"{path.name} StepTraceTime", steps) if steps else None


def _steps(database: Database) -> tuple[VendorStep, ...]:
    present = database.tables.get("STEPTRACETIME")
    if present is None:
        return ()
    wanted = {"step": 'CAST("step" AS TEXT)', "deviceid": 'CAST("deviceid" AS INTEGER)'}
    wanted |= {column: f'CAST(ROUND("{column}" * 1000) AS INTEGER)' for column in _COLUMNS}
    selected = ", ".join(expression if column in present else "NULL" for column, expression in wanted.items())
    rows = database.connection.execute(f"SELECT {selected} FROM StepTraceTime")  # noqa: S608
    return tuple(
        VendorStep(step_number(step.decode("utf-8", "replace") if step else None), *numbers) for step, *numbers in rows
    )


_TIMES = ("hccl_op_name", "group_name", "step", "elapse_time", "transit_time", "wait_time", "idle_time")
_LINKS = ("hccl_op_name", "group_name", "step", "transport_type", "transit_size", "transit_time")
_MATRIX = (
    *("hccl_op_name", "group_name", "src_rank", "dst_rank", "transport_type"),
    *("transit_size", "transit_time", "op_name"),
)


def communication_tables(path: Path, about: About, notes: list[str]) -> VendorCollectives | None:
    """What analysis.db says of collectives; None where it says nothing. `notes` grows by what cannot be used."""
    tables = "CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix"
    try:
        with open_database(path) as database:
            times, links, matrix = map(_rows, repeat(database), tables, (_TIMES, _LINKS, _MATRIX))
    except InputError as error:
        if str(error) not in notes:
            notes.append(error.phrase)
        return None
    moved: defaultdict[Row, list[Row]] = defaultdict(list)
    for *key, link, size, time in links:
        # One row a size of packet, each with the sums of its link.
        moved[tuple(key)].append((link, size, time))
    collectives = ((name, group, step, stated, moved[name, group, step]) for name, group, step, *stated in times)
    name, bandwidth, pairs = (f"{path.name} {table}" for table in tables)
    return vendor_collectives((name, bandwidth, pairs), collectives, matrix, about, notes)


def _rows(database: Database, table: str, columns: Sequence[str]) -> list[Row]:
    """All rows, texts decoded; None for a column that this version lacks."""
    present = database.tables.get(table.upper())
    if present is None:
        return []
    listed = ", ".join(f'"{name}"' if name in present else "NULL" for name in columns)
    found = database.connection.execute(f'SELECT {listed} FROM "{table}"')  # noqa: S608
    return [
        tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row) for row in found
    ]
