"""What the memory of a moment consists of: live blocks by category and source line (detector D9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.memory.lifetimes import BEFORE
from traceanalyze.analyses.memory.results import Holder
from traceanalyze.frozen import frozen
from traceanalyze.model.snapshot import Action, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.memory.layout import Layout
    from traceanalyze.analyses.memory.lifetimes import Lifetimes
    from traceanalyze.analyses.memory.results import AllocatorAnalysis, Moment
    from traceanalyze.analyses.memory.sites import Site
    from traceanalyze.model.snapshot import History, SnapshotDevice

CATEGORIES = (
    "preexisting",
    "transient",
    "gradients",
    "backward",
    "optimizer",
    "activations",
    "parameters",
    "other",
)
"""The first that fits: allocated before the history; freed within `SHORT` later allocations; kept by AccumulateGrad; on
the autograd engine; under a step of torch.optim; under a module call and freed later; outside modules and alive at the
dump; the rest."""
SHORT = 10
"""Later allocations within which a block is freed again to be short-lived (memory-snapshot specification, D7)."""


def short_lived(lives: Lifetimes, history: History) -> NDArray[np.bool_]:
    """Blocks freed within `SHORT` later allocations."""
    count = len(history)
    before = np.concatenate(([0], np.cumsum(history.action == Action.ALLOC)))
    inside = (lives.begin != BEFORE) & (lives.end < count)
    later = before[np.minimum(lives.end, count)] - before[np.maximum(lives.begin, 0) + 1 if count else 0]
    found: NDArray[np.bool_] = inside & (later <= SHORT)
    return found


def categories(lives: Lifetimes, history: History, sites: Sequence[Site]) -> NDArray[np.uint8]:
    """Index into `CATEGORIES` of every block."""

    def of_stack(flag: str) -> NDArray[np.bool_]:
        return np.array([getattr(site, flag) for site in sites], np.bool_)[lives.stack]

    alive = lives.end == len(history)
    tests = (
        lives.begin == BEFORE,
        short_lived(lives, history),
        of_stack("gradient"),
        of_stack("backward"),
        of_stack("optimizer"),
        of_stack("in_module") & ~alive,
        ~of_stack("in_module") & alive,
    )
    return np.select(tests, np.arange(len(tests)), len(tests)).astype(np.uint8)


def live_at(lives: Lifetimes, event: int) -> NDArray[np.int64]:
    """Blocks alive just after an event, -1 for before the first."""
    return np.flatnonzero((lives.begin <= event) & (lives.end > event))


def first_of_line(sites: Sequence[Site]) -> NDArray[np.int64]:
    """For every site the first one with the same line: what tells lines apart."""
    lines = {site.line: index for index, site in reversed(list(enumerate(sites)))}
    return np.array([lines[site.line] for site in sites], np.int64)


def holders(
    lives: Lifetimes, layout: Layout, category: NDArray[np.uint8], sites: Sequence[Site], event: int
) -> tuple[Holder, ...]:
    """Live blocks just after an event by category and line, most block bytes first."""
    live = live_at(lives, event)
    key = first_of_line(sites)[lives.stack[live]] * len(CATEGORIES) + category[live]
    distinct, of = np.unique(key, return_inverse=True)
    of = of.reshape(-1)
    size = len(distinct)
    blocks = np.bincount(of, minlength=size)
    requested = np.bincount(of, lives.requested[live], size).astype(np.int64)
    allocated = np.bincount(of, layout.size[live], size).astype(np.int64)
    oldest = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(oldest, of, lives.begin[live])
    rows = [
        Holder(
            CATEGORIES[code % len(CATEGORIES)],
            sites[code // len(CATEGORIES)].line,
            sites[code // len(CATEGORIES)].library,
            sites[code // len(CATEGORIES)].path,
            *numbers,
        )
        for code, *numbers in zip(
            distinct.tolist(), blocks.tolist(), requested.tolist(), allocated.tolist(), oldest.tolist(), strict=True
        )
    ]
    return tuple(sorted(rows, key=lambda row: (-row.allocated, row.line, row.category)))


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


@frozen
class LineChange:
    """Block bytes of one line and category at the peaks of both sides; all rows sum to the peaks."""

    line: str
    category: str
    base: int
    candidate: int
    base_blocks: int
    candidate_blocks: int

    @property
    def change(self) -> int:
        """Candidate minus base."""
        return self.candidate - self.base


@frozen
class Difference:
    """The peaks of two snapshots, each of the device that reserves most."""

    base: Moment
    candidate: Moment
    rows: tuple[LineChange, ...]
    """Largest change first."""


def difference(base: Sequence[AllocatorAnalysis], candidate: Sequence[AllocatorAnalysis]) -> Difference | None:
    """Compare the peaks; None when a side has no device."""
    if not base or not candidate:
        return None
    first, second = (max(side, key=lambda one: one.moments[0].reserved).moments[0] for side in (base, candidate))
    sums: dict[tuple[str, str], list[int]] = {}
    for at, moment in enumerate((first, second)):
        for one in moment.holders:
            entry = sums.setdefault((one.line, one.category), [0, 0, 0, 0])
            entry[at] += one.allocated
            entry[2 + at] += one.blocks
    rows = [LineChange(line, category, *numbers) for (line, category), numbers in sums.items()]
    return Difference(first, second, tuple(sorted(rows, key=lambda row: (-abs(row.change), row.line, row.category))))
