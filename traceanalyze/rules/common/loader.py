"""What rules about data loading share: the loader's ranges, and what the step waits for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceanalyze.model.vocabulary import Cause

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts

LOADER = re.compile(r"^enumerate\(DataLoader\)#.*__next__|^enumerate\(DataPipe\)#")
"""Ranges in which torch's loader makes or waits for a batch."""
WORKERS = re.compile(r"^enumerate\(DataLoader\)#(?!_SingleProcess).*__next__")
"""Those in which it waits for its worker processes."""


READY_NS = 600_000
"""What fetching a batch takes that the workers have ready: 0.53 to 0.71 ms in torch 2.13, small batches."""


def waited(facts: Facts) -> NDArray[np.int64]:
    """(n, 2) time in the windows that data loading costs: idle time of the device, or of the host that computes."""
    return facts.host(Cause.DATA_LOADING) if facts.host_computes else facts.idle(Cause.DATA_LOADING)


def single_process(facts: Facts, rows: NDArray[np.int64]) -> bool:
    """Whether the loader makes its batches in the loop itself (`num_workers=0`)."""
    return any("_SingleProcess" in facts.name(row) for row in rows.tolist())
