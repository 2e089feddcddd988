"""Table of the kernels that often follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.kernels.use import SHORT_KERNEL_NS
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, Table
from traceanalyze.report.assembly.kernels import part
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from traceanalyze.analyses.results import Steps
    from traceanalyze.analyses.results_use import KernelSequence

_BASE = regex(r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(\w+)")
_WIDTH = 24
"""Letters of each name that are shown."""
_SEQUENCES = (
    Column("sequence", Kind.NAME),
    Column("kernel_names", Kind.NAME, minor=True),
    Column("kernels_each", Kind.COUNT),
    Column("count", Kind.COUNT),
    Column("fewer_launches", Kind.COUNT),
    Column("device_time_ns", Kind.DURATION),
    Column("share", Kind.SHARE),
    Column("between_ns", Kind.DURATION),
    Column("mean_kernel_ns", Kind.DURATION, scale="event"),
    Column("all_short", Kind.FLAG, minor=True),
)


def _short(name: str) -> str:
    """Name of a kernel without its return type, namespaces, template and call arguments."""
    found = _BASE.match(name)
    return found.group(1)[:_WIDTH] if found else name[:_WIDTH]


def sequences_table(sequences: tuple[KernelSequence, ...], steps: Steps) -> Table:
    """Sequences of kernels, those first that save most launches as one kernel."""
    window = int(steps.time.sum())
    rows = tuple(
        (
            " → ".join(_short(name) for name in item.names),
            " → ".join(item.names),
            len(item.names),
            item.count,
            item.saved,
            item.time,
            part(item.time, window),
            item.gaps,
            item.mean,
            item.mean < SHORT_KERNEL_NS,
        )
        for item in sequences
    )
    return table_of_rows("kernel_sequences", _SEQUENCES, rows, ranked=True, detail=True)
