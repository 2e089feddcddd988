"""Whether a program computed on the host itself, or on a device that merely was not recorded."""

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.model import intervals
from traceanalyze.model.columns import Sparse
from traceanalyze.model.patterns import regex
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
        and not _any_text(context, trace.events.name[context.host_rows], _DEVICE_NAME)
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
