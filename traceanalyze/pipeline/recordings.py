"""One recording read and analysed, in this process or another; what is kept of it is small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.analyze import analyze_context, context_of
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.partition import Partition
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.analyses.steps.window import StepKey
from traceanalyze.errors import InputError, UsageError
from traceanalyze.model import intervals
from traceanalyze.model.columns import narrowed
from traceanalyze.model.native import give_back
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Detail, Mode
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import without_events
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.source import Source
from traceanalyze.rules.config import Plan
from traceanalyze.rules.finding import Finding, FindingKey, Outcome, intervals_of, merged

if TYPE_CHECKING:
    from traceanalyze.analyses.excerpt import Excerpt, Place
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.analyses.memory.in_trace import InTrace
    from traceanalyze.ranks.results import RankSummary
    from traceanalyze.replay.graph import Program

Allocators: TypeAlias = "Mapping[str, Mapping[int | None, AllocatorAnalysis]]"
"""By the name of a trace and its rank."""

IDS = frozenset({"external_id", "correlation", "device", "stream"})
"""Arguments that only tell what belongs to what."""
OF_TABLES = frozenset({"registers", "shared_memory", "occupancy"})
"""Arguments that no rule asks for."""
MAX_PLACES = 6
"""Findings that are shown in the trace, most saving first."""


def places_of(context: Context, outcome: Outcome) -> dict[FindingKey, Place]:
    """The longest instance of each finding that has one in time, with its surroundings."""
    if context.mode == Mode.EMPTY:
        return {}
    from traceanalyze.analyses.excerpt import place

    known = [(one.key, _longest(one)) for one in outcome.findings]
    timed = [(key, instance) for key, instance in known if instance is not None]
    return {key: place(context, *instance) for key, instance in timed[:MAX_PLACES]}


def _timeline(context: Context, *, alone: bool) -> Excerpt | None:
    if context.mode == Mode.EMPTY:
        return None
    from traceanalyze.analyses.excerpt import whole

    return whole(context, alone=alone)


def _longest(one: Finding) -> tuple[int, int] | None:
    """Start and end, ns; the first of equals."""
    if one.intervals is not None and len(one.intervals):
        start, end = one.intervals[int(np.argmax(one.intervals[:, 1] - one.intervals[:, 0]))].tolist()
        return start, end
    spans = [(each.start, each.end) for each in one.evidence if each.start is not None and each.end is not None]
    return max(spans, key=lambda span: span[1] - span[0], default=None)


NO_SNAPSHOTS: Allocators = MappingProxyType({})
MOST_TOGETHER = 16
"""Recordings up to which the ranks run again together: of each some tens of bytes an event are kept."""


class AnalysedRank(NamedTuple):
    """One rank: its analyses, what the rules say, and what the comparison with other ranks needs."""

    analysis: RankAnalysis
    outcome: Outcome = Outcome()
    compared: RankSummary | None = None
    """What the comparison with other ranks needs; None where there is none to come."""
    places: Mapping[FindingKey, Place] = {}
    """Where findings of `outcome` are seen in the trace."""
    timeline: Excerpt | None = None
    """All of the trace, coarsely; None of many recordings."""
    in_trace: InTrace | NotMeasured | None = None
    """Where the moments of the rank's snapshot lie in the trace; None without a snapshot."""
    costs: Mapping[FindingKey, NDArray[np.int64]] = {}
    """What findings of `outcome` take in each step, by their places."""
    program: Program | None = None
    """What a replay of the ranks together needs; None where there is none to come."""
    why: str | None = ""
    """Of many ranks why this one was analysed in full, a term; None where it was not, and no rule has judged it."""

    @property
    def summary(self) -> RankSummary:
        """What the comparison with other ranks needs."""
        if self.compared is None:
            raise LookupError("nothing was kept for a comparison")
        return self.compared

    def with_trace(self, trace: Trace) -> AnalysedRank:
        """The same as the rank that the run made of it."""
        compared = None if self.compared is None else self.compared.of_rank(trace.origin.rank)
        return self._replace(analysis=self.analysis._replace(trace=trace), compared=compared)


def analysed_rank(
    trace: Trace,
    options: Options,
    rules: Plan,
    *,
    detail: Detail = Detail.VERBOSE,
    together: bool = True,
) -> AnalysedRank:
    """A rank's analyses, see `analysed`."""
    return analysed(context_of(trace, options), rules, detail=detail, together=together)


