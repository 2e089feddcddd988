"""From one rank's recording to the little that is kept of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.errors import InputError
from traceanalyze.gate.counts import counts
from traceanalyze.gate.definitions import selector_of
from traceanalyze.gate.environment import rank_environment, workload
from traceanalyze.gate.explain import explain
from traceanalyze.gate.findings import finding_values
from traceanalyze.gate.rank_steps import rank_steps
from traceanalyze.gate.samples import RankSample
from traceanalyze.gate.selected import selected
from traceanalyze.gate.timings import timings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.options import Options
    from traceanalyze.analyses.results import Steps
    from traceanalyze.gate.findings import Counted
    from traceanalyze.gate.rank_steps import RankSteps
    from traceanalyze.gate.rules import Settings
    from traceanalyze.gate.timings import Values
    from traceanalyze.model.trace import Trace

    Findings = Callable[[Trace, Options], Counted]


def rank_sample(
    trace: Trace,
    options: Options,
    settings: Settings,
    *,
    tool_version: str,
    selectors: Sequence[str] = (),
    chosen: Callable[[Steps], NDArray[np.bool_]] | None = None,
    findings: Findings | None = None,
) -> RankSample:
    """Measure one rank.

    Args:
        trace: the recording.
        options: classification rules.
        settings: number of warm-up steps, tokens and samples per step.
        tool_version: kept with the sample.
        selectors: metrics that are named by patterns.
        chosen: the user's choice of steps.
        findings: counts findings by rule; None: they are not counted.

    Raises:
        InputError: No step is left to measure.
    """
    rank = rank_steps(trace, options, warmup=settings.warmup_steps, chosen=chosen)
    if rank.count == 0:
        raise InputError(f"{trace.origin.path}: no usable step: {_why_none(rank, settings, asked=chosen is not None)}")
    counted = findings(trace, options) if findings is not None else None
    values = counts(rank) | timings(rank) | finding_values(counted)
    values |= _rates(rank, settings)
    values |= {name: selected(rank, selector) for name in selectors if (selector := selector_of(name)) is not None}
    steps = rank.side.context.steps
    events = trace.events
    return RankSample(
        path=trace.origin.path,
        steps=steps.name,
        values=values,
        environment=rank_environment(rank, tool_version),
        workload=workload(rank),
        explain=explain(rank),
        mean_step=float(steps.time.mean()),
        digest=_digest(trace),
        began=trace.base_ns + int(events.ts.min()) if len(events) else 0,
        ended=trace.base_ns + int((events.ts + events.dur).max()) if len(events) else 0,
        findings=None if counted is None else counted.by_rule,
        places=() if counted is None else counted.places,
        summary=None if counted is None else counted.summary,
        outcome=None if counted is None else counted.outcome,
    )


def _why_none(rank: RankSteps, settings: Settings, *, asked: bool) -> str:
    every = len(rank.side.context.all_steps)
    if asked:
        return f"none of the {every} steps is chosen by --steps and complete"
    return (
        f"{every} recorded, {settings.warmup_steps} left out as warm-up (--warmup 0 keeps them), "
        "incomplete ones left out, too"
    )


def _rates(rank: RankSteps, settings: Settings) -> Values:
    """Tokens and samples per second, where the budget says how many a rank handles in a step."""
    time = np.maximum(rank.side.context.steps.time, 1) / 1e9
    given = {"step.tokens_per_s": settings.tokens_per_step, "step.samples_per_s": settings.samples_per_step}
    return {name: number / time for name, number in given.items() if number is not None}


def _digest(trace: Trace) -> str:
    """Of what was recorded, however the file is packed."""
    found = hashlib.sha256()
    events = trace.events
    for column in (events.ts, events.dur, events.name, events.cat, events.track):
        found.update(np.ascontiguousarray(column).tobytes())
    found.update(trace.strings.blob.tobytes())
    found.update(f"{trace.base_ns} {trace.origin.rank}".encode())
    return found.hexdigest()
