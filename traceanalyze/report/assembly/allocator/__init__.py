"""From the analysis of an allocator snapshot to its report: the verdict first, one part a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import Check
from traceanalyze.errors import InputError
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Word
from traceanalyze.model.vocabulary import Level, Mode
from traceanalyze.report.assembly.allocator.findings import findings_table, memory_findings
from traceanalyze.report.assembly.allocator.groups import group_tables
from traceanalyze.report.assembly.allocator.segments import segments_table
from traceanalyze.report.assembly.allocator.tables import (
    check_table,
    composition_tables,
    curve_table,
    free_table,
    moments_table,
    pinners_table,
    runs_table,
    statistics_table,
    step_label,
    steps_table,
)
from traceanalyze.report.assembly.quality import findings
from traceanalyze.report.model import RankReport, Report, table_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.analyses.memory.composition import Difference
    from traceanalyze.analyses.memory.results import AllocatorAnalysis, SelfCheck
    from traceanalyze.model.snapshot import Snapshot
    from traceanalyze.report.assembly.allocator.findings import MemoryFinding

_NAMED_FINDINGS = 3
"""Findings that the verdict names."""


def build_memory_report(snapshot: Snapshot, analyses: Sequence[AllocatorAnalysis], *, version: str) -> Report:
    """The report of one snapshot; its devices stand where the ranks of a run do."""
    devices = tuple(_device_report(snapshot, analysis) for analysis in analyses)
    largest = max(range(len(analyses)), key=lambda index: analyses[index].moments[0].reserved)
    return Report(
        name=snapshot.path,
        version=version,
        verdict=devices[largest].verdict,
        notes=tuple(Message("run_note", (("text", Kind.TEXT, note),)) for note in snapshot.notes),
        summary=(),
        ranks=devices,
        focus=tuple(range(len(devices))),
    )


_DIFFERENCE = (
    Column("source_line", Kind.NAME),
    Column("memory_category", Kind.TERM),
    Column("base_block_bytes", Kind.MEMORY),
    Column("candidate_block_bytes", Kind.MEMORY),
    Column("change_bytes", Kind.MEMORY_CHANGE, par=0.0),
    Column("base_blocks", Kind.COUNT),
    Column("candidate_blocks", Kind.COUNT),
)


def build_difference_report(base: Snapshot, candidate: Snapshot, found: Difference | None, *, version: str) -> Report:
    """The report of two snapshots against each other."""
    if found is None:
        raise InputError(f"{base.path} and {candidate.path}: one of the snapshots is empty, nothing to compare")
    rows = tuple(
        (
            row.line,
            f"category_{row.category}",
            row.base,
            row.candidate,
            row.change,
            row.base_blocks,
            row.candidate_blocks,
        )
        for row in found.rows
        if row.change or row.base_blocks != row.candidate_blocks
    )
    peaks = found.base.allocated, found.candidate.allocated
    total = (Word("moment_peak"), None, *peaks, peaks[1] - peaks[0], None, None)
    table = table_of_rows("memory_difference", _DIFFERENCE, rows, total=total, ranked=True)
    headline = Message(
        "about_difference",
        (
            ("path", Kind.NAME, candidate.path),
            ("rank", Kind.COUNT, None),
            ("device", Kind.COUNT, None),
            ("device_name", Kind.TEXT, ""),
            ("steps", Kind.COUNT, 0),
            ("left_out", Kind.COUNT, 0),
        ),
    )
    verdict = tuple(_difference_verdict(found))
    side = RankReport(None, candidate.path, Mode.MEMORY, 1000, headline, verdict, (table,), (), ())
    notes = (Message("compared_with", (("path", Kind.NAME, base.path),)),)
    return Report(candidate.path, version, verdict, notes, (), (side,), (0,))


def _difference_verdict(found: Difference) -> Iterator[Message]:
    change = found.candidate.allocated - found.base.allocated
    base = ("base", Kind.MEMORY, found.base.allocated)
    if change == 0:
        yield Message("memory_diff_equal", (base,))
    else:
        direction = ("direction", Kind.TERM, "higher" if change > 0 else "lower")
        yield Message("memory_diff_verdict", (("change", Kind.MEMORY, abs(change)), direction, base))
    if found.rows and found.rows[0].change:
        values = (("change", Kind.MEMORY_CHANGE, found.rows[0].change), ("line", Kind.NAME, found.rows[0].line))
        yield Message("memory_diff_line", values)


def _device_report(snapshot: Snapshot, analysis: AllocatorAnalysis) -> RankReport:
    found, checks = memory_findings(analysis), tuple(_checks(snapshot, analysis))
    tables = (
        moments_table(analysis),
        curve_table(analysis),
        *group_tables(analysis),
        *composition_tables(analysis),
        findings_table(found),
        steps_table(analysis),
        runs_table(analysis),
        pinners_table(analysis),
        free_table(analysis),
        *(segments_table(device) for device in snapshot.devices if device.id == analysis.device),
        *([statistics_table(snapshot.statistics)] if snapshot.statistics else []),
        check_table(analysis),
    )
    return RankReport(
        rank=None,
        path=snapshot.path,
        mode=Mode.MEMORY,
        resolution_ns=1000,
        headline=Message(
            _about(analysis),
            (
                ("path", Kind.NAME, snapshot.path),
                ("rank", Kind.COUNT, None),
                ("device", Kind.COUNT, analysis.device),
                ("device_name", Kind.TEXT, ""),
                ("steps", Kind.COUNT, analysis.events),
                ("left_out", Kind.COUNT, 0),
            ),
        ),
        verdict=tuple(_verdict(analysis, found)),
        tables=tables,
        checks=findings(checks),
        hints=tuple(check.message for check in checks),
    )


def _about(analysis: AllocatorAnalysis) -> str:
    """Sentence on the file: with or without a history, and whether it agrees with itself."""
    extent = "about_snapshot" if analysis.events > 1 else "about_snapshot_state"
    return extent if analysis.check.reconciled else f"{extent}_off"


def _verdict(analysis: AllocatorAnalysis, found: Sequence[MemoryFinding]) -> Iterator[Message]:
    """The peak and what holds it, then the worst findings."""
    peak = analysis.moments[0]
    values = (
        ("requested", Kind.MEMORY, peak.requested),
        ("reserved", Kind.MEMORY, max(one.reserved for one in analysis.moments)),
        ("step", Kind.TEXT, step_label(peak.step) or ""),
    )
    if analysis.events <= 1:
        yield Message("memory_state", values)
    elif peak.event < 0:
        yield Message("memory_peak_before", values)
    else:
        yield Message("memory_peak_step" if peak.step is not None else "memory_peak", values)
    if peak.holders:
        top = peak.holders[0]
        yield Message(
            "memory_largest",
            (
                ("share", Kind.SHARE, top.allocated / max(peak.allocated, 1)),
                ("category", Kind.TERM, f"category_{top.category}"),
                ("line", Kind.NAME, top.line),
            ),
        )
    loud = [one for one in found if one.severity != "info"][:_NAMED_FINDINGS]
    for one in loud:
        yield one.advice
    if not analysis.check.reconciled:
        yield Message("memory_contradicts")


def _checks(snapshot: Snapshot, analysis: AllocatorAnalysis) -> Iterator[Check]:
    """Self-check, always said."""
    if analysis.check.reconciled:
        yield Check("M01", Level.INFO, "memory_reconciled", (("events", analysis.events),))
    else:
        yield Check("M01", Level.WARN, "memory_not_reconciled", (("what", _disagreement(analysis.check)),))
    for name, number in snapshot_unknown(snapshot, analysis.device).items():
        yield Check("M02", Level.WARN, "memory_unknown_action", (("name", name), ("count", number)))
    told = snapshot.statistics
    retries = sum(run.kind in {"retry", "failed_retry"} for run in analysis.runs)
    if told is not None and told.retries is not None and told.retries > retries:
        yield Check("M08", Level.WARN, "memory_retries_forgotten", (("all", told.retries), ("seen", retries)))
    if analysis.capacity is None:
        yield Check("M03", Level.INFO, "memory_capacity_unknown")
    if analysis.truncation.kind:
        yield Check("M04", Level.INFO, f"memory_history_{analysis.truncation.kind}", (("events", analysis.events),))
    peak = analysis.moments[0]
    if peak.allocated_most > peak.allocated:
        yield Check("M05", Level.INFO, "memory_interval", (("slack_bytes", peak.allocated_most - peak.allocated),))
    if isinstance(analysis.leaks, NotMeasured) and analysis.events > 1:
        yield Check("M06", Level.INFO, "memory_no_leak_check")
    if "no_memory_stacks" in analysis.settings:
        yield Check("M07", Level.INFO, "no_memory_stacks")


def _disagreement(check: SelfCheck) -> str:
    """What does not agree, by the names of the columns of the self-check."""
    parts = ("blocks_tile", "sums_agree", "segments_follow", "layout_exact", "baseline")
    wrong = [part for part in parts if not getattr(check, part)]
    return ", ".join(wrong) or f"{check.disorder + check.mismatched} events"


def snapshot_unknown(snapshot: Snapshot, device: int) -> dict[str, int]:
    """Actions of a device's history that this version does not know, and how many."""
    return next((dict(one.history.unknown) for one in snapshot.devices if one.id == device), {})
