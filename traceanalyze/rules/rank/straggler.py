from typing import TYPE_CHECKING

from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Finding,
    Findings,
    Options,
    Scope,
    UnmeasuredError,
    measured,
    rule,
)

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "RNK101",
    "straggler",
    title="one rank makes the others wait",
    sentence={
        "": (
            "Rank {rank} makes the others wait {wait} {per} ({share}); if it came in time, {exposed} less of their "
            "communication would be exposed. {last_share} of all waiting is in collectives to which it comes last."
        ),
        "phase": (
            "Rank {rank} makes the others wait {wait} {per} ({share}), because {phase} ({excess} {per}); if it came in "
            "time, {exposed} less of their communication would be exposed. {last_share} of all waiting is in "
            "collectives to which it comes last."
        ),
    },
    evidence={
        "last_share": "waiting in collectives to which it comes last",
        "phase": "what makes it late",
        "excess": "more than the others",
    },
    confidence=Confidence.HIGH,
    needs="R",
    advice=("diff_ranks",),
    options={"share": (0.05, "msprof-analyze: advisor, slow rank")},
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """One rank makes the others wait, again and again.

    What it finds
        A rank of a process group that comes last to collectives in which the others do at least half of their waiting,
        in 60 % or more of the steps (three at least; those in which the group waits less than a tenth of its mean tell
        nothing), while the others wait for 5 % of their step or more.
    Why it costs time
        A collective is over for all when the last rank has come.
    How it is measured
        Wait is the duration of a collective beyond its shortest on any rank; no common clock is needed. The saving is
        the part of the mean wait of the other ranks that no compute hides; at most all of it. Where it computes longer,
        it may have more work, and at least is saved what even shares of that gain. Where several ranks are late, they
        share what the others wait on average; where not all ranks are here, others may be as late, and at least nothing
        is saved; and where ranks are too many to be replayed together, it is what all others wait in the same steps and
        collectives, less where others come last, too. A rank that comes late to one group because it waited in another
        is not named, but the rank that it waited for; nor is one whose collectives in another group take longer than
        those of the others, as at a slow link. What makes a rank late is the part of the step by which it exceeds the
        mean of the others most.
    What to do
        `traceanalyze compare` that rank with another one; what has grown is to be mended there. Look at its clock
        rates and at what else runs on its host.

    References
        Holistic Trace Analysis, straggler detection; msprof-analyze advisor.
    """
    if isinstance(ranks.stragglers, NotMeasured):
        raise UnmeasuredError(ranks.stragglers.reason)
    waits = ranks.exposed_waits
    unsure = not isinstance(waits, NotMeasured) and waits.bound
    for one in ranks.stragglers:
        if one.share < options.number("share"):
            continue
        number = ranks.ranks[one.position].rank
        cause = (
            (Evidence("phase", f"late_{one.phase}", "TERM"), Evidence("excess", one.excess, "DURATION"))
            if one.phase
            else ()
        )
        yield Finding(
            saving=one.exposed,
            low=0 if unsure else None,
            bound=one.wait,
            draws="comm_exposed",
            sentence="phase" if one.phase else "",
            evidence=(
                *measured(rank=one.label, wait=one.wait, share=one.share, exposed=one.exposed),
                Evidence("last_share", one.last, "SHARE"),
                *cause,
            ),
            scope=Scope(ranks=() if number is None else (number,), ops=(f"rank {one.label}",)),
            count=one.steps_last,
        )
