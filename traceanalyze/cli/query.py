"""`traceanalyze query`: the tables and the events of recordings, asked in SQL of DuckDB, which sees nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from traceanalyze.cli import options
from traceanalyze.errors import Phrase, UsageError
from traceanalyze.model.table import UNITS, Column, Kind, Table, declare

if TYPE_CHECKING:
    from traceanalyze.locales import Texts
    from traceanalyze.report.model import Report

Format = StrEnum("Format", ("table", "csv", "json", "parquet"))
_COLUMNS = declare(
    "columns",
    "Tables and their columns",
    Column("table", Kind.TEXT, "name of the table"),
    Column("column", Kind.TEXT, "name of the column"),
    Column("type", Kind.TEXT, "of its values"),
    Column("units", Kind.TEXT, "of its numbers; nothing where the type says all"),
    Column("meaning", Kind.TEXT, "what it holds"),
)
_CLOSED = (
    "memory_limit = '4GB'",
    "max_temp_directory_size = '16GB'",
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "enable_external_access = false",
    "lock_configuration = true",
)
"""No more than this, no file, no network, no extension, no variable of this program; and no way back."""
_MOST_BYTES = 4_000_000_000
"""Of an answer: DuckDB's limit does not count what it has handed over."""
_BATCH = 50_000
_SHOWN = 200
"""Rows of a page; files have all of them."""
_WIDEST = 80
_SCHEMA = """FROM "columns" WHERE "table" = 'events' OR "column" NOT IN
('run_id', 'run', 'host', 'recorded_at', 'tool_version')"""
"""What all tables have in front is told once."""


def query(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, a folder, a glob, or a store of runs.")],
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT; FROM may stand first.")] = None,
    *,
    schema: Annotated[
        bool, typer.Option("--schema", help="List tables, columns, units and meanings; in SQL the table `columns`.")
    ] = False,
    format_: Annotated[
        Format | None, typer.Option("--format", help="What to write; default: by the name of --output, else table.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE (.csv, .json, .parquet).")
    ] = None,
    overwrite: options.Overwrite = False,
    lang: options.Lang = "en",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks.")] = False,
) -> None:
    """Ask the tables and the events of recordings in SQL.

    Every table of the report is one, with run and rank in front; so are `events` and `columns`, which says what they
    hold. Nothing but these can be read, and nothing written. Needs DuckDB.
    """
    # Imported here, so that --help and usage errors answer at once.
    from traceanalyze.cli.output import show, tell_written
    from traceanalyze.locales import texts
    from traceanalyze.report.output import refuse_input, refuse_other, write_whole

    if not all(map(find_spec, ("duckdb", "pyarrow"))):
        raise UsageError("query: needs DuckDB: pip install 'traceanalyze[duckdb]'")
    if schema == (sql is not None):
        raise UsageError("query: give a question in SQL, or --schema")
    words, target = texts(lang), Path(output) if output else None
    chosen = _format(format_, target)
    if target is not None:
        refuse_input(target, (path,))
        if not overwrite:
            refuse_other(target)
    with TemporaryDirectory(prefix="traceanalyze-") as scratch:
        most = _SHOWN if chosen == "table" and not schema else None
        answer, remarks = _asked(path, _SCHEMA if sql is None else sql, words, Path(scratch), most, quiet=quiet)
    for remark in () if quiet else remarks:
        tell_written(remark, lang)
    content = _written(answer, chosen, words)
    if target is None:
        show(content if isinstance(content, str) else content.decode())
    else:
        write_whole(target, content if isinstance(content, bytes) else content.encode("utf-8", errors="replace"))
        tell_written(Phrase("Wrote {path}", target), lang)


def _format(format_: str | None, target: Path | None) -> str:
    meant = "" if target is None else target.suffix.lower().removeprefix(".")
    chosen = format_ or (meant if meant in Format.__members__ else "table" if target is None else "")
    if not chosen:
        raise UsageError("{path}: end the name in .csv, .json or .parquet, or give --format", target)
    if chosen == "parquet" and target is None:
        raise UsageError("--format parquet: give a file name, -o answer.parquet")
    return chosen


class Answer(NamedTuple):
    """The rows that are wanted, as a table of Arrow, and how many there are."""

    rows: Any
    of: int


