"""Tables and sentences over all ranks of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.split import STEPS
from traceanalyze.analyses.steps.window import median, rounded, step_labels, window_of
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, declare, sentences
from traceanalyze.model.trace import Origin
from traceanalyze.model.vocabulary import Mode
from traceanalyze.ranks.compare import cluster_tables, comparable, longest
from traceanalyze.ranks.overview import WHYS
from traceanalyze.ranks.results import EVEN, Cluster, ExposedWaits, leading, spans
from traceanalyze.ranks.stragglers import absent_sentences, straggler_sentences, waits_for_absent
from traceanalyze.rules.finding import Outcome

if TYPE_CHECKING:
    from traceanalyze.report.contents.words import Said, Setting

_SAY = sentences(
    ranks_own=(
        "Rank {rank} of {ranks} works longest: {own} of its step of {time} without waiting for others, {excess} longer "
        "than rank {other} ({least})."
    ),
    ranks_own_bound=(
        "Rank {rank} of these {ranks} works longest: at most {own} of its step of {time} without waiting for "
        "others, {excess} longer than rank {other} ({least})."
    ),
    ranks_step="The {ranks} ranks take {time} a step.",
    ranks_step_uneven="The {ranks} ranks take {fastest} to {time} a step.",
    ranks_unjudged="The {ranks} ranks take {time} a step; how much of it each waits for others is not measured.",
    ranks_unjudged_uneven=(
        "The {ranks} ranks take {fastest} to {time} a step; how much of it each waits for others is not measured."
    ),
    rank_cut=(
        "Rank {rank} counts in no mean of the ranks: its recording is cut short, lacks the device or the steps of the "
        "others, ends before them, or was made at another time."
    ),
    ranks_cut=(
        "Ranks {rank} count in no mean of the ranks: their recordings are cut short, lack the device or the steps of "
        "the others, end before them, or were made at another time."
    ),
    ranks_uneven="Rank {rank} is the slowest of {ranks}: step {time}, {excess} longer than the fastest ({fastest}).",
    ranks_equal="The {ranks} ranks are equally fast: mean step {time}.",
    ranks_unlike=(
        "The steps of the {ranks} ranks are not compared: of rank {rank} they are those of the device alone, as only "
        "tables are there."
    ),
    ranks_even="The {ranks} ranks are equally fast: mean steps from {fastest} to {time}.",
    slow_group=(
        "Large messages of group {group} reach {bandwidth} GB/s, where {expected} GB/s are usual: that costs {lost} a "
        "step ({share})."
    ),
    slow_link="The link {pair} reaches {bandwidth} GB/s, {below} less than others: that costs {lost} a step ({share}).",
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
    Column("in_full", Kind.TERM, "why it was analysed in full; of the others there is a summary", heading="in full"),
    worst="step_ns",
)


def rank_label(origin: Origin, index: int) -> str:
    """The rank, or the position of its file when the profile does not tell."""
    return str(origin.rank) if origin.rank is not None else f"?{index}"


def _ranks_table(labels: Sequence[str], analyses: Sequence[RankAnalysis], whys: Sequence[str | None]) -> Table:
    """One row a rank: mean step and its headline parts as shares, so that the odd one out is seen.

    Of many ranks those first that were analysed in full, then the slowest.
    """
    shares = [{f"{part.part}_share": part.share for part in each.records("split")} for each in analyses]
    parts = dict.fromkeys(key for each in shares for key in each)
    some = any(whys)
    keys = "rank", "steps", "step_ns", *parts, *(("in_full",) if some else ())
    windows = [window_of(each.steps) for each in analyses]
    means = [window.mean(window.total) for window in windows]
    order = sorted(range(len(labels)), key=lambda at: (_place(whys[at]), -means[at])) if some else range(len(labels))
    rows = [
        {
            "rank": labels[at],
            "steps": windows[at].count,
            "step_ns": means[at] if windows[at].total else NotMeasured("no_events"),
            **{key: shares[at].get(key) for key in parts},
            **({"in_full": whys[at]} if some else {}),
        }
        for at in order
    ]
    table = replace(RANKS, columns=tuple(RANKS[key] for key in keys)).fill_records(rows)
    # Steps of ranks that wait for each other are equally long: of many the first rows tell more than the slowest.
    return replace(table, worst=None, ranked=True) if some else table


def _place(why: str | None) -> int:
    return WHYS.index(why) if why in WHYS else len(WHYS)


class _Beside(NamedTuple):
    """What else is known of ranks when it is said which of them works longest."""

    whole: Sequence[bool]
    """False for a recording that ends before the others, or is cut: it counts for no rank's time."""
    synchronised: bool = False
    """They wait for each other, so that equal steps say nothing."""
    unsure: Sequence[int] = ()
    """Where waits are bounds, how much longer than is known each may wait for others, ns a step."""
    uneven: bool = False
    """A finding about the ranks costs 5 % of the step or more."""


