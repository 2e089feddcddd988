"""Where did the step's time go? Fast, exact analysis of PyTorch profiler traces.

    >>> import traceanalyze
    >>> report = traceanalyze.analyze(traceanalyze.load("trace.json.gz"))
    >>> report.tables["split"].to_pandas()

Everything is imported when first used, so that `import traceanalyze` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceanalyze.analyses.results import NotMeasured, RankAnalysis
    from traceanalyze.api import analyze, load, load_runs
    from traceanalyze.errors import InputError, TraceAnalyzeError, UsageError
    from traceanalyze.model.run import Run
    from traceanalyze.model.trace import Trace
    from traceanalyze.report.model import Report

__version__ = "0.1.0"

_HOME = {
    "InputError": "errors",
    "NotMeasured": "analyses.results",
    "RankAnalysis": "analyses.results",
    "Report": "report.model",
    "Run": "model.run",
    "Trace": "model.trace",
    "TraceAnalyzeError": "errors",
    "UsageError": "errors",
    "analyze": "api",
    "load": "api",
    "load_runs": "api",
}

__all__ = [
    "InputError",
    "NotMeasured",
    "RankAnalysis",
    "Report",
    "Run",
    "Trace",
    "TraceAnalyzeError",
    "UsageError",
    "__version__",
    "analyze",
    "load",
    "load_runs",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted(__all__)