def _asked(
    path: str, sql: str, words: Texts, scratch: Path, most: int | None, *, quiet: bool
) -> tuple[Answer, list[Phrase]]:
    """The answer, and remarks: what the question names and was not measured, and what was left out.

    Raises:
        InputError: There is no recording.
        UsageError: It is not one SELECT, or cannot be answered.
    """
    import duckdb

    base = duckdb.connect(":memory:")
    try:
        statements = base.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise UsageError("query: only one SELECT can be asked (PIVOT: with its values, ON … IN (…))")
        named = {each.lower() for each in re.findall(r"\w+", sql)}
        tables, remarks = _tables(path, words, scratch, named, quiet=quiet)
        for name, each in tables.items():
            base.register(name, each)
        place = str(scratch).replace("'", "''")
        base.execute(f"SET temp_directory = '{place}'")
        for setting in _CLOSED:
            base.execute(f"SET {setting}")
        answer = _answered(base, sql, most)
    except duckdb.OutOfMemoryException:
        raise _TOO_MUCH from None
    except duckdb.Error as error:
        unknown = re.match(r"Catalog Error: Table with name (\w+) does not exist!", str(error))
        if unknown and (why := _lacks(unknown[1].lower(), there={*tables})):
            raise UsageError("query: {name}: not measured: {why}", unknown[1], why) from None
        raise UsageError("query: {why}", " ".join(str(error).partition("\n\nLINE ")[0].split())) from None
    finally:
        base.close()
    return answer, remarks


_TOO_MUCH = UsageError("query: this takes more than 4 GB of memory: ask for fewer rows or columns")


def _lacks(name: str, there: set[str]) -> Phrase | None:
    """What a recording that has these tables would need to have another one that the tool knows."""
    from importlib import import_module
    from pkgutil import walk_packages

    if name == "ranks" or name.startswith("rank_"):
        return _RANKS
    for folder, need in _NEEDS:
        package = import_module(f"traceanalyze.{folder}")
        for each in walk_packages(package.__path__, f"{package.__name__}."):
            known = vars(import_module(each.name)).values()
            if any(isinstance(table, Table) and table.key == name for table in known):
                return _NONE if "split" in there and need is _TRACE else need
    return None


_RANKS = Phrase("that needs the recordings of several ranks")
_TRACE = Phrase("that needs a trace of the profiler")
_NONE = Phrase("the recording tells nothing of it")
_NEEDS = (
    ("ranks", _RANKS),
    ("analyses.memory", Phrase("that needs a snapshot of the device's memory")),
    ("analyses", _TRACE),
)
"""What the tables of a package are computed from."""


def _answered(base: Any, sql: str, most: int | None) -> Answer:
    """Apart from the main thread, which else would hear of no Ctrl-C until the answer is there."""
    from concurrent.futures import ThreadPoolExecutor

    from traceanalyze.report import folder

    def collect() -> Answer:
        reader, kept, held, count = base.sql(sql).to_arrow_reader(_BATCH), list[Any](), 0, 0
        for batch in reader:
            if most is None or count < most:
                kept.append(batch)
                held += batch.nbytes
            if held > _MOST_BYTES:
                raise _TOO_MUCH
            count += len(batch)
        return Answer(folder.gathered(kept, reader.schema)[:most], count)

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(collect)
        try:
            return answer.result()
        except KeyboardInterrupt:
            base.interrupt()
            raise


def _tables(
    path: str, words: Texts, scratch: Path, named: set[str], *, quiet: bool
) -> tuple[dict[str, Any], list[Phrase]]:
    """All tables by name, and remarks; events are read only where they are named, or all columns are."""
    # Imported here: a store has them all.
    from traceanalyze.cli.analysis import traces_or_memory
    from traceanalyze.cli.output import Progress
    from traceanalyze.pipeline.results import Work
    from traceanalyze.report import folder

    if Path(path, folder.LAST).is_dir():
        tables, remarks = folder.kept_tables(path), list[Phrase]()
    else:
        with Progress(words, wanted=not quiet) as progress:
            reports = traces_or_memory([path], None, None, progress, Work(None, cache=""))
            remarks = _notes(reports, words)
            tables = folder.long_tables(reports, words)
            if {"events", "columns"} & named and any(each.analyses for each in reports):
                from traceanalyze.pipeline.gather import write_events

                write_events([path], str(scratch / "events.parquet"), progress=progress)
                tables["events"] = folder.on_disk(scratch / "events.parquet")
    tables["columns"] = _columns(tables, words)
    for name in sorted(named & set(tables)):
        reason = _told(tables[name].schema.metadata, "not_measured")
        if reason:
            why = words.messages["group_mark"].join(words.reasons.get(each, each) for each in reason.split(", "))
            remarks.append(Phrase("{name}: not measured: {why}", name, why))
    return tables, remarks


