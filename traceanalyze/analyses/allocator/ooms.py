"""Why a request failed, by the state at that moment (detector D5); the dump comes later and shows something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.analyses.allocator.results import OutOfMemory
from traceanalyze.analyses.allocator.rounding import SMALL
from traceanalyze.model.snapshot import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.allocator.curves import Curve
    from traceanalyze.analyses.allocator.holes import Free
    from traceanalyze.analyses.allocator.layout import Layout
    from traceanalyze.analyses.allocator.sites import Site
    from traceanalyze.model.snapshot import History

OTHERS_SHARE = 0.9
"""Reserved and free bytes of the device below this share of its capacity: something else holds the rest."""


def oom_events(history: History) -> tuple[int, ...]:
    """Events at which a request failed."""
    return tuple(np.flatnonzero(history.action == Action.OOM).tolist())


def out_of_memory(
    history: History, layout: Layout, reserved: Curve, sites: Sequence[Site], capacity: int | None
) -> tuple[OutOfMemory, ...]:
    """Every failed request with its cause."""
    found = []
    for event in oom_events(history):
        request, stream = int(history.size[event]), int(history.stream[event])
        free = layout.watched.get(event, ())
        own = [one for one in free if (one.domain.stream, one.domain.large) == (stream, request > SMALL)]
        other = max((one.largest for one in free if one not in own), default=0)
        available, hole = sum(one.bytes for one in own), max((one.largest for one in own), default=0)
        device_free = history.device_free.get(event)
        found.append(
            OutOfMemory(
                event=event,
                request=request,
                free=available,
                largest_hole=hole,
                elsewhere=other,
                device_free=device_free,
                kind=_kind(request, own, other, device_free, reserved.at(event), capacity),
                line=sites[int(history.stack[event])].line,
            )
        )
    return tuple(found)


def _kind(
    request: int, own: Sequence[Free], other: int, device_free: int | None, reserved: int, capacity: int | None
) -> str:
    available, hole = sum(one.bytes for one in own), max((one.largest for one in own), default=0)
    if max(hole, other) >= request:
        return "isolation"
    if available >= request:
        return "fragmentation"
    if device_free is None:
        return "unknown"
    if available + device_free >= request:
        return "split"
    if capacity is not None and reserved + device_free < OTHERS_SHARE * capacity:
        return "other_processes"
    return "capacity"
