from traceanalyze.model.patterns import regex
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, Severity, measured, rule

_DEQUEUE = regex(r"^Dequeue@")


@rule(
    "NPU102",
    "task-queue",
    title="level of the task queue",
    sentence=(
        "The device waits for the host {share} of the step, while the thread of the task queue is busy {busy} of it."
    ),
    confidence=Confidence.MEDIUM,
    needs="DLO",
    advice_texts={"task_queue_level": "TASK_QUEUE_ENABLE=2 (takes more memory; off under ASCEND_LAUNCH_BLOCKING)."},
    options={
        "share": (0.10, "as HST101"),
        "late": (0.20, "as HST101"),
        "busy": (0.5, "own: of the step, from which the queue's thread counts as saturated"),
    },
    platforms=("ascend",),
    beside="HST101",
)
def find(facts: Facts, options: Options) -> Findings:
    """The host is too slow, and the task queue has its first level only.

    What it finds
        Programs whose host cannot keep the device busy although operators go through the task queue, without
        `TASK_QUEUE_ENABLE=2`.
    Why it costs time
        With level 1 the second thread does all the work of a launch; level 2 moves more of it off the program's thread
        and spreads it better.
    How it is measured
        As HST101, while the queue's thread (`Dequeue@…`) is busy for most of the step. Where the profile states
        environment variables, the level is looked up. What it saves cannot be told from the recording.
    What to do
        `TASK_QUEUE_ENABLE=2`. It takes more memory, needs operators that are compiled already, and is off under
        `ASCEND_LAUNCH_BLOCKING`.

    References
        torch_npu environment variables.
    """
    stated = (facts.context.trace.environment or {}).get("TASK_QUEUE_ENABLE", "")
    if stated == "2" or not facts.once(launching).bound(options.number("share"), options.number("late")):
        return
    spans = facts.spans(facts.rows(tuple(EventKind), _DEQUEUE))
    busy = facts.share(facts.length(spans)) if len(spans) else 0.0
    if busy < options.number("busy"):
        return
    yield Finding(
        evidence=measured(share=facts.once(launching).share, busy=busy),
        scope=Scope(ops=("TASK_QUEUE_ENABLE",)),
        count=len(spans),
        severity=Severity.LOW,
    )
