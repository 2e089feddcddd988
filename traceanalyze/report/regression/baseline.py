"""A baseline file for a terminal: its runs, and the noise of every metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.model import units
from traceanalyze.regression.budget import Settings, default
from traceanalyze.regression.definitions import Kind, metric_of
from traceanalyze.regression.evaluate import noise_prior
from traceanalyze.regression.verdict import shown
from traceanalyze.report.regression.console import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.locales import Texts
    from traceanalyze.regression.baseline import Baseline
    from traceanalyze.regression.samples import RunSample
    from traceanalyze.report.console.style import Style

_COLUMNS = ("run", "time", "label", "commit", "steps", "step_time", "device", "accepted")
_COMMIT_SHOWN = 10


def render(baseline: Baseline, texts: Texts, style: Style) -> str:
    """The whole text."""
    return "\n".join(_lines(baseline, texts, style)) + "\n"


def _lines(baseline: Baseline, texts: Texts, style: Style) -> Iterator[str]:
    say = texts.messages
    if not baseline.runs:
        yield say["baseline_empty"]
        return
    heads = [say[f"baseline_{name}"] for name in _COLUMNS]
    yield from table(heads, [_run(run) for run in baseline.runs], style, text_columns={0, 1, 2, 3, 6})
    yield ""
    yield style.paint(say["baseline_floors"], "bold")
    heads = [say["gate_column_metric"], say["baseline_runs"], say["baseline_floor"]]
    yield from table(heads, list(_floors(baseline)), style, text_columns={0})


def _run(run: RunSample) -> tuple[str, ...]:
    step = run.metrics.get("step.time")
    return (
        run.name,
        run.time[:16].replace("T", " "),
        run.label,
        run.commit[:_COMMIT_SHOWN],
        str(run.usable_steps),
        "" if step is None else units.duration(round(step.value)),
        shown(run.environment.get("device")),
        "*" if run.accepted else "",
    )


def _floors(baseline: Baseline) -> Iterator[tuple[str, str, str]]:
    """Of times and ratios."""
    level = baseline.level()
    for name in dict.fromkeys(name for run in level for name in run.metrics):
        metric = metric_of(name)
        if metric is None or metric.kind == Kind.EXACT:
            continue
        samples = [run.metrics[name] for run in level if name in run.metrics]
        floor = noise_prior(default(metric), samples, Settings()).floor
        text = f"{floor:.2f} points" if metric.kind == Kind.RATIO else f"{100 * floor:.2f} %"
        yield name, str(len(samples)), text
