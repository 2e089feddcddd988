"""One recording read and analysed, in this process or another; what is kept of it is small."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traceanalyze import plugins
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.filtering import context_of
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.phases import PhaseRanges
from traceanalyze.analyses.steps.steady import StepKey
from traceanalyze.errors import InputError, UsageError
from traceanalyze.model.native import give_back
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Detail, Mode
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress, ReadRecordings, collected, disagreeing, progress_over, sampled
from traceanalyze.ranks.run import map_ranks, workers_for
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.source import Source
from traceanalyze.readers.sources import expand
from traceanalyze.rules.config import Plan
from traceanalyze.rules.finding import Finding, FindingKey, Outcome

if TYPE_CHECKING:
    from traceanalyze.analyses.excerpt.excerpt import Excerpt
    from traceanalyze.analyses.excerpt.window import Place
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.analyses.memory.in_trace import InTrace
    from traceanalyze.ranks.results import RankSummary
    from traceanalyze.replay.program import Program

Allocators: TypeAlias = "Mapping[str, Mapping[int | None, AllocatorAnalysis]]"
"""By the name of a trace and its rank."""

IDS = frozenset({"external_id"})
"""Arguments that only tell which operator launched what."""
MAX_PLACES = 6
"""Findings that are shown in the trace, most saving first."""


def places_of(context: Context, outcome: Outcome) -> dict[FindingKey, Place]:
    """The longest instance of each finding that has one in time, with its surroundings."""
    if context.mode == Mode.EMPTY:
        return {}
    from traceanalyze.analyses.excerpt.window import place

    known = [(one.key, _longest(one)) for one in outcome.findings]
    timed = [(key, instance) for key, instance in known if instance is not None]
    return {key: place(context, *instance) for key, instance in timed[:MAX_PLACES]}


def _timeline(context: Context) -> Excerpt | None:
    if context.mode == Mode.EMPTY:
        return None
    from traceanalyze.analyses.excerpt.excerpt import whole

    return whole(context)


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
_PACKED = 8
"""Text is about so many times as large as a compressed file of it."""


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
) -> AnalysedRank:
    """A rank's analyses, and what is derived while the tables behind them are still there.

    `allocators` are what snapshots tell, for the rules that need that of the same rank. Unless everything is wanted in
    `detail`, what only full reports, pictures and post-mortems need is left out, and of a rank that is `alone` what
    others are compared by; unless ranks run again `together`, what a replay of them needs.
    """
    # Imported here: a verdict needs none of these.
    from traceanalyze.rules.evaluate import evaluate, faint
    from traceanalyze.rules.facts import Facts

    short, whole = detail < Detail.VERBOSE, foreign(rules)
    allocator = allocator_of(context.trace, allocators)
    analysis = analyze_context(context, Detail.VERBOSE if whole else detail)
    if short and alone and allocator is None and not whole:
        # The rules take most memory: who holds the context and its trace beside this function keeps what they let go.
        context = context.connected((PhaseRanges,), IDS)
        analysis = analysis._replace(trace=context.trace)
        give_back()
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

    compared, again = summarize(context, analysis), _program(context, analysis) if together and not alone else None
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
        timeline=_timeline(context) if alone or together else None,
        in_trace=placed,
        costs=costs_of(outcome.findings, facts),
        program=again,
    )


def foreign(rules: Plan) -> bool:
    """Whether any are of plug-ins: nobody knows what these read."""
    from traceanalyze.rules.registry import own_rules

    return any(rule.id not in own_rules() for rule, _ in rules.rules)


def _program(context: Context, analysis: RankAnalysis) -> Program | None:
    """What a replay of the ranks together needs of one; None where nothing tells when its device was given work."""
    if not context.devices or not len(context.calls) or not len(analysis.steps) or context.doubt is not None:
        return None
    from traceanalyze.replay.program import program

    return context.once(program)


def rank_verdict(trace: Trace, options: Options, *, alone: bool, together: bool) -> AnalysedRank:
    """What the verdict on a rank needs; unless it is `alone`, with what tells whom others wait for and its own time."""
    context = context_of(trace, options)
    analysis = analyze_context(context, Detail.QUIET)
    if alone:
        return AnalysedRank(analysis)
    from traceanalyze.ranks.summary import summarize

    again = _program(context, analysis) if together else None
    return AnalysedRank(analysis, compared=summarize(context, analysis), program=again)


def allocator_of(trace: Trace, allocators: Allocators) -> AllocatorAnalysis | None:
    """The snapshot of the trace's rank; of a trace and a snapshot that do not tell their ranks, the one there is."""
    own = allocators.get(trace.origin.path, {})
    return own.get(trace.origin.rank, own.get(None))


