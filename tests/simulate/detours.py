"""What a program does beside training, or does awkwardly: collections, compilation, small copies, slow operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.model import Op, Tensor
from tests.simulate.noise import scattered
from tests.simulate.running import run_op
from tests.simulate.schedule import Work
from tests.simulate.streams import COMPUTE, on_grid

if TYPE_CHECKING:
    from tests.simulate.host import Host
    from tests.simulate.memory import Allocator
    from tests.simulate.model import Builder

_COMPILING = (
    "torch/_dynamo/convert_frame.py(1121): __call__",
    "torch/_dynamo/convert_frame.py(650): _compile",
    "torch/_inductor/compile_fx.py(1040): compile_fx",
)


class Collector:
    """Python's garbage collector: in two of three steps, before any of their operators, and never for equally long."""

    def __init__(self, host: Host, places: int) -> None:
        self._host = host
        self._places = places
        self._cost = host.workload.script.collections
        self._left = -1
        self._length = 0

    def begin(self, step: int) -> None:
        """Choose when this step collects, if it does."""
        if self._cost:
            key = self._host.workload.seed, self._host.schedule.rank, step
            self._left = scattered(self._places // 2, 0.9, "collection at", *key) if step % 3 else -1
            self._length = scattered(self._cost, 0.5, "collection", *key)

    def pass_by(self) -> None:
        """The program comes to its next operator."""
        if self._left == 0:
            self._host.spend(self._length)
        self._left -= 1


def compile_model(host: Host, cost: int) -> None:
    """Dynamo and Inductor look at the model; half of the time is spent in what the profiler sees as operators."""
    frames = [host.frame(name) for name in _COMPILING]
    with frames[0], frames[1]:
        host.spend(cost // 4)
        with frames[2]:
            for _ in range(4):
                with host.op("aten::empty_strided"):
                    host.spend(cost // 8)
                host.spend(cost // 16)


def copy_small_tensors(host: Host, count: int) -> None:
    """Numbers of a batch (lengths, masks, weights of losses) go to the device one by one."""
    tensor = Tensor((512,), "long int")
    for _ in range(count):
        with host.op("aten::to", (tensor,)), host.op("aten::_to_copy", (tensor,)):
            with host.op("aten::empty_strided"):
                pass
            with host.op("aten::copy_", (tensor, tensor)):
                host.copy("HtoD", tensor.bytes, pageable=False)
        host.python()


def run_slow_operator(host: Host, builder: Builder, cost: int) -> None:
    """A kernel that Python launches: its arguments are looked at, and its variant is found, at every call."""
    tensor = builder.activation(64)
    kernel = builder.kernel("elementwise", tensor.elements, 2 * tensor.bytes, "MulFunctor")
    with host.frame("triton/runtime/jit.py(568): run"), host.op("flash_attn::_rotary_embedding", (tensor,)):
        host.spend(cost)
        run_op(host, Op("aten::mul_", (tensor, "1.0"), (kernel,)))


def fill_the_cache_anew(host: Host, memory: Allocator, count: int) -> None:
    """The cache has no block that fits: segments go back to the device, which must be idle for that."""
    for _ in range(count):
        with host.op("aten::empty"):
            memory.empty()
            host.call("cudaMalloc", "alloc", host.workload.host.allocate)


def finish_earlier_work(host: Host, builder: Builder, duration: int) -> None:
    """The device is still busy with what was launched before the recording."""
    if duration:
        kernel = builder.kernel("elementwise", 0, 65_536, "MulFunctor")
        start = host.now
        end = host.streams.run(COMPUTE, start, on_grid(duration, host.workload.tick))
        found = Work("compute", kernel.kind, kernel.name, COMPUTE, start, end, None, None, "unknown", linked=False)
        host.schedule.works.append(found)
