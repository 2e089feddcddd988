"""Garbage collection, inference and call paths of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.call_paths import call_paths
from traceanalyze.analyses.gc_pauses import gc_pauses
from traceanalyze.analyses.inference_window import inference
from traceanalyze.analyses.results_host_more import HostMore

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


def host_more(context: Context) -> HostMore:
    """All of these, each measured or not."""
    return HostMore(gc=gc_pauses(context), inference=inference(context), paths=call_paths(context))
