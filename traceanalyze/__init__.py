"""Where did the step's time go? Fast, exact analysis of PyTorch profiler traces.

    >>> import traceanalyze
    >>> report = traceanalyze.analyze(traceanalyze.load("trace.json.gz"))
    >>> report.tables["split"].to_pandas()

Everything is imported when first used, so that `import traceanalyze` costs nothing.
"""

from importlib import import_module

from traceanalyze.version import __version__

# Not of `typing`, with which comes `re`: whoever stops a command that has hardly begun gets no traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.errors import InputError, TraceAnalyzeError, UsageError
    from traceanalyze.model.table import NotMeasured
    from traceanalyze.model.trace import Run, Trace
    from traceanalyze.pipeline import analyze, load, load_runs
    from traceanalyze.pipeline.compare import compare
    from traceanalyze.pipeline.gate import gate
    from traceanalyze.pipeline.memory import memory
    from traceanalyze.pipeline.perfetto import annotate
    from traceanalyze.pipeline.postmortem import postmortem
    from traceanalyze.pipeline.whatif import whatif
    from traceanalyze.recording.callbacks import handler, lightning_callback, trainer_callback
    from traceanalyze.recording.context import record
    from traceanalyze.report.finding import Finding
    from traceanalyze.report.model import CompareReport, Report

_HOME = {
    "CompareReport": "report.model",
    "Finding": "report.finding",
    "InputError": "errors",
    "NotMeasured": "model.table",
    "RankAnalysis": "analyses.results",
    "Report": "report.model",
    "Run": "model.trace",
    "Trace": "model.trace",
    "TraceAnalyzeError": "errors",
    "UsageError": "errors",
    "analyze": "pipeline",
    "annotate": "pipeline.perfetto",
    "compare": "pipeline.compare",
    "gate": "pipeline.gate",
    "handler": "recording.callbacks",
    "lightning_callback": "recording.callbacks",
    "load": "pipeline",
    "load_runs": "pipeline",
    "memory": "pipeline.memory",
    "postmortem": "pipeline.postmortem",
    "record": "recording.context",
    "trainer_callback": "recording.callbacks",
    "whatif": "pipeline.whatif",
}

__all__ = [
    "CompareReport",
    "Finding",
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
    "annotate",
    "compare",
    "gate",
    "handler",
    "lightning_callback",
    "load",
    "load_runs",
    "memory",
    "postmortem",
    "record",
    "trainer_callback",
    "whatif",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """Public names, imported or not."""
    return sorted(__all__)
