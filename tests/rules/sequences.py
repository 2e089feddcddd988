"""Steps whose kernels follow each other without a gap, for rules about what kernels do."""

from __future__ import annotations

from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.builder import TraceBuilder
from traceanalyze.readers.kineto import read_trace
from traceanalyze.readers.sources import expand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.ascend_builder import AscendBuilder
    from traceanalyze.model.trace import Trace

STEP = 4000.0
A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0, "numSms": 108}
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, x>"


@dataclass(frozen=True)
class Run:
    """An operator and the kernel it launches."""

    op: str
    dur: float
    shapes: Any = None
    dtypes: Any = None
    kernel: str = POINTWISE
    under: str | None = None
    """Operator around it."""
    device: dict[str, Any] = field(default_factory=dict)
    strides: Any = None


def mm(
    dur: float,
    *,
    dtype: str = "c10::BFloat16",
    m: int = 4096,
    n: int = 4096,
    k: int = 1024,
    tensor: bool = True,
    strides: list[list[int]] | None = None,
) -> Run:
    """A matrix product."""
    name = "ampere_bf16_s16816gemm_bf16_128x128" if tensor else "ampere_sgemm_128x64_tn"
    return Run("aten::mm", dur, [[m, k], [k, n]], [dtype, dtype], name, strides=strides)


def add_run(b: TraceBuilder, run: Run, at: float, begin: float, *, tid: int = 1) -> None:
    """The operator at one time, its kernel at another."""
    args = {} if run.shapes is None else {"Input Dims": run.shapes}
    if run.dtypes is not None:
        args["Input type"] = run.dtypes
    if run.strides is not None:
        args["Input Strides"] = run.strides
    if run.under:
        b.op(run.under, at, 8, tid=tid)
    b.op(run.op, at + 1, 6, tid=tid, **args)
    b.launch(at + 2, 3, begin, run.dur, name=run.kernel, tid=tid, **run.device)


def steps(
    runs: Sequence[Run], *, count: int = 4, device: dict[str, Any] | None = A100, length: float = STEP
) -> TraceBuilder:
    """Steps that launch these operators 10 µs apart; their kernels run one after the other from 100 µs on.

    The host waits for the last of them.
    """
    b = TraceBuilder()
    if device is not None:
        b.header["deviceProperties"] = [device]
    for number in range(count):
        start = number * length
        b.step(number, start, length)
        begin = start + 100
        for place, run in enumerate(runs):
            add_run(b, run, start + 10 * place, max(begin, start + 10 * place + 8))
            begin = max(begin, start + 10 * place + 8) + run.dur
        wait = start + 10 * len(runs) + 8
        if begin > wait:
            b.api("cudaDeviceSynchronize", wait, begin - wait)
    return b


def read_npu(b: AscendBuilder, **metadata: str) -> Trace:
    """The Ascend trace as read from a folder, with these environment variables stated."""
    with TemporaryDirectory() as name:
        folder = b.write(Path(name) / "rank0_ascend_pt")
        if metadata:
            (folder / "profiler_metadata.json").write_text(dumps({"ENV_VARIABLES": metadata}))
        (source,) = expand([str(folder)]).sources
        return read_trace(source)
