"""What the report of a post-mortem is built from, beside the synthesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.model.table import Message
    from traceanalyze.report.assembly.allocator.findings import MemoryFinding
    from traceanalyze.report.model import Report


@frozen
class MemoryPart:
    """A snapshot or a memory timeline."""

    path: str
    kind: str
    """snapshot or memory_timeline"""
    rank: int | None
    rank_source: str
    report: Report
    findings: tuple[MemoryFinding, ...]
    peak: int | None
    """Bytes in blocks; None of a timeline."""


@frozen
class RunFile:
    """A file of the directory, and what became of it."""

    path: str
    kind: str
    """trace, ascend_profile, snapshot, memory_timeline, run_list, statistics, other"""
    fate: str
    """used, salvaged, repeated, not_chosen, left_out, passed_over"""
    rank: int | None = None
    rank_source: str = ""
    recording: int | None = None
    steps: str = ""
    why: str = ""
    """Why it was left out, or what of it could not be read."""


@frozen
class JobParts:
    """Everything about one job."""

    name: str
    platform: str
    """ascend or cuda (which stands for all others)"""
    recordings: tuple[Report, ...]
    """In the order of time, as `traceanalyze analyze` reports them."""
    names: tuple[str, ...]
    """Of the recordings."""
    memory: tuple[MemoryPart, ...]
    files: tuple[RunFile, ...]
    notes: tuple[tuple[str, str], ...] = ()
    """Remarks of the readers, each with the name of its recording where there are several."""
    told: tuple[Message, ...] = ()
    """Why these recordings were taken together, and apart from others."""
    every_rank: bool = False
    """Show each rank in detail, not only the one that decides."""
