"""A memory timeline of the PyTorch profiler: bytes of tensors by category over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CATEGORIES = (
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
)
"""In the order of the file, which is torch's own."""


@frozen
class MemoryTimeline:
    """One exported timeline. Tensor bytes: not what the allocator calls allocated, and no device is named."""

    path: str
    time: NDArray[np.int64]
    """ns, ascending; what existed before has the first time."""
    bytes: NDArray[np.int64]
    """(times, categories) after each change."""
    size_bytes: int
    rows: int
    """Rows of the file."""