def ranks_sentences(
    labels: Sequence[str], times: Sequence[int], own: Sequence[int | None], beside: _Beside
) -> tuple[Message, ...]:
    """Which rank works longest, by its step without waiting for others (`own`); what was not counted for that."""
    counted = [at for at, whole in enumerate(beside.whole) if whole] or list(range(len(labels)))
    cut = sorted({*range(len(labels))}.difference(counted))
    of_counted = beside._replace(unsure=[beside.unsure[at] for at in counted] if beside.unsure else ())
    head = _headline(
        [labels[at] for at in counted], [times[at] for at in counted], [own[at] for at in counted], of_counted
    )
    # Of ranks that took no time nothing was recorded, which is told of each.
    return *((head,) if any(times) else ()), *left_out([labels[at] for at in cut])


def left_out(labels: Sequence[str]) -> tuple[Message, ...]:
    """That some ranks are compared with no others."""
    values = ("rank", Kind.TEXT, spans(labels)), ("count", Kind.COUNT, len(labels))
    return (Message(_SAY["rank_cut" if len(labels) == 1 else "ranks_cut"], values),) if labels else ()


def _headline(labels: Sequence[str], times: Sequence[int], own: Sequence[int | None], beside: _Beside) -> Message:
    known = [time for time in own if time is not None]
    if len(known) == len(own) and _is_longest(known, beside.unsure):
        worst, least = known.index(max(known)), known.index(min(known))
        values = (
            ("rank", Kind.TEXT, labels[worst]),
            ("ranks", Kind.COUNT, len(own)),
            ("own", Kind.DURATION, known[worst]),
            ("time", Kind.DURATION, times[worst]),
            ("excess", Kind.SHARE, known[worst] / known[least] - 1 if known[least] else 0.0),
            ("other", Kind.TEXT, labels[least]),
            ("least", Kind.DURATION, known[least]),
        )
        return Message(_SAY["ranks_own_bound" if beside.unsure else "ranks_own"], values)
    worst = longest(times)
    equal = (("ranks", Kind.COUNT, len(times)), ("time", Kind.DURATION, times[worst]))
    between = (*equal, ("fastest", Kind.DURATION, min(times)))
    apart = times[worst] > EVEN * min(times)
    # Of ranks that wait for each other the one with the longest step may be the one that waits longest.
    if apart and not beside.synchronised:
        excess = times[worst] / min(times) - 1 if min(times) else 0.0
        slowest = ("rank", Kind.TEXT, labels[worst]), ("excess", Kind.SHARE, excess)
        return Message(_SAY["ranks_uneven"], (*between, *slowest))
    open_ = any(amount >= COSTLY * time > 0 for amount, time in zip(beside.unsure, times, strict=False))
    uneven = bool(beside.unsure) and len(known) == len(own) and max(known) > EVEN * min(known)
    unjudged = open_ or uneven or (len(known) < len(own) and beside.synchronised)
    key = "ranks_unjudged" if unjudged else "ranks_step"
    if apart:
        return Message(_SAY[f"{key}_uneven"], between)
    if beside.uneven or unjudged:
        return Message(_SAY[key], equal)
    return (
        Message(_SAY["ranks_even"], between)
        if times[worst] > EQUAL * min(times)
        else Message(_SAY["ranks_equal"], equal)
    )


