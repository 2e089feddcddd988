from collections import Counter
from typing import TYPE_CHECKING

from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    rule,
)

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "RNK103",
    "slow-link",
    title="slow link between two ranks",
    sentence="Transfers {pair} ({link}) reach {bandwidth} GB/s, {below} less than usual on such links.",
    evidence={"pair": "from → to", "link": "kind of link", "below": "below the others"},
    confidence=Confidence.MEDIUM,
    needs="R",
    advice_texts={"check_link": "Check cable, port and switch between the two, and the network settings."},
    options={"below": (0.05, "msprof-analyze: advisor, slow link")},
    threshold=False,
)
def find(ranks: "Cluster", options: Options) -> Findings:
    """One link is slower than the others of its kind.

    What it finds
        Pairs of ranks whose bandwidth over many transfers is at least 5 % below the median of the other pairs that have
        the same kind of link.
    Why it costs time
        A collective is as fast as its slowest link.
    How it is measured
        Bytes over the sum of durations of the transfers between the two, from the tasks of the collectives, which
        Ascend profiles of level 1 and above record. At the usual bandwidth these transfers would take so much less;
        that is the most that can be saved, as transfers of several links run side by side. The estimate is the part of
        it that lies in communication with no compute beside it, which is taken to be as large as that of all
        communication of the ranks.
    What to do
        Check cable, port, switch and network settings between the two.

    References
        msprof-analyze, communication_matrix and slow_link.
    """
    # Imported here: many runs have one rank.
    from traceanalyze.ranks.links import links

    table = links(ranks.ranks)
    if table.absent is not None:
        raise UnmeasuredError(table.absent.reason)
    slow = [
        one for one in table.records() if one.below_usual is not None and one.below_usual >= options.number("below")
    ]
    part = _exposed_part(ranks)
    # The transfers are those of all steps of a rank that count, not only of those that all ranks have.
    steps = max(sum(int(rank.counted.sum()) for rank in ranks.ranks) // len(ranks.ranks), 1)
    # How many ranks recorded transfers over a link.
    recorded = Counter((one.link, one.source, one.target) for rank in ranks.ranks for one in rank.links)
    for one in sorted(slow, key=lambda link: -link.below_usual):
        pair = f"{one.source_rank} → {one.target_rank}"
        lost = round(one.time_ns * one.below_usual) // (recorded[one.link, one.source_rank, one.target_rank] * steps)
        yield Finding(
            saving=None if part is None else round(lost * part),
            bound=lost,
            draws="comm_exposed.transfer",
            evidence=(
                Evidence("pair", pair, "TEXT"),
                Evidence("link", one.link, "TEXT"),
                Evidence("below", one.below_usual, "SHARE"),
                Evidence("bandwidth", one.bandwidth, "NUMBER"),
            ),
            scope=Scope(ranks=(one.source_rank, one.target_rank), ops=(pair,)),
            count=one.transfers,
            severity=Severity.LOW if part is None else None,
        )


def _exposed_part(ranks: "Cluster") -> float | None:
    """Exposed time of the collectives of all ranks over their duration; None where there are none."""
    whole = sum(int((rank.collectives.end - rank.collectives.start).sum()) for rank in ranks.ranks)
    return sum(int(rank.collectives.exposed.sum()) for rank in ranks.ranks) / whole if whole else None