def analysed(
    context: Context,
    rules: Plan,
    allocators: Allocators = NO_SNAPSHOTS,
    *,
    detail: Detail = Detail.VERBOSE,
    alone: bool = False,
    together: bool = True,
    shown: bool = True,
) -> AnalysedRank:
    """A rank's analyses, and what is derived while the tables behind them are still there.

    `allocators` are what snapshots tell, for the rules that need that of the same rank. Unless everything is wanted in
    `detail`, what only full reports, pictures and post-mortems need is left out, and of a rank that is `alone` what
    others are compared by; unless ranks run again `together`, what a replay of them needs; unless it is `shown`, tables
    that no rule reads.
    """
    # Imported here: a verdict needs none of these.
    from traceanalyze.rules.evaluate import evaluate, faint
    from traceanalyze.rules.facts import Facts

    short, whole = detail < Detail.VERBOSE, foreign(rules)
    allocator = allocator_of(context.trace, allocators)
    lean = short and alone and allocator is None and not whole
    if lean:
        # Who holds the context and its trace beside this function keeps what it lets go.
        context = without_ids(context)
    analysis = analyze_context(context, Detail.VERBOSE if whole else detail, shown=shown or whole)
    if lean:
        context = for_rules(context)
        analysis = analysis._replace(trace=context.trace)
    placed = None
    if allocator is not None:
        # Imported here: most recordings come without a snapshot.
        from traceanalyze.analyses.memory.in_trace import in_trace

        placed = in_trace(context, allocator)
    facts = Facts(analysis, context, allocator)
    outcome = evaluate(facts, rules)
    if short and alone:
        return AnalysedRank(analysis, outcome, in_trace=placed)
    # Imported here: a short page on one recording does without.
    from traceanalyze.ranks.summary import summarize

    compared = summarize(context, analysis, spread=not alone)
    again = _program(context, analysis) if together and not alone else None
    if again is not None:
        outcome = outcome._replace(faint=faint(facts, rules, outcome))
    if short:
        return AnalysedRank(analysis, outcome, compared, in_trace=placed, program=again)
    from traceanalyze.causes.results import costs_of

    return AnalysedRank(
        analysis,
        outcome,
        compared,
        places=places_of(context, outcome),
        timeline=_timeline(context, alone=alone) if alone or together else None,
        in_trace=placed,
        costs=costs_of(outcome.findings, facts),
        program=again,
    )


def without_ids(context: Context) -> Context:
    """The same context when it is known what belongs to what: what tells that is a third of a trace."""
    from traceanalyze.analyses.quality.quality import quality
    from traceanalyze.analyses.steps.critical_waits import sync_records

    # The last to ask for it.
    context.once(quality)
    context.once(sync_records)
    found = context.connected((), IDS)
    give_back()
    return found


def for_rules(context: Context) -> Context:
    """The same context without what the tool's own rules never ask for: they take most memory."""
    found = context.connected((PhaseRanges,), OF_TABLES)
    give_back()
    return found


def foreign(rules: Plan) -> bool:
    """Whether any are of plug-ins: nobody knows what these read."""
    from traceanalyze.rules.registry import own_rules

    return any(rule.id not in own_rules() for rule, _ in rules.rules)


def _program(context: Context, analysis: RankAnalysis) -> Program | None:
    """What a replay of the ranks together needs of one; None where nothing tells when its device was given work."""
    if not context.devices or not len(context.calls) or not len(analysis.steps) or context.doubt is not None:
        return None
    from traceanalyze.replay.graph import program

    return context.once(program)


def rank_verdict(trace: Trace, options: Options, *, alone: bool, together: bool) -> AnalysedRank:
    """What the verdict on a rank needs; unless it is `alone`, with what tells whom others wait for and its own time."""
    context = context_of(trace, options)
    analysis = analyze_context(context, Detail.QUIET)
    if alone:
        return AnalysedRank(analysis)
    from traceanalyze.ranks.summary import summarize

    again = _program(context, analysis) if together else None
    return AnalysedRank(analysis, compared=summarize(context, analysis, spread=False), program=again)


def rank_summary(trace: Trace, options: Options) -> AnalysedRank:
    """What is known of each of many ranks: its split, and what the comparison with the others needs."""
    # Imported here: few runs have many ranks.
    from traceanalyze.analyses.tables import split_table
    from traceanalyze.ranks.summary import summarize

    context = context_of(trace, options)
    analysis, split = analyze_context(context, Detail.QUIET, summary=True), split_table(context)
    # What many ranks run name by name is too much to keep of each.
    compared = summarize(context, analysis, spread=False)
    partitions = tuple(Partition(one.device, *map(narrowed, one[1:])) for one in analysis.partitions)
    idle = analysis.idle
    if isinstance(idle, IdleCauses):
        idle = idle._replace(by_step=narrowed(idle.by_step))
    analysis = analysis._replace(partitions=partitions, idle=idle, tables={split.key: split})
    return AnalysedRank(analysis, compared=compared, why=None)


