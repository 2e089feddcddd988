"""How much of the waiting for the last rank nothing hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup


def exposed_wait(one: MatchedGroup, chosen: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    """Exposed time of each member's collectives that is waiting, ns; of the last rank none.

    At least what its collectives are exposed beyond the transfer. Late collectives also push those after them out of
    the compute that would hide them: so it is rather what they are exposed longer than those of the last rank, which
    waits for nobody, and never more than all waiting.

    Args:
        one: the collectives of a group.
        chosen: rows of them that synchronise.
        last: place in the group of the rank that the others wait for.
    """
    wait, shown = one.wait[chosen], one.exposed[chosen]
    least = np.clip(shown - one.transfer[chosen, None], 0, wait).sum(axis=0)
    found = np.clip(shown.sum(axis=0) - shown[:, last].sum(), least, wait.sum(axis=0))
    found[last] = 0
    return np.asarray(found)
