"""What the analyses of one rank return together. Times are int64 ns; arrays over steps are aligned with `Steps`."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from traceanalyze.analyses.idle.host_state import HostSplit
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.steps.partition import Partition
from traceanalyze.analyses.steps.window import Steps
from traceanalyze.model.patterns import by_identity
from traceanalyze.model.table import NotMeasured, Table
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Level, Mode


class Check(NamedTuple):
    """A data-quality check that had something to say (definitions §14)."""

    id: str
    """Q01 … Q13"""
    level: Level
    message: str
    """Key of the text, see `locales/en/sentences.py`."""
    values: tuple[tuple[str, int | float | str], ...] = ()


@by_identity
class RankAnalysis(NamedTuple):
    """Everything this version says about one rank."""

    trace: Trace
    mode: Mode
    steps: Steps
    device: int | None
    """Headline device: the one with the largest busy time."""
    partitions: tuple[Partition, ...]
    """One a device, headline first."""
    idle: IdleCauses | NotMeasured
    host: HostSplit | NotMeasured | None
    """None: not asked for, as in a summary of a rank with a device."""
    checks: tuple[Check, ...]
    tables: Mapping[str, Table] = {}
    """By key, in reading order."""
    synced: Mapping[str, int] = {}
    """Idle time that sync points caused, by operator or call (`idle.syncs.synced`), if worth naming."""
    backward: frozenset[str] = frozenset()
    """Names of device work that the backward pass alone launches, where there is a table of kernels."""

    def __repr__(self) -> str:
        """Of which trace."""
        return f"<analysis of {self.trace!r}>"

    def measured(self, key: str) -> bool:
        """Whether a table is there and has been measured."""
        return key in self.tables and self.tables[key].absent is None

    def records(self, key: str) -> Iterator[Any]:
        """Rows of a table, with its columns as attributes; none where there is nothing to show."""
        if key in self.tables:
            yield from self.tables[key].records()
