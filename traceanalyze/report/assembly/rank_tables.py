"""All that a report says about one rank beside its verdict, and about its file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traceanalyze.analyses.communication.vendor import VENDOR_TABLES
from traceanalyze.model.table import Column, Kind, Layout, Table
from traceanalyze.model.vocabulary import Mode
from traceanalyze.report.assembly.devices import devices_table
from traceanalyze.report.assembly.excerpts import finding_excerpts
from traceanalyze.report.assembly.findings import findings_tables
from traceanalyze.report.assembly.idle import causes_table
from traceanalyze.report.assembly.quality import findings, hints
from traceanalyze.report.assembly.split import overlap_notes, split_table, totals_table
from traceanalyze.report.assembly.steps import statistics_table, step_causes_table, steps_table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.analyses.steps.window import Window
    from traceanalyze.model.table import Table
    from traceanalyze.model.trace import Trace
    from traceanalyze.report.assembly.excerpts import Places
    from traceanalyze.report.assembly.split import Part
    from traceanalyze.report.model import RankReport
    from traceanalyze.rules.finding import Outcome


_FILES = (
    Column("rank", Kind.COUNT),
    Column("path", Kind.NAME),
    Column("file_bytes", Kind.BYTES),
    Column("text_bytes", Kind.BYTES),
    Column("events", Kind.COUNT),
    Column("host", Kind.TEXT),
    Column("rank_source", Kind.TEXT),
    Column("world_size", Kind.COUNT),
    Column("backend", Kind.TEXT),
    Column("devices", Kind.TEXT),
    Column("profiler_options", Kind.TEXT),
    Column("versions", Kind.TEXT),
    Column("resolution_ns", Kind.DURATION, scale="clock"),
    Column("base_ns", Kind.COUNT, machine=True),
)


def with_tables(
    report: RankReport,
    analysis: RankAnalysis,
    parts: tuple[Part, ...],
    window: Window,
    outcome: Outcome | None,
    places: Places,
) -> RankReport:
    """The report with its tables, checks and pictures, and what the rules say, if they were run."""
    tables = tuple(_tables(analysis, parts, window)) if parts else ()
    ascend = analysis.trace.origin.format == "ascend"
    if outcome is not None:
        tables = (*tables[:1], *findings_tables(outcome, window, "ascend" if ascend else "cuda"), *tables[1:])
    return replace(
        report,
        tables=tables,
        checks=findings(analysis.checks),
        hints=hints(tables, analysis.checks, ascend=ascend),
        findings=() if outcome is None else outcome.findings,
        excerpts=finding_excerpts(outcome, places, analysis),
    )


_LAST = ("device_spans", "classification")


def _tables(analysis: RankAnalysis, parts: tuple[Part, ...], window: Window) -> list[Table]:
    """All tables of a rank in reading order."""
    marked = analysis.mode == Mode.STEPS or window.count > 1
    whole = "step" if marked else "trace"
    if not analysis.partitions:
        return [
            split_table(parts, window, whole=whole),
            steps_table(analysis.steps, parts, window),
            statistics_table(analysis.steps, window),
            *analysis.tables.values(),
        ]
    headline = analysis.partitions[0]
    return [
        split_table(parts, window, whole=whole, notes=overlap_notes(headline, window)),
        totals_table(headline, window),
        causes_table(analysis.idle, window),
        *[table for key, table in analysis.tables.items() if key not in {*VENDOR_TABLES, *_LAST}],
        devices_table(analysis.partitions, analysis.trace.devices, window),
        steps_table(analysis.steps, parts, window),
        statistics_table(analysis.steps, window),
        step_causes_table(analysis.steps, analysis.idle),
        analysis.tables["device_spans"],
        *(analysis.tables[key] for key in VENDOR_TABLES if key in analysis.tables),
        analysis.tables["classification"],
    ]


def files_table(traces: tuple[Trace, ...]) -> Table:
    """Where each recording came from and what it says about itself."""
    rows = tuple(
        (
            trace.origin.rank,
            trace.origin.path,
            trace.origin.size_bytes,
            trace.origin.text_bytes,
            sum(trace.read.phases.values()),
            trace.origin.host,
            trace.origin.rank_source,
            trace.origin.world_size,
            trace.origin.backend,
            _device_names(trace),
            ", ".join(name for name, on in trace.options.items() if on),
            ", ".join(f"{name} {version}" for name, version in trace.versions.items()),
            trace.resolution_ns,
            trace.base_ns,
        )
        for trace in traces
    )
    return table_of_rows("files", _FILES, rows, layout=Layout.RECORD, detail=True)


def _device_names(trace: Trace) -> str:
    """Distinct device names with how many there are of each."""
    names = [device.name for device in trace.devices]
    counted = ((names.count(name), name) for name in dict.fromkeys(names))
    return ", ".join(f"{count} × {name}" if count > 1 else name for count, name in counted)
