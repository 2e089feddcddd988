"""Exact counts and bytes of every usable step of one rank: compared first, as they do not depend on luck."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.communication.collectives import description_rows, sizes, types
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.frames import ops_at
from traceanalyze.analyses.idle import idle
from traceanalyze.analyses.idle.host_state import is_sync_call
from traceanalyze.analyses.idle.idle import IdleCauses, analysed_time, idle_gaps, idle_pieces
from traceanalyze.analyses.idle.syncs import idle_caused, last_launch
from traceanalyze.analyses.kernels.copies import DIRECTIONS, directions
from traceanalyze.analyses.memory.recorded import memory
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.phases import phases
from traceanalyze.analyses.steps.window import Steps, counted_steps
from traceanalyze.comparison.side import Side, side
from traceanalyze.model.columns import MISSING
from traceanalyze.model.patterns import dataclass, regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import DISPATCH_CALLS, ApiClass, Cause, DeviceClass, EventKind
from traceanalyze.ranks.summary import requesting_step
from traceanalyze.regression.metrics import METRICS, Kind


@dataclass(frozen=True, eq=False)
class RankSteps:
    """A rank and its usable steps: complete ones after the warm-up and the start of the run."""

    side: Side
    """Its `context.steps` are the usable steps."""
    position: NDArray[np.int64]
    """Of each step of the recording its row among the usable ones, -1 for the others."""

    @property
    def count(self) -> int:
        """Usable steps."""
        return len(self.side.context.steps)

    def of_host(self, t: NDArray[np.int64]) -> NDArray[np.int64]:
        """Usable step whose marker (to the next marker) holds each instant, -1 for none; without markers the whole."""
        context = self.side.context
        if context.markers is None:
            return np.zeros(len(t), np.int64)
        steps = context.all_steps
        at = np.searchsorted(steps.host_start, t, "right") - 1
        return np.where((at < 0) | (t > steps.host_end[-1]), -1, self.position[at])

    def of_device(self) -> NDArray[np.int64]:
        """Usable step that launched each device event; of events without a launch the one they begin in."""
        return self.side.context.once(requesting_step)

    def per_step(self, step: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.float64]:
        """Exact sums by usable step; rows of no step (-1) are left out."""
        out = np.zeros(self.count, np.int64)
        np.add.at(out, step[step >= 0], values[step >= 0])
        return out.astype(np.float64)

    def counted(self, step: NDArray[np.int64]) -> NDArray[np.float64]:
        """Rows by usable step."""
        return np.bincount(step[step >= 0], minlength=self.count).astype(np.float64)


def rank_steps(
    trace: Trace, options: Options, *, warmup: int, chosen: Callable[[Steps], NDArray[np.bool_]] | None = None
) -> RankSteps:
    """Analyse one rank over its usable steps.

    These are complete ones that the user has `chosen`, else all but the first `warmup` of the recording and those of
    the start after them. Steps of the options are ignored.
    """

    def usable(steps: Steps) -> NDArray[np.bool_]:
        marked = not (len(steps) == 1 and steps.name[0] == "whole trace")
        wanted = np.arange(len(steps)) >= (warmup if marked else 0) if chosen is None else chosen(steps)
        if chosen is not None:
            return wanted & steps.complete
        usable = np.zeros(len(steps), np.bool_)
        usable[wanted] = counted_steps(steps.select(wanted)) & steps.complete[wanted]
        return usable

    found = side(trace, options._replace(steps=usable))
    mask = usable(found.context.all_steps)
    return RankSteps(found, np.where(mask, np.cumsum(mask) - 1, -1))


Values = dict[str, "NDArray[np.float64] | NotMeasured"]
"""Metric → one value a usable step (one value in all for metrics of the run)."""

_CAUSES = {
    "idle.dispatch_time": DISPATCH_CALLS,
    "idle.host_op_time": (Cause.HOST_OP,),
    "idle.sync_time": (Cause.SYNC,),
    "idle.data_time": (Cause.DATA_LOADING,),
}
_PHASES = {f"{name}.time": f"phase_{name}" for name in ("forward", "backward", "optimizer")}
_OF_DEVICE = tuple(
    name
    for name, metric in METRICS.items()
    if metric.kind != Kind.EXACT and not name.startswith("step.") and name != "rank.skew"
)
"""Timing and ratio metrics that a recording without device events lacks."""
_METRIC_OF = {
    "compute": "compute.time",
    "communication": "comm.exposed_time",
    "memory_ops": "memops.exposed_time",
    "idle": "idle.time",
}
BUSY = "busy"
"""Busy time of the rank, from which the skew of the ranks is computed; not a metric itself."""


def timings(rank: RankSteps) -> Values:
    """The timing and ratio metrics of one rank, ns and points."""
    steps, part = rank.side.context.steps, rank.side.partition
    found: Values = {"step.time": steps.time.astype(np.float64)}
    if part is None:
        return found | dict.fromkeys((*_OF_DEVICE, BUSY), NotMeasured("no_device_events"))
    found |= {
        "compute.time": part.compute.astype(np.float64),
        "comm.exposed_time": part.comm_exposed.astype(np.float64),
        "memops.exposed_time": part.mem_exposed.astype(np.float64),
        "idle.time": part.idle.astype(np.float64),
        "gpu.busy_ratio": 100 * part.busy / np.maximum(steps.time, 1),
        "comm.overlap_ratio": 100 * part.comm_overlapped / part.comm_total
        if (part.comm_total > 0).all()
        else NotMeasured("no_communication"),
        BUSY: part.busy.astype(np.float64),
    }
    lost = {_METRIC_OF[part]: NotMeasured(why) for part, why in rank.side.context.unmeasured.items()}
    return found | lost | _causes(rank) | {"sync.idle_caused_time": _sync_cost(rank)} | _phases(rank)


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
    if context.doubt_of_idle is not None:
        return NotMeasured(context.doubt_of_idle)
    sync = np.flatnonzero(context.once(is_sync_call))
    analysed, _ = idle.clipped(context.once(idle_pieces), *context.once(analysed_time))
    cost, _ = idle_caused(sync, context.calls, context.once(idle_gaps), analysed)
    start = context.calls.start[sync]
    step = np.where(start < context.once(last_launch), rank.of_host(start), -1)
    return rank.per_step(step, cost)


def _phases(rank: RankSteps) -> Values:
    context = rank.side.context
    _, table = phases(context)
    if table.absent is not None:
        return dict.fromkeys(_PHASES, table.absent)
    phase, device = np.array(table.column("phase")), table.array("device_ns")
    if context.markers is None and not np.isin(phase, list(_PHASES.values())).any():
        return dict.fromkeys(_PHASES, NotMeasured("no_host_ops"))
    found = {name: device[phase == term].astype(np.float64) for name, term in _PHASES.items()}
    return {name: times if len(times) else np.zeros(rank.count) for name, times in found.items()}


_MALLOC = regex(
    r"(cuda|hip)Malloc(Async|Managed|Pitch|3D)?$|cuMemCreate$|hipMemCreate$|aclrtMalloc(?!Host)|aclMallocMem"
)
_FREE = regex(r"(cuda|hip)Free(Async)?$|cuMemRelease$|hipMemRelease$|aclrtFree(?!Host)")
_COMPILED = regex(r"Torch-Compiled Region:?\s*\[?(\d+)/(\d+)")


def counts(rank: RankSteps) -> Values:
    """The exact metrics of one rank."""
    return _calls(rank) | _device(rank) | _compiled(rank) | _memory(rank)


def _calls(rank: RankSteps) -> Values:
    context = rank.side.context
    calls = context.calls
    names = ("launch.count", "sync.count", "alloc.device_malloc.count", "alloc.device_free.count")
    if len(calls) == 0:
        return dict.fromkeys(names, NotMeasured("no_api"))
    if context.doubt in {"unknown_runtime", "no_names"}:
        return dict.fromkeys(names, NotMeasured(context.doubt))
    step = rank.of_host(calls.start)
    lookup = context.trace.strings.lookup
    malloc = lookup(calls.name, lambda name: bool(_MALLOC.search(name))).astype(np.bool_)
    free = lookup(calls.name, lambda name: bool(_FREE.search(name))).astype(np.bool_)
    return {
        "launch.count": rank.counted(step[(calls.klass == ApiClass.LAUNCH) & calls.outermost]),
        "sync.count": _sync_points(rank, step),
        "alloc.device_malloc.count": rank.counted(step[malloc & calls.outermost]),
        "alloc.device_free.count": rank.counted(step[free & calls.outermost]),
    }


def _sync_points(rank: RankSteps, step: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sync points that are not terminal: calls under one operator instance count once (definitions §7)."""
    context = rank.side.context
    calls = context.calls
    sync = np.flatnonzero(context.once(is_sync_call) & (calls.start < context.once(last_launch)))
    if len(sync) == 0:
        return np.zeros(rank.count)
    op = ops_at(context, calls.track[sync], calls.start[sync])
    point = np.where(op >= 0, op, -2 - sync)
    return rank.counted(step[sync[group(calls.track[sync], point).first]])


