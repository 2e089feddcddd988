import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.columns import distinct
from traceanalyze.model.patterns import regex
from traceanalyze.model.phases import OPTIMIZER_STEP
from traceanalyze.model.vocabulary import DISPATCH, Cause
from traceanalyze.rules.common.computing import computing
from traceanalyze.rules.common.op_chains import inside_ranges
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    intervals_of,
    merged,
    rule,
)

REGION = regex(r"^Torch-Compiled Region: (\d{1,9})/\d+")
_COMPILED = regex(r"^Torch-Compiled Region|^CompiledFunction(Backward)?$|^## Call CompiledFxGraph")
HOST = *DISPATCH, Cause.UNTRACED
"""Why the device is idle where Python takes over: not for data, nor for other work."""


@rule(
    "CGR101",
    "graph-break",
    title="breaks in compiled code",
    sentence=(
        "Compiled code runs as {graphs} different graphs, {regions} calls {per}, with {eager} kernels {per} of eager "
        "operators between them."
    ),
    evidence={"graphs": "graphs", "eager": "eager kernels a step"},
    confidence=Confidence.HIGH,
    needs="DLO",
    advice_texts={
        "find_graph_breaks": (
            "TORCH_LOGS=graph_breaks names the places; torch.compile(fullgraph=True) makes them errors."
        )
    },
    options={
        "frames": (2.0, "own: more than one graph"),
        "between": (5.0, "own: eager kernels a step between two graphs, fewer come from the training loop itself"),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Compiled code is broken into several graphs with eager operators between them.

    What it finds
        Several `Torch-Compiled Region`s of different functions in a step, with operators between them that launch
        kernels by themselves.
    Why it costs time
        At each break Python takes over again, nothing is fused across it, and what lies between runs eagerly.
    How it is measured
        Regions by the number of their function (the first one of `0/0`); kernels launched by the same thread after one
        region and before the next of another function. The saving is the time in which the device waits for the host
        between such regions, while no thread is in compiled code; what fusion across the breaks would save cannot be
        told.
    What to do
        `TORCH_LOGS=graph_breaks` names the places, `fullgraph=True` makes them errors; take prints, data-dependent
        branches and unsupported calls out of the compiled function. Regions that are compiled one by one on purpose are
        no breaks.

    References
        torch.compiler documentation.
    """
    rows = facts.rows(RANGES, REGION)
    if len(rows) == 0:
        return
    events, calls = facts.context.trace.events, facts.context.calls
    track = int(np.bincount(events.track[rows]).argmax())
    rows = rows[events.track[rows] == track]
    # Optimizers compile their parts one by one, which is no break.
    rows = rows[~inside_ranges(facts, events.track[rows], events.ts[rows], OPTIMIZER_STEP.pattern)]
    if len(rows) == 0:
        return
    frame = facts.context.trace.strings.lookup(events.name[rows], _number)
    frames = len(distinct(frame))
    end = np.maximum.accumulate(events.ts[rows] + events.dur[rows])
    start = events.ts[rows]
    between = intervals.merge(end[:-1], np.where(frame[1:] != frame[:-1], start[1:], end[:-1]))
    call = facts.context.issued_by[facts.once(computing).event]
    launched = (call >= 0) & (calls.track[np.maximum(call, 0)] == track)
    eager = int((launched & intervals.contains(between, calls.start[np.maximum(call, 0)])).sum())
    if frames < options.number("frames") or eager < options.number("between") * facts.window.count:
        return
    compiled = merged(facts.spans(facts.rows(RANGES, _COMPILED)))
    within, steps = intervals.subtract(_within_steps(facts, between), compiled), max(facts.window.count, 1)
    spans = intervals_of(*intervals.intersect(facts.clip(facts.idle(*HOST)), within))
    yield Finding(
        saving=facts.length(spans),
        bound=facts.mean(intervals.total(within)),
        draws="idle",
        intervals=spans,
        evidence=(
            Evidence("graphs", frames, "COUNT"),
            Evidence("regions", len(rows) / steps, "NUMBER"),
            Evidence("eager", eager / steps, "NUMBER"),
        ),
        scope=Scope(ops=facts.names(rows)),
        count=len(rows),
    )


def _number(name: str) -> int:
    found = REGION.match(name)
    return int(found[1]) if found else -1


def _within_steps(facts: Facts, between: intervals.Intervals) -> intervals.Intervals:
    """Host time between regions of one step: what reaches over the end of a step is the training loop."""
    steps = facts.context.all_steps
    first, last = (np.searchsorted(steps.host_start, edge, "right") for edge in (between.start, between.end))
    inside = first == last
    return intervals.Intervals(between.start[inside], between.end[inside])
