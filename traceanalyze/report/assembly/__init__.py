"""Builders: from the analyses of a run's ranks to its `Report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.communication.vendor import VENDOR_TABLES
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.frozen import frozen
from traceanalyze.model.table import Kind, Message, NotMeasured
from traceanalyze.model.vocabulary import Mode
from traceanalyze.ranks.compare import cluster_tables, leading
from traceanalyze.ranks.stragglers import straggler_sentences
from traceanalyze.report.assembly.devices import devices_table
from traceanalyze.report.assembly.excerpts import finding_excerpts
from traceanalyze.report.assembly.findings import findings_tables, run_findings_tables
from traceanalyze.report.assembly.idle import causes_table
from traceanalyze.report.assembly.quality import findings, hints
from traceanalyze.report.assembly.ranks import (
    RankRow,
    files_table,
    leading_sentence,
    rank_label,
    ranks_sentence,
    ranks_table,
)
from traceanalyze.report.assembly.split import device_parts, host_parts, overlap_notes, split_table, totals_table
from traceanalyze.report.assembly.steps import statistics_table, step_causes_table, steps_table
from traceanalyze.report.assembly.verdict import verdict
from traceanalyze.report.model import RankReport, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.analyses.steps.window import Window
    from traceanalyze.model.table import Table
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.report.assembly.excerpts import Places
    from traceanalyze.report.assembly.split import Part
    from traceanalyze.rules.finding import Outcome


@frozen
class Scope:
    """What the user wants in detail."""

    every_rank: bool = False
    """Show each rank in detail, not only the one to look at first."""


def build_report(
    name: str,
    analyses: Sequence[RankAnalysis],
    *,
    version: str,
    notes: Sequence[str] = (),
    scope: Scope | None = None,
    outcomes: Sequence[Outcome | None] = (),
    cluster: Cluster | None = None,
    of_run: Outcome | None = None,
    places: Sequence[Places] = (),
) -> Report:
    """The report of a run from the analyses of its ranks, and from what the rules say about each, if they were run.

    Of several ranks also from their comparison (`cluster`), and what the rules say about that (`of_run`). `places` are
    where each rank's findings are seen in its trace.
    """
    views = [_view(analysis) for analysis in analyses]
    said = outcomes or [None] * len(analyses)
    seen = places or [{}] * len(analyses)
    reports = tuple(
        _rank_report(analysis, *view, outcome, shown)
        for analysis, view, outcome, shown in zip(analyses, views, said, seen, strict=True)
    )
    rows = tuple(
        RankRow(rank_label(analysis.trace.origin, index), analysis.trace.origin.rank, *view)
        for index, (analysis, view) in enumerate(zip(analyses, views, strict=True))
    )
    several = len(reports) > 1
    means, own = [row.mean for row in rows], (None,) * len(rows) if cluster is None else cluster.own_time
    lead = leading(means, own)
    focus = tuple(range(len(reports))) if scope is not None and scope.every_rank else (lead,)
    remarks = [Message("run_note", (("text", Kind.TEXT, note),)) for note in notes]
    if several and len(focus) == 1:
        remarks.append(Message("details_of_rank", (("rank", Kind.TEXT, rows[lead].label),)))
    summary = (ranks_table(rows),) if several else ()
    late: tuple[Message, ...] = ()
    if cluster is not None:
        platform = "ascend" if analyses[0].trace.origin.format == "ascend" else "cuda"
        judged = run_findings_tables(of_run, cluster, platform) if of_run is not None else ()
        summary = (*summary, *judged, *cluster_tables(cluster))
        late = straggler_sentences(cluster)
        # That the others wait for a rank says well enough why it is told about.
        if ("rank", Kind.TEXT, rows[lead].label) not in [value for one in late for value in one.values]:
            late = (*late, *leading_sentence([row.label for row in rows], means, own))
    return Report(
        name=name,
        version=version,
        verdict=(ranks_sentence(rows), *late, *reports[lead].verdict) if several else reports[lead].verdict,
        notes=tuple(remarks),
        summary=(*summary, files_table(tuple(analysis.trace for analysis in analyses))),
        ranks=reports,
        focus=focus,
        analyses=tuple(analyses),
        run_findings=() if of_run is None else of_run.findings,
    )


def _view(analysis: RankAnalysis) -> tuple[tuple[Part, ...], Window]:
    """The headline parts of a rank and the steps that count."""
    if analysis.partitions:
        parts = device_parts(analysis.partitions[0], analysis.idle)
    elif not isinstance(analysis.host, NotMeasured):
        parts = host_parts(analysis.host)
    else:
        parts = ()
    return parts, window_of(analysis.steps)


def _rank_report(
    analysis: RankAnalysis,
    parts: tuple[Part, ...],
    window: Window,
    outcome: Outcome | None,
    places: Places,
) -> RankReport:
    tables = tuple(_tables(analysis, parts, window)) if parts else ()
    if outcome is not None:
        platform = "ascend" if analysis.trace.origin.format == "ascend" else "cuda"
        tables = (*tables[:1], *findings_tables(outcome, window, platform), *tables[1:])
    return RankReport(
        rank=analysis.trace.origin.rank,
        path=analysis.trace.origin.path,
        mode=analysis.mode,
        resolution_ns=analysis.trace.resolution_ns,
        headline=_headline(analysis, window),
        verdict=verdict(analysis, parts, window),
        tables=tables,
        checks=findings(analysis.checks),
        hints=hints(tables, analysis.checks, ascend=analysis.trace.origin.format == "ascend"),
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


def _headline(analysis: RankAnalysis, window: Window) -> Message:
    """File, rank, device and how many windows were analysed."""
    trace = analysis.trace
    names = {device.id: device.name for device in trace.devices}
    device = "" if analysis.device is None else names.get(analysis.device, "")
    left_out = len(analysis.steps) - window.count
    return Message(
        _headline_key(analysis.mode, window.count, left_out),
        (
            ("path", Kind.NAME, trace.origin.path),
            ("rank", Kind.COUNT, trace.origin.rank),
            ("device", Kind.COUNT, analysis.device),
            ("device_name", Kind.TEXT, device),
            ("steps", Kind.COUNT, window.count),
            ("left_out", Kind.COUNT, left_out),
        ),
    )


def _headline_key(mode: Mode, count: int, left_out: int) -> str:
    """Which sentence fits: steps or the whole trace, the device or only the host, one or several, all or some."""
    where = "about" if mode in {Mode.STEPS, Mode.WHOLE_TRACE} else "about_host"
    if mode == Mode.WHOLE_TRACE or (mode != Mode.STEPS and count <= 1):
        return f"{where}_trace"
    amount = "step" if count == 1 else "steps"
    return f"{where}_{amount}_partial" if left_out else f"{where}_{amount}"
