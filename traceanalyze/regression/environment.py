"""What a run was recorded on and with, and whether two sides can be compared at all."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from traceanalyze.analyses.context import Context
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.regression.measures import RankSteps
from traceanalyze.regression.samples import Environment, EnvironmentValue, RunSample

KEYS = (
    *("device", "device_count", "world_size", "parallel", "torch", "torch_npu", "cuda", "cann", "driver"),
    *("profiler_options", "step_marker", "usable_steps", "host", "format", "tool_version"),
)
DEFAULT_MATCH = ("device", "world_size", "torch", "profiler_options")
_BY_REPEAT = frozenset({"usable_steps", "host"})
"""Differ between repeats of the same job: no news."""
_MOST_OPS = 200


class Difference(NamedTuple):
    """A key in which the sides differ, and the values of each."""

    key: str
    baseline: tuple[EnvironmentValue, ...]
    candidate: tuple[EnvironmentValue, ...]


def rank_environment(rank: RankSteps, tool_version: str) -> Environment:
    """The keys that one rank's recording tells; `device_count` and `world_size` are those of the rank alone."""
    context = rank.side.context
    trace = context.trace
    versions = trace.versions
    return {
        "device": rank.side.info.device_name,
        "device_count": len(context.devices) if len(context.device) else 0,
        "world_size": trace.origin.world_size,
        "parallel": tuple(sorted(f"{name}:{len(ranks)}" for name, ranks in trace.groups.items())) or None,
        "torch": versions.get("torch"),
        "torch_npu": versions.get("torch_npu"),
        "cuda": versions.get("cuda_runtime") or versions.get("hip_runtime"),
        "cann": versions.get("cann"),
        "driver": versions.get("cuda_driver"),
        "profiler_options": _profiler_options(rank),
        "step_marker": _marker(context),
        "usable_steps": rank.count,
        "host": hashlib.sha256(trace.origin.host.encode()).hexdigest()[:12] if trace.origin.host else None,
        "format": trace.origin.format,
        "tool_version": tool_version,
    }


def _marker(context: Context) -> str | None:
    if context.markers is None:
        return None
    asked = context.options.classify.step_marker
    return asked.pattern if asked is not None else "ProfilerStep" if context.markers.iterations is None else "iteration"


def _profiler_options(rank: RankSteps) -> tuple[str, ...]:
    """What was recorded, as the recording states and shows it: each of it costs host time."""
    context = rank.side.context
    events, stated = context.trace.events, context.trace.options
    shown = {
        "device": len(context.device) > 0,
        "host": len(context.host_rows) > 0,
        "runtime": len(context.calls) > 0,
        "shapes": stated.get("record_shapes", False) or "shapes" in events.fields,
        "stacks": stated.get("with_stack", False)
        or bool((context.kind == EventKind.PYTHON).any())
        or "stack" in events.fields,
        "memory": stated.get("profile_memory", False) or "bytes" in context.trace.instants.fields,
        "flops": stated.get("with_flops", False),
    }
    level = context.trace.origin.level
    return (*(name for name, there in shown.items() if there), *([level] if level else []))


def workload(rank: RankSteps) -> dict[str, float]:
    """Runs of each operator per usable step, the most frequent ones."""
    context = rank.side.context
    rows = np.flatnonzero(context.kind == EventKind.HOST_OP)
    rows = rows[rank.of_host(context.trace.events.ts[rows]) >= 0]
    codes, count = np.unique(context.trace.events.name[rows], return_counts=True)
    order = np.lexsort((codes, -count))[:_MOST_OPS]
    text = context.trace.strings.text
    return {text(int(codes[at])): round(int(count[at]) / max(rank.count, 1), 3) for at in order.tolist()}


def run_environment(ranks: Sequence[Environment], usable_steps: int) -> Environment:
    """The keys of a run: values that its ranks share; of names that differ all."""
    found: Environment = {key: _shared([rank[key] for rank in ranks]) for key in KEYS}
    stated = found["world_size"]
    found["world_size"] = stated if stated is not None or len(ranks) == 1 else len(ranks)
    found["device_count"] = sum(value for rank in ranks if isinstance(value := rank["device_count"], int))
    found["usable_steps"] = usable_steps
    return found


def _shared(values: Sequence[EnvironmentValue]) -> EnvironmentValue:
    if len(set(values)) == 1:
        return values[0]
    return tuple(sorted({str(value) for value in values if value is not None}))


def differences(baseline: Sequence[RunSample], candidate: Sequence[RunSample]) -> tuple[Difference, ...]:
    """Keys of the environment in which the sides, or the runs of one side, differ."""
    found = []
    for key in KEYS:
        old, new = (tuple(dict.fromkeys(run.environment.get(key) for run in side)) for side in (baseline, candidate))
        if len({*old, *new}) > 1 and key not in _BY_REPEAT:
            found.append(Difference(key, old, new))
    return tuple(found)


def similarity(baseline: Iterable[Mapping[str, float]], candidate: Iterable[Mapping[str, float]]) -> float | None:
    """Likeness of two sides: Σ min(count) / Σ max(count) over operator names; None where a side tells none."""
    old, new = (_mean([each for each in side if each]) for side in (baseline, candidate))
    if not old or not new:
        return None
    most = sum(max(old.get(name, 0), new.get(name, 0)) for name in old | new)
    return sum(min(old.get(name, 0), new.get(name, 0)) for name in old | new) / most if most else None


def _mean(workloads: Sequence[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in workloads:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count / len(workloads)
    return total
