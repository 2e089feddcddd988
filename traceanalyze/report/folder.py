"""The report as a folder: every table whole in a file of its own, as CSV or Parquet, and the report as JSON."""

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from csv import writer as writer_of
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from traceanalyze.errors import InputError, Phrase, UsageError
from traceanalyze.locales import Texts
from traceanalyze.locales import texts as english
from traceanalyze.model.table import SIZES, TIMES, Column, Kind, Quantity, Table, Value, declare, plain
from traceanalyze.report import json
from traceanalyze.report.formats import renderer
from traceanalyze.version import __version__
from traceanalyze.whole_file import whole_file

Contents = Callable[[], bytes]

if TYPE_CHECKING:
    import pyarrow as pa

    from traceanalyze.model.trace import Trace
    from traceanalyze.report.model import Report

INDEX = "report.json"
"""Marks a folder as one of this tool's."""


def files(reports: "Sequence[Report]", texts: Texts, format_: str) -> dict[str, Contents]:
    """Names of the files and what makes the contents of each; the index first."""
    found: dict[str, Contents] = {INDEX: lambda: json.render(reports, texts).encode("utf-8", errors="replace")}
    if format_ == "parquet":
        return found | {f"{key}.parquet": partial(parquet, *each) for key, each in _long(reports, texts).items()}
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


_WHOLE = {*TIMES, *SIZES}
_FRACTIONS = {Kind.COUNT, Kind.SHARE, Kind.RATIO, Kind.NUMBER, Kind.QUANTITY}
"""Kinds of which a mean is no whole number, though most of them are: their type must not depend on the run."""
_SCHEMA = "traceanalyze.table/1"


class Label(NamedTuple):
    """What rows of long tables have in front: of which run and rank they are."""

    run_id: str | None = None
    """Of the content of its recordings: the same whenever and wherever they are analysed."""
    run: str | None = None
    """Its name."""
    rank: int | None = None
    host: str | None = None
    recorded_at: datetime | None = None
    """When the first of its events began; None where its clock tells no absolute time."""
    tool_version: str = __version__


EVENTS = declare(
    "events",
    "Every event",
    Column("run_id", Kind.TEXT, "of the content of the recordings"),
    Column("run", Kind.NAME, "name of the run"),
    Column("rank", Kind.COUNT, "whose row it is; null where it is about the whole run"),
    Column("host", Kind.TEXT, "where the recording tells it"),
    Column("recorded_at", Kind.TEXT, "begin of the first event, UTC; null where the clock tells no absolute time"),
    Column("tool_version", Kind.TEXT, "that made the row"),
    Column("ts_ns", Kind.DURATION, "begin, since 1970 where the clock of the recording tells that"),
    Column("dur_ns", Kind.DURATION, "how long it took"),
    Column("name", Kind.NAME, "of the operator, the call or the kernel"),
    Column("cat", Kind.TEXT, "category, as in the trace"),
    Column("pid", Kind.TEXT, "process, as in the trace"),
    Column("tid", Kind.TEXT, "thread or stream, as in the trace"),
)
"""What all events have; in front what all long tables have."""


