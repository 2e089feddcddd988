"""Runs as a gate sees them, without any trace."""

from __future__ import annotations

from traceanalyze.regression.explain import Amounts, Explain
from traceanalyze.regression.samples import RunSample, Sample

MS = 1_000_000


def run(number=0, *, time=None, counts=None, parts=None, environment=None, workload=None, **more):
    """A run with a step time in ms (one number, or one a step), exact metrics by name and parts in ms."""
    metrics = {}
    if time is not None:
        steps = time if isinstance(time, list) else [time] * 5
        ordered = sorted(steps)
        metrics["step.time"] = Sample(ordered[len(ordered) // 2] * MS, tuple(step * MS for step in steps))
    for name, value in (counts or {}).items():
        steps = value if isinstance(value, list) else [value] * 5
        metrics[name] = Sample(float(sorted(steps)[len(steps) // 2]), tuple(map(float, steps)))
    own = {"device": "GPU", "world_size": 1, "torch": "2.9", "profiler_options": ("device", "host")}
    return RunSample(
        id=more.pop("id", f"id{number}"),
        name=more.pop("name", f"run{number}"),
        time=more.pop("time_of_day", ""),
        ranks=more.pop("ranks", (0,)),
        environment=own | (environment or {}),
        workload=workload if workload is not None else {"aten::mm": 10},
        metrics=metrics,
        missing=more.pop("missing", {}),
        explain=Explain(
            5,
            {name: int(value * 5 * MS) for name, value in (parts or {}).items()},
            reasons={("compute", "operator", "aten::mm"): Amounts(5 * MS, 10)},
        ),
        usable_steps=5,
        **more,
    )


def runs(*times, **more):
    """Runs that differ in their step time."""
    return tuple(run(number, time=time, **more) for number, time in enumerate(times))
