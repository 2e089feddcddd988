"""Ranks of a run with tensor and data parallel groups, simulated: each goes on when its group is there.

Rank `tensor * d + t` is the t-th of its tensor group, which meets after every layer, and the d-th of its data group,
which meets at the end of the step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np

from tests.ranks.make import ints, rank
from traceanalyze.ranks.results import Group

MS = 1_000_000


@dataclass(frozen=True)
class Mesh:
    """All times in ns."""

    tensor: int = 2
    data: int = 2
    layers: int = 4
    steps: int = 4
    compute: int = 2 * MS
    transfer: int = MS // 10
    layer_extra: dict[int, int] = field(default_factory=dict)
    """By rank: what it takes longer for each layer."""
    step_extra: dict[int, int] = field(default_factory=dict)
    """By rank: what it takes longer once, before it meets its data group."""
    once: dict[int, int] = field(default_factory=dict)
    """By rank: what it takes longer for each layer of the second step."""
    spread: float = 0.0
    """Of the compute of each layer, at random."""
    apart: bool = False
    """Each tensor group runs for itself: a rank is alone in its data group."""

    @property
    def count(self):
        """Ranks."""
        return self.tensor * self.data

    def groups(self, number):
        """Tensor and data group of a rank."""
        row, column = divmod(number, self.tensor)
        tensor = tuple(row * self.tensor + each for each in range(self.tensor))
        data = tuple(each * self.tensor + column for each in range(self.data))
        return tensor, (number,) if self.apart else data


def run(mesh):
    """Summaries of all ranks, and when the last of them was done."""
    now = [0] * mesh.count
    calls = [[] for _ in now]
    times = [[] for _ in now]
    chance = random.Random(7)
    for step in range(mesh.steps):
        begun = list(now)
        late = [mesh.layer_extra.get(each, 0) + (step == 1) * mesh.once.get(each, 0) for each in range(mesh.count)]
        for _ in range(mesh.layers):
            now = [
                at + round(mesh.compute * chance.uniform(1, 1 + mesh.spread)) + more
                for at, more in zip(now, late, strict=True)
            ]
            now = _meet(mesh, 0, step, now, calls)
        now = [at + mesh.step_extra.get(number, 0) for number, at in enumerate(now)]
        now = _meet(mesh, 1, step, now, calls)
        for number, at in enumerate(now):
            times[number].append(at - begun[number])
    return [_summary(mesh, number, calls[number], times[number]) for number in range(mesh.count)], max(now)


def gained(mesh, without):
    """By how much a step of the run is longer than that of another mesh."""
    return (run(mesh)[1] - run(without)[1]) // mesh.steps


def _meet(mesh, which, step, now, calls):
    ends = [max(now[each] for each in mesh.groups(number)[which]) + mesh.transfer for number in range(mesh.count)]
    for number, end in enumerate(ends):
        calls[number].append((step, which, now[number], end))
    return ends


def _summary(mesh, number, calls, times):
    step, which, start, end = (list(column) for column in zip(*calls, strict=True))
    exposed = np.bincount(step, weights=np.subtract(end, start)).astype(np.int64)
    made = rank(
        number,
        *[(at, "all_reduce", 64, begin, done) for at, begin, done in zip(step, start, end, strict=True)],
        steps=[f"ProfilerStep#{each}" for each in range(mesh.steps)],
        world=mesh.count,
        compute=(np.array(times) - exposed).tolist(),
        communication=exposed.tolist(),
    )
    groups = tuple(Group(",".join(map(str, members)), members, len(members)) for members in mesh.groups(number))
    collectives = replace(made.collectives, group=ints(which))
    return replace(made, step_time=ints(times), groups=groups, collectives=collectives)
