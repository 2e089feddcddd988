"""What the analyses of device use over time return: utilisation, recurring kernels, memory curves. Times int64 ns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@frozen
class Chunks:
    """Pieces of equal length of every analysed step on the headline device, in order of time."""

    step: NDArray[np.int64]
    """Position of the step among the analysed ones."""
    number: NDArray[np.int64]
    """Position within the step, from 0."""
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    compute: NDArray[np.int64]
    """Time with a compute kernel running."""
    comm: NDArray[np.int64]
    """Time with communication and no compute."""
    busy: NDArray[np.int64]
    """Time with anything running."""

    def __len__(self) -> int:
        return len(self.start)


@frozen
class Stretch:
    """Chunks in a row that are hardly used."""

    step: int
    """Position of the step it begins in among the analysed ones."""
    start: int
    end: int
    busy: int

    @property
    def length(self) -> int:
        """Its time, ns."""
        return self.end - self.start


@frozen
class Utilisation:
    """How busy the headline device was over time."""

    chunks: Chunks
    low: tuple[Stretch, ...]
    """Stretches of little use, longest first."""


@frozen
class KernelSequence:
    """Compute kernels that follow each other on one stream again and again."""

    names: tuple[str, ...]
    count: int
    """How often, without overlap."""
    time: int
    """Device time of the kernels of all occurrences."""
    gaps: int
    """Time between these kernels, inside occurrences."""
    mean: int
    """Mean time of one of the kernels."""

    @property
    def saved(self) -> int:
        """Launches fewer if each occurrence were one kernel."""
        return self.count * (len(self.names) - 1)


@frozen
class MemoryCurve:
    """Memory in use over time, thinned out; every peak and low of the records is in it."""

    t: NDArray[np.int64]
    allocated: NDArray[np.int64]
    """Bytes allocated; with `relative` the sum of recorded changes, which may be below 0."""
    reserved: NDArray[np.int64] | None
    """Bytes reserved from the driver; None where the records do not say."""
    relative: bool
