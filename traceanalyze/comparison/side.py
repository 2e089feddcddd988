"""One side of a comparison: a rank, the steps that count, and everything derived from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.analyze import context_of
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.analyses.host.modules import Places, module_places
from traceanalyze.analyses.idle.host_state import HostSplit, host_split
from traceanalyze.analyses.idle.idle import IdleCauses, idle_causes
from traceanalyze.analyses.kernels.work import device_work
from traceanalyze.analyses.options import Options
from traceanalyze.analyses.steps.partition import Partition, exclusive_time, partition
from traceanalyze.analyses.steps.phases import event_phases
from traceanalyze.analyses.steps.window import Steps, counted_steps, cycle_of, median, whole_cycles
from traceanalyze.comparison.results import SideInfo
from traceanalyze.model import intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import DeviceClass, EventKind, Mode

_CALLS = (
    ("rocm", regex(r"hip[A-Z]")),
    ("cuda", regex(r"cu(da)?[A-Z]")),
    ("ascend", regex(r"acl|AscendCL@|Node@|Runtime@|Hccl@")),
)
_NAMES = (
    ("rocm", regex(r"\bAMD\b|Radeon|Instinct|\bMI\d{3}")),
    ("cuda", regex(r"NVIDIA|Tesla|GeForce|Quadro|\b[AHBLTVP]\d{1,3}\b")),
    ("ascend", regex(r"Ascend|\b910|\b310")),
)
_VERSIONS = (("rocm", ("hip_runtime", "roctracer")), ("cuda", ("cuda_runtime", "cupti")))


def vendor(context: Context) -> str:
    """cuda, rocm, ascend, cpu (no device events) or unknown; by runtime calls, else header, else the device's name.

    Traces of ROCm state CUDA versions too, so HIP's own names decide first.
    """
    trace = context.trace
    if len(context.device) == 0:
        return "cpu"
    if trace.origin.format.startswith("ascend"):
        return "ascend"
    names = [trace.strings.text(code) for code in np.unique(context.calls.name).tolist()]
    for known, pattern in _CALLS:
        if any(pattern.match(name) for name in names):
            return known
    for known, keys in _VERSIONS:
        if any(key in trace.versions for key in keys):
            return known
    for known, pattern in _NAMES:
        if any(pattern.search(device.name) for device in trace.devices):
            return known
    return "unknown"


class Side(NamedTuple):
    """One rank of a run, analysed over the steps that count."""

    context: Context
    """Its `steps` are those that count."""
    info: SideInfo
    partition: Partition | None
    """Of the headline device; None without device events."""
    idle: IdleCauses | NotMeasured
    host: HostSplit | NotMeasured
    """What the step thread did; stands for the step where there are no device events."""
    exclusive: NDArray[np.int64]
    """Time that each device event has for itself inside the steps, headline device only; sums to `partition.busy`."""
    phase: NDArray[np.uint8]
    """`Phase` of each device event."""
    modules: Places | None
    """Modules of the model; None where none were recorded."""


def median_step(steps: Steps) -> NDArray[np.bool_]:
    """Of the steps that count the one with the median time (of an even number the shorter of the two in the middle)."""
    rows = np.flatnonzero(counted_steps(steps))
    chosen = np.zeros(len(steps), np.bool_)
    if len(rows):
        chosen[rows[np.argsort(steps.time[rows], kind="stable")[(len(rows) - 1) // 2]]] = True
    return chosen


def restricted(options: Options) -> Options:
    """The options with the steps that count: of those the user chose the complete ones, all where none is."""
    choose = options.steps
    if choose is None:
        return options._replace(steps=whole_cycles)

    def whole(steps: Steps) -> NDArray[np.bool_]:
        chosen = choose(steps)
        complete = chosen & steps.complete
        return complete if complete.any() else chosen

    return options._replace(steps=whole)


def side(trace: Trace, options: Options | None = None, *, ranks: int = 1, rank_choice: str = "only") -> Side:
    """Analyse one rank of a run as a side of a comparison.

    The steps that count are those of the options, where none are chosen there the complete ones after the start, of
    steps that alternate whole cycles.
    """
    chosen = options or Options()
    context = context_of(trace, restricted(chosen))
    steps = context.steps
    recorded = len(context.device) > 0
    device, windows = context.devices[0] if recorded else -1, intervals.merge(steps.start, steps.end)
    exclusive = exclusive_time(context.device, device, windows)
    span, copied = _kernel_span(context, exclusive)
    info = _info(context, ranks, rank_choice, _step_choice(context, chosen))
    return Side(
        context=context,
        info=replace(info, kernel_span=span, copied=copied),
        partition=partition(context.device, device, context.class_sets(device), steps.start, steps.end)
        if recorded
        else None,
        idle=idle_causes(context) if recorded else NotMeasured("no_device_events"),
        host=context.once(host_split),
        exclusive=exclusive,
        phase=context.once(event_phases),
        modules=module_places(context),
    )


def _step_choice(context: Context, options: Options) -> str:
    if options.steps is median_step:
        return "median"
    if options.steps is not None:
        return "asked"
    return "complete" if context.markers is not None else "whole_trace"


def _info(context: Context, ranks: int, rank_choice: str, step_choice: str) -> SideInfo:
    trace, steps, work = context.trace, context.steps, context.once(device_work)
    known = (context.link[work.event] >= 0) | (context.event_op[work.event] >= 0)
    own = context.device.device[work.event] == (context.devices[0] if context.devices else -1)
    return SideInfo(
        path=trace.origin.path,
        vendor=vendor(context),
        device_name=_device_name(context),
        rank=trace.origin.rank,
        ranks=ranks,
        rank_choice=rank_choice,
        steps=steps.name,
        step_choice=step_choice,
        step_time=int(steps.time.sum()),
        median_step=median(steps.time),
        left_out=len(context.all_steps) - len(steps),
        device_time=int(work.time.sum()),
        linked_time=int(work.time[known].sum()),
        work_number=int((own & (context.device.klass[work.event] != DeviceClass.COMM)).sum()),
        resolution_ns=trace.resolution_ns,
        level=trace.origin.level or None,
        times=tuple(steps.time.tolist()),
        cycle=cycle_of(steps.time),
    )


def _kernel_span(context: Context, exclusive: NDArray[np.int64]) -> tuple[int, int] | tuple[None, None]:
    """Time from the first to the last work of the device, and that of copies in it which nothing hides."""
    work, device = context.once(device_work).event, context.device
    if "communication" in context.unmeasured:
        return None, None
    if len(work) == 0:
        return 0, 0
    counts = device.klass[work] != DeviceClass.MEM
    if context.trace.origin.format == "kineto":
        # Old versions of torch call what an event is `Memcpy`, newer ones `gpu_memcpy`.
        counts |= context.trace.strings.matches(context.trace.events.cat[device.row[work]], str.islower)
    here = device.device[work] == context.devices[0]
    own = work[here & counts]
    if len(own) == 0:
        return 0, 0
    start, end = device.start[own].min(), device.end[own].max()
    copies = work[here & (device.klass[work] == DeviceClass.MEM)]
    copies = copies[(device.start[copies] >= start) & (device.end[copies] <= end)]
    fills = device.kind[copies] == EventKind.MEMSET
    return int(end - start), int(exclusive[copies[~fills]].sum())


def _device_name(context: Context) -> str | None:
    """Name of the headline device."""
    without = context.mode in {Mode.HOST_ONLY, Mode.EMPTY}
    return None if without else context.trace.device_name(context.devices[0])


def work_unknown(*sides: Context) -> NotMeasured | None:
    """Why nobody knows what the device of one of the sides computed."""
    why = (side.unmeasured.get("compute") if len(side.device) else "no_device_events" for side in sides)
    return next((NotMeasured(each) for each in why if each), None)


def lost_collectives(
    contexts: Sequence[Context], sides: Sequence[dict[str, Any] | None], all_sent: object
) -> Iterator[dict[str, Any] | None]:
    """What rows say of both sides: nothing is known of collectives that a side lost."""
    for context, cells, other in zip(contexts, sides, sides[::-1], strict=True):
        why = context.unmeasured.get("communication") if all_sent and cells is None else None
        yield dict.fromkeys(other or (), NotMeasured(why)) if why else cells


def measured(
    context: Context, work: NDArray[np.int64], key: NDArray[np.int64], named: str = "name"
) -> dict[int, dict[str, Any]]:
    """Device time by key, as `Pair` has it of a side; a row is called by its name with most time, in column `named`.

    `work` are positions in `device_work`; `key` is the row of each.
    """
    every = context.once(device_work)
    time, name = every.time[work], context.device.name[every.event[work]]
    rows = group(key)
    names = group(rows.of, name)
    most = np.lexsort((name[names.first], -names.sum(time), rows.of[names.first]))
    _, at = np.unique(rows.of[names.first[most]], return_index=True)
    usual = name[names.first[most[at]]]
    spread = rows.spread(time)
    numbers = (spread.number, spread.total, spread.longest, spread.shortest)
    text = context.trace.strings.text
    return {
        of: {named: text(code), "calls": count, "total_ns": total, "max_ns": longest, "min_ns": shortest}
        for of, code, count, total, longest, shortest in zip(
            key[rows.first].tolist(), usual.tolist(), *(number.tolist() for number in numbers), strict=True
        )
    }


SECTIONS = ("profiling", "operator", "memory", "communication", "api", "kernel")
"""Sections that can be chosen; attribution, contributions and caveats are always there."""


@dataclass(frozen=True)
class CompareOptions:
    """What to compare, and how work of one side is matched with that of the other."""

    sections: frozenset[str] = frozenset(SECTIONS)
    """Names of `SECTIONS`; the others cost nothing."""
    details: bool = True
    """Match single calls too, not only totals by name."""
    modules: bool = True
    """Compare module by module where both sides recorded modules."""
    max_kernel_num: int | None = None
    """A matched pair of calls with more device events than this is shown as the pairs of calls inside it."""
    op_name_map: Mapping[str, str] = field(default_factory=dict)
    """Names of one side → names they are to be matched under; several may map to one."""
    use_input_shape: bool = False
    """Match operators by name and shapes, not by name alone."""
    rank_anyway: bool = False
    """Rank causes although the sides do not do the same work."""

    def __hash__(self) -> int:
        return hash((self.sections, self.max_kernel_num, self.use_input_shape, *sorted(self.op_name_map.items())))