def _device(rank: RankSteps) -> Values:
    context = rank.side.context
    device = context.device
    if len(device) == 0:
        names = ("kernel.count", "memcpy.h2d_bytes", "memcpy.d2h_bytes", "collective.count", "collective.bytes")
        return dict.fromkeys(names, NotMeasured("no_device_events"))
    step = rank.of_device()
    comm = np.flatnonzero(device.klass == DeviceClass.COMM)
    size = collective_sizes(rank, comm) if len(comm) else comm
    unknown = (size[step[comm] >= 0] < 0).any()
    return {
        "kernel.count": rank.counted(step[device.kind == EventKind.KERNEL]),
        **_copied(rank, step),
        "collective.count": rank.counted(step[comm]),
        "collective.bytes": NotMeasured("no_collective_metadata") if unknown else rank.per_step(step[comm], size),
    }


def _copied(rank: RankSteps, step: NDArray[np.int64]) -> Values:
    context = rank.side.context
    event = np.flatnonzero(context.device.kind == EventKind.MEMCPY)
    size = context.trace.events.numbers("bytes", context.device.row[event])
    if len(event) and (size == MISSING).all():
        return dict.fromkeys(("memcpy.h2d_bytes", "memcpy.d2h_bytes"), NotMeasured("no_bytes"))
    way = directions(context, event) if len(event) else event
    found: Values = {}
    for name in ("h2d", "d2h"):
        copied = (way == DIRECTIONS.index(name)) & (size != MISSING)
        found[f"memcpy.{name}_bytes"] = rank.per_step(step[event[copied]], size[copied])
    return found


