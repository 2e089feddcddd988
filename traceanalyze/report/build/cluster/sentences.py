"""What there is to say about the ranks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.report.model import Kind, Message

if TYPE_CHECKING:
    from traceanalyze.cluster.results import Cluster

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
    told = [one for one in cluster.waits if not isinstance(one.recorded_wait, NotMeasured) and one.step_time]
    peers = {one.waited_for for one in told if not isinstance(one.waited_for, NotMeasured)}
    waits = [one.recorded_wait for one in told if not isinstance(one.recorded_wait, NotMeasured)]
    if len(told) < len(cluster.waits) or len(peers) != 1 or not peers <= set(cluster.missing_ranks):
        return ()
    share = sum(waits) / sum(one.step_time for one in told)
    if share < WORTH_NAMING:
        return ()
    rank = next(iter(peers))
    wait = sum(waits) // sum(one.steps for one in told)
    values = (("rank", Kind.COUNT, rank), ("wait", Kind.DURATION, wait), ("share", Kind.SHARE, share))
    return (Message("waited_for_absent", values),)
