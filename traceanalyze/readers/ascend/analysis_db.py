"""The numbers of its own that a profile keeps in analysis.db: times of its steps, and its tables of collectives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceanalyze.errors import InputError
from traceanalyze.model.collectives import VendorCollective, VendorCollectives, VendorLink
from traceanalyze.model.trace import VendorNumbers, VendorStep
from traceanalyze.readers.ascend.comm_tables import SUMS, TOTAL, MatrixRow, group_label, lost_rows, scaled, summed
from traceanalyze.readers.ascend.db_file import Database, open_database
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.tables import step_number

_COLUMNS = {
    "computing": "computing",
    "communication": "communication",
    "not_overlapped": "communication_not_overlapped",
    "overlapped": "overlapped",
    "free": "free",
    "stage": "stage",
    "bubble": "bubble",
    "preparing": "preparing",
}


def step_times(path: Path, notes: list[str]) -> VendorNumbers | None:
    """Rows of StepTraceTime, which are microseconds; None when there are none. A damaged file is noted."""
    try:
        with open_database(path) as database:
            steps = _steps(database)
    except InputError as error:
        notes.append(str(error))
        return None
    return VendorNumbers(f"{path.name} StepTraceTime", steps) if steps else None


def _steps(database: Database) -> tuple[VendorStep, ...]:
    present = database.tables.get("STEPTRACETIME")
    if present is None:
        return ()
    times = [
        f'CAST(ROUND("{column}" * 1000) AS INTEGER)' if column in present else "NULL" for column in _COLUMNS.values()
    ]
    others = [f'CAST("{column}" AS {kind})' if column in present else "NULL" for column, kind in _KEYS]
    rows = database.connection.execute(f"SELECT {', '.join([*others, *times])} FROM StepTraceTime")  # noqa: S608
    return tuple(
        VendorStep(
            step=step_number(step.decode("utf-8", "replace") if step else None),
            device=device,
            **dict(zip(_COLUMNS, values, strict=True)),
        )
        for step, device, *values in rows
    )


_KEYS = (("step", "TEXT"), ("deviceid", "INTEGER"))


TIMES, LINKS, MATRIX = "CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix"
_TIMES = ("hccl_op_name", "group_name", "step", "elapse_time", "transit_time", "wait_time", "idle_time")
_LINK_COLUMNS = ("hccl_op_name", "group_name", "step", "transport_type", "transit_size", "transit_time")
_MATRIX = (
    *("hccl_op_name", "group_name", "src_rank", "dst_rank", "transport_type"),
    *("transit_size", "transit_time", "op_name"),
)
_MS = 10**6


def communication_tables(path: Path, about: About, notes: list[str]) -> VendorCollectives | None:
    """What analysis.db says of collectives; None where it says nothing. A damaged file is noted.

    Args:
        path: analysis.db.
        about: What the profile says of itself; names groups.
        notes: Grows by what was left out.
    """
    lost = {LINKS: 0, MATRIX: 0}
    try:
        with open_database(path) as database:
            collectives, links = _collectives(database, about, lost), _pairs(database, about, lost)
    except InputError as error:
        if str(error) not in notes:
            notes.append(str(error))
        return None
    notes.extend(lost_rows({f"{path.name} {table}": count for table, count in lost.items()}))
    names = f"{path.name} {TIMES}", f"{path.name} {MATRIX}"
    return VendorCollectives(names[0], collectives, names[1], links) if collectives or links else None


def _rows(database: Database, table: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """All rows, texts decoded; None for a column that this version lacks."""
    present = database.tables.get(table.upper())
    if present is None:
        return []
    chosen = ", ".join(f'"{name}"' if name in present else "NULL" for name in columns)
    found = database.connection.execute(f'SELECT {chosen} FROM "{table}"')  # noqa: S608
    return [
        tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row) for row in found
    ]


def _collectives(database: Database, about: About, lost: dict[str, int]) -> tuple[VendorCollective, ...]:
    moved: dict[tuple[object, ...], dict[str, tuple[int, int]]] = {}
    for *key, link, size, time in _rows(database, LINKS, _LINK_COLUMNS):
        # One row a size of packet, each with the sums of its link.
        numbers = scaled(size, _MS), scaled(time, _MS)
        if link in SUMS or numbers[0] == 0:
            continue
        if numbers[0] is None or numbers[1] is None:
            lost[LINKS] += 1
        else:
            moved.setdefault(tuple(key), {})[str(link or "")] = numbers[0], numbers[1]
    found = []
    for name, group, step, *times in _rows(database, TIMES, _TIMES):
        links = tuple((link, *sizes) for link, sizes in moved.get((name, group, step), {}).items())
        label = group_label(str(name or ""), str(group or ""), about)
        elapsed, transit, wait, idle = (scaled(time, _MS) for time in times)
        number = step_number(str(step or ""))
        found.append(VendorCollective(str(name or ""), label, number, elapsed, transit, wait, idle, links))
    return tuple(found)


def _pairs(database: Database, about: About, lost: dict[str, int]) -> tuple[VendorLink, ...]:
    rows: list[MatrixRow] = []
    names: dict[str, str] = {}
    for kind, group, source, target, link, size, time, op in _rows(database, MATRIX, _MATRIX):
        if op:
            names.setdefault(str(group or ""), str(op))
        total = TOTAL.match(str(kind or ""))
        ends = str(source), str(target)  # Rank 0 may be a number.
        if total and all(map(str.isdecimal, ends)):
            moved, spent = scaled(size, _MS), scaled(time, _MS)
            if moved is None or spent is None:
                lost[MATRIX] += 1
                continue
            pair = int(ends[0]), int(ends[1])
            rows.append(MatrixRow(total[1], str(group or ""), *pair, str(link or ""), moved, spent))
    return summed(rows, names, about)
