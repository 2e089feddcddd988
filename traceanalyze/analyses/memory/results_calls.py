"""Calls of the allocator to the device, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@frozen
class DeviceCalls:
    """Calls of the allocator that took memory from the device or gave it back, in order; a row a call."""

    first: NDArray[np.int64]
    """Its first event of growth or release."""
    last: NDArray[np.int64]
    kind: tuple[str, ...]
    """growth, or what a release was for: see `ReleaseRun.kind`."""
    request: NDArray[np.int64]
    """Bytes that the program asked for in this call; 0 where it asked for none."""
    grown: NDArray[np.int64]
    released: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.first)
