import numpy as np

from traceanalyze.analyses.grouping import group
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.rule import Confidence, Evidence, Facts, Finding, Findings, Options, Scope, Severity, rule


@rule(
    "NPU105",
    "host-cache",
    title="caches of operators",
    sentence=(
        "{once} of the operator calls have shapes that only one of {steps} steps has, and the caches of operators have "
        "their default size."
    ),
    evidence={"once": "calls with shapes of one step"},
    confidence=Confidence.LOW,
    needs="DLOHE",
    advice_texts={"larger_op_cache": "ACLNN_CACHE_LIMIT=100000 and HOST_CACHE_CAPACITY=20."},
    options={
        "share": (0.10, "as HST101"),
        "late": (0.20, "as HST101"),
        "once": (0.25, "own: of the calls have shapes of one step only"),
    },
    platforms=("ascend",),
    beside="HST101",
)
def find(facts: Facts, options: Options) -> Findings:
    """Shapes change from step to step, and the caches of operators have their default size.

    What it finds
        Programs with many different shapes whose host cannot keep the device busy, without `ACLNN_CACHE_LIMIT` or
        `HOST_CACHE_CAPACITY`.
    Why it costs time
        Each operator with new shapes is prepared again when its entry has been thrown out of the cache.
    How it is measured
        Operators with shapes that only one of the steps has, over all operators with shapes, from a quarter on; as
        HST101 otherwise. What it costs cannot be told from the recording.
    What to do
        `ACLNN_CACHE_LIMIT=100000`, `HOST_CACHE_CAPACITY=20`.

    References
        msprof-analyze advisor.
    """
    stated = facts.context.trace.environment or {}
    if stated.get("ACLNN_CACHE_LIMIT") or stated.get("HOST_CACHE_CAPACITY") or facts.window.count < 2:
        return
    if not facts.once(launching).bound(options.number("share"), options.number("late")):
        return
    once = _shapes_once(facts)
    if once < options.number("once"):
        return
    yield Finding(
        evidence=(Evidence("once", once, "SHARE"), Evidence("steps", facts.window.count, "COUNT")),
        scope=Scope(ops=("ACLNN_CACHE_LIMIT",)),
        severity=Severity.LOW,
    )


def _shapes_once(facts: Facts) -> float:
    """Part of the calls whose operator and shapes only one of the steps has."""
    trace, steps = facts.context.trace, facts.context.all_steps
    column = trace.events.fields["shapes"]
    # By the host's time: a step of the device begins later.
    in_step = np.searchsorted(steps.host_start, trace.events.ts[column.row], "right")
    known = (in_step > 0) & (column.value >= 0)
    row, shape, step = (values[known] for values in (column.row, column.value, in_step))
    if len(row) == 0:
        return 0.0
    each = group(trace.events.name[row], shape)
    pairs = group(each.of, step)
    steps_of = np.bincount(each.of[pairs.first], minlength=len(each))
    return float((steps_of == 1)[each.of].mean())
