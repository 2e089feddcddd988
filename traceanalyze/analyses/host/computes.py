"""Programs without a device, or whose device was not recorded: which of them it is, and tables that suit either."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.model import intervals
from traceanalyze.model.columns import Sparse
from traceanalyze.model.patterns import regex
from traceanalyze.model.table import Column, Kind, NotMeasured, Table
from traceanalyze.model.vocabulary import Mode

HOST_COMPUTES = "computes_on_host"
"""Key of the check that says so."""
_DEVICE_BACKEND = regex(r"[nrh]ccl|xccl|mccl|cncl", re.IGNORECASE)
_DEVICE_NAME = regex(
    r"cuda|(?<!_use_)(cudnn(?!_is_acceptable)|miopen)|cublas|rocm|(?<![a-z])hip[A-Z]|acl(rt|nn)|triton"
    r"|(?<![a-z])(npu|xpu|mps|musa|[nrh]ccl)(?![a-z])"
    r"|[DH]to[DH]|pin_memory|record_stream|aten::(native_dropout|_thnn_fused|_(flash|efficient)_attention"
    r"|_scaled_dot_product_(flash|efficient|cudnn)_attention(?!_for_cpu))"
)
"""Operators of device libraries, of copies to and from a device, and those that torch runs on devices only.

Not those that only ask for a library (`aten::cudnn_is_acceptable`, `aten::_use_cudnn_ctc_loss`): recurrent layers and
losses call them on the host, too.
"""
_DEVICE_ARGUMENT = regex(r"\b(cuda|npu|xpu|mps|hpu|musa)(:\d+)?\b")
_BACKWARD = "autograd::engine::evaluate_function"
_CPU = 0
"""Device type of torch (`c10::DeviceType`)."""


def host_computes(context: Context) -> bool:
    """Whether nothing but the host computed: its time is then that of the step, hidden behind no device.

    A recording of the host of a program that used a device looks the same at first sight; any sign of a device speaks
    against it: runtime calls, devices that the file lists, a communication backend of devices, operators or allocator
    records or arguments of them, a backward pass on a thread of its own (autograd has one for each device, while
    that of the host runs on the thread that called it), a format that only device profilers write.
    """
    trace = context.trace
    return (
        context.mode == Mode.HOST_ONLY
        and trace.origin.format == "kineto"
        and not len(context.calls)
        and not trace.devices
        and _DEVICE_BACKEND.search(trace.origin.backend or "") is None
        and not _any_text(context, context.host_names, _DEVICE_NAME)
        and not _any_text(context, _column(trace.events.fields, "concrete"), _DEVICE_ARGUMENT)
        and not (_column(trace.instants.fields, "device_type") != _CPU).any()
        and not _backward_elsewhere(context)
    )


def _any_text(context: Context, codes: NDArray[np.int32], pattern: re.Pattern[str]) -> bool:
    return bool(context.trace.strings.matches(codes, pattern.search).any())


def _column(fields: Mapping[str, Sparse], name: str) -> NDArray[np.int32]:
    return fields[name].value if name in fields else np.empty(0, np.int32)


def _backward_elsewhere(context: Context) -> bool:
    """Whether a backward pass ran on another thread than that of the steps, or on one that did nothing else."""
    events, rows = context.trace.events, context.host_rows
    backward = context.trace.strings.matches(events.name[rows], lambda text: text.startswith(_BACKWARD))
    for track in np.unique(events.track[rows[backward]]).tolist():
        own = events.track[rows] == track
        passes = events.active(rows[own & backward])
        if track != context.step_track or intervals.contains(passes, events.ts[rows[own]]).all():
            return True
    return False


_OF_DEVICE = ("device_", "forward_", "backward_")


def for_recording(table: Table, *, device: bool) -> Table:
    """The table, whose title says which time orders its rows, if that depends on whether there is a device.

    Without a device its times were not measured, and those of the host are the ones for short views.
    """
    if "{by}" in table.title:
        by = ("by", Kind.TERM, "by_device_time" if device else "by_host_time")
        table = replace(table, title_values=(*table.title_values, by))
    if device:
        return launched_before(table)
    return replace(table, columns=tuple(_without_device(column) for column in table.columns))


def launched_before(table: Table) -> Table:
    """The table without host times of what the device worked for without a call in the windows: that was before."""
    host = {each.key for each in table.columns if each.key == "calls" or each.key.startswith(("host_", "api_"))}

    def some(chosen: Iterable[Column]) -> NDArray[np.bool_]:
        cells = [[bool(isinstance(cell, (int, float)) and cell) for cell in each.cells(len(table))] for each in chosen]
        return np.asarray(np.reshape(np.array(cells, np.bool_), (-1, len(table))).any(axis=0))

    if not len(table) or "calls" not in host or "step" in table.keys:
        return table
    works = some(one for one in table.columns if one.key.startswith(_OF_DEVICE))
    before = works & ~some(one for one in table.columns if one.key in host)
    if not before.any():
        return table
    missing = NotMeasured("launched_before")

    def told(column: Column) -> Column:
        cells = zip(column.cells(len(table)), before.tolist(), strict=True)
        return column.of([missing if early and cell == 0 else cell for cell, early in cells])

    return replace(table, columns=tuple(told(each) if each.key in host else each for each in table.columns))


def _without_device(column: Column) -> Column:
    if column.key.startswith("host_"):
        return replace(column, minor=False)
    if not column.key.startswith(_OF_DEVICE):
        return column
    measured = column.kind == Kind.COUNT
    return replace(column, minor=True, values=column.values if measured else NotMeasured("no_device_events"))
