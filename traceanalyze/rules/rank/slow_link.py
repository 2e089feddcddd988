"""RNK103: one link is slower than the others of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.rule import Confidence, Evidence, Finding, NotApplicable, Options, Scope, Severity, rule

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster


@rule(
    "RNK103",
    "slow-link",
    confidence=Confidence.MEDIUM,
    needs="R",
    advice=("check_link",),
    options={"below": (0.05, "msprof-analyze: advisor, slow link")},
    threshold=False,
)
def find(ranks: Cluster, options: Options) -> Iterator[Finding | NotApplicable]:
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
    if isinstance(ranks.links, NotMeasured):
        yield NotApplicable(ranks.links.reason)
        return
    slow = [one for one in ranks.links if one.slow is not None and one.slow >= options.number("below")]
    part = _exposed_part(ranks)
    # The transfers are those of all steps of a rank, not only of those that all ranks have.
    steps = max(sum(len(rank.steps) for rank in ranks.ranks) // len(ranks.ranks), 1)
    for one in sorted(slow, key=lambda link: -(link.slow or 0.0)):
        lost = round(one.time * (one.slow or 0.0)) // (one.recordings * steps)
        yield Finding(
            saving=None if part is None else round(lost * part),
            bound=lost,
            draws="comm_exposed.transfer",
            evidence=(
                Evidence("pair", f"{one.source} → {one.target}", "TEXT"),
                Evidence("link", one.link, "TEXT"),
                Evidence("below", one.slow or 0.0, "SHARE"),
                Evidence("bandwidth", one.bytes / one.time, "NUMBER"),
            ),
            scope=Scope(ranks=(one.source, one.target), ops=(f"{one.source} → {one.target}",)),
            count=one.count,
            severity=Severity.LOW if part is None else None,
        )


def _exposed_part(ranks: Cluster) -> float | None:
    """Exposed time of the collectives of all ranks over their duration; None where there are none."""
    whole = sum(int((rank.collectives.end - rank.collectives.start).sum()) for rank in ranks.ranks)
    return sum(int(rank.collectives.exposed.sum()) for rank in ranks.ranks) / whole if whole else None
