"""Recordings become runs, the ranks of a run are put side by side, and the report says what they tell."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Run
from traceanalyze.model.vocabulary import Detail
from traceanalyze.pipeline.choices import Choices
from traceanalyze.pipeline.gather import ReadProgress, ReadRecordings
from traceanalyze.pipeline.recordings import NO_SNAPSHOTS, Allocators, AnalysedRank
from traceanalyze.pipeline.results import ALONE, Work, analysed_files, chosen_ranks
from traceanalyze.readers.runs import group_runs
from traceanalyze.report.contents import Scope, build_report
from traceanalyze.report.model import Report
from traceanalyze.rules.config import Plan
from traceanalyze.rules.finding import Outcome
from traceanalyze.version import __version__

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.replay.ranks import Joint

Value = TypeVar("Value")


class SideBySide(NamedTuple):
    """Ranks that were recorded together."""

    ranks: tuple[AnalysedRank, ...]
    outcomes: tuple[Outcome, ...]
    """What the rules say about each, seen beside the others."""
    cluster: "Cluster | None"
    """Those that can be compared; None for fewer than two."""
    across: Outcome | None
    """What the rules say about the ranks together."""

    def by_rank(self, compared: Iterable[Value]) -> list[Value | None]:
        """What is known of the ranks of the cluster, in its order, for each of `ranks`; None of others."""
        known = {} if self.cluster is None else dict(zip(self.cluster.places, compared, strict=True))
        return [known.get(at) for at in range(len(self.ranks))]


def side_by_side(
    ranks: Sequence[AnalysedRank],
    rules: Plan | None,
    known: "Cluster | None" = None,
    recorded: Iterable[int | None] = (),
) -> SideBySide:
    """Compare the ranks of a run, and judge the comparison by the rules, if there are any.

    `known` is how they compare, from summaries with the same numbers; `recorded` are all ranks of the run.
    """
    outcomes = [one.outcome for one in ranks]
    places: list[int] = []
    if len(ranks) > 1:
        # Imported here: many runs have one rank.
        from traceanalyze.ranks.compare import comparable, compare_ranks, with_summaries

        places = [*compress(range(len(ranks)), comparable([one.analysis for one in ranks]))]
    compared = [ranks[at] for at in places] if len(places) > 1 else []
    if rules is not None and len(compared) < len(ranks):
        from traceanalyze.rules.waiting import alone

        outcomes = list(map(alone, outcomes))
    if not compared:
        return SideBySide(tuple(ranks), tuple(outcomes), None, None)
    summaries = [one.summary for one in compared]
    if known is not None and known.places == tuple(places):
        cluster = with_summaries(known, summaries)
    else:
        cluster = compare_ranks(summaries, places)
    cluster = cluster._replace(recorded=frozenset([*recorded, *(one.analysis.trace.origin.rank for one in ranks)]))
    run = _joint(compared, cluster)
    waits = cluster.exposed_waits
    if run is not None and not isinstance(waits, NotMeasured) and not waits.bound:
        from traceanalyze.replay.ranks import own_times

        cluster = cluster._replace(replayed=own_times(run))
    if rules is None:
        return SideBySide(tuple(ranks), tuple(outcomes), cluster, None)
    from traceanalyze.rules.across_ranks import (
        beside_absent,
        drop_rank_rules,
        evaluate_run,
        subtract_waiting,
        with_run_gains,
    )

    beside = subtract_waiting([drop_rank_rules(one.outcome) for one in compared], cluster, rules)
    across = evaluate_run(cluster, rules, run)
    if run is not None:
        beside = with_run_gains(beside, cluster, run, rules, across)
    for at, one in zip(places, beside_absent(beside, cluster), strict=True):
        outcomes[at] = one
    return SideBySide(tuple(ranks), tuple(outcomes), cluster, across)


def _joint(ranks: Sequence[AnalysedRank], cluster: "Cluster") -> "Joint | None":
    """The ranks in one replay; None where that of some is not known, or they meet nowhere."""
    programs = [one.program for one in ranks if one.program is not None]
    if len(programs) < len(ranks) or not cluster.steps:
        return None
    from traceanalyze.replay.ranks import joint

    run = joint(programs, cluster)
    return run if len(run.meetings.number) else None


def run_report(run: Run, found: SideBySide, scope: Scope | None = None) -> Report:
    """The report on a run; the rank to look at first in detail, or what `scope` says."""
    return build_report(
        run.name,
        [one.analysis for one in found.ranks],
        version=__version__,
        notes=run.notes,
        scope=scope,
        outcomes=[None if one.why is None else of for one, of in zip(found.ranks, found.outcomes, strict=True)],
        cluster=found.cluster,
        across=found.across,
        places=[one.places for one in found.ranks],
        whys=[one.why for one in found.ranks],
        timelines=[one.timeline for one in found.ranks],
    )


def run_reports(
    paths: Sequence[str],
    choices: Choices,
    *,
    progress: ReadProgress | None,
    work: Work = ALONE,
    allocators: Allocators = NO_SNAPSHOTS,
    known: Collection[str] = (),
) -> tuple[tuple[Report, ...], dict[str, AnalysedRank]]:
    """The reports of the runs, and what is known of each recording, by its path; `known` as for `analysed_files`."""
    read, results = analysed_files(paths, choices, progress, work, allocators=allocators, known=known)
    return reports_of(read, results, choices), results


def reports_of(read: ReadRecordings, results: Mapping[str, AnalysedRank], choices: Choices) -> tuple[Report, ...]:
    """The reports of the runs that the recordings are of."""
    runs = with_notes(group_runs(read.traces, read.lost), read.notes)
    found = []
    for run in runs:
        ranks, known = ranks_of(run, read, results, choices)
        found.append(report_of_ranks(run, ranks, choices, known))
    return tuple(found)


def ranks_of(
    run: Run, read: ReadRecordings, results: Mapping[str, AnalysedRank], choices: Choices
) -> tuple[list[AnalysedRank], "Cluster | None"]:
    """The wanted ranks of a run, and how they compare, where many were compared before."""
    traces = chosen_ranks(run, choices)
    # Grouping may have numbered the ranks, so the traces of the run replace those of the analyses.
    ranks = [results[trace.origin.path].with_trace(trace) for trace in traces]
    return ranks, read.compared.get(traces[0].origin.path) if traces else None


def report_of_ranks(
    run: Run, ranks: Sequence[AnalysedRank], choices: Choices, known: "Cluster | None" = None
) -> Report:
    """The report on a run of these ranks; `known` as for `side_by_side`."""
    rules = None
    if choices.detail != Detail.QUIET:
        # What rules say of a rank alone they said when it was analysed.
        rules = choices.rules() if len(ranks) > 1 else Plan(())
    return run_report(
        run, side_by_side(ranks, rules, known, run.ranks), Scope(choices.ranks is not None, choices.detail)
    )


def with_notes(runs: tuple[Run, ...], notes: tuple[str, ...]) -> tuple[Run, ...]:
    """Remarks on the input as a whole go with the first run."""
    return (runs[0]._replace(notes=(*notes, *runs[0].notes)), *runs[1:]) if notes else runs
