"""Tables about garbage collection, inference and call paths, in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import NotMeasured
from traceanalyze.report.assembly.call_paths import call_paths_table
from traceanalyze.report.assembly.gc_pauses import gc_pauses_table
from traceanalyze.report.assembly.inference import inference_tables

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.model.table import Table


def host_more_tables(analysis: RankAnalysis) -> list[Table]:
    """These tables of a rank."""
    found = analysis.host_more
    if isinstance(found, NotMeasured):
        return []
    return [
        *inference_tables(found.inference),
        gc_pauses_table(found.gc, analysis.steps),
        call_paths_table(found.paths, device=analysis.device is not None),
    ]
