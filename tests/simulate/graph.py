"""A graph of kernels: captured once by a program that launches them, then run by one call a step."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tests.simulate.host import Host
from tests.simulate.schedule import Work
from tests.simulate.streams import COMPUTE, on_grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.model import Kernel
    from tests.simulate.workload import Workload

_INSTANTIATE = 400_000
_GAP = 300
"""Between two kernels of a graph: the device does not wait for the host's queue."""


class Node(NamedTuple):
    """One kernel of a graph."""

    kernel: Kernel
    key: str
    phase: str


class GraphHost(Host):
    """As `Host`; while it captures, launches only tell the graph what to do."""

    def __init__(self, workload: Workload, rank: int) -> None:
        super().__init__(workload, rank)
        self._nodes: list[Node] | None = None

    @contextmanager
    def capture(self, nodes: list[Node]) -> Iterator[None]:
        """What is launched inside becomes a node; nothing runs."""
        self.synchronize("cudaDeviceSynchronize", self.launched_done())
        with self.frame("torch/cuda/graphs.py(186): __enter__"):
            self.call("cudaStreamBeginCapture", "other", self.workload.host.other)
        self._nodes = nodes
        yield
        self._nodes = None
        with self.frame("torch/cuda/graphs.py(195): __exit__"):
            self.call("cudaStreamEndCapture", "other", self.workload.host.other)
            self.call("cudaGraphInstantiate", "other", _INSTANTIATE)

    def replay(self, nodes: list[Node]) -> None:
        """All nodes run, one after the other, once the one call has been made."""
        with self.frame("torch/cuda/graphs.py(88): replay"):
            call = self._begin_call("cudaGraphLaunch", "launch")
            start = self.streams.begin(COMPUTE, call.start)
            for node in nodes:
                work = Work("compute", node.kernel.kind, node.kernel.name, COMPUTE, start, 0, call, None, node.phase)
                work.end = self.streams.run(COMPUTE, start, self._duration(node.kernel, node.key))
                work.blocks, work.threads = node.kernel.blocks, node.kernel.threads
                self._linked(work)
                start = work.end + on_grid(_GAP, self.workload.tick)
            self._return(call, self.workload.host.launch + 50 * len(nodes), 0)

    def launch(self, kernel: Kernel, key: str, stream: int = COMPUTE) -> Work:
        """Launch a kernel, or note it."""
        if self._nodes is None:
            return super().launch(kernel, key, stream)
        self._nodes.append(Node(kernel, key, self.phase))
        self._return(self._begin_call("cudaLaunchKernel", "launch"), self.workload.host.launch, 0)
        return _never(kernel)

    def memset(self, fill: Kernel, key: str) -> None:
        """Fill memory, or note it."""
        if self._nodes is None:
            super().memset(fill, key)
        else:
            self.launch(fill, key)


def _never(kernel: Kernel) -> Work:
    return Work("compute", kernel.kind, kernel.name, COMPUTE, 0, 0, None, None, "forward")