def _is_longest(own: Sequence[int], unsure: Sequence[int]) -> bool:
    """Whether one rank is known to work longer than the others, however long each waits for ranks that are missing."""
    *_, second, worst = sorted(own)
    least = worst - (unsure[own.index(worst)] if unsure else 0)
    return worst > EVEN * min(own) and least >= (second if unsure else 0)


def whole_recordings(analyses: Sequence[RankAnalysis]) -> list[bool]:
    """Whether each rank's recording is whole: it can be compared, and goes as far as those of the others."""
    last = [_last_step(one) for one in analyses]
    usual = median([one for one in last if one is not None])
    return [fit and (end is None or end >= usual) for fit, end in zip(comparable(analyses), last, strict=True)]


def _last_step(one: RankAnalysis) -> int | None:
    """Number of the last recorded step; None without marked steps."""
    label = step_labels(one.steps.name)[-1] if one.mode == Mode.STEPS else ""
    return int(label) if label.isdecimal() else None


RANK_RULES = "RNK"
"""How the ids of rules about ranks begin."""
COSTLY = 0.05
"""Share of the step from which a finding about ranks contradicts that they are equally fast (definitions §18)."""


def _unsure(cluster: Cluster, count: int) -> Sequence[int]:
    """How long each rank of a report may wait for some that are missing, ns a step; empty where none can be."""
    waits, between = cluster.exposed_waits, cluster.between
    bounds = [one for one in (waits, between) if isinstance(one, ExposedWaits) and one.bound]
    if not bounds:
        return ()
    found = [0] * count
    for one in bounds:
        if not one.by_tasks:
            most = waits_for_absent(cluster)[0].sum(axis=1) // len(cluster.steps) if one is waits else one.perhaps
            for at, amount in zip(cluster.places, most.tolist(), strict=True):
                found[at] += amount
    return found


def _beside(cluster: Cluster | None, across: Outcome | None, late: Sequence[Message], whole: Sequence[bool]) -> _Beside:
    if cluster is None:
        return _Beside(whole)
    step = cluster.step
    costs = (
        [max(one.cost or 0, one.saving or 0) for one in across.findings if one.rule.startswith(RANK_RULES)]
        if across
        else []
    )
    return _Beside(
        whole,
        synchronised=any(len(rank.collectives.kind) for rank in cluster.ranks),
        unsure=_unsure(cluster, len(whole)),
        uneven=bool(late) or any(cost >= COSTLY * step > 0 for cost in costs),
    )


_LINKS = {"COM119": "slow_group", "RNK103": "slow_link"}
"""Sentences for the rules about what data moves over."""


def _links(cluster: Cluster, across: Outcome) -> tuple[Message, ...]:
    """That messages move slowly, where it costs much; the costliest."""
    step = cluster.step
    slow = [one for one in across.findings if one.rule in _LINKS and (one.saving or 0) >= COSTLY * step > 0]
    return tuple(
        Message(
            _SAY[_LINKS[one.rule]],
            (
                *((each.label, Kind[each.kind], each.value) for each in one.evidence),
                ("lost", Kind.DURATION, one.saving),
                ("share", Kind.SHARE, (one.saving or 0) / step),
            ),
        )
        for one in sorted(slow, key=lambda one: -(one.saving or 0))[:1]
    )


