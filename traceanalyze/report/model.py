"""What every renderer is given: a report of typed tables and keyed messages, free of layout and of language.

Columns say what their values are (`Kind`), so that all renderers format units alike; texts are keys into `locales`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.locales import LANGUAGES, Texts, texts
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import Kind, Message, NotMeasured, Table
from traceanalyze.model.vocabulary import Level, Mode
from traceanalyze.report.finding import Finding, Saving
from traceanalyze.report.format import Formatter
from traceanalyze.report.formats import function_of
from traceanalyze.report.shown import LEADING, Findings, ShownTable, Tables, figure, shared
from traceanalyze.rules import finding as rule_findings

if TYPE_CHECKING:
    import os

    from traceanalyze.analyses.excerpt import Excerpt, Place
    from traceanalyze.analyses.memory.history import MemoryHistory
    from traceanalyze.comparison.results import Comparison
    from traceanalyze.regression.explain import Why
    from traceanalyze.regression.results import GateResult, MetricResult, Overall, SideSummary

Item = TypeVar("Item")


class Said(Protocol):
    """A finding before a language is chosen."""

    @property
    def order(self) -> tuple[int | bool | str, ...]:
        """Findings sorted by this stand in the order that every output has."""

    def in_words(self, texts: Texts) -> Finding:
        """The finding in a language."""


class Doubt(NamedTuple):
    """A data-quality check that had something to say."""

    id: str
    level: Level
    message: Message


class Side(NamedTuple):
    """One side of what was compared."""

    key: str
    """base, baseline or candidate."""
    word: str
    """Key of the message that is its name in pages."""
    path: str
    """Of a gate the names of its runs."""
    name: str
    """Short, and another than that of the other side; of a gate what the user calls it, if they do."""
    about: tuple[Message, ...]
    """Piece by piece: rank, device, step time, steps."""


class FindingExcerpt(NamedTuple):
    """What the trace shows where a finding is worst."""

    rule: str
    """Id of its rule, as in tables of findings."""
    finding: str
    """Term, as in tables of findings."""
    sentences: tuple[Message, ...]
    """Where it is, and what one sees."""
    place: Place


class Timeline(NamedTuple):
    """All of a trace, coarsely."""

    excerpt: Excerpt
    start: int
    """When what was analysed begins, ns; with `end`."""
    end: int


class Late(Sequence[Item]):
    """A tuple that is made when it is first looked into: of most ranks nobody looks at what is told in detail."""

    def __init__(self, make: Callable[[], tuple[Item, ...]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> tuple[Item, ...]:
        return self._make()

    def __getitem__(self, at: Any) -> Any:
        """A member, or some of them."""
        return self._made[at]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._made)

    def __reduce__(self) -> tuple[type, tuple[tuple[Item, ...]]]:
        """Copies, and what another process is sent, have it all."""
        return tuple, (self._made,)


@dataclass(frozen=True, eq=False)
class RankReport:
    """What one rank's recording says."""

    rank: int | None
    path: str
    mode: Mode
    resolution_ns: int
    headline: Message
    """What was analysed: file, device, number of windows."""
    verdict_messages: Sequence[Message]
    tables: Sequence[Table]
    checks: tuple[Doubt, ...]
    hints: Sequence[str]
    """Keys of reasons and checks, of an Ascend profile with `.ascend`; what `Texts.hints` knows of them is advice."""
    open_parts: tuple[Message, ...] = field(default=(), repr=False)
    """What the verdict says of large parts of the step that are done once, or that no finding explains."""
    findings: tuple[rule_findings.Finding, ...] = field(default=(), repr=False)
    """What the rules found, with keys in place of words, for programs; renderers do not use them."""
    said: tuple[Said, ...] = field(default=(), repr=False)
    """The same with the keys of its words."""
    together: Saving | None = None
    """What a step is shorter by without the causes of all findings; None where that was not replayed."""
    excerpts: Sequence[FindingExcerpt] = field(default=(), repr=False)
    """What the trace shows around some of the findings, most saving first."""
    timeline: Timeline | None = field(default=None, repr=False)
    """All of the trace; None of many recordings, and of those that show nothing over time."""
    memory: Sequence[MemoryHistory | NotMeasured] = field(default=(), repr=False)
    """Of a snapshot's device every block; none of anything else."""

    def __repr__(self) -> str:
        """Rank and file."""
        return f"<rank {'?' if self.rank is None else self.rank}: {self.path[:1000]}>"


