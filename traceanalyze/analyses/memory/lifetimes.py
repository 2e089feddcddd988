"""Every block that lived during the history: from which event to which, how large, and allocated where; their sums."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.memory.holes import GROWTH, RELEASE
from traceanalyze.model.patterns import dataclass
from traceanalyze.model.snapshot import Action, SnapshotDevice, State

BEFORE = -1
"""In place of an event: allocated before the first event of the history."""


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """One row a block: first those allocated before the history, then the others by their allocation.

    `begin` is the event of the allocation (`BEFORE` for earlier ones); `end` the event that gave the block back, the
    number of events for blocks alive at the dump. `requested` bytes; `block` the row in `SnapshotDevice.blocks` of a
    block alive at the dump, else -1.
    """

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    address: NDArray[np.int64]
    requested: NDArray[np.int64]
    stack: NDArray[np.int32]
    block: NDArray[np.int64]
    disorder: int
    """Events that contradict each other: a block allocated twice, or freed twice."""
    mismatched: int
    """Blocks allocated in the history and not freed, of which the dump knows nothing or another size."""

    def __len__(self) -> int:
        return len(self.begin)


def lifetimes(device: SnapshotDevice) -> Lifetimes:
    """Pair allocations with frees by address, and what is left with the blocks of the dump."""
    history, blocks = device.history, device.blocks
    count = len(history)
    freeing = _freeing(device)
    allocs, frees, disorder = _paired(history.action == Action.ALLOC, freeing, history.address)
    begin = np.flatnonzero(history.action == Action.ALLOC)
    end = np.full(count, count, np.int64)
    end[allocs] = frees
    early = np.setdiff1d(np.flatnonzero(freeing), frees, assume_unique=True)
    live = np.flatnonzero(blocks.state != State.INACTIVE)
    open_ = begin[end[begin] == count]
    block_of, mismatched = _blocks_of(history.address[open_], history.size[open_], device, live)
    block = np.full(count, -1, np.int64)
    block[open_] = block_of
    ghost = np.setdiff1d(live, block_of[block_of >= 0], assume_unique=True)
    return Lifetimes(
        begin=np.concatenate((np.full(len(ghost) + len(early), BEFORE), begin)),
        end=np.concatenate((np.full(len(ghost), count), early, end[begin])),
        address=np.concatenate((blocks.address[ghost], history.address[early], history.address[begin])),
        requested=np.concatenate((blocks.requested[ghost], history.size[early], history.size[begin])),
        stack=np.concatenate((blocks.stack[ghost], np.full(len(early), -1, np.int32), history.stack[begin])),
        block=np.concatenate((ghost, np.full(len(early), -1), block[begin])),
        disorder=disorder,
        mismatched=mismatched,
    )


def _freeing(device: SnapshotDevice) -> NDArray[np.bool_]:
    """Events that give a block back; recording may skip one of the two kinds, or end before a block is given back."""
    history, blocks = device.history, device.blocks
    found: NDArray[np.bool_] = history.action == Action.FREE_COMPLETED
    if found.any():
        return found
    found = history.action == Action.FREE_REQUESTED
    pending = blocks.address[blocks.state == State.PENDING_FREE]
    asked = np.flatnonzero(found & np.isin(history.address, pending))[::-1]
    found[asked[np.unique(history.address[asked], return_index=True)[1]]] = False
    return found


def _paired(
    opens: NDArray[np.bool_], closes: NDArray[np.bool_], address: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Allocations and the frees that follow them at the same address; how many events contradict."""
    event = np.flatnonzero(opens | closes)
    order = event[np.argsort(address[event], kind="stable")]
    this, following = order[:-1], order[1:]
    same = address[this] == address[following]
    paired = same & opens[this] & closes[following]
    disorder = int((same & (opens[this] != closes[following])).sum())
    return this[paired], following[paired], disorder


def _blocks_of(
    address: NDArray[np.int64], size: NDArray[np.int64], device: SnapshotDevice, live: NDArray[np.int64]
) -> tuple[NDArray[np.int64], int]:
    """Row of the live block at each address with the size asked for, -1 for none; how many have none."""
    blocks = device.blocks
    if len(live) == 0 or len(address) == 0:
        return np.full(len(address), -1, np.int64), len(address)
    order = live[np.argsort(blocks.address[live], kind="stable")]
    at = np.searchsorted(blocks.address[order], address)
    at[at == len(order)] = 0
    found = (blocks.address[order[at]] == address) & (blocks.requested[order[at]] == size)
    return np.where(found, order[at], -1), int((~found).sum())


class Curve(NamedTuple):
    """A quantity before the first event (`base`) and after each event."""

    base: int
    after: NDArray[np.int64]

    @property
    def peak(self) -> tuple[int, int]:
        """Highest value and the first event after which it holds; event -1: already before the history."""
        if len(self.after) == 0 or self.base >= int(self.after.max()):
            return self.base, -1
        at = int(self.after.argmax())
        return int(self.after[at]), at

    def at(self, event: int) -> int:
        """Value after an event, -1 for the time before the first."""
        return self.base if event < 0 else int(self.after[event])


def active_curve(device: SnapshotDevice) -> Curve:
    """Requested bytes of blocks not yet given back."""
    history, blocks = device.history, device.blocks
    sign = (history.action == Action.ALLOC).astype(np.int64) - _freeing(device)
    final = int(blocks.requested[blocks.state != State.INACTIVE].sum())
    return _anchored(sign * history.size, final)


def reserved_curve(device: SnapshotDevice) -> Curve:
    """Bytes of all segments, with what expandable segments map and unmap."""
    sign = np.zeros(len(Action), np.int64)
    sign[list(GROWTH)], sign[list(RELEASE)] = 1, -1
    return _anchored(sign[device.history.action] * device.history.size, int(device.segments.size.sum()))


def _anchored(change: NDArray[np.int64], final: int) -> Curve:
    """The dump is complete, so the sum of the history's changes says what there was before it."""
    base = final - int(change.sum())
    return Curve(base, base + np.cumsum(change))