def allocator_of(trace: Trace, allocators: Allocators) -> AllocatorAnalysis | None:
    """The snapshot of the trace's rank; of a trace and a snapshot that do not tell their ranks, the one there is."""
    own = allocators.get(trace.origin.path, {})
    return own.get(trace.origin.rank, own.get(None))


class Job(NamedTuple):
    """What is to be made of one recording."""

    source: Source
    choices: Choices
    allocators: dict[str, Mapping[int | None, AllocatorAnalysis]]
    """Its own: what another process must be sent."""
    lenient: bool
    """If it has not the chosen steps, it is left out like one that cannot be read: others may have them."""
    alone: bool
    """There is no other recording."""
    together: bool
    """The ranks are few enough to run again together."""
    summary: bool
    """It is one of many: no more than a summary."""
    agreed: frozenset[StepKey] | None = None
    """Steps that all ranks of its run count, where it was analysed over others."""
    shown: bool = True
    """A report may show its tables."""


def made(job: Job, tell: Callable[[int], None] | None = None) -> AnalysedRank | InputError:
    """What one recording gives, without its bulk, or why it cannot be used."""
    try:
        read = partial(read_trace, job.source, tell, brief=job.summary, threads=job.together)
        one = without_bulk(_analysed(read, job))
        return one if job.alone else bounded(one)
    except InputError as error:
        return error
    except UsageError as error:
        if job.lenient:
            return InputError("{name}: {error}", job.source.name, error)
        raise


def _analysed(read: Callable[[], Trace], job: Job) -> AnalysedRank:
    """What is made of a trace that is yet to be read: nobody else is to hold what its analyses let go."""
    options, detail = job.choices.options()._replace(agreed=job.agreed), job.choices.detail
    alone, together = job.alone, job.together
    if detail == Detail.QUIET:
        return rank_verdict(read(), options, alone=alone, together=together)
    if job.summary:
        return rank_summary(read(), options)
    return analysed(
        context_of(read(), options),
        job.choices.rules(),
        job.allocators,
        detail=detail,
        alone=alone,
        together=together,
        shown=job.shown,
    )


def without_bulk(one: AnalysedRank) -> AnalysedRank:
    """The same with a sample of its trace, and with what the analysis remarks, as on patterns that match nothing."""
    trace = one.analysis.trace
    return one._replace(analysis=one.analysis._replace(trace=replace(without_events(trace), read=trace.read)))


KEPT_INTERVALS = 200
"""Intervals of a finding that are kept of one of several ranks, longest first: no report lists or marks more."""


def bounded(one: AnalysedRank) -> AnalysedRank:
    """The same with no more of its findings than a report shows, and what a replay of the ranks together needs."""
    steps, outcome = one.analysis.steps, one.outcome
    outcome = outcome._replace(
        findings=tuple(_longest_only(each, steps.start, steps.end) for each in outcome.findings),
        faint=tuple(replace(each, intervals=None, between=()) for each in outcome.faint),
    )
    return one._replace(outcome=outcome if one.program is not None else without_changes(outcome))


def _longest_only(one: Finding, start: NDArray[np.int64], end: NDArray[np.int64]) -> Finding:
    """A finding with its longest intervals, the longest in each step, and that which `places_of` shows."""
    if one.intervals is None:
        return replace(one, between=())
    spans, shown = merged(one.intervals), _longest(one)
    length = spans.end - spans.start
    rows = {*np.argsort(-length, kind="stable")[:KEPT_INTERVALS].tolist()}
    if len(rows) < len(length):
        first = np.searchsorted(spans.end, start, "right").tolist()
        last = np.searchsorted(spans.start, end, "left").tolist()
        rows |= {low + int(length[low:high].argmax()) for low, high in zip(first, last, strict=True) if low < high}
        rows |= set() if shown is None else {int(np.searchsorted(spans.start, shown[0], "right")) - 1}
    kept = sorted(rows)
    found = intervals_of(spans.start[kept], spans.end[kept])
    return replace(one, intervals=found, left_out=len(length) - len(kept), between=())


def without_changes(outcome: Outcome) -> Outcome:
    """The same without what only a replay of ranks together asks for: of a change stays whether the host does less."""

    def less(one: Finding) -> Finding:
        if one.change is None:
            return one
        host, threads = one.change.host, one.change.threads
        bare = type(one.change)(
            intervals.Intervals(host.start[:1], host.end[:1]), dict.fromkeys(threads, intervals.EMPTY)
        )
        return replace(one, change=bare, between=())

    return outcome._replace(findings=tuple(map(less, outcome.findings)), faint=())
