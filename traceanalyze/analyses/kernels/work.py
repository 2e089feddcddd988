"""The device events inside the analysed windows, with what every device table needs to know about each."""

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import Groups, group
from traceanalyze.analyses.kernels.ascend import classify_kernels
from traceanalyze.model import intervals
from traceanalyze.model.classifier import classifier_of_kernel, classifier_of_op, kind_of_op
from traceanalyze.model.columns import Rows, short
from traceanalyze.model.kernel_classes import KernelGroup, TensorCore, group_of_kernel, tensor_core_use
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.table import Column, Kind
from traceanalyze.model.vocabulary import DeviceClass, EventKind

WORK = Column(
    "work",
    Kind.TERM,
    "what the device event does, by its name, else by the operator that launched it",
    heading="kind of work",
)
NO_OP = Column(
    "no_op_ns",
    Kind.DURATION,
    "of the device time, what no recorded operator launched",
    heading="operator unknown",
    minor=True,
)

DEVICES = Column("devices", Kind.TEXT, "numbers of the devices it ran on, where the process has several")


@dataclass(frozen=True, eq=False)
class Work:
    """One row a device event of any device that runs inside the analysed windows, in order of start."""

    event: NDArray[np.int32]
    """Position in `DeviceEvents`."""
    time: NDArray[np.int64]
    """Its time inside the windows, ns."""
    op: NDArray[np.int32]
    """Row of the innermost operator that launched it, or -1."""
    op_name: NDArray[np.int32]
    """Name code of that operator, or -1."""
    group: NDArray[np.uint8]
    """`KernelGroup`"""
    tensor_core: NDArray[np.uint8]
    """`TensorCore`"""
    plugin: NDArray[np.int16]
    """Index into `ClassifyOptions.plugins`: whose classifier decided its class and group, -1 for none."""

    def __len__(self) -> int:
        return len(self.event)


def device_work(context: Context) -> Work:
    """Collect the events of the analysed windows, and classify them."""
    event, time, op = context.once(work_times)
    op_name = np.where(op >= 0, context.trace.events.name[op], -1)
    return Work(event, time, op, op_name, *_classify(context, event, op_name))


def work_times(context: Context) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """`event`, `time` and `op` of `Work`; an event without length counts if it lies inside."""
    device, steps = context.device, context.counted
    windows = intervals.merge(steps.start, steps.end)
    time = intervals.coverage(windows, device.start, device.end)
    instant = np.flatnonzero((time == 0) & (device.start == device.end))
    counted = time > 0
    counted[instant] = _inside(windows, device.start[instant])
    event = short(np.flatnonzero(counted))
    return event, time[event], context.op_nest.rows(context.event_op[event])


def _inside(windows: intervals.Intervals, t: NDArray[np.int64]) -> NDArray[np.bool_]:
    at = np.searchsorted(windows.start, t, "right") - 1
    return (at >= 0) & (t <= windows.end[at]) if len(windows.start) else np.zeros(len(t), np.bool_)


def _classify(
    context: Context, event: Rows, op_name: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int16]]:
    """Group, use of tensor cores and plug-in, decided once a distinct (name, class, kind), else by the operator."""
    device, strings, known = context.device, context.trace.strings, context.options.classify.plugins
    name, klass, kind = device.name[event], device.klass[event], device.kind[event]
    kinds = group(name, klass.astype(np.int64) * 256 + kind)
    decided = np.zeros((len(kinds), 2), np.uint8)
    unnamed = np.zeros(len(kinds), np.bool_)
    plugins = np.full(len(kinds), -1, np.int16)
    for index, row in enumerate(kinds.first.tolist()):
        text = strings.text(int(name[row]))
        found = _group_by_class(int(klass[row]), int(kind[row]))
        stated = classifier_of_kernel(text, known) if kind[row] == EventKind.KERNEL else None
        if stated is not None and (stated[1] == KernelGroup.COMMUNICATION) == (klass[row] == DeviceClass.COMM):
            plugins[index], found = stated
        if found is None:
            found = group_of_kernel(text)
            unnamed[index] = found is None
        what = KernelGroup.OTHER if found is None else found
        decided[index] = what, tensor_core_use(text, what)
    groups, tensor_core, plugin = decided[kinds.of, 0], decided[kinds.of, 1], plugins[kinds.of]
    unnamed_event = unnamed[kinds.of]
    if context.trace.origin.format == "ascend":
        own = np.flatnonzero(klass == DeviceClass.COMPUTE)
        by_type, tensor_core[own] = classify_kernels(context.trace, device.row[event[own]], name[own])
        typed = (by_type >= 0) & (plugin[own] < 0)
        groups[own[typed]] = by_type[typed]
        unnamed_event[own[typed]] = False
    by_op = np.flatnonzero(unnamed_event & (op_name >= 0))
    ops = op_name[by_op]
    groups[by_op] = strings.lookup(ops, lambda op: kind_of_op(op, known)).astype(np.uint8)
    if known:
        plugin[by_op] = strings.lookup(ops, lambda op: (classifier_of_op(op, known) or (-1,))[0])
    tensor_core[klass != DeviceClass.COMPUTE] = TensorCore.NO
    return groups, tensor_core, plugin


def _group_by_class(klass: int, kind: int) -> KernelGroup | None:
    if klass == DeviceClass.COMM:
        return KernelGroup.COMMUNICATION
    if klass == DeviceClass.MEM:
        return KernelGroup.FILL if kind == EventKind.MEMSET else KernelGroup.COPY
    return None


_MOST = 1e9
"""No device has so many blocks per multiprocessor."""


def ratio_argument(context: Context, field: str, row: Rows) -> NDArray[np.float64]:
    """A number that cannot be negative of event rows, NaN where absent or impossible."""
    column = context.trace.events.fields.get(field)
    value = np.full(len(row), -1.0) if column is None else column.take(row, -1).astype(np.float64)
    return np.where((value < 0) | (value > _MOST), np.nan, value)


def on_devices(context: Context, groups: Groups, device: NDArray[np.int64]) -> list[str] | None:
    """Devices of the members of each group, for a column `DEVICES`; None where the process has but one."""
    if len(context.devices) < 2:
        return None
    found: list[list[str]] = [[] for _ in range(len(groups))]
    first = group(groups.of, device).first
    for of, number in zip(groups.of[first].tolist(), device[first].tolist(), strict=True):
        found[of].append(str(number))
    return [", ".join(numbers) for numbers in found]


def work_terms(groups: NDArray[np.uint8]) -> list[str]:
    """Terms of some `KernelGroup`, for a column `WORK`."""
    return [f"work_{KernelGroup(code).name.lower()}" for code in groups.tolist()]


def texts_or_none(context: Context, codes: Rows) -> list[str | None]:
    """Texts by their codes, None where a code is negative or the text is empty."""
    text = context.trace.strings.text
    return [(text(code) or None) if code >= 0 else None for code in codes.tolist()]
