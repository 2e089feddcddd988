"""RNK103: one link is slower than the others of its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.rules.finding import Confidence, Evidence, Finding, NotApplicable, Scope
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.cluster.results import Cluster
    from traceanalyze.rules.rule import Options


@rule(
    "RNK103",
    "slow-link",
    confidence=Confidence.MEDIUM,
    needs="R",
    advice=("check_link",),
    options={"below": (0.05, "msprof-analyze: advisor, slow link")},
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
        Ascend profiles of level 1 and above record. No saving is given.
    What to do
        Check cable, port, switch and network settings between the two.

    References
        msprof-analyze, communication_matrix and slow_link.
    """
    if isinstance(ranks.links, NotMeasured):
        yield NotApplicable(ranks.links.reason)
        return
    slow = [one for one in ranks.links if one.slow is not None and one.slow >= options.number("below")]
    for one in sorted(slow, key=lambda link: -(link.slow or 0.0)):
        yield Finding(
            evidence=(
                Evidence("pair", f"{one.source} → {one.target}", "TEXT"),
                Evidence("link", one.link, "TEXT"),
                Evidence("below", one.slow or 0.0, "SHARE"),
                Evidence("bandwidth", one.bytes / one.time, "NUMBER"),
            ),
            scope=Scope(ranks=(one.source, one.target), ops=(f"{one.source} → {one.target}",)),
            count=one.count,
        )
