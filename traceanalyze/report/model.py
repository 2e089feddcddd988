"""What every renderer is given: a report of typed tables and keyed messages, free of layout and of language.

Columns say what their values are (`Kind`), so that all renderers format units alike; texts are keys into `locales`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.model.table import Kind, Message, Table
from traceanalyze.model.vocabulary import Level, Mode
from traceanalyze.rules import finding as rule_findings

if TYPE_CHECKING:
    from traceanalyze.analyses.excerpt.window import Place
    from traceanalyze.comparison.results import Comparison


class Finding(NamedTuple):
    """A data-quality check that had something to say."""

    id: str
    level: Level
    message: Message


@dataclass(frozen=True, eq=False)
class CompareReport:
    """What makes two profiles differ."""

    version: str
    paths: tuple[str, str]
    """Of base and candidate."""
    resolution_ns: int
    """Of the coarser clock."""
    verdict: tuple[Message, ...]
    sides: tuple[tuple[Message, ...], tuple[Message, ...]]
    """What was compared, piece by piece: file, rank, device, step time, steps."""
    listing: tuple[Table, ...]
    """All tables in reading order."""
    caveats: tuple[Message, ...]
    """What makes parts less comparable."""
    quality: tuple[Message, ...]
    """How far the numbers can be trusted: linked time, clocks, levels."""
    notes: tuple[Message, ...] = ()
    """Remarks on the input."""
    advice: tuple[Message, ...] = ()
    """Where to look next, for each part that takes longer."""
    comparison: Comparison | None = field(default=None, repr=False)
    """The results behind the tables, for programs; renderers do not use them."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables by name."""
        return {table.key: table for table in self.listing}


class FindingExcerpt(NamedTuple):
    """What the trace shows where a finding is worst."""

    rule: str
    """Id of its rule, as in tables of findings."""
    finding: str
    """Term, as in tables of findings."""
    sentences: tuple[Message, ...]
    """Where it is, and what one sees."""
    place: Place


@dataclass(frozen=True, eq=False)
class RankReport:
    """What one rank's recording says."""

    rank: int | None
    path: str
    mode: Mode
    resolution_ns: int
    headline: Message
    """What was analysed: file, device, number of windows."""
    verdict: tuple[Message, ...]
    tables: tuple[Table, ...]
    checks: tuple[Finding, ...]
    hints: tuple[str, ...]
    """Keys of reasons and checks, of an Ascend profile with `.ascend`; what `Texts.hints` knows of them is advice."""
    findings: tuple[rule_findings.Finding, ...] = field(default=(), repr=False)
    """What the rules found, behind the table of that name, for programs; renderers do not use them."""
    excerpts: tuple[FindingExcerpt, ...] = field(default=(), repr=False)
    """What the trace shows around some of the findings, most saving first."""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything the tool says about one run."""

    name: str
    version: str
    verdict: tuple[Message, ...]
    notes: tuple[Message, ...]
    summary: tuple[Table, ...]
    """Tables with a row a rank."""
    ranks: tuple[RankReport, ...]
    focus: tuple[int, ...]
    """Indices into `ranks` of those shown in detail."""
    analyses: tuple[RankAnalysis, ...] = field(default=(), repr=False)
    """The arrays behind `ranks`, for programs; renderers do not use them."""
    run_findings: tuple[rule_findings.Finding, ...] = field(default=(), repr=False)
    """What the rules about ranks found in the comparison of the ranks, behind the table of that name; for programs."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tables by name: those over all ranks, and those of the rank shown in detail."""
        detail = self.ranks[self.focus[0]].tables if self.focus else ()
        return {table.key: table for table in (*detail, *self.summary)}


def remark(text: str) -> Message:
    """A reader's note on the input, which is not translated."""
    return Message("run_note", (("text", Kind.TEXT, text),))
