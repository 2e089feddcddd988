"""Tables and sentences over all ranks of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.split import STEPS
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.model.table import Column, Kind, Message, Table, Value, declare
from traceanalyze.model.trace import Origin
from traceanalyze.ranks.compare import EVEN, cluster_tables, leading, longest
from traceanalyze.ranks.results import Cluster
from traceanalyze.ranks.stragglers import straggler_sentences
from traceanalyze.rules.finding import Outcome

EQUAL = 1.001
"""Up to which even the digits shown are the same, or nearly."""

RANKS = declare(
    "ranks",
    "Ranks (mean step, share of the step)",
    Column("rank", Kind.TEXT, "rank of the process; ?n where the profile does not tell"),
    Column("steps", Kind.COUNT, "number of steps", minor=True),
    Column("step_ns", Kind.DURATION, "mean step time"),
    *(
        # Parts of a step, as the table of steps has them.
        # Parts of a step, as the table of steps has them.
        Column(f"{key}_share", Kind.SHARE, STEPS[f"{key}_ns"].meaning, heading=heading)
        for key, heading in {
            "compute": "compute",
            "communication": "comm",
            "memory_ops": "memory",
            "data_loading": "data",
            "sync": "sync",
            "dispatch": "dispatch",
            "idle": "idle",
            "host_sync": "sync",
            "peer_wait": "peer wait",
            "host_api": "API",
            "host_op": "host ops",
            "untraced": "untraced",
        }.items()
    ),
    worst="step_ns",
)


class RankRow(NamedTuple):
    """What the comparison of ranks needs of one of them."""

    label: str
    steps: int
    """Those that count."""
    mean: int
    """Mean step time, ns."""
    shares: Mapping[str, Value]
    """Of the step, by part."""


def rank_row(analysis: RankAnalysis, index: int) -> RankRow:
    """A rank by its place among the files of the run."""
    window, split = window_of(analysis.steps), analysis.tables.get("split")
    shares = {} if split is None else {part.part: part.share for part in split.records()}
    return RankRow(rank_label(analysis.trace.origin, index), window.count, window.mean(window.total), shares)


def rank_label(origin: Origin, index: int) -> str:
    """The rank, or the position of its file when the profile does not tell."""
    return str(origin.rank) if origin.rank is not None else f"?{index}"


def ranks_table(rows: Sequence[RankRow]) -> Table:
    """One row a rank: mean step and its headline parts as shares, so that the odd one out is seen."""
    parts = {f"{key}_share": key for row in rows for key in row.shares}
    table = replace(RANKS, columns=tuple(RANKS[key] for key in ("rank", "steps", "step_ns", *parts)))
    return table.fill(
        rank=[row.label for row in rows],
        steps=[row.steps for row in rows],
        step_ns=[row.mean for row in rows],
        **{column: [row.shares.get(key) for row in rows] for column, key in parts.items()},
    )


def leading_sentence(labels: Sequence[str], times: Sequence[int], own: Sequence[int | None]) -> tuple[Message, ...]:
    """Why the rank with the longest step is not the one shown; nothing where it is.

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


def ranks_sentence(rows: Sequence[RankRow]) -> Message:
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
    cluster: Cluster | None,
    across: Outcome | None,
) -> AcrossRanks:
    """The ranks side by side, with their comparison, and what the rules say about that, where there are any."""
    rows = [rank_row(analysis, index) for index, analysis in enumerate(analyses)]
    means, own = [row.mean for row in rows], (None,) * len(rows) if cluster is None else cluster.own_time
    lead = leading(means, own)
    summary: tuple[Table, ...] = (ranks_table(rows),)
    late: tuple[Message, ...] = ()
    if cluster is not None:
        if across is not None:
            from traceanalyze.report.assembly.findings import run_findings_tables

            platform = "ascend" if analyses[0].trace.origin.format == "ascend" else "cuda"
            summary = (*summary, *run_findings_tables(across, cluster, platform))
        summary = (*summary, *cluster_tables(cluster))
        late = straggler_sentences(cluster)
        # That the others wait for a rank says well enough why it is shown.
        if ("rank", Kind.TEXT, rows[lead].label) not in [value for one in late for value in one.values]:
            late = (*late, *leading_sentence([row.label for row in rows], means, own))
    return AcrossRanks(lead, rows[lead].label, (ranks_sentence(rows), *late), summary)
