"""The ranks of one run put side by side, and the report on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze import __version__
from traceanalyze.frozen import frozen
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.report.assembly import Scope, build_report
from traceanalyze.rules.of_run import evaluate_run, of_one_rank, without_waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.model.trace import Run
    from traceanalyze.pipeline.recordings import Judged
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.report.model import Report
    from traceanalyze.rules.evaluate import Outcome, Plan


@frozen
class SideBySide:
    """Ranks that were recorded together."""

    ranks: tuple[Judged, ...]
    outcomes: tuple[Outcome, ...]
    """What the rules say about each, seen beside the others."""
    cluster: Cluster | None
    """None for a single rank."""
    of_run: Outcome | None
    """What the rules say about the ranks together."""


def side_by_side(ranks: Sequence[Judged], rules: Plan) -> SideBySide:
    """Compare the ranks of a run, and judge the comparison."""
    outcomes = [one.outcome for one in ranks]
    if len(ranks) < 2:
        return SideBySide(tuple(ranks), tuple(outcomes), None, None)
    cluster = compare_ranks([one.summary for one in ranks])
    told = without_waiting([of_one_rank(one) for one in outcomes], cluster, rules)
    return SideBySide(tuple(ranks), tuple(told), cluster, evaluate_run(cluster, rules))


def run_report(run: Run, found: SideBySide, *, every_rank: bool = False) -> Report:
    """The report on a run; with `every_rank` each in detail, not only the one to look at first."""
    return build_report(
        run.name,
        [one.analysis for one in found.ranks],
        version=__version__,
        notes=run.notes,
        scope=Scope(every_rank=every_rank),
        outcomes=found.outcomes,
        cluster=found.cluster,
        of_run=found.of_run,
        places=[one.places for one in found.ranks],
    )
