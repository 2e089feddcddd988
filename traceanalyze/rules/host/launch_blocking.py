import numpy as np

from traceanalyze.model.intervals import merge
from traceanalyze.model.vocabulary import ApiClass, SyncKind
from traceanalyze.replay.replay import Change
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, measured, rule


@rule(
    "HST106",
    "launch-blocking",
    title="launches wait for their kernels",
    sentence="After {share} of the launches the host waits for the device, as under launch blocking.",
    confidence=Confidence.HIGH,
    needs="DLA",
    advice_texts={
        "unset_launch_blocking.cuda": "Unset CUDA_LAUNCH_BLOCKING.",
        "unset_launch_blocking.ascend": "Unset ASCEND_LAUNCH_BLOCKING; it switches the task queue off as well.",
    },
    options={
        "share": (0.5, "msprof-analyze advisor: launches that a sync follows"),
        "least": (20.0, "own: launches a step; a loop over a single kernel is no pattern"),
    },
    order=-2,
)
def find(facts: Facts, options: Options) -> Findings:
    """Every launch waits for its kernel.

    What it finds
        Programs in which a stream is waited for after most launches, as under `CUDA_LAUNCH_BLOCKING=1`.
    Why it costs time
        Host and device take turns instead of working at the same time. On Ascend the task queue is off as well.
    How it is measured
        Launch calls that a sync call follows directly on the same thread, from half of all launches on. The saving is
        what a replay of the launches without these sync calls gains.
    What to do
        Unset the variable; it is for debugging.

    References
        CUDA semantics; torch_npu environment variables; msprof-analyze advisor.
    """
    calls, least = facts.context.calls, options.number("least") * facts.window.count
    if np.count_nonzero(calls.sync == SyncKind.EXPLICIT) < options.number("share") * least:
        return
    outer = np.flatnonzero(calls.outermost & facts.inside(calls.start))
    first, second = outer[:-1], outer[1:]
    launch = calls.klass[first] == ApiClass.LAUNCH
    followed = launch & (calls.track[first] == calls.track[second]) & (calls.sync[second] == SyncKind.EXPLICIT)
    count, blocked = int(launch.sum()), second[followed]
    enough = count >= least and len(blocked) >= options.number("share") * count
    if not enough or not len(blocked):
        return
    yield Finding(
        bound=facts.per_step((calls.end - calls.start)[blocked]),
        draws="idle",
        change=Change(merge(calls.start[blocked], calls.end[blocked])),
        evidence=measured(share=len(blocked) / count, count=count),
        count=len(blocked),
    )
