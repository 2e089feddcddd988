"""What rules about data loading share: the loader's ranges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traceanalyze.rules.facts import Facts

LOADER = re.compile(r"^enumerate\(DataLoader\)#.*__next__|^enumerate\(DataPipe\)#")
"""Ranges in which torch's loader makes or waits for a batch."""
WORKERS = re.compile(r"^enumerate\(DataLoader\)#(?!_SingleProcess).*__next__")
"""Those in which it waits for its worker processes."""


def single_process(facts: Facts, rows: NDArray[np.int64]) -> bool:
    """Whether the loader makes its batches in the loop itself (`num_workers=0`)."""
    return any("_SingleProcess" in facts.name(row) for row in rows.tolist())