def analysed_files(
    paths: Sequence[str],
    choices: Choices,
    progress: ReadProgress | None,
    *,
    parallel: bool,
    allocators: Allocators = NO_SNAPSHOTS,
    required: bool = True,
    known: Collection[str] = (),
) -> tuple[ReadRecordings, dict[str, AnalysedRank]]:
    """Every recording under the paths, by path; with `parallel` large ones in processes of their own.

    `allocators` are what snapshots of the recordings' ranks tell. Where no recording is `required`, there may be none.
    `known` names files that are used for something else.
    """
    selection = expand(paths, required=required)
    sources = selection.sources
    analyse = _analysis_of(choices, alone=len(sources) == 1, together=len(sources) <= MOST_TOGETHER)
    sizes = [(one.size or 0) * (_PACKED if one.name.endswith((".gz", ".zst")) else 1) for one in sources]
    workers = workers_for(sizes) if parallel else 1

    def results() -> Iterator[AnalysedRank | InputError]:
        if workers == 1:
            for source, tell in zip(sources, progress_over(progress, sources), strict=True):
                yield _attempt(source, analyse, tell, allocators, lenient=not required)
            return
        few = len(sources) <= MOST_TOGETHER
        jobs = [
            _Job(one, choices, {one.name: dict(allocators.get(one.name, {}))}, not required, few) for one in sources
        ]
        # All are read and analysed at the same time: what is done is counted in bytes of all.
        done, total = 0, sum(source.size or 0 for source in sources)
        for at, (one, faults) in enumerate(map_ranks(_elsewhere, jobs, workers)):
            done += sources[at].size or 0
            if progress is not None:
                progress(f"{at + 1}/{len(sources)} {PurePath(sources[at].name).name}", done, total)
            plugins.failed_elsewhere(faults)
            yield one

    found: dict[str, AnalysedRank] = {}
    source_of: dict[str, Source] = {}

    def traces() -> Iterator[Trace | InputError]:
        for source, one in zip(sources, results(), strict=True):
            if isinstance(one, InputError):
                yield one
            else:
                path = one.analysis.trace.origin.path
                found[path], source_of[path] = one, source
                yield one.analysis.trace

    read = collected(selection, traces(), required=required, known=known)
    analyses = {path: one.analysis for path, one in found.items()}
    for path, agreed in disagreeing(read.traces, analyses, read.lost).items():
        found[path] = _again(source_of[path], choices, agreed, allocators) or found[path]
    return read, found


def _again(source: Source, choices: Choices, agreed: frozenset[StepKey], allocators: Allocators) -> AnalysedRank | None:
    """The rank over the steps that all ranks of its run count; None where it cannot be read again, as from a pipe."""
    one = _attempt(source, _analysis_of(choices, alone=False, agreed=agreed), None, allocators, lenient=True)
    return None if isinstance(one, InputError) else one


class _Job(NamedTuple):
    source: Source
    choices: Choices
    allocators: dict[str, dict[int | None, AllocatorAnalysis]]
    """Its own: what another process must be sent."""
    lenient: bool
    together: bool


def _elsewhere(job: _Job) -> tuple[AnalysedRank | InputError, tuple[plugins.Fault, ...]]:
    """What became of it, and plug-ins that failed in the process that did it."""
    analyse = _analysis_of(job.choices, alone=False, together=job.together)
    return _attempt(job.source, analyse, None, job.allocators, lenient=job.lenient), plugins.faults()


_Analyse = Callable[[Callable[[], Trace], "Allocators"], AnalysedRank]


def _analysis_of(
    choices: Choices, *, alone: bool, agreed: frozenset[StepKey] | None = None, together: bool = True
) -> _Analyse:
    """What is made of a trace that is yet to be read, and of snapshots; `alone`: there is no other recording."""
    options, rules = choices.options()._replace(agreed=agreed), choices.rules()
    if choices.detail == Detail.QUIET:
        return lambda read, _: rank_verdict(read(), options, alone=alone, together=together)
    return lambda read, allocators: analysed(
        context_of(read(), options), rules, allocators, detail=choices.detail, alone=alone, together=together
    )


def _attempt(
    source: Source, analyse: _Analyse, tell: Callable[[int], None] | None, allocators: Allocators, *, lenient: bool
) -> AnalysedRank | InputError:
    """What one recording gives, without its bulk, or why it cannot be used.

    With `lenient`, one that has not the chosen steps is left out like one that cannot be read: others may have them.
    """
    try:
        one = analyse(partial(read_trace, source, tell), allocators)
    except InputError as error:
        return error
    except UsageError as error:
        if lenient:
            return InputError("{name}: {error}", source.name, error)
        raise
    return without_bulk(one)


def without_bulk(one: AnalysedRank) -> AnalysedRank:
    """The same with a sample of its trace, and with what the analysis remarks, as on patterns that match nothing."""
    trace = one.analysis.trace
    return one._replace(analysis=one.analysis._replace(trace=replace(sampled(trace), read=trace.read)))
