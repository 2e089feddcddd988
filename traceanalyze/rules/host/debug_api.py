from typing import NamedTuple

import numpy as np

from traceanalyze.model import intervals
from traceanalyze.model.intervals import Intervals
from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.replay import without
from traceanalyze.rules.facts import RANGES
from traceanalyze.rules.rule import (
    Confidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    intervals_of,
    measured,
    rule,
)

_DEBUG = regex(
    r"anomaly_mode\.py|detect_anomaly|emit_nvtx|emit_itt|gradcheck|gradgradcheck|set_sync_debug_mode|warn_on_synchronize"
)
_NODE, _CHECK = regex(r"^autograd::engine::evaluate_function"), regex(r"^aten::isnan$")


@rule(
    "HST105",
    "debug-api",
    title="debugging tools switched on",
    sentence={
        "": "Debugging tools run inside the steps, {count} time(s): {what}.",
        "anomaly": (
            "Autograd looks for NaN in what each of {count} functions returns, {time} {per}: its anomaly detection is "
            "on, which also makes the forward pass slower."
        ),
    },
    confidence=Confidence.HIGH,
    needs="O",
    host="O",
    advice_texts={"no_debugging": "Switch debugging tools off in production runs."},
    rare=True,
    order=-1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Debugging tools run inside the steps.

    What it finds
        Python functions and ranges of `detect_anomaly`, `emit_nvtx`, `gradcheck` and `set_sync_debug_mode`; functions
        of the backward pass that autograd itself follows with `aten::isnan`, as anomaly detection does.
    Why it costs time
        They check or mark every operator, and some wait for the device.
    How it is measured
        By name, in the analysed steps. What anomaly detection saves is what a replay gains without its checks, from the
        first of each function to its end; what it does in the forward pass comes on top. What the others cost cannot
        be told from the recording.
    What to do
        Switch them off outside of debugging.

    References
        PyTorch Performance Tuning Guide.
    """
    checks = _checks(facts)
    if checks.functions:
        yield _anomaly(facts, checks)
    if reason := facts.missing("P"):
        raise UnmeasuredError(reason)
    rows = facts.rows((*RANGES, EventKind.PYTHON), _DEBUG)
    if not len(rows):
        return
    names = tuple(dict.fromkeys(facts.name(row) for row in rows.tolist()))
    yield Finding(
        evidence=measured(what=names[0], count=len(rows)),
        scope=Scope(ops=names[:3]),
        count=len(rows),
        severity=Severity.MEDIUM,
    )


class _Checks(NamedTuple):
    """What anomaly detection does after functions of the backward pass."""

    spans: Intervals
    functions: int


def _checks(facts: Facts) -> _Checks:
    """From the first check of a function to its end."""
    context, nest = facts.context, facts.context.op_nest
    matches = context.trace.strings.matches
    check = np.flatnonzero(matches(context.op_names, _CHECK.search) & (nest.parent >= 0))
    check = check[matches(context.op_names[nest.parent[check]], _NODE.search) & facts.inside(nest.start[check])]
    node = nest.parent[check]
    first = node != np.concatenate(([-1], node))[:-1]
    return _Checks(intervals.merge(nest.start[check[first]], nest.end[node[first]]), int(first.sum()))


def _anomaly(facts: Facts, checks: _Checks) -> Finding:
    context, host = facts.context, facts.host_computes
    op = context.event_op
    start = np.where(op >= 0, context.op_nest.start[np.maximum(op, 0)], -1)
    event = np.flatnonzero(intervals.contains(checks.spans, start)) if len(op) else op
    time = facts.mean(intervals.total(intervals.intersect(checks.spans, facts.windows)))
    change = None
    if not host:
        change = without(facts, event)
        calls = np.flatnonzero(intervals.contains(checks.spans, context.calls.start))
        change = change._replace(host=intervals.union(change.host, checks.spans), calls=calls)
    return Finding(
        saving=time if host else None,
        change=change,
        draws="host" if host else "idle",
        intervals=intervals_of(*checks.spans),
        sentence="anomaly",
        evidence=measured(time=time, count=checks.functions),
        scope=Scope(ops=("aten::isnan",)),
        count=checks.functions,
    )
