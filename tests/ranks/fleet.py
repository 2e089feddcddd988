"""Runs of many ranks as arrays: tensor groups on one machine each, pipeline stages, data groups across machines.

Rank `(stage * data + d) * tensor + t`. After each layer a tensor group meets, at the end of the step a data group, and
then all ranks. Ranks go on when their group is there, so that who is late is who was made late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tests.builder import TraceBuilder
from traceanalyze.analyses.idle.idle import IdleCauses
from traceanalyze.analyses.results import RankAnalysis
from traceanalyze.analyses.steps.partition import Partition
from traceanalyze.analyses.steps.split import device_parts, split
from traceanalyze.analyses.steps.window import Steps, window_of
from traceanalyze.model.collectives import TYPES
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.trace import Trace
from traceanalyze.model.vocabulary import Cause, Mode
from traceanalyze.pipeline.recordings import AnalysedRank
from traceanalyze.ranks.results import Group, KernelTimes, RankCollectives, RankSummary, members_of

MS = 1_000_000
LISTED = 30
"""Ranks of a group that torch lists in events; of longer groups it writes the size."""


@dataclass(frozen=True)
class Fleet:
    """All times in ns."""

    tensor: int = 8
    data: int = 1
    stages: int = 1
    layers: int = 8
    steps: int = 4
    compute: int = 2 * MS
    """Of each layer."""
    transfer: int = MS // 10
    spread: float = 0.002
    """Of the compute of each layer, at random."""
    extra: Mapping[int, int] = field(default_factory=dict)
    """By rank: what it takes longer for each layer."""
    slower: Mapping[int, float] = field(default_factory=dict)
    """By rank: how many times as long its kernels take."""
    slow: Mapping[str, int] = field(default_factory=dict)
    """By name of a group: what its collectives take longer on all of its ranks."""
    kernels: int = 32
    named: bool = True
    """Whether recordings list the members of all groups (`pg_config`), of whatever size."""
    sized: bool = True
    """Whether they tell at least how large a group is."""
    seed: int = 0

    @property
    def count(self) -> int:
        """Ranks."""
        return self.tensor * self.data * self.stages

    @property
    def groups(self) -> list[tuple[str, np.ndarray]]:
        """By name, (groups, members) ranks."""
        ranks = np.arange(self.count).reshape(self.stages, self.data, self.tensor)
        found = [
            ("tp", ranks.reshape(-1, self.tensor)),
            ("dp", ranks.transpose(0, 2, 1).reshape(-1, self.data)),
            ("pp", ranks.transpose(1, 2, 0).reshape(-1, self.stages)),
            ("world", ranks.reshape(1, -1)),
        ]
        return [(name, table) for name, table in found if table.shape[1] > 1]


def late_fleet(ranks: int, **settings) -> Fleet:
    """Ranks in tensor groups of up to eight, from 64 ranks on in two stages."""
    tensor = min(8, ranks)
    stages = 2 if ranks >= 64 else 1
    return Fleet(tensor=tensor, data=ranks // tensor // stages, stages=stages, **settings)


def fleet_summaries(fleet: Fleet, recorded: Sequence[int] | None = None) -> list[RankSummary]:
    """Of the recorded ranks, in their order."""
    random = np.random.default_rng(fleet.seed)
    count, groups = fleet.count, fleet.groups
    extra, speed = np.zeros(count, np.int64), np.ones(count)
    extra[list(fleet.extra)] = list(fleet.extra.values())
    speed[list(fleet.slower)] = list(fleet.slower.values())
    clock = np.arange(count) * 1_000_003 + 1_700_000_000 * 10**9
    now = np.zeros(count, np.int64)
    calls: list[tuple[int, int, np.ndarray, np.ndarray]] = []
    times, computed = [], []

    def meet(step: int, which: int) -> np.ndarray:
        name, table = groups[which]
        took = [fleet.transfer + fleet.slow.get(f"{name}{at}", 0) for at in range(len(table))]
        end = np.empty(count, np.int64)
        end[table] = (now[table].max(axis=1) + took)[:, None]
        calls.append((step, which, now, end))
        return end

    place = {name: at for at, (name, _) in enumerate(groups)}
    for step in range(fleet.steps):
        begun, work = now, np.zeros(count, np.int64)
        for _ in range(fleet.layers):
            own = (fleet.compute * speed * random.uniform(1, 1 + fleet.spread, count)).astype(np.int64) + extra
            now, work = now + own, work + own
            now = meet(step, place["tp"])
        for name in ("dp", "world"):
            if name in place:
                now = meet(step, place[name])
        times.append(now - begun)
        computed.append(work)
    start, end = (np.stack([each[at] for each in calls], axis=1) for at in (2, 3))
    step_of, which = (np.array([each[at] for each in calls], np.int64) for at in (0, 1))
    step_time, compute = np.stack(times, axis=1), np.stack(computed, axis=1)
    known = [_known(fleet, name, table) for name, table in groups]
    column = [np.argsort(table.ravel(), kind="stable") // table.shape[1] for _, table in groups]
    base = random.integers(20_000, 400_000, fleet.kernels)
    medians = (base * speed[:, None] * random.uniform(1, 1.01, (count, fleet.kernels))).astype(np.int64)
    names = tuple(f"void cutlass::gemm_kernel_{at}<128, 128, 32>(...)" for at in range(fleet.kernels))
    what = ("[[4096, 4096], [4096, 4096]] [128, 1, 1]",) * fleet.kernels
    kind = np.full(len(calls), TYPES.index("all_reduce"), np.int64)
    size = np.array([2**20, 2**24, 64, 64])[which]
    steps, ones = tuple(f"ProfilerStep#{each}" for each in range(fleet.steps)), np.ones(fleet.steps, np.bool_)
    unknown, runs = np.full(len(calls), -1, np.int64), np.full(fleet.kernels, 40, np.int64)
    found = []
    for rank in range(count) if recorded is None else recorded:
        own = [(name, *of[column[at][rank]]) for at, ((name, _), of) in enumerate(zip(groups, known, strict=True))]
        shown = end[rank] - start[rank]
        found.append(
            RankSummary(
                rank=rank,
                label=str(rank),
                world_size=count,
                steps=steps,
                marked=True,
                counted=ones,
                step_time=step_time[rank],
                parts={
                    "compute": compute[rank],
                    "communication": step_time[rank] - compute[rank],
                    **{part: np.zeros(fleet.steps, np.int64) for part in ("dispatch", "data_loading", "untraced")},
                },
                groups=tuple(group for _, group, _ in own),
                collectives=RankCollectives(
                    which,
                    kind,
                    size,
                    step_of,
                    start[rank] + clock[rank],
                    end[rank] + clock[rank],
                    shown,
                    unknown,
                    unknown,
                    np.arange(len(calls)),
                ),
                links=(),
                group_names={name: members for name, _, members in own if members},
                host=f"node{rank // 8:05d}",
                device="NVIDIA H100 80GB HBM3",
                recorded={"with_stack": "off", "record_shapes": "on", "profile_memory": "off"},
                kernels=KernelTimes(names, what, runs, medians[rank] * runs, medians[rank]),
            )
        )
    return found


def _known(fleet: Fleet, name: str, table: np.ndarray) -> list[tuple[Group, Sequence[int]]]:
    """Each group as its members know it, and what the header lists."""
    size = table.shape[1]
    found = []
    for at, ranks in enumerate(table.tolist()):
        members = members_of(ranks)
        if fleet.named or size <= LISTED:
            found.append((Group(f"{name}{at}", members, size), members))
        else:
            found.append((Group(f"{name}{at}", (), size if fleet.sized else 0), ()))
    return found


def fleet_ranks(summaries: Sequence[RankSummary], cut: Collection[int] = ()) -> list[AnalysedRank]:
    """The same as the pipeline has them, of files with the device work that summaries tell; some are `cut` short."""
    device = TraceBuilder()
    device.step(1, 0, 100)
    device.launch(10, 2, 20, 30)
    small = device.trace()
    return [_analysed(each, small, whole=each.rank not in cut) for each in summaries]


def _analysed(one: RankSummary, small: Trace, *, whole: bool) -> AnalysedRank:
    origin = small.origin._replace(path=f"rank{one.rank}.json", rank=one.rank, host=one.host, world_size=one.world_size)
    trace = replace(small, origin=origin, read=small.read._replace(truncated=not whole))
    end = np.cumsum(one.step_time)
    start, count = end - one.step_time, len(one.steps)
    none, flags = np.zeros(count, np.int64), np.ones(count, np.bool_)
    steps = Steps(one.steps, start, end, start, end, none + 1, flags, 0, 0)
    compute, communication = one.parts["compute"], one.parts["communication"]
    main = Partition(
        0, compute, communication, none, none, communication, none, one.step_time, compute, communication, none
    )
    idle = IdleCauses(np.zeros((count, len(Cause)), np.int64))
    tables = [split(device_parts(main, idle, {}), window_of(steps), marked=True, notes=())]
    analysis = RankAnalysis(
        trace, Mode.STEPS, steps, 0, (main,), idle, NotMeasured("no_host_ops"), (), {each.key: each for each in tables}
    )
    return AnalysedRank(analysis, compared=one)
