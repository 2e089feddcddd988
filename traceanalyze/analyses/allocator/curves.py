"""Bytes after every event: requested bytes of live blocks and reserved bytes, anchored at the dump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.frozen import frozen
from traceanalyze.model.snapshot import Action, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceanalyze.model.snapshot import SnapshotDevice

_RESERVE = {
    Action.SEGMENT_ALLOC: 1,
    Action.SEGMENT_MAP: 1,
    Action.SEGMENT_FREE: -1,
    Action.SEGMENT_UNMAP: -1,
}


@frozen
class Curve:
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
    freeing = Action.FREE_COMPLETED if (history.action == Action.FREE_COMPLETED).any() else Action.FREE_REQUESTED
    sign = np.zeros(len(Action), np.int64)
    sign[Action.ALLOC], sign[freeing] = 1, -1
    final = int(blocks.requested[blocks.state != State.INACTIVE].sum())
    return _anchored(sign[history.action] * history.size, final)


def reserved_curve(device: SnapshotDevice) -> Curve:
    """Bytes of all segments, with what expandable segments map and unmap."""
    sign = np.zeros(len(Action), np.int64)
    for action, direction in _RESERVE.items():
        sign[action] = direction
    return _anchored(sign[device.history.action] * device.history.size, int(device.segments.size.sum()))


def _anchored(change: NDArray[np.int64], final: int) -> Curve:
    """The dump is complete, so the sum of the history's changes says what there was before it."""
    base = final - int(change.sum())
    return Curve(base, base + np.cumsum(change))