def label_of(name: str, traces: "Sequence[Trace]") -> Label:
    """What all rows of a run have in common."""
    if not traces:
        return Label(run=name)
    # Imported here: what has no recording, as a snapshot, needs none of it.
    from traceanalyze.model.trace import YEAR_2000_NS

    parts = sorted(repr((one.origin.rank, one.base_ns, one.origin.text_bytes, one.content)) for one in traces)
    began = min((one.span[0] for one in traces), default=0)
    recorded = None if began < YEAR_2000_NS else datetime.fromtimestamp(began // 1000 / 1e6, UTC)
    return Label(blake2b(" ".join(parts).encode(), digest_size=8).hexdigest(), name, recorded_at=recorded)


def _long(reports: "Sequence[Report]", texts: Texts) -> dict[str, tuple[Table, list[tuple[Label, Table]]]]:
    """Every table by its key, once: with the rows of all runs and ranks."""
    found: dict[str, list[tuple[Label, Table]]] = {}
    for report in reports:
        traces = {one.trace.origin.path: one.trace for one in report.analyses}
        label = label_of(report.name, [*traces.values()])._replace(tool_version=report.version)
        tables = [*report.summary]
        if report.said:
            from traceanalyze.report.finding import as_table

            tables.append(as_table(report.findings_in(texts.language)))
        if report.analyses:
            from traceanalyze.report.contents.fleet import run_summary

            tables.append(run_summary(report))
        pairs = [(label, each) for each in tables]
        for rank in report.ranks:
            trace = traces.get(rank.path)
            own = label._replace(rank=rank.rank, host=None if trace is None else trace.origin.host)
            pairs += [(own, each) for each in rank.tables]
        for of, table in pairs:
            found.setdefault(table.key, []).append((of, table))
    return {key: (each[0][1], each) for key, each in found.items()}


def long_tables(reports: "Sequence[Report]", texts: Texts) -> "dict[str, pa.Table]":
    """Every table by its key as Arrow, with the rows of all runs and ranks; what a column is stands in its metadata."""
    return {key: arrow(*each) for key, each in _long(reports, texts).items()}


def parquet(table: Table, rows: "Sequence[tuple[Label, Table]]" = ()) -> bytes:
    """The table with every row, its columns typed by their kinds; what was not measured is null.

    With the `rows` of several runs and ranks, in front of them of which they are. A rank that a table has itself
    counts; where that is text, as of groups of ranks, `rank_text` has all of it.
    """
    return packed(arrow(table, rows))


def packed(found: "pa.Table") -> bytes:
    """A table of Arrow as a file of Parquet."""
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(found, out, compression="zstd")
    return out.getvalue()


def arrow(table: Table, rows: "Sequence[tuple[Label, Table]]" = ()) -> "pa.Table":
    """The table as Arrow, as `parquet` has it."""
    import pyarrow as pa

    tables = [each for _, each in rows] or [table]
    columns = {column.key: column for each in tables for column in each.columns}
    names, arrays = list[Any](), list[Any]()
    for key, column in columns.items():
        values = [
            _typed(column, value)
            for each in tables
            for value in (each.column(key) if key in each.keys else [None] * len(each))
        ]
        own = "rank_text" if rows and key == "rank" and column.kind == Kind.TEXT else key
        names.append(pa.field(own, _type(pa, column), metadata=_about(column)))
        arrays.append(pa.array(values, names[-1].type))
    if rows:
        labels = [of for of, each in rows for _ in range(len(each))]
        fronts = {key: [getattr(of, key) for of in labels] for key in Label._fields}
        if "rank" in columns:
            fronts["rank"] = [_number(value) for each in tables for value in each.column("rank")]
        kept = [at for at, field in enumerate(names) if field.name not in fronts]
        names = [*_fronts(pa), *(names[at] for at in kept)]
        arrays = [
            *(pa.array(fronts[field.name], field.type) for field in names[: len(fronts)]),
            *(arrays[at] for at in kept),
        ]
    absent = sorted({str(each.absent.reason) for each in tables if each.absent is not None})
    about = {"schema": _SCHEMA, "tool": f"traceanalyze {__version__}", "table": table.key, "title": table.title}
    schema = pa.schema(names, metadata=about | ({"not_measured": ", ".join(absent)} if absent else {}))
    return pa.Table.from_arrays(arrays, schema=schema)


def _fronts(pa: Any) -> list[Any]:
    """Columns that all long tables begin with."""
    types = {"rank": pa.int64(), "recorded_at": pa.timestamp("us", tz="UTC")}
    return [pa.field(key, types.get(key, pa.string()), metadata=_about(EVENTS[key])) for key in Label._fields]


def _number(value: Value) -> int | None:
    """A rank; None for what is no single one."""
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _about(column: Column) -> dict[str, str]:
    return {"kind": str(column.kind), **({"meaning": column.meaning} if column.meaning else {})}


def _is_whole(column: Column) -> bool:
    """Absolute times are counts by their kind, and more than fractions can hold."""
    return column.kind in _WHOLE or (column.kind == Kind.COUNT and column.key.endswith("_ns"))


def _type(pa: Any, column: Column) -> Any:
    """Type of a column: that of its kind, whatever a run has in it."""
    kind = column.kind
    if _is_whole(column):
        return pa.int64()
    if kind in _FRACTIONS:
        return pa.float64()
    if kind == Kind.FLAG:
        return pa.bool_()
    return pa.map_(pa.string(), pa.int64()) if kind == Kind.BREAKDOWN else pa.string()


def _typed(column: Column, value: Value) -> object:
    found = plain(column.kind, value)
    if _is_whole(column) and isinstance(found, float):
        # Of a mean the fraction of a nanosecond, or of a byte, says nothing.
        return round(found) if math.isfinite(found) else None
    if isinstance(found, tuple) and column.kind != Kind.BREAKDOWN:
        return str(found)
    return found.encode("utf-8", errors="replace").decode() if isinstance(found, str) else found


LAST = "run_summary"
"""The table that says that a run is kept whole; it also has when that was."""


def record(reports: "Sequence[Report]", store: str) -> Phrase:
    """Keep the tables of runs in a store: a folder a table, in it a file a run; what was kept.

    A run that is there is replaced. Several may be kept at the same time, by several processes.

    Raises:
        UsageError: It cannot be written, or a report is about no run.
    """
    needs_pyarrow("--record")
    for report in reports:
        if not report.analyses:
            raise UsageError("--record {store}: {name} is no run of recordings", store, report.name)
        # In one language, whoever keeps it.
        found = _long([report], english())
        run = str(found[LAST][1][0][0].run_id)
        for key in sorted(found, key=lambda key: (key == LAST, key)):
            path = Path(store, key, f"{run}.parquet")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError("{path}: cannot be made: {why}", path.parent, error.strerror) from error
            with whole_file(path) as file:
                file.write(parquet(*found[key]))
        for old in Path(store).glob(f"*/{run}.parquet"):
            # Of an analysis that had more tables.
            if old.parent.name not in found:
                old.unlink(missing_ok=True)
    return Phrase("Kept {count} run(s) in {store}", len(reports), store)


def kept_tables(store: str) -> dict[str, Any]:
    """The tables of all runs in a store by name, as datasets of Arrow, with the columns that any of their files has.

    Raises:
        InputError: A file is damaged, or has other types than the rest.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = {}
    for place in sorted({path.parent for path in Path(store).glob("*/*.parquet")}):
        schemas, files = list[Any](), sorted(place.glob("*.parquet"))
        for path in files:
            try:
                schemas.append(pa.unify_schemas([*schemas[-1:], pq.read_schema(path)]))
            except (OSError, pa.ArrowException) as error:
                raise InputError("{path}: damaged: {why}; record the run again", path, type(error).__name__) from error
        found[place.name] = on_disk(*files, schema=schemas[-1])
    return found


def gathered(batches: "Sequence[pa.RecordBatch]", schema: "pa.Schema") -> "pa.Table":
    """One table of what came in pieces."""
    import pyarrow as pa

    return pa.Table.from_batches(batches, schema)


def on_disk(*files: Path, schema: "pa.Schema | None" = None) -> Any:
    """Files of Parquet as one table of which only what is asked for is read."""
    from pyarrow.dataset import dataset

    return dataset([str(path) for path in files], schema, format="parquet")


def kept(store: str) -> list[dict[str, Any]]:
    """The rows of all runs in a store, with when they were kept.

    Raises:
        InputError: It is no store, or a file of it is damaged.
    """
    needs_pyarrow("history")
    import pyarrow as pa
    import pyarrow.parquet as pq

    from traceanalyze.report.contents.fleet import RUN_SUMMARY

    found, known = [], (*Label._fields, *RUN_SUMMARY.keys)
    for path in sorted(Path(store, LAST).glob("*.parquet")):
        try:
            (row,) = pq.read_table(path, partitioning=None).to_pylist()
            written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError("{path}: damaged: {why}; record the run again", path, type(error).__name__) from error
        # What an older version did not keep is not known.
        row = {**dict.fromkeys(known), "run_id": path.stem, "run": path.stem, **row}
        found.append({**row, "name": row["run"], "kept_at": written})
    if not found:
        raise InputError("{store}: no runs; `traceanalyze PATH… --record {store}` keeps some", store)
    return found


def needs_pyarrow(what: str) -> None:
    """Refuse what cannot be done without it."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise UsageError("{what}: needs pyarrow, which is not installed (pip install pyarrow)", what)


def events(
    file: IO[bytes], traces: "Iterable[tuple[Label, Trace]]", types: Mapping[str, str], written: Mapping[str, str]
) -> int:
    """Write the events of recordings into one Parquet file, a group of rows a recording; how many there were.

    `types` has the arguments that events may have, and their types; one that an event does not have is null. `written`
    is how they are called in traces.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {"int64": pa.int64(), "float64": pa.float64(), "int32": text}
    own = [
        pa.field(each.key, pa.int64() if each.kind in TIMES else text, metadata=_about(each))
        for each in EVENTS.columns[len(Label._fields) :]
    ]
    about = {
        key: {"meaning": f"args: {written.get(key, key)}", "kind": "bytes" if "bytes" in key else ""} for key in types
    }
    arguments = [pa.field(key, kinds[kind], metadata=about[key]) for key, kind in sorted(types.items())]
    fields = [*_fronts(pa), *own, *arguments]
    made = {"schema": "traceanalyze.events/1", "tool": f"traceanalyze {__version__}"}
    count = 0
    with pq.ParquetWriter(file, pa.schema(fields, metadata=made), compression="zstd") as writer:
        for label, trace in traces:
            frame = trace.to_pandas()
            frame["ts_ns"] += trace.base_ns
            columns = [
                pa.array([getattr(label, field.name)] * len(frame), field.type)
                if field.name in Label._fields
                else pa.nulls(len(frame), field.type)
                if field.name not in frame
                else pa.array(frame[field.name], from_pandas=True).cast(field.type)
                for field in fields
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema))
            count += len(frame)
    return count
