"""What each sync call costs: definitions §7."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.idle import Gap, Host, Piece
    from tests.oracle.raw import Event
    from tests.oracle.trace import Trace


@dataclass(slots=True)
class Sync:
    call: Event
    terminal: bool
    idle_caused: int = 0


def costs(trace: Trace, state: Host, parts: list[tuple[Gap, list[Piece]]]) -> list[Sync]:
    """Every sync call with the idle time it causes, over gaps whose causes are cut to the analysed time."""
    last = max((call.start for call in trace.launch.values()), default=None)
    syncs = [
        Sync(call, last is None or call.start >= last)
        for call in sorted(state.syncs, key=lambda each: (each.start, each.order))
    ]
    starts = [sync.call.start for sync in syncs]
    longest = max((sync.call.end - sync.call.start for sync in syncs), default=0)
    for gap, pieces in parts:
        near = syncs[bisect_right(starts, gap.start - longest - 1) : bisect_right(starts, gap.end)]
        candidates = [sync for sync in near if _drains(sync, gap, trace)]
        if candidates:
            chosen = max(candidates, key=lambda sync: (_on_launching_thread(sync, gap), sync.call.start))
            chosen.idle_caused += sum(b - a for a, b, cause in pieces if cause not in {"data_loading", "peer_wait"})
        else:
            _share(near, pieces)
    return syncs


def _on_launching_thread(sync: Sync, gap: Gap) -> bool:
    return gap.launch is not None and sync.call.thread == gap.launch.thread


def _drains(sync: Sync, gap: Gap, trace: Trace) -> bool:
    """The gap begins while the call runs, and what ends it was launched after the call returned."""
    call = sync.call
    if not call.start <= gap.start <= call.end or gap.next is None:
        return False
    return gap.launch is None or gap.launch is call or gap.launch.start >= call.end


def _share(near: list[Sync], pieces: list[Piece]) -> None:
    """An undrained gap: time inside the call where the cause is `sync`, each instant to one call."""
    for start, end, cause in pieces:
        if cause != "sync":
            continue
        cursor = start
        for sync in near:
            a, b = max(cursor, sync.call.start), min(end, sync.call.end)
            if b > a:
                sync.idle_caused += b - a
                cursor = b
