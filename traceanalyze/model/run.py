"""A run: the recordings of all ranks of one profiled execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from traceanalyze.model.trace import Trace


@frozen
class Run:
    """Traces that belong together, ordered by rank; `notes` says what is missing, repeated or was left out."""

    name: str
    traces: tuple[Trace, ...]
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """Rank of each trace, None where the profile does not tell."""
        return tuple(trace.origin.rank for trace in self.traces)
