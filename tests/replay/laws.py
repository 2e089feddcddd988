"""What holds for the replay of any recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.intervals import Intervals
from traceanalyze.replay.graph import graph
from traceanalyze.replay.longest import longest
from traceanalyze.replay.replay import Change, replay

if TYPE_CHECKING:
    from traceanalyze.analyses.context import Context


def gives_itself_back(context: Context) -> None:
    """Without a change every recorded time comes back, and every window."""
    program = context.once(graph)
    assert longest(program.edges, program.weight, program.earliest).tolist() == program.time.tolist()
    again = replay(context, Change())
    assert again.start.tolist() == context.all_steps.start.tolist()
    assert again.end.tolist() == context.all_steps.end.tolist()
    assert not len(again.idle.start)


def never_later(context: Context, changes: list[Change]) -> None:
    """Each change takes out more than the one before: no window ends later, and none earlier than all that is gone."""
    steps = context.all_steps
    before = steps.end
    for change in changes:
        again = replay(context, change)
        assert (again.end <= before).all()
        assert (again.start >= steps.start[0]).all()
        assert steps.end[-1] - again.end[-1] <= most(context, change)
        idle = intervals.merge(*again.idle)
        assert intervals.total(idle) == int((again.idle.end - again.idle.start).sum())
        before = again.end


def most(context: Context, change: Change) -> int:
    """All that a change takes out."""
    calls, batches = context.calls, context.once(graph).batches
    begun = intervals.contains(change.host, calls.start)
    begun[change.calls] = True
    waits = int((calls.end - calls.start)[begun].sum())
    fetched = intervals.contains(change.host, batches.begin) | bool(change.batches)
    waits += int((context.once(graph).time[batches.point] - batches.begin)[fetched].sum())
    return intervals.total(change.host) + waits + int(change.shorter.sum())


def growing(context: Context, seed: int) -> list[Change]:
    """Changes of random size, each with all of the one before."""
    random = np.random.default_rng(seed)
    steps, calls, device = context.all_steps, context.calls, context.device
    first, last = int(min(steps.host_start[0], steps.start[0])), int(steps.end[-1]) + 1
    edges = np.sort(random.integers(first, last, 12))
    spans = Intervals(edges[::2], edges[1::2])
    chosen = random.permutation(len(calls))[: len(calls) // 3]
    events = random.permutation(len(device))[: len(device) // 3]
    lengths = (device.end - device.start)[events]
    changes = [
        Change(),
        Change(host=intervals.merge(spans.start[:3], spans.end[:3])),
        Change(host=intervals.merge(*spans)),
    ]
    changes.append(changes[-1]._replace(calls=chosen))
    changes.append(changes[-1]._replace(events=events, shorter=lengths // 3))
    changes.append(changes[-1]._replace(shorter=lengths, batches=True))
    return changes
