"""Tables and sentences over all ranks of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.split import STEPS
from traceanalyze.analyses.steps.window import window_of
from traceanalyze.model.table import Column, Kind, Message, Table, declare, sentences
from traceanalyze.model.trace import Origin
from traceanalyze.ranks.compare import EVEN, cluster_tables, leading, longest
from traceanalyze.ranks.results import Cluster
from traceanalyze.ranks.stragglers import straggler_sentences
from traceanalyze.rules.finding import Outcome

if TYPE_CHECKING:
    from traceanalyze.report.contents.words import Said, Setting

_SAY = sentences(
    leading_rank=(
        "Rank {longest} waits {wait} of its step for others; without waiting rank {rank} takes longest ({own} a step), "
        "so the rest is about rank {rank}."
    ),
    ranks_uneven="Rank {rank} is the slowest of {ranks}: step {time}, {excess} longer than the fastest ({fastest}).",
    ranks_equal="The {ranks} ranks are equally fast: mean step {time}.",
    ranks_even="The {ranks} ranks are equally fast: mean steps from {fastest} to {time}.",
)

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


def rank_label(origin: Origin, index: int) -> str:
    """The rank, or the position of its file when the profile does not tell."""
    return str(origin.rank) if origin.rank is not None else f"?{index}"


def _ranks_table(labels: Sequence[str], means: Sequence[int], analyses: Sequence[RankAnalysis]) -> Table:
    """One row a rank: mean step and its headline parts as shares, so that the odd one out is seen."""
    shares = [{f"{part.part}_share": part.share for part in each.records("split")} for each in analyses]
    parts = dict.fromkeys(key for each in shares for key in each)
    table = replace(RANKS, columns=tuple(RANKS[key] for key in ("rank", "steps", "step_ns", *parts)))
    return table.fill(
        rank=labels,
        steps=[window_of(each.steps).count for each in analyses],
        step_ns=means,
        **{key: [each.get(key) for each in shares] for key in parts},
    )


def leading_sentence(labels: Sequence[str], times: Sequence[int], own: Sequence[int | None]) -> tuple[Message, ...]:
    """Why the rank with the longest step is not the one shown; nothing where it is. Arguments as for `leading`."""
    lead, slowest = leading(times, own), longest(times)
    if lead == slowest:
        return ()
    values = (
        ("rank", Kind.TEXT, labels[lead]),
        ("own", Kind.DURATION, own[lead]),
        ("longest", Kind.TEXT, labels[slowest]),
        ("wait", Kind.DURATION, times[slowest] - (own[slowest] or 0)),
    )
    return (Message(_SAY["leading_rank"], values),)


def _ranks_sentence(labels: Sequence[str], means: Sequence[int]) -> Message:
    """Which rank is slowest and by how much, or that they are even."""
    worst = longest(means)
    values = (
        ("rank", Kind.TEXT, labels[worst]),
        ("ranks", Kind.COUNT, len(means)),
        ("time", Kind.DURATION, means[worst]),
        ("fastest", Kind.DURATION, min(means)),
        ("excess", Kind.SHARE, means[worst] / min(means) - 1 if min(means) else 0.0),
    )
    if means[worst] > EVEN * min(means):
        return Message(_SAY["ranks_uneven"], values)
    return Message(_SAY["ranks_even"] if means[worst] > EQUAL * min(means) else _SAY["ranks_equal"], values)


class Across(NamedTuple):
    """What there is to say about several ranks together."""

    lead: int
    """Position of the rank to look at first."""
    label: str
    """Its name."""
    sentences: tuple[Message, ...]
    tables: tuple[Table, ...]
    """None where the verdict is all that is shown."""
    said: tuple[Said, ...]
    """What the rules about ranks found."""


def across_ranks(
    analyses: Sequence[RankAnalysis],
    cluster: Cluster | None,
    across: Outcome | None,
    *,
    verdict_only: bool,
) -> Across:
    """The ranks side by side, with their comparison, and what the rules say about that, where there are any."""
    labels = [rank_label(each.trace.origin, index) for index, each in enumerate(analyses)]
    means = [window.mean(window.total) for window in (window_of(each.steps) for each in analyses)]
    own = (None,) * len(means) if cluster is None else cluster.own_time
    lead = leading(means, own)
    sentences = [_ranks_sentence(labels, means)]
    if cluster is not None:
        late = straggler_sentences(cluster)
        sentences += late
        # That the others wait for a rank says well enough why it is shown.
        if ("rank", Kind.TEXT, labels[lead]) not in [value for one in late for value in one.values]:
            sentences += leading_sentence(labels, means, own)
    told: tuple[Said, ...] = ()
    tables: list[Table] = [] if verdict_only else [_ranks_table(labels, means, analyses)]
    if cluster is not None and not verdict_only:
        if across is not None:
            from traceanalyze.report.contents.findings import run_findings_tables
            from traceanalyze.report.contents.words import said

            told = said(across.findings, _setting(cluster, analyses[0]))
            tables += run_findings_tables(told, across)
        tables += cluster_tables(cluster)
    return Across(lead, labels[lead], tuple(sentences), tuple(tables), told)


def _setting(cluster: Cluster, first: RankAnalysis) -> Setting:
    """Of the findings about the ranks: shares are of the mean step of all of them."""
    from traceanalyze.report.contents.words import Setting, platform_of

    count = len(cluster.steps)
    step = round(int(cluster.step_time.mean(axis=0).sum()) / count) if count else 0
    return Setting(step, platform_of(first.trace), first.trace.resolution_ns)
