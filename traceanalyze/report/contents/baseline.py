"""A baseline file as tables: its runs, and the noise of every metric."""

from collections.abc import Iterator

from traceanalyze.model.table import Column, Kind, Quantity, Table, Value, declare
from traceanalyze.regression.baseline import Baseline, level
from traceanalyze.regression.budget import Settings, default
from traceanalyze.regression.evaluate import noise_prior, part_floor
from traceanalyze.regression.metrics import Kind as MetricKind
from traceanalyze.regression.metrics import metric_of
from traceanalyze.regression.samples import RunSample
from traceanalyze.regression.verdict import shown

_COMMIT = 10
"""Letters of a commit that people see."""
_RUNS = declare(
    "baseline_runs",
    "Runs of the baseline",
    Column("run", Kind.NAME, "name of the run"),
    Column("recorded_at", Kind.TEXT, "when it was recorded", heading="recorded"),
    Column("label", Kind.TEXT, "label that it was added with"),
    Column("commit", Kind.TEXT, "commit that was recorded"),
    Column("usable_steps", Kind.COUNT, "steps that were used", heading="steps"),
    Column("step_time_ns", Kind.DURATION, "median of its steps", heading="step.time"),
    Column("environment_device", Kind.TEXT, "name of its device", heading="device"),
    Column("accepted", Kind.TEXT, "a star where it improved, or regressed and was accepted: a new level begins"),
)
_FLOORS = declare(
    "baseline_floors",
    "Noise floor per metric (spread of the runs, once there are five)",
    Column("metric", Kind.NAME, "name of the metric, as budgets have it"),
    Column("runs", Kind.COUNT, "runs that have measured it"),
    Column("noise_floor", Kind.QUANTITY, "smallest spread that is believed"),
)


def baseline_tables(baseline: Baseline) -> tuple[Table, Table]:
    """Of a baseline that has runs."""
    return _RUNS.fill_records(map(_run, baseline.runs)), _FLOORS.fill_records(_floors(baseline))


def _run(run: RunSample) -> dict[str, Value]:
    step = run.metrics.get("step.time")
    return {
        "run": run.name,
        "recorded_at": run.time[:16].replace("T", " "),
        "label": run.label,
        "commit": run.commit[:_COMMIT],
        "usable_steps": run.usable_steps,
        "step_time_ns": None if step is None else round(step.value),
        "environment_device": shown(run.environment.get("device")),
        "accepted": "*" if run.accepted else "",
    }


def _floors(baseline: Baseline) -> Iterator[dict[str, Value]]:
    """Of times and ratios."""
    runs = level(baseline.runs)
    least = part_floor(runs, Settings(), stored=True)
    for name in dict.fromkeys(name for run in runs for name in run.metrics):
        metric = metric_of(name)
        if metric is None or metric.kind == MetricKind.EXACT:
            continue
        samples = [run.metrics[name] for run in runs if name in run.metrics]
        floor = noise_prior(default(metric), samples, Settings(), least if metric.part_of_step else 0).floor
        kept = Quantity(floor, "points" if metric.kind == MetricKind.RATIO else "%")
        yield {"metric": name, "runs": len(samples), "noise_floor": kept}
