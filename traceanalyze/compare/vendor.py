"""Whose device a profile was recorded on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context

_CALLS = (
    ("rocm", re.compile(r"hip[A-Z]")),
    ("cuda", re.compile(r"cu(da)?[A-Z]")),
    ("ascend", re.compile(r"acl|AscendCL@|Node@|Runtime@|Hccl@")),
)
_NAMES = (
    ("rocm", re.compile(r"\bAMD\b|Radeon|Instinct|\bMI\d{3}")),
    ("cuda", re.compile(r"NVIDIA|Tesla|GeForce|Quadro|\b[AHBLTVP]\d{1,3}\b")),
    ("ascend", re.compile(r"Ascend|\b910|\b310")),
)
_VERSIONS = (("rocm", ("hip_runtime", "roctracer")), ("cuda", ("cuda_runtime", "cupti")))


def vendor(context: Context) -> str:
    """cuda, rocm, ascend, cpu (no device events) or unknown; by runtime calls, else header, else the device's name.

    Traces of ROCm state CUDA versions too, so what is told by HIP decides first.
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