@dataclass(frozen=True, eq=False)
class Report:
    """Everything the tool says about one run, or about two sides."""

    name: str
    version: str
    verdict_messages: Sequence[Message]
    """The verdict before a language is chosen."""
    note_messages: tuple[Message, ...]
    """Remarks on the input, the same way."""
    summary: tuple[Table, ...]
    """Tables over all ranks, or both sides, in reading order."""
    ranks: tuple[RankReport, ...] = ()
    focus: tuple[int, ...] = ()
    """Indices into `ranks` of those shown in detail."""
    command: str = "analyze"
    """That makes it."""
    sides: tuple[Side, ...] = ()
    """What was compared, if anything was."""
    remarks: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)
    """Lists of sentences by what they are, which is the key of their heading."""
    resolution_ns: int = 1
    """Of the coarser clock, where there are no ranks."""
    answer: str = ""
    """pass, fail or inconclusive, of what judges."""
    former: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Keys at the top of its JSON as they were before, for one release; messages stand for their texts."""
    analyses: tuple[RankAnalysis, ...] = field(default=(), repr=False)
    """The arrays behind `ranks`, for programs; renderers do not use them."""
    about_ranks: tuple[Message, ...] = field(default=(), repr=False)
    """What the verdict says of the ranks side by side."""
    run_findings: tuple[rule_findings.Finding, ...] = field(default=(), repr=False)
    """What the rules about ranks found in the comparison of the ranks, as `RankReport.findings`."""
    said: tuple[Said, ...] = field(default=(), repr=False)
    """Everything that was found, on any rank and about all of them, before a language is chosen."""
    of_devices: tuple[tuple[Said, ...], ...] = field(default=(), repr=False)
    """Of a snapshot, the same by device."""
    language: str = LANGUAGES[0]
    """In which it speaks, by its code; files and pages are asked for theirs."""

    def in_language(self, language: str) -> Self:
        """The same report in another language, by its code."""
        return replace(self, language=texts(language).language)

    @property
    def _formatter(self) -> Formatter:
        return formatter_over(self, texts(self.language))

    @property
    def verdict(self) -> str:
        """What it comes to, in words."""
        return self._formatter.sentences(self.verdict_messages)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the input, in words."""
        return tuple(map(self._formatter.message, self.note_messages))

    def findings_in(self, language: str) -> tuple[Finding, ...]:
        """Everything that was found, of each rank by itself, in a language by its code; what is worth most first."""
        words = texts(language)
        return tuple(one.in_words(words) for one in self.said)

    @cached_property
    def findings(self) -> Findings:
        """What was found, in words, what is worth most first.

        What several ranks have is told once, with the numbers of the rank shown in detail where that has it, and with
        all of them in its scope.
        """
        every = self.findings_in(self.language)
        detail, own = (
            {id(one) for rank in ranks for one in rank.said}
            for ranks in (map(self.ranks.__getitem__, self.focus), self.ranks)
        )
        pairs = sorted(zip(map(id, self.said), every, strict=True), key=lambda pair: pair[0] not in detail)
        found = [*shared(one for of, one in pairs if of in own), *(one for of, one in pairs if of not in own)]
        order = [one.id for one in every]
        return Findings.of(sorted(found, key=lambda one: order.index(one.id)), self._formatter)

    def findings_of(self, rank: int) -> Findings:
        """What was found on a rank, with its own numbers."""
        found, words = self._of_rank(rank), texts(self.language)
        return Findings.of((one.in_words(words) for one in found.said), formatter_of(found, words))

    @cached_property
    def tables(self) -> Tables:
        """Tables by name: those over all ranks, and those of the rank shown in detail."""
        detail = self.ranks[self.focus[0]].tables if self.focus else ()
        return self._shown((*detail, *self.summary), self._formatter)

    def tables_of(self, rank: int) -> Tables:
        """Tables of a rank by name."""
        found = self._of_rank(rank)
        return self._shown(found.tables, formatter_of(found, texts(self.language)))

    def _of_rank(self, rank: int) -> RankReport:
        found = next((one for one in self.ranks if one.rank == rank), None)
        if found is None:
            known = ", ".join(str(one.rank) for one in self.ranks if one.rank is not None)
            raise KeyError(f"no rank {rank}; " + (f"there is {known}" if known else "the recording tells of no rank"))
        return found

    def _shown(self, found: Iterable[Table], formatter: Formatter) -> Tables:
        return Tables({table.key: ShownTable.of(table, formatter) for table in found})

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        language: str | None = None,
        top: int = 5,
        everything: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write it to a file in the format that its ending says, or every table into a folder, `tables/`.

        A file appears when it is complete. Where JSON leaves rows out, it has them with `everything`. What is
        there and is no report is replaced with `overwrite` only.

        Raises:
            UsageError: No format has this ending, or the file cannot be written.
        """
        spoken = self.in_language(language or self.language)
        function_of("output:write_to")(spoken, path, texts(spoken.language), top, whole=everything, overwrite=overwrite)

    def figure(self) -> Any:
        """Its main view as a figure of matplotlib, which has to be installed (`pip install traceanalyze[plot]`)."""
        return figure(self._lead)

    @property
    def _lead(self) -> ShownTable | None:
        known = self.tables
        return next((known[key] for key in LEADING if key in known and len(known[key])), None)

    def __repr__(self) -> str:
        """Name and verdict."""
        return f"<{self.command} of {self.name}: {self.verdict}>"[:2000]

    def _repr_html_(self) -> str:
        said = (self.verdict, *self.notes)
        return str(function_of("html.notebook:report")(self.name, said, self.findings, self._lead, self._formatter))


@dataclass(frozen=True, eq=False, repr=False)
class CompareReport(Report):
    """What makes two profiles differ."""

    comparison: Comparison | None = field(default=None, repr=False)
    """The results behind the tables, for programs; renderers do not use them."""

    @property
    def advice(self) -> tuple[str, ...]:
        """Where to look next, for each part that takes longer."""
        return tuple(map(self._formatter.message, self.remarks["advice"]))

    @property
    def caveats(self) -> tuple[str, ...]:
        """What makes parts less comparable."""
        return tuple(map(self._formatter.message, self.remarks["caveats"]))

    @property
    def quality(self) -> tuple[str, ...]:
        """How far the numbers can be trusted: linked time, clocks, levels."""
        return tuple(map(self._formatter.message, self.remarks["quality"]))

    @property
    def paths(self) -> tuple[str, ...]:
        """Of base and candidate."""
        return tuple(side.path for side in self.sides)


@dataclass(frozen=True, eq=False, repr=False)
class GateReport(Report):
    """Whether the candidate is worse than the baseline by more than its budget."""

    result: GateResult = field(kw_only=True, repr=False)
    """The results behind the tables, for programs; renderers do not use them, but for those of CI systems."""

    @property
    def overall(self) -> Overall:
        """Answer of the gate."""
        return self.result.overall

    @property
    def exit_code(self) -> int:
        """Exit status of the command."""
        return self.result.exit_code

    @property
    def reason(self) -> str:
        """Why that is not 0, one line; else empty."""
        return self.result.reason

    @property
    def baseline(self) -> SideSummary:
        """Runs of the baseline."""
        return self.result.baseline

    @property
    def candidate(self) -> SideSummary:
        """Runs of the candidate."""
        return self.result.candidate

    @property
    def similarity(self) -> float | None:
        """How alike the workloads are."""
        return self.result.similarity

    @property
    def metrics(self) -> tuple[MetricResult, ...]:
        """Evaluated ones, worst first."""
        return self.result.metrics

    @property
    def why(self) -> Why | None:
        """Why the step time changed."""
        return self.result.why


def formatter_of(rank: RankReport, texts: Texts, parts: int = 2) -> Formatter:
    """How the values of a rank's report are written."""
    whole = rank.mode == Mode.WHOLE_TRACE or rank.headline.key == "about_host_trace"
    every = (column.backward for table in rank.tables for column in table.columns)
    backward = next(filter(None, every), frozenset[str]())
    return Formatter(texts, rank.resolution_ns, parts, whole=whole, backward=backward)


def formatter_over(report: Report, texts: Texts, parts: int = 2) -> Formatter:
    """How the values of a report over all its ranks, or both sides, are written."""
    if report.ranks:
        return formatter_of(report.ranks[report.focus[0]], texts, parts)
    return Formatter(texts, report.resolution_ns, parts)


def remark(text: str) -> Message:
    """A reader's note on the input."""
    return Message("run_note", (("text", Kind.TEXT, text),))


def headline(
    key: str, path: str, steps: int, *, device: int | None, name: str = "", rank: int | None = None, left_out: int = 0
) -> Message:
    """File, rank, device and its name, how many windows were analysed, and how many were not."""
    where = ("path", Kind.NAME, path), ("rank", Kind.COUNT, rank)
    what = ("device", Kind.COUNT, device), ("device_name", Kind.TEXT, name)
    return Message(key, (*where, *what, ("steps", Kind.COUNT, steps), ("left_out", Kind.COUNT, left_out)))
