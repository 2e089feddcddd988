"""Tables and sentences over all ranks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.frozen import frozen
from traceanalyze.model.table import Column, Kind, Message, Table
from traceanalyze.ranks.compare import EVEN, cluster_tables, leading, longest
from traceanalyze.ranks.stragglers import straggler_sentences
from traceanalyze.report.model import table_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.results import RankAnalysis
    from traceanalyze.analyses.steps.window import Window
    from traceanalyze.model.trace import Origin
    from traceanalyze.ranks.results import Cluster
    from traceanalyze.report.assembly.split import Part
    from traceanalyze.rules.finding import Outcome

EQUAL = 1.001
"""Up to which even the digits shown are the same, or nearly."""


@frozen
class RankRow:
    """What the comparison of ranks needs of one of them."""

    label: str
    rank: int | None
    parts: tuple[Part, ...]
    window: Window

    @property
    def mean(self) -> int:
        """Mean step time, ns."""
        return self.window.mean(self.window.total)


def rank_label(origin: Origin, index: int) -> str:
    """The rank, or the position of its file when the profile does not tell."""
    return str(origin.rank) if origin.rank is not None else f"?{index}"


def ranks_table(rows: tuple[RankRow, ...]) -> Table:
    """One row a rank: mean step and its headline parts as shares, so that the odd one out is seen."""
    keys = tuple(dict.fromkeys(part.key for row in rows for part in row.parts))
    columns = (
        Column("rank", Kind.TEXT),
        Column("steps", Kind.COUNT, minor=True),
        Column("step_ns", Kind.DURATION),
        *(Column(f"{key}_share", Kind.SHARE) for key in keys),
    )
    table = []
    for row in rows:
        shares = {part.key: part.missing or row.window.share(row.window.sum(part.time)) for part in row.parts}
        table.append((row.label, row.window.count, row.mean, *(shares.get(key) for key in keys)))
    return table_of_rows("ranks", columns, tuple(table), worst="step_ns")


def leading_sentence(labels: Sequence[str], times: Sequence[int], own: Sequence[int | None]) -> tuple[Message, ...]:
    """Why not the rank with the longest step is told about; nothing where it is.

    Args:
        labels: Of the ranks.
        times: Their mean steps, ns.
        own: The same without waiting for others; None where that is not known.
    """
    lead, slowest = leading(times, own), longest(times)
    if lead == slowest:
        return ()
    values = (
        ("rank", Kind.TEXT, labels[lead]),
        ("own", Kind.DURATION, own[lead]),
        ("longest", Kind.TEXT, labels[slowest]),
        ("wait", Kind.DURATION, times[slowest] - (own[slowest] or 0)),
    )
    return (Message("leading_rank", values),)


def ranks_sentence(rows: tuple[RankRow, ...]) -> Message:
    """Which rank is slowest and by how much, or that they are even."""
    means = [row.mean for row in rows]
    worst = longest(means)
    values = (
        ("rank", Kind.TEXT, rows[worst].label),
        ("ranks", Kind.COUNT, len(rows)),
        ("time", Kind.DURATION, means[worst]),
        ("fastest", Kind.DURATION, min(means)),
        ("excess", Kind.SHARE, means[worst] / min(means) - 1 if min(means) else 0.0),
    )
    if means[worst] > EVEN * min(means):
        return Message("ranks_uneven", values)
    return Message("ranks_even" if means[worst] > EQUAL * min(means) else "ranks_equal", values)


class AcrossRanks(NamedTuple):
    """What a report says about several ranks together."""

    lead: int
    """The rank to look at first."""
    label: str
    """What that is called."""
    sentences: tuple[Message, ...]
    summary: tuple[Table, ...]


def across_ranks(
    analyses: Sequence[RankAnalysis],
    views: Sequence[tuple[tuple[Part, ...], Window]],
    cluster: Cluster | None,
    of_run: Outcome | None,
) -> AcrossRanks:
    """The ranks side by side, with their comparison, and what the rules say about that, where there are any."""
    rows = tuple(
        RankRow(rank_label(analysis.trace.origin, index), analysis.trace.origin.rank, *view)
        for index, (analysis, view) in enumerate(zip(analyses, views, strict=True))
    )
    means, own = [row.mean for row in rows], (None,) * len(rows) if cluster is None else cluster.own_time
    lead = leading(means, own)
    summary: tuple[Table, ...] = (ranks_table(rows),)
    late: tuple[Message, ...] = ()
    if cluster is not None:
        if of_run is not None:
            from traceanalyze.report.assembly.findings import run_findings_tables

            platform = "ascend" if analyses[0].trace.origin.format == "ascend" else "cuda"
            summary = (*summary, *run_findings_tables(of_run, cluster, platform))
        summary = (*summary, *cluster_tables(cluster))
        late = straggler_sentences(cluster)
        # That the others wait for a rank says well enough why it is told about.
        if ("rank", Kind.TEXT, rows[lead].label) not in [value for one in late for value in one.values]:
            late = (*late, *leading_sentence([row.label for row in rows], means, own))
    return AcrossRanks(lead, rows[lead].label, (ranks_sentence(rows), *late), summary)
