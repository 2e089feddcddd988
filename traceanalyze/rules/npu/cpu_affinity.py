from traceanalyze.rules.common.launching import launching
from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, Severity, measured, rule


@rule(
    "NPU103",
    "cpu-affinity",
    title="threads bound to no cores",
    sentence="The device waits for the host {share} of the step, and the threads are bound to no cores.",
    confidence=Confidence.MEDIUM,
    needs="DLOE",
    advice_texts={
        "bind_npu": (
            "CPU_AFFINITY_CONF=2, or 1 with npu_affine:1; npu-smi info -t topo shows the cores near each device."
        )
    },
    options={"share": (0.10, "as HST101"), "late": (0.20, "as HST101")},
    platforms=("ascend",),
    beside="HST101",
)
def find(facts: Facts, options: Options) -> Findings:
    """The host is too slow, and its threads are bound to no cores.

    What it finds
        Programs whose host cannot keep the device busy, and whose environment does not set `CPU_AFFINITY_CONF`.
    Why it costs time
        Threads that move between cores, or run far from the device, launch more slowly.
    How it is measured
        As HST101; the variables are those the profile states. What binding saves cannot be told from the recording, and
        threads may be bound by other means.
    What to do
        `CPU_AFFINITY_CONF=2` (or `1` with `npu_affine:1`; `force:1` in containers); `npu-smi info -t topo` shows which
        cores are near; or `numactl`.

    References
        torch_npu environment variables; MindStudio general performance issues.
    """
    stated = facts.context.trace.environment or {}
    if stated.get("CPU_AFFINITY_CONF", "") not in {"", "0"} or "CPU_AFFINITY_CONF" not in stated:
        return
    if not facts.once(launching).bound(options.number("share"), options.number("late")):
        return
    yield Finding(
        evidence=measured(share=facts.once(launching).share),
        scope=Scope(ops=("CPU_AFFINITY_CONF",)),
        severity=Severity.LOW,
    )
