"""One recording read, analysed and judged, in this process or another; what is kept of it is small."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.filtering import context_of
from traceanalyze.api.gather import gathered, sampled, told
from traceanalyze.cluster.run import map_ranks, workers_for
from traceanalyze.cluster.summary import summarize
from traceanalyze.errors import InputError
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand
from traceanalyze.rules.evaluate import evaluate
from traceanalyze.rules.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceanalyze.analyses.context import Options
    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.api.choices import Choices
    from traceanalyze.api.gather import Gathered, ReadProgress
    from traceanalyze.cluster.results import RankSummary
    from traceanalyze.model.trace import Trace
    from traceanalyze.readers.source import Source
    from traceanalyze.rules.evaluate import Outcome, Plan

_PACKED = 8
"""Text is about so many times as large as a compressed file of it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One rank: its analyses, what the rules say, and what the comparison with other ranks needs."""

    analysis: RankAnalysis
    outcome: Outcome
    summary: RankSummary

    def of_trace(self, trace: Trace) -> Judged:
        """The same as the rank that the run made of it."""
        rank = trace.origin.rank
        summary = replace(self.summary, rank=rank, label="" if rank is None else str(rank))
        return Judged(replace(self.analysis, trace=trace), self.outcome, summary)


def judged(trace: Trace, options: Options, rules: Plan) -> Judged:
    """A rank's analyses, and what is derived while the tables behind them are still there."""
    context = context_of(trace, options)
    analysis = analyze_context(context)
    return Judged(analysis, evaluate(Facts(analysis, context), rules), summarize(context, analysis))


def judged_files(
    paths: Sequence[str], choices: Choices, progress: ReadProgress | None, *, parallel: bool
) -> tuple[Gathered, dict[str, Judged]]:
    """Every recording under the paths, by path; with `parallel` large ones in processes of their own."""
    selection = expand(paths)
    options, rules = choices.options(), choices.rules()
    sizes = [(one.size or 0) * (_PACKED if one.name.endswith((".gz", ".zip")) else 1) for one in selection.sources]
    workers = workers_for(sizes) if parallel else 1
    found: dict[str, Judged] = {}

    def here() -> Iterator[Judged | InputError]:
        for source in selection.sources:
            yield _attempt(source, options, rules, progress)

    def elsewhere() -> Iterator[Judged | InputError]:
        jobs = [_Job(source, choices) for source in selection.sources]
        for source, one in zip(selection.sources, map_ranks(_of_job, jobs, workers), strict=True):
            if progress is not None:
                progress(source.name, source.size or 0, source.size)
            yield one

    def kept() -> Iterator[Trace | InputError]:
        for one in elsewhere() if workers > 1 else here():
            if isinstance(one, InputError):
                yield one
            else:
                found[one.analysis.trace.origin.path] = one
                yield one.analysis.trace

    return gathered(selection, kept()), found


class _Job(NamedTuple):
    source: Source
    choices: Choices


def _of_job(job: _Job) -> Judged | InputError:
    return _attempt(job.source, job.choices.options(), job.choices.rules(), None)


def _attempt(source: Source, options: Options, rules: Plan, progress: ReadProgress | None) -> Judged | InputError:
    """What one recording gives, without its bulk, or why it cannot be used."""
    try:
        trace = read_trace(source, told(progress, source))
    except InputError as error:
        return error
    one = judged(trace, options, rules)
    return replace(one, analysis=replace(one.analysis, trace=sampled(trace)))