def _notes(reports: Sequence[Report], words: Texts) -> list[Phrase]:
    """Remarks on the input; tables are about all ranks."""
    return [
        Phrase("note: {note}", note)
        for each in reports
        for message, note in zip(each.note_messages, each.in_language(words.language).notes, strict=True)
        if message.key != "details_of_rank"
    ]


def _told(metadata: Mapping[bytes, bytes] | None, key: str) -> str:
    return (metadata or {}).get(key.encode(), b"").decode("utf-8", "replace")


def _columns(tables: Mapping[str, Any], words: Texts) -> Any:
    """What every column of every table is: the table `columns`."""
    from traceanalyze.report import folder

    return folder.arrow(
        _COLUMNS.fill_records(
            {
                "table": name,
                "column": field.name,
                "type": str(getattr(field.type, "value_type", field.type)),
                "units": UNITS.get(cast("Kind", _told(field.metadata, "kind")), ""),
                "meaning": _meaning(name, field, words.column_meanings),
            }
            for name, each in sorted(tables.items())
            for field in each.schema
        )
    )


def _meaning(table: str, field: Any, known: Mapping[str, str]) -> str:
    from traceanalyze.report.folder import Label

    own, table = _told(field.metadata, "meaning"), "events" if field.name in Label._fields else table
    # An argument of events means what the profiler means by it, whatever columns of other tables are called.
    return own if own.startswith("args: ") else known.get(f"{table}.{field.name}") or known.get(field.name) or own


def _written(answer: Answer, format_: str, words: Texts) -> str | bytes:
    # Imported here: a wrong question needs none of it.
    from json import dumps

    from traceanalyze.report import folder

    found, names = answer.rows, answer.rows.column_names
    if format_ != "table" and len({*names}) < len(names):
        raise UsageError("query: two columns have one name; name them with AS: {names}", ", ".join(names))
    if format_ == "parquet":
        return folder.packed(found)
    rows = [*zip(*([_plain(value) for value in _values(each)] for each in found.columns), strict=True)]
    if format_ == "json":
        lines = ",\n".join(dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows)
        return f"[\n{lines}\n]\n"
    if format_ == "csv":
        values = [[_cell(each) if isinstance(each, dict | list) else each for each in row] for row in rows]
        columns = [Column(name, Kind.TEXT, values=[row[at] for row in values]) for at, name in enumerate(names)]
        return folder.csv(Table("query", tuple(columns))).decode("utf-8-sig")
    return "\n".join(_page(names, rows, words, answer.of)) + "\n"


def _values(column: Any) -> list[Any]:
    try:
        return [*column.to_pylist(maps_as_pydicts="lossy")]
    except UnicodeDecodeError:
        raise UsageError("query: a text is damaged; record the run again") from None
    except (OverflowError, ValueError):
        raise UsageError("query: a time is outside of the years 1 to 9999; CAST it to VARCHAR") from None


def _plain(value: Any) -> Any:
    """A value as JSON has it: times as texts, infinity as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        # Sums of whole numbers.
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _page(names: Sequence[str], rows: Sequence[Sequence[Any]], words: Texts, count: int) -> Iterator[str]:
    """Aligned columns, their first rows, and how many there are."""
    from traceanalyze.report.console.style import display_width, file_style, padded
    from traceanalyze.report.format import printable

    cells = [[file_style().shorten(printable(_cell(each)), _WIDEST) for each in row] for row in (names, *rows)]
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    numbers = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(names))]
    for at, line in enumerate(cells):
        told = (
            " " * (width - display_width(cell)) + cell if right else padded(cell, width)
            for cell, width, right in zip(line, widths, numbers, strict=True)
        )
        yield "  ".join(told).rstrip()
        if at == 0:
            yield "  ".join("─" * width for width in widths)
    if count > len(rows):
        yield Phrase("The first {kept} of {count:,} rows; -o FILE has all of them.", len(rows), count).said(
            words.phrases
        )


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}={each}" for key, each in value.items())
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)
