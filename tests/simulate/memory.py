"""The caching allocator: blocks out of segments; a segment is asked from the device when no memory is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.schedule import Memory
from tests.simulate.streams import on_grid

if TYPE_CHECKING:
    from tests.simulate.host import Host

_BLOCK = 512
_BASE = 0x7F00_0000_0000


class Allocator:
    """Counts allocated and reserved bytes; reserved memory starts large enough for what the model keeps anyway."""

    def __init__(self, host: Host, allocated: int, reserved: int) -> None:
        self._host = host
        self._segment = host.workload.device.segment
        self.allocated = allocated
        self.reserved = _rounded(max(allocated, reserved), self._segment)
        self._next = _BASE + self.allocated

    def allocate(self, size: int) -> tuple[int, int]:
        """Address and size of a new block."""
        size = _rounded(size, _BLOCK)
        missing = self.allocated + size - self.reserved
        if missing > 0:
            self._host.call("cudaMalloc", "alloc", self._host.workload.host.allocate)
            self.reserved += _rounded(missing, self._segment)
        self.allocated += size
        address, self._next = self._next, self._next + size
        self._record(address, size)
        return address, size

    def free(self, block: tuple[int, int]) -> None:
        """Give a block back to the allocator."""
        address, size = block
        self.allocated -= size
        self._record(address, -size)

    def empty(self) -> None:
        """`torch.cuda.empty_cache()`: unused segments go back to the device, once nothing uses them."""
        host = self._host
        done = host.launched_done() + on_grid(host.workload.host.wake, host.workload.tick)
        host.call("cudaFree", "alloc", host.workload.host.allocate, begin=done)
        self.reserved = _rounded(self.allocated, self._segment)

    def _record(self, address: int, size: int) -> None:
        host = self._host
        host.schedule.memory.append(Memory(host.now, host.thread, address, size, self.allocated, self.reserved))


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
