"""The vendor's own step times: StepTraceTime of analysis.db."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.errors import InputError
from traceanalyze.model.trace import VendorNumbers, VendorStep
from traceanalyze.readers.ascend.db_file import open_database
from traceanalyze.readers.ascend.tables import step_number

if TYPE_CHECKING:
    from pathlib import Path

    from traceanalyze.readers.ascend.db_file import Database

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
