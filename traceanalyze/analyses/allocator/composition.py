"""What the memory of a moment consists of: live blocks by category and source line (detector D9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.lifetimes import BEFORE
from traceanalyze.analyses.allocator.results import Holder
from traceanalyze.model.snapshot import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.allocator.layout import Layout
    from traceanalyze.analyses.allocator.lifetimes import Lifetimes
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.model.snapshot import History

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
