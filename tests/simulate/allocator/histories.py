"""Random programs on the simulated allocator, one for each seed: everything at once that a real history may hold."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tests.simulate.allocator.pool import DEFAULT, KIB, MIB, Allocator, OutOfMemoryError

if TYPE_CHECKING:
    from tests.simulate.allocator.pool import Pool

STREAMS = {"cuda": (0, 7), "npu": (1276474240, 1276475264)}
"""Those of NPUs are pointers."""
GRAPH: Pool = (0, 1)


class Recorded(NamedTuple):
    """A program that ran, and what its snapshot shows of it."""

    allocator: Allocator
    vendor: str
    keep: int
    """Newest events that the ring still has."""
    pool_ids: bool


def recorded(seed: int, *, steps: int = 150) -> Recorded:
    """Blocks of all sizes come and go, in phases of other sizes: streams, late frees, graphs, `empty_cache`, OOMs."""
    chance = random.Random(seed)
    npu, expandable = chance.random() < 0.25, chance.random() < 0.45
    allocator = Allocator(
        capacity=chance.choice((60, 120, 300, 4000)) * MIB,
        expandable=expandable,
        pad=32 if npu else 0,
        reuse=chance.random() < 0.8,
        aligned=npu,
        max_split=None if expandable or npu or chance.random() < 0.8 else 30 * MIB,
    )
    streams, graphs = STREAMS["npu" if npu else "cuda"], chance.random() < 0.3
    sizes = _sizes(chance)
    for _ in range(steps):
        frames = [{"name": "step", "filename": "train.py", "line": chance.randrange(40)}]
        if chance.random() < 0.04:
            sizes = _sizes(chance)
        what = chance.choices(("malloc", "free", "empty", "sweep", "graph"), (50, 40, 2, 2, 2))[0]
        blocks = list(allocator.live)
        if what == "malloc":
            pool = GRAPH if graphs and chance.random() < 0.2 else DEFAULT
            with suppress(OutOfMemoryError):
                allocator.malloc(chance.choice(sizes), frames, chance.choice(streams), pool)
        elif what == "free" and blocks:
            allocator.free(chance.choice(blocks), frames, late=chance.random() < 0.15)
        elif what == "empty":
            allocator.empty_cache(frames)
        elif what == "sweep" or (what == "graph" and graphs):
            for address in blocks:
                if chance.random() < (0.9 if what == "sweep" else 0) or (
                    what == "graph" and allocator.live[address].segment.pool == GRAPH
                ):
                    allocator.free(address, frames)
            if what == "graph":
                allocator.given_up.add(GRAPH)
                allocator.empty_cache(frames)
                allocator.given_up.clear()
    # What tells the padding: a block whose request fills it.
    with suppress(OutOfMemoryError):
        kept = [allocator.malloc(64 * KIB, frames, streams[0]) for _ in range(3)]
        allocator.free(kept[0], frames, late=True)
    count = len(allocator.events)
    keep = count if chance.random() < 0.4 else _whole_calls(allocator, chance.randrange(1, count + 1))
    return Recorded(allocator, "npu" if npu else "cuda", keep, chance.random() < 0.5)


def _sizes(chance: random.Random) -> list[int]:
    """What one phase of a program asks for."""
    kinds = (
        lambda: chance.randrange(1, 4 * KIB),
        lambda: chance.randrange(1, MIB),
        lambda: chance.choice((512, 513, MIB, MIB + 1)),
        lambda: chance.randrange(MIB + 1, 4 * MIB),
        lambda: chance.randrange(4 * MIB, 20 * MIB),
        lambda: chance.choice((10, 20, 30)) * MIB + chance.choice((0, 5)),
        lambda: chance.randrange(20 * MIB, 60 * MIB),
    )
    return [kind() for kind in chance.choices(kinds, k=6)]


def _whole_calls(allocator: Allocator, keep: int) -> int:
    """A call is recorded whole or not at all: cut before an event that begins one."""
    frames = [event.get("frames") for event in allocator.events]
    while 0 < keep < len(frames) and frames[-keep] is frames[-keep - 1]:
        keep -= 1
    return keep
