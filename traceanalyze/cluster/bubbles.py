"""Time in which a rank only sends or receives: in a pipeline, its bubbles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.cluster.match import POINT_TO_POINT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.cluster.results import RankSummary


def point_to_point(rank: RankSummary, rows: NDArray[np.int64]) -> int:
    """Exposed time of sends and receives in some steps, ns.

    How much of it is waiting cannot be told: a receive begins when the rank is ready, and ends when the data is there.
    """
    own = rank.collectives
    chosen = POINT_TO_POINT[own.kind] & np.isin(own.step, rows)
    return int(own.exposed[chosen].sum())
