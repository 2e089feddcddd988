import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, listed_ranks
from traceanalyze.analyses.communication.parts import collective_parts
from traceanalyze.analyses.grouping import group
from traceanalyze.model.columns import MISSING
from traceanalyze.rules.common.communication import Communicating, communicating
from traceanalyze.rules.common.computing import names_of
from traceanalyze.rules.ranking import HIGH
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    intervals_of,
    measured,
    rule,
)


@rule(
    "COM120",
    "wait-for-ranks",
    title="waiting for other ranks",
    sentence={
        "": (
            "For {waiting} {per} ({share} of the time) nothing but collectives runs, and these move no data: they wait "
            "for other ranks."
        ),
        "rank": (
            "For {waiting} {per} ({share} of the time) nothing but collectives runs, and these move no data: they wait "
            "for other ranks, longest for rank {rank} of the group, which this recording does not show."
        ),
        "siblings": (
            "Collectives ({count} in all) take {times} times as long as others of their kind need for as much data: "
            "for at least {waiting} {per} ({share} of the time) they wait for other ranks, and nothing hides it."
        ),
    },
    evidence={"waiting": "waiting for other ranks", "times": "times the usual duration"},
    confidence=Confidence.HIGH,
    needs="D",
    advice=("record_that_rank",),
    options={"share": (0.05, "msprof-analyze: advisor, slow rank")},
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """A rank waits in collectives for others that this recording does not show.

    What it finds
        Exposed communication of 5 % of the step or more in which this rank only waits. With the other ranks beside it,
        rules about ranks tell who is waited for (RNK101, RNK105, RNK106), and this one is silent.
    Why it costs time
        A collective is over for all when the last rank has come.
    How it is measured
        Where the tasks of the collectives are recorded (Ascend): exposed time in which none of them moves data, and the
        rank that most of it was waited for. Elsewhere: what a collective takes beyond the median of those of its kind,
        size and group, four at least, where it takes ten times as much; what others of equal size need is transfer.
        Where all of one size are late, those of another size tell it by the byte, from five times as much on. None
        needs three times as long as a larger one (of an exchange, to which others send too, ten times), nor ten times
        as long as the shortest of equal size. Sizes are those recorded, else by the shapes. Sends and receives are not
        judged: what a stage of a pipeline waits in them is its schedule (COM115).
        What would be saved depends on why the other rank is late, so it is not measured.
    What to do
        Record that rank in the same steps: what it does longer than the others is the cause. Larger messages and more
        overlap do not help.

    References
        definitions §12; msprof-analyze advisor, slow rank.
    """
    work = facts.once(communicating)
    spans = intervals_of(*work.waits.spans)
    waiting = facts.length(spans)
    share = facts.share(waiting)
    if not work.waits.how or share < options.number("share"):
        return
    evidence = (Evidence("waiting", waiting, "DURATION"), *measured(share=share))
    chosen = work.waits.time > 0
    peer = _peer(facts, work) if work.waits.how == "tasks" else None
    if work.waits.how == "siblings":
        usual = work.time[chosen].sum() - work.waits.time[chosen].sum()
        evidence += (
            *measured(count=int(chosen.sum())),
            Evidence("times", float(work.time[chosen].sum() / usual), "NUMBER"),
        )
    elif peer is not None:
        evidence += measured(rank=str(peer))
    names = names_of(facts, facts.context.device.name[work.event[chosen]], work.waits.time[chosen])
    yield Finding(
        cost=waiting,
        draws="comm_exposed",
        intervals=spans,
        sentence="rank" if peer is not None else "siblings" if work.waits.how == "siblings" else "",
        evidence=evidence,
        scope=Scope(ops=names if peer is None else (f"rank {peer}", *names)),
        count=int(chosen.sum()),
        severity=Severity.HIGH if share >= HIGH else Severity.MEDIUM,
        confidence=Confidence.MEDIUM if work.waits.how == "siblings" else None,
    )


def _peer(facts: Facts, work: Communicating) -> int | None:
    """The rank that most of the waiting was for: of the run where the ranks of the group are known, else inside it."""
    parts = facts.context.once(collective_parts)
    if parts is None:
        return None
    peer = parts.waited_for[work.event]
    known = np.flatnonzero(peer >= 0)
    if not len(known):
        return None
    described = description_rows(facts.context, work.event[known])
    written = facts.context.trace.events.numbers("group_ranks", described)
    name = facts.context.trace.events.numbers("group", described)
    rows = group(np.where(written != MISSING, written, name), peer[known])
    first = rows.first[int(rows.sum(work.waits.time[known]).argmax())]
    ranks = _ranks(facts, written[first], name[first])
    inside = int(peer[known][first])
    return ranks[inside] if inside < len(ranks) else inside


def _ranks(facts: Facts, written: NDArray[np.int64], name: NDArray[np.int64]) -> tuple[int, ...]:
    """Ranks of the group that a collective names; empty where unknown."""
    strings, groups = facts.context.trace.strings, facts.context.trace.groups
    if written >= 0:
        return tuple(listed_ranks(strings.text(int(written))))
    return groups.get(strings.text(int(name)), ()) if name >= 0 else ()
