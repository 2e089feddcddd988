"""The files of a run directory, and what became of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.report.assembly.postmortem.parts import JobParts

_SEVERITIES = ("critical", "warn", "info")
_FILES = (
    Column("path", Kind.NAME),
    Column("file_kind", Kind.TERM),
    Column("fate", Kind.TERM),
    Column("why", Kind.NAME),
    Column("rank", Kind.COUNT),
    Column("rank_source", Kind.TEXT, minor=True),
    Column("recording", Kind.COUNT, minor=True),
    Column("steps", Kind.TEXT, minor=True),
)
_MEMORY = (
    Column("path", Kind.NAME),
    Column("file_kind", Kind.TERM),
    Column("rank", Kind.COUNT),
    Column("rank_source", Kind.TEXT),
    Column("peak_bytes", Kind.MEMORY),
    Column("findings", Kind.COUNT),
    Column("severity", Kind.TERM),
)


def files_table(job: JobParts) -> Table:
    """One row a file."""
    rows = tuple(
        (
            one.path,
            f"file_{one.kind}",
            f"fate_{one.fate}",
            one.why or None,
            one.rank,
            one.rank_source or None,
            one.recording,
            one.steps or None,
        )
        for one in job.files
    )
    return table_of_rows("run_files", _FILES, rows, detail=True)


def memory_table(job: JobParts) -> Table:
    """One row a snapshot or timeline; its findings are among the causes."""
    rows = tuple(
        (
            one.path,
            f"file_{one.kind}",
            one.rank,
            one.rank_source or None,
            one.peak,
            len(one.findings) if one.kind == "snapshot" else None,
            min((each.severity for each in one.findings), key=_SEVERITIES.index, default=None),
        )
        for one in job.memory
    )
    return table_of_rows("memory_files", _MEMORY, rows)
