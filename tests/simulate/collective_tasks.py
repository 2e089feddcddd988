"""What a collective does on its planes: say that one is here, wait for the peers, move data in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulate.noise import scattered
from tests.simulate.schedule import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulate.schedule import Work

PLANES = 3
"""Beside plane 0, which moves data within the device."""
_RECORD = 700
_LEAST = 8_000
"""Shorter transfers are one task on one plane."""


def collective_tasks(work: Work, all_here: int, last: int, rank: int, ranks: int, block: int = 1) -> tuple[Task, ...]:
    """Tasks of one collective: it waits from its start until all ranks are here, and transfers until its end.

    What moves between ranks is a multiple of `block` bytes.
    """
    here = max(work.start, min(all_here, work.end))
    peers = [(rank + 1 + plane % (ranks - 1)) % ranks for plane in range(PLANES)]
    late = next((plane for plane, peer in enumerate(peers, start=1) if peer == last), 0)
    if work.end - here < _LEAST:
        return (Task("Memcpy", 1, here, work.end, peers[0], work.bytes // block * block),)
    found = list(_local(work, here, rank))
    for plane, peer in enumerate(peers, start=1):
        found += _waiting(work, here, plane, peer, late=plane == late)
        found += _moving(work, here, plane, peer, block)
    return tuple(found)


def _local(work: Work, here: int, rank: int) -> Iterator[Task]:
    """The device copies its own part while it waits for the others."""
    yield Task("Reduce_Inline", 0, work.start, work.start + 600, rank, 4)
    if here - work.start > 6_000:
        yield Task("Memcpy", 0, work.start + 1_820, work.start + 5_180, rank, work.bytes // 4)


def _waiting(work: Work, here: int, plane: int, peer: int, *, late: bool) -> Iterator[Task]:
    """One plane waits for the rank that comes last; the others see their peers earlier."""
    begin = work.start + 600 + 280 * plane
    yield Task("Notify_Record", plane, begin, begin + _RECORD, peer)
    begin += _RECORD + 100
    left = max(0, here - begin)
    share = left if late else scattered(left // 3, 0.9, "plane wait", plane, work.name, work.start)
    yield Task("Notify_Wait", plane, begin, begin + share, peer)


def _moving(work: Work, here: int, plane: int, peer: int, block: int) -> Iterator[Task]:
    """Reduce what comes in, then pass on the result: of the three kinds of collective only the one needs both."""
    begin, end = here + 2_700 + 90 * plane, work.end - 500 - 140 * plane
    part = work.bytes // PLANES
    kind = work.family
    if kind != "all_reduce":
        yield Task(
            "Memcpy" if kind == "all_gather" else "Reduce_Inline", plane, begin, end, peer, part // block * block
        )
        return
    half = part // 2 // block * block
    middle = begin + (end - begin) // 2
    yield Task("Reduce_Inline", plane, begin, middle - 900, peer, half)
    yield Task("Notify_Record", plane, middle - 900, middle - 200, peer)
    yield Task("Notify_Wait", plane, middle - 200, middle, peer)
    yield Task("Memcpy", plane, middle, end, peer, half)