def collective_sizes(rank: RankSteps, comm: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes of each collective, -1 where the profile does not say."""
    context = rank.side.context
    row = description_rows(context, comm)
    return sizes(context, row, types(context, comm, row))


def _compiled(rank: RankSteps) -> Values:
    """Of compiled code: pieces beyond the first, which graph breaks make, and versions of a piece beyond its first."""
    context = rank.side.context
    names = context.trace.events.name[context.host_rows]
    codes = np.unique(names)
    regions = [found.groups() for found in map(_COMPILED.search, context.trace.strings.texts(codes)) if found]
    if not regions:
        missing = NotMeasured("no_compiled_regions")
        return {"compile.graph_break.count": missing, "compile.recompile.count": missing}
    pieces = {piece for piece, _ in regions}
    return {
        "compile.graph_break.count": np.array([len(pieces) - 1.0]),
        "compile.recompile.count": np.array([float(len(set(regions)) - len(pieces))]),
    }


def _memory(rank: RankSteps) -> Values:
    found = memory(rank.side.context)
    if found.absent is not None:
        return dict.fromkeys(("memory.allocated_peak", "memory.reserved_peak"), found.absent)
    devices = found.take(np.array(found.column("memory_of")) == "memory_of_device")
    values: Values = {}
    for which in ("allocated", "reserved"):
        known = [peak for peak in devices.column(f"peak_{which}_bytes") if isinstance(peak, int)]
        values[f"memory.{which}_peak"] = np.array([float(max(known))]) if known else NotMeasured("no_memory_totals")
    return values
