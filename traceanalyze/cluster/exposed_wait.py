"""How much of the waiting for the last rank nothing hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.cluster.results import MatchedGroup


def bare_wait(one: MatchedGroup) -> NDArray[np.int64]:
    """(n, members) ns that each collective is exposed beyond its transfer, where that is waiting: the least of it."""
    return np.asarray(np.clip(one.exposed - one.transfer[:, None], 0, one.wait))


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
    wait, shown, bare = (values[chosen].sum(axis=0) for values in (one.wait, one.exposed, bare_wait(one)))
    return _at_least(shown - shown[last], bare, wait, np.array(last))


def exposed_wait_by_step(one: MatchedGroup, steps: int) -> NDArray[np.int64]:
    """(steps, members) the same of all collectives that synchronise, for the rank that comes last in each step."""
    rows = np.flatnonzero(one.synchronising)
    sums = np.zeros((3, steps, len(one.members)), np.int64)
    for total, values in zip(sums, (one.wait, one.exposed, bare_wait(one)), strict=True):
        np.add.at(total, one.step[rows], values[rows])
    wait, shown, bare = sums
    last = wait.argmin(axis=1)[:, None]
    return _at_least(shown - np.take_along_axis(shown, last, 1), bare, wait, last)


def _at_least(
    longer: NDArray[np.int64], bare: NDArray[np.int64], wait: NDArray[np.int64], last: NDArray[np.int64]
) -> NDArray[np.int64]:
    """`longer` between both bounds, 0 of the last member."""
    found = np.clip(longer, bare, wait)
    np.put_along_axis(found, np.atleast_1d(last), 0, -1)
    return np.asarray(found)
