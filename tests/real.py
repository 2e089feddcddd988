"""The public traces that lie beside the repository on the developers' machines."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import traceanalyze
from tests.examples import TIMES
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options

if TYPE_CHECKING:
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.model.trace import Trace

SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces"
_ALL = sorted(path for top in ("kineto", "pairs") for path in (SHARED / top).rglob("*") if path.is_file())
FILES = [
    str(path.relative_to(SHARED))
    for _, alike in groupby(_ALL, attrgetter("parent"))
    for path in (list(alike) if TIMES >= 1 else list(alike)[:2])
]
"""Of recordings of one program, which lie in one folder, a plain run reads two."""


class RealTrace:
    """A file, read and analysed when first asked; all tests about it come one after the other."""

    def __init__(self, name: str) -> None:
        self.path = SHARED / name

    @cached_property
    def trace(self) -> Trace:
        """Raises InputError where the file is no trace."""
        (trace,) = traceanalyze.load(self.path).traces
        return trace

    @cached_property
    def context(self) -> Context:
        return Context(self.trace, Options())

    @cached_property
    def analysis(self) -> RankAnalysis:
        return analyze_context(self.context)
