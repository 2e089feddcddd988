"""What there is to say about the ranks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model.table import Kind, Message, NotMeasured

if TYPE_CHECKING:
    from traceanalyze.ranks.results import Cluster

WORTH_NAMING = 0.01
"""Share of the step that the others must wait."""


def straggler_sentences(cluster: Cluster) -> tuple[Message, ...]:
    """The rank that makes the others wait most, if it does so again and again."""
    if isinstance(cluster.stragglers, NotMeasured):
        return _absent(cluster)
    if not cluster.stragglers:
        return ()
    one = cluster.stragglers[0]
    if one.share < WORTH_NAMING:
        return ()
    values = (("rank", Kind.TEXT, one.label), ("wait", Kind.DURATION, one.wait), ("share", Kind.SHARE, one.share))
    if one.phase is None:
        return (Message("straggler", values),)
    return (Message("straggler_because", (*values, ("phase", Kind.TERM, f"late_{one.phase}"))),)


def _absent(cluster: Cluster) -> tuple[Message, ...]:
    """A rank that was not recorded, but that all recorded ones say they wait for most (Ascend)."""
    peers = {one.waited_for for one in cluster.waits}
    waited, time = cluster.exposed_waits, int(cluster.step_time.sum())
    if isinstance(waited, NotMeasured) or len(peers) != 1 or not peers <= set(cluster.missing_ranks) or not time:
        return ()
    total = int(waited.by_step.sum())
    if total < WORTH_NAMING * time:
        return ()
    values = (
        ("rank", Kind.COUNT, next(iter(peers))),
        ("wait", Kind.DURATION, total // waited.by_step.size),
        ("share", Kind.SHARE, total / time),
    )
    return (Message("waited_for_absent", values),)
