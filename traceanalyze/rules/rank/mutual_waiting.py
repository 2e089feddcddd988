from typing import TYPE_CHECKING

from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.pricing import room_of
from traceanalyze.rules.ranking import LEFT
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    measured,
    need,
    rule,
)

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

FEW = 3
"""Steps from which on, as for RNK101, waiting is known to come back."""


@rule(
    "RNK106",
    "mutual-waiting",
    title="ranks wait for each other",
    sentence={
        "": "Ranks wait for each other in collectives, {waiting} {per} ({share}) more than they must.",
        "cost": "Ranks wait for each other in collectives, {waiting} {per} ({share}).",
        "compute": (
            "Ranks wait for each other in collectives, {waiting} {per} ({share}) more than they must; their work is "
            "uneven: rank {rank} computes {most} {per}, another one {least}."
        ),
        "compute_and_host": (
            "Ranks wait for each other in collectives, {waiting} {per} ({share}) more than they must; their work is "
            "uneven: rank {rank} has {most} {per} of compute, data loading and host work, another one {least}."
        ),
    },
    evidence={"waiting": "waiting for other ranks"},
    confidence=Confidence.MEDIUM,
    needs="R",
    advice=("balance_batches", "diff_ranks"),
    advice_texts={
        "steps_tell": "Record more steps: so few do not tell whether the same rank is late in each.",
        "even_pauses": "Even out what the ranks do between two collectives; let them pause at the same time.",
    },
    options={"share": (0.05, "msprof-analyze: advisor, slow rank")},
    order=2,
    unless="RNK102",
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """Ranks wait for each other, now for one and now for another.

    What it finds
        Exposed waiting in collectives of 5 % of the step or more, although no rank is the last again and again
        (RNK101), and all were recorded as far as is known (RNK105).
    Why it costs time
        A collective is over for all when the last rank has come.
    How it is measured
        Wait is the duration of a collective beyond its shortest on any rank, where nothing hides it; the mean over
        ranks is the cost. The saving is that less what the rank waits that waits least in each step: that much even
        ranks would wait, too. Unequal work is named where it differs by half of that or more. Where that is less than
        half of the cost, as ranks wait for each other in turn within a step, and where fewer than three steps do not
        tell whether they wait in the next ones, there is no saving. Where unequal work explains half of the cost,
        RNK102 tells it.
    What to do
        Even out the work of the ranks, and what pauses them at different times.

    References
        definitions §12.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.compare import imbalance
    from traceanalyze.ranks.waits import waits_itself

    waited = need(ranks.exposed_waits)
    named = () if isinstance(ranks.stragglers, NotMeasured) else ranks.stragglers
    if ranks.missing_ranks or any(one.share >= options.number("share") for one in named):
        return
    count, step = len(ranks.steps), ranks.step
    mean = int(waited.by_step.sum()) // waited.by_step.size
    saving = mean - int(waited.by_step.min(axis=0).sum()) // count
    limit = options.number("share") * step
    if max(saving, 0 if waited.bound else mean) < limit or not step:
        return
    if count < FEW or saving < max(limit, LEFT * mean):
        yield Finding(
            cost=mean,
            draws="comm_exposed",
            sentence="cost",
            evidence=(Evidence("waiting", mean, "DURATION"), *measured(share=mean / step)),
            advice=("steps_tell" if count < FEW else "even_pauses",),
            count=count,
            severity=Severity.MEDIUM,
            confidence=Confidence.LOW if count < FEW else None,
        )
        return
    table = imbalance(ranks)
    rows = [] if table.absent is not None else table.records()
    # What explains less than half of the waiting is not why they wait.
    rows = [one for one in rows if 2 * (one.most_ns - one.least_ns) >= saving]
    most = max(rows, key=lambda one: one.most_ns - one.least_ns, default=None)
    if most is not None and waits_itself(ranks, most.most_rank):
        most = None
    uneven = () if most is None else measured(rank=most.most_rank, most=most.most_ns, least=most.least_ns)
    room = room_of(saving, step)
    yield Finding(
        saving=saving,
        low=saving - room,
        bound=max(mean, saving + room),
        draws="comm_exposed",
        sentence="" if most is None else most.quantity,
        evidence=(Evidence("waiting", saving, "DURATION"), *measured(share=saving / step), *uneven),
        scope=Scope(ops=() if most is None else (f"rank {most.most_rank}",)),
        count=count,
    )
