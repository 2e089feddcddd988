"""What a profile says of itself beside its events: times of steps and collectives in analysis.db, and its other export.

Of the other export only headline numbers are read: from small tables and sums that SQLite makes, in no time.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path

from traceanalyze.errors import InputError, Lost, Phrase
from traceanalyze.model.collectives import VendorCollectives
from traceanalyze.model.trace import OtherExport, VendorNumbers, VendorStep
from traceanalyze.readers.ascend import tables
from traceanalyze.readers.ascend.comm_tables import Row, vendor_collectives
from traceanalyze.readers.ascend.db_file import Database, check_finished, open_database
from traceanalyze.readers.ascend.folder import Profile
from traceanalyze.readers.ascend.info import About
from traceanalyze.readers.ascend.shared import ABSENT
from traceanalyze.readers.ascend.tables import read_table, step_number

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
        notes.append(Lost("{error}", error))
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
_OF_COLLECTIVES = "CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix"


def communication_tables(path: Path, about: About, notes: list[str]) -> VendorCollectives | None:
    """What analysis.db says of collectives; None where it says nothing. `notes` grows by what cannot be used."""
    try:
        with open_database(path) as database:
            times, links, matrix = map(_rows, repeat(database), _OF_COLLECTIVES, (_TIMES, _LINKS, _MATRIX))
    except InputError as error:
        notes.extend({Lost("{error}", error)}.difference(notes))
        return None
    moved: defaultdict[Row, list[Row]] = defaultdict(list)
    for *key, link, size, time in links:
        # One row a size of packet, each with the sums of its link.
        moved[tuple(key)].append((link, size, time))
    collectives = ((name, group, step, stated, moved[name, group, step]) for name, group, step, *stated in times)
    name, bandwidth, pairs = (f"{path.name} {table}" for table in _OF_COLLECTIVES)
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


_KERNELS = (
    "SELECT COUNT(*), SUM(TASK.endNs - TASK.startNs) FROM TASK "
    "JOIN COMPUTE_TASK_INFO ON COMPUTE_TASK_INFO.globalTaskId = TASK.globalTaskId"
)
_STATISTIC = {"core": ("Core Type",), "count": ("Count",), "time": ("Total Time(us)",)}


def database_beside(profile: Profile, notes: list[str]) -> OtherExport | None:
    """Of the databases beside a timeline; None where there are none. One that cannot be read is noted."""
    totals = profile.table("analysis.db")
    found = [path for path in (profile.database, totals) if path is not None]
    steps = None if totals is None else step_times(totals, notes)
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


def text_beside(
    profile: Profile, notes: list[str], names: Sequence[str] = ("step_trace_time.csv", "op_statistic.csv")
) -> OtherExport | None:
    """Of these tables beside what was read; None where there are none. One that cannot be read is noted."""
    steps: tuple[VendorStep, ...] = ()
    kernels: tuple[int | None, int | None] = (None, None)
    found = {name: path for name in names if (path := profile.table(name))}
    for name, path in tuple(found.items()):
        try:
            if name == "op_statistic.csv":
                kernels = _statistic(path, notes)
            elif (numbers := tables.step_times(path, notes)) is not None:
                steps = numbers.steps
        except OSError as error:
            notes.append(Phrase("{name} cannot be read ({reason}) and was not compared", name, error.strerror or error))
            del found[name]
    return OtherExport(_names(list(found.values())), steps, None, *kernels) if found else None


def _statistic(path: Path, notes: list[str]) -> tuple[int | None, int | None]:
    table = read_table(path, _STATISTIC, notes)
    if table is None or set(table.columns) != set(_STATISTIC):
        return None, None
    compute = [core not in tables.COMMUNICATION for core in table.texts("core")]
    count, time = table.integers("count")[compute], table.durations("time")[compute]
    known = (count != ABSENT) & (time != ABSENT)
    return (int(count.sum()), int(time.sum())) if known.all() else (None, None)


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths)