class Across(NamedTuple):
    """What there is to say about several ranks together."""

    lead: int
    """Position of the rank to look at first."""
    label: str
    """Its name."""
    sentences: tuple[Message, ...]
    tables: tuple[Table, ...]
    """None where the verdict is all that is shown."""
    said: "tuple[Said, ...]"
    """What the rules about ranks found."""


def lead_of(analyses: Sequence[RankAnalysis], cluster: Cluster | None, whys: Sequence[str | None]) -> int:
    """Position of the rank to look at first; of many ranks of those that were analysed in full."""
    return _lead(*_times(analyses, cluster), whys)


def _lead(means: Sequence[int], own: Sequence[int | None], whole: Sequence[bool], whys: Sequence[str | None]) -> int:
    return leading(means, own, [fit and why is not None for fit, why in zip(whole, whys, strict=True)])


def _times(analyses: Sequence[RankAnalysis], cluster: Cluster | None) -> tuple[list[int], list[int | None], list[bool]]:
    """The mean step of each rank, that without waiting for others where steps are comparable, and what is whole.

    Of ranks that are compared over the same steps.
    """
    means = [window.mean(window.total) for window in (window_of(each.steps) for each in analyses)]
    if cluster is not None and cluster.steps:
        for at, time in zip(cluster.places, cluster.step_time.sum(axis=1).tolist(), strict=True):
            means[at] = rounded(time, len(cluster.steps))
    unlike = len({each.trace.origin.form in _OF_DEVICE for each in analyses}) > 1
    known = {} if cluster is None or unlike else dict(zip(cluster.places, cluster.own_time, strict=True))
    return means, [known.get(at) for at in range(len(means))], whole_recordings(analyses)


_OF_DEVICE = {"tables", "sums"}
"""Forms of recordings whose steps are those of the device alone."""


def across_ranks(
    analyses: Sequence[RankAnalysis],
    cluster: Cluster | None,
    across: Outcome | None,
    whys: Sequence[str | None],
    *,
    verdict_only: bool,
) -> Across:
    """The ranks side by side, with their comparison, and what the rules say about that, where there are any.

    `whys` say why each of many was analysed in full, None where it was not: that one is not shown.
    """
    labels = [rank_label(each.trace.origin, index) for index, each in enumerate(analyses)]
    alone = [label for label, each in zip(labels, analyses, strict=True) if each.trace.origin.form in _OF_DEVICE]
    unlike = 0 < len(alone) < len(labels)
    means, own, whole = _times(analyses, cluster)
    lead = _lead(means, own, whole, whys)
    late = () if cluster is None else straggler_sentences(cluster)
    absent, first = ((), False) if cluster is None else absent_sentences(cluster)
    links = () if cluster is None or across is None else _links(cluster, across)
    beside = _beside(cluster, across, (*late, *absent), whole)
    apart = Message(_SAY["ranks_unlike"], (("ranks", Kind.COUNT, len(labels)), ("rank", Kind.TEXT, spans(alone))))
    sentences = (*((apart,) if unlike else ranks_sentences(labels, means, own, beside)), *late, *links)
    sentences = (*absent, *sentences) if first else (*sentences, *absent)
    told: tuple[Said, ...] = ()
    tables: list[Table] = [] if verdict_only else [_ranks_table(labels, analyses, whys)]
    if cluster is not None and not verdict_only:
        if across is not None:
            from traceanalyze.report.contents.findings import run_findings_tables
            from traceanalyze.report.contents.words import said

            told = said(across.findings, _setting(cluster, analyses[0]))
            tables += run_findings_tables(told, across)
        tables += cluster_tables(cluster)
    return Across(lead, labels[lead], sentences, tuple(tables), told)


def _setting(cluster: Cluster, first: RankAnalysis) -> "Setting":
    """Of the findings about the ranks: shares are of the same step as those of the rank that is shown."""
    from traceanalyze.report.contents.words import Setting, platform_of

    return Setting(cluster.step, platform_of(first.trace), first.trace.resolution_ns)
