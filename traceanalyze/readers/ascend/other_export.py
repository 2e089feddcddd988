"""The headline numbers of a profile's other export: from small tables and sums that SQLite makes, in no time."""

from __future__ import annotations

from pathlib import Path

from traceanalyze.errors import InputError, Phrase
from traceanalyze.model.trace import OtherExport, VendorStep
from traceanalyze.readers.ascend import analysis_db as db_steps
from traceanalyze.readers.ascend.db_file import Database, check_finished, open_database
from traceanalyze.readers.ascend.folder import Profile
from traceanalyze.readers.ascend.shared import ABSENT
from traceanalyze.readers.ascend.tables import read_table, step_times

_KERNELS = (
    "SELECT COUNT(*), SUM(TASK.endNs - TASK.startNs) FROM TASK "
    "JOIN COMPUTE_TASK_INFO ON COMPUTE_TASK_INFO.globalTaskId = TASK.globalTaskId"
)
_STATISTIC = {"core": ("Core Type",), "count": ("Count",), "time": ("Total Time(us)",)}
_COMMUNICATION = frozenset({"HCCL", "COMMUNICATION"})


def database_beside(profile: Profile, notes: list[str]) -> OtherExport | None:
    """Of the databases beside a timeline; None where there are none. One that cannot be read is noted."""
    totals = profile.table("analysis.db")
    found = [path for path in (profile.database, totals) if path is not None]
    steps = None if totals is None else db_steps.step_times(totals, notes)
    windows: tuple[int, ...] | None = None
    kernels: tuple[int | None, int | None] = (None, None)
    if profile.database is not None:
        try:
            check_finished(profile.database)
            with open_database(profile.database) as database:
                windows, kernels = _windows(database), _kernels(database)
        except InputError as error:
            notes.append(Phrase("the other export was not compared: {error}", error))
            found.remove(profile.database)
    if not found:
        return None
    return OtherExport(_names(found), () if steps is None else steps.steps, windows, *kernels)


def _windows(database: Database) -> tuple[int, ...] | None:
    table = database.integers("STEP_TIME", ["startNs", "endNs"])
    return tuple((table["endNs"] - table["startNs"]).tolist()) or None


def _kernels(database: Database) -> tuple[int | None, int | None]:
    needed = (("TASK", {"startns", "endns", "globaltaskid"}), ("COMPUTE_TASK_INFO", {"globaltaskid"}))
    if any(not columns <= database.tables.get(table, frozenset()) for table, columns in needed):
        return None, None
    ((count, time),) = database.connection.execute(_KERNELS).fetchall()
    return int(count), int(time or 0)


def text_beside(profile: Profile, notes: list[str]) -> OtherExport | None:
    """Of the tables beside a database; None where there are none. One that cannot be read is noted."""
    steps: tuple[VendorStep, ...] = ()
    kernels: tuple[int | None, int | None] = (None, None)
    found = {name: path for name in ("step_trace_time.csv", "op_statistic.csv") if (path := profile.table(name))}
    for name, path in tuple(found.items()):
        try:
            if name == "op_statistic.csv":
                kernels = _statistic(path)
            elif (numbers := step_times(path)) is not None:
                steps = numbers.steps
        except OSError as error:
            notes.append(Phrase("{name} cannot be read ({reason}) and was not compared", name, error.strerror or error))
            del found[name]
    return OtherExport(_names(list(found.values())), steps, None, *kernels) if found else None


def _statistic(path: Path) -> tuple[int | None, int | None]:
    table = read_table(path, _STATISTIC)
    if table is None or set(table.columns) != set(_STATISTIC):
        return None, None
    compute = [core not in _COMMUNICATION for core in table.texts("core")]
    count, time = table.integers("count")[compute], table.durations("time")[compute]
    known = (count != ABSENT) & (time != ABSENT)
    return (int(count.sum()), int(time.sum())) if known.all() else (None, None)


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths)
