"""Times and ratios of every usable step of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses import idle
from traceanalyze.analyses.phases import phases
from traceanalyze.analyses.results import IdleCauses, NotMeasured
from traceanalyze.analyses.syncs import idle_caused
from traceanalyze.model.vocabulary import Cause, Phase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.gate.rank_steps import RankSteps

Values = dict[str, "NDArray[np.float64] | NotMeasured"]
"""Metric → one value a usable step (one value in all for metrics of the run)."""

_CAUSES = {
    "idle.dispatch_time": tuple(cause for cause in Cause if cause.name.startswith("DISPATCH")),
    "idle.host_op_time": (Cause.HOST_OP,),
    "idle.sync_time": (Cause.SYNC,),
    "idle.data_time": (Cause.DATA_LOADING,),
}
_PHASES = {"forward.time": Phase.FORWARD, "backward.time": Phase.BACKWARD, "optimizer.time": Phase.OPTIMIZER}
BUSY = "busy"
"""Busy time of the rank, from which the skew of the ranks is computed; not a metric itself."""


def timings(rank: RankSteps) -> Values:
    """The timing and ratio metrics of one rank, ns and points."""
    steps, part = rank.side.context.steps, rank.side.partition
    found: Values = {"step.time": steps.time.astype(np.float64)}
    if part is None:
        missing = NotMeasured("no_device_events")
        names = ("compute.time", "comm.exposed_time", "memops.exposed_time", "idle.time", "gpu.busy_ratio", BUSY)
        more = ("comm.overlap_ratio", "sync.idle_caused_time", *_CAUSES, *_PHASES)
        return found | dict.fromkeys((*names, *more), missing)
    found |= {
        "compute.time": part.compute.astype(np.float64),
        "comm.exposed_time": part.comm_exposed.astype(np.float64),
        "memops.exposed_time": part.mem_exposed.astype(np.float64),
        "idle.time": part.idle.astype(np.float64),
        "gpu.busy_ratio": 100 * part.busy / np.maximum(steps.time, 1),
        "comm.overlap_ratio": _overlap(part.comm_overlapped, part.comm_total),
        BUSY: part.busy.astype(np.float64),
    }
    return found | _causes(rank) | {"sync.idle_caused_time": _sync_cost(rank)} | _phases(rank)


def _overlap(hidden: NDArray[np.int64], total: NDArray[np.int64]) -> NDArray[np.float64] | NotMeasured:
    if not (total > 0).all():
        return NotMeasured("no_communication")
    return 100 * hidden / total


def _causes(rank: RankSteps) -> Values:
    found: Values = {}
    causes = rank.side.idle
    for name, members in _CAUSES.items():
        if isinstance(causes, IdleCauses):
            missing = [causes.missing[cause] for cause in members if cause in causes.missing]
            found[name] = missing[0] if missing else causes.by_step[:, members].sum(axis=1).astype(np.float64)
        else:
            found[name] = causes
    return found


def _sync_cost(rank: RankSteps) -> NDArray[np.float64] | NotMeasured:
    """Device idle time that sync points caused, by the step in which they began; terminal ones have no cost."""
    context = rank.side.context
    if len(context.calls) == 0:
        return NotMeasured("no_api")
    sync = np.flatnonzero(context.is_sync)
    analysed, _ = idle.clipped(context.pieces, *context.stretches)
    cost, _ = idle_caused(sync, context.calls, context.gaps, analysed)
    start = context.calls.start[sync]
    step = np.where(start < last_launch(rank), rank.of_host(start), -1)
    return rank.per_step(step, cost)


def last_launch(rank: RankSteps) -> int:
    """Start of the last launch of the trace; later sync points are terminal."""
    context = rank.side.context
    linked = context.link >= 0
    return int(context.launch_start[linked].max()) if linked.any() else int(np.iinfo(np.int64).min)


def _phases(rank: RankSteps) -> Values:
    context = rank.side.context
    table = phases(context, rank.side.phase)
    if isinstance(table, NotMeasured):
        return dict.fromkeys(_PHASES, table)
    device = {row.phase: row.device for row in table}
    if context.markers is None and not device.keys() & set(_PHASES.values()):
        return dict.fromkeys(_PHASES, NotMeasured("no_host_ops"))
    nothing = np.zeros(rank.count, np.int64)
    return {name: device.get(phase, nothing).astype(np.float64) for name, phase in _PHASES.items()}
