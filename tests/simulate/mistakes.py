"""Parts of a training loop that could be done without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.model import Op
from tests.simulate.running import run_op
from tests.simulate.schedule import SIDE
from tests.simulate.streams import SIDE_STREAM

if TYPE_CHECKING:
    from tests.simulate.host import Host
    from tests.simulate.model import Builder, Tensor


def work_beside(host: Host, builder: Builder, parameters: list[Tensor], kernels: int) -> None:
    """A second thread, say a moving average of the weights, at its own pace."""
    weight = max(parameters, key=lambda each: each.elements)
    moved = 3 * weight.bytes
    op = Op("aten::lerp_", (weight, weight), (builder.kernel("elementwise", 0, moved, "LerpFunctor"),))
    with host.beside(SIDE):
        for _ in range(kernels):
            host.spend(20 * host.workload.host.python)
            run_op(host, op, SIDE_STREAM)


def fill_with_zeros(host: Host, builder: Builder, parameters: list[Tensor]) -> None:
    """Gradients are written once more instead of dropped."""
    for each in parameters:
        fill = builder.kernel("elementwise", 0, each.bytes, "FillFunctor")
        run_op(host, Op("aten::zero_", (each,), (Op("aten::fill_", (each, "0"), (fill,)),)))
        host.python()


def search_unused(host: Host) -> None:
    """DDP walks through the graph, with `find_unused_parameters=True`."""
    cost = host.workload.script.unused_search
    if cost:
        with host.frame("torch/nn/parallel/distributed.py(1475): _find_tensors"):
            host.spend(cost)


def read_norm(host: Host, builder: Builder, parameters: list[Tensor]) -> None:
    """The norm of all gradients is computed, and perhaps read."""
    cost = host.workload.script.norm_reads
    if not (host.workload.script.norm or cost):
        return
    total = sum(each.bytes for each in parameters)
    kernel = builder.kernel("reduction", total, total // 64, "norm")
    with host.frame("torch/nn/utils/clip_grad.py(62): clip_grad_norm_"):
        run_op(host, Op("aten::linalg_vector_norm", (parameters[0],), (kernel,)))
        if not cost:
            return
        with host.op("aten::item"), host.op("aten::_local_scalar_dense"):
            host.read_back(4)
        host.work(cost, "norm")
