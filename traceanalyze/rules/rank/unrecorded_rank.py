from typing import TYPE_CHECKING

from traceanalyze.errors import ranges
from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import Confidence, Evidence, Finding, Findings, Options, Scope, Severity, measured, rule

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "RNK105",
    "unrecorded-rank",
    title={
        "": "others may wait for a missing rank",
        "tasks": "waiting for missing ranks",
        "rank": "waiting for a missing rank",
    },
    sentence={
        "": (
            "For {exposed} {per} ({share}) recorded ranks only communicate with ranks that were {state} and do not "
            "wait for each other: up to all of it may be waiting for these."
        ),
        "tasks": (
            "For {waiting} {per} ({share}) the recorded ranks are in collectives that move no data: they wait, perhaps "
            "for ranks that were {state}."
        ),
        "rank": (
            "For {waiting} {per} ({share}) the recorded ranks are in collectives that move no data: they wait, longest "
            "for rank {rank}, which was {state}."
        ),
    },
    evidence={"missing": "missing ranks", "state": "what became of them", "waiting": "waiting for other ranks"},
    confidence=Confidence.HIGH,
    needs="R",
    advice=("record_that_rank",),
    options={
        "share": (0.05, "msprof-analyze: advisor, slow rank"),
        "perhaps": (0.10, "as COM101: exposed communication of which nothing tells what it is"),
    },
    threshold=False,
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """Recorded ranks wait, or may wait, for one that is missing.

    What it finds
        Runs that lack some ranks, which were not recorded, are damaged or were not chosen, where the others wait for
        5 % of their step or more, or spend 10 % of it in communication that nothing hides with the ones that are
        missing.
    Why it costs time
        A collective is over for all when the last rank has come. If that one was not recorded, all others wait equally
        long, and their recordings cannot tell waiting from transfer.
    How it is measured
        Where the tasks of the collectives are recorded (Ascend): exposed time in which none of them moves data, mean of
        the ranks. Elsewhere bounds: at most, the exposed time of collectives in groups that lack ranks; at least, what
        is beyond ten times the usual of their kind and size. Of a collective only as long counts as the recorded rank
        is in it that came last: what others take longer they wait for recorded ranks. What would be saved depends on
        why the missing rank is late, so it is not measured.
    What to do
        Record the missing ranks in the same steps, or choose them with `--ranks`.

    References
        definitions §12; msprof-analyze advisor, slow rank.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.stragglers import absent_rank, absent_waits

    missing = ranks.missing_ranks
    if not missing or not ranks.steps:
        return
    waits, step = ranks.exposed_waits, ranks.step
    by_tasks = not isinstance(waits, NotMeasured) and waits.by_tasks
    peer = absent_rank(ranks) if by_tasks else None
    cost, least = absent_waits(ranks)
    share, sure = (each / step if step else 0.0 for each in (cost, least))
    if sure < options.number("share") and (by_tasks or share < options.number("perhaps")):
        return
    late = missing[0] if peer is None and len(missing) == 1 else peer
    told = (Evidence("waiting", cost, "DURATION"),) if by_tasks else measured(exposed=cost)
    yield Finding(
        cost=cost,
        draws="comm_exposed",
        sentence="rank" if peer is not None else "tasks" if by_tasks else "",
        evidence=(
            *told,
            *measured(share=share),
            Evidence("missing", ranges(missing), "TEXT"),
            Evidence("state", ranks.absent if peer is None else ranks.absence(peer), "TEXT"),
            *(measured(least=least) if least and not by_tasks else ()),
            *(() if peer is None else measured(rank=str(peer))),
        ),
        scope=Scope(ops=() if late is None else (f"rank {late}",)),
        count=len(ranks.steps),
        severity=Severity.HIGH if sure >= HIGH else Severity.MEDIUM,
        confidence=None if by_tasks else Confidence.MEDIUM if sure >= options.number("share") else Confidence.LOW,
    )
