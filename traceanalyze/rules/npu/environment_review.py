from collections.abc import Callable

from traceanalyze.rules.rule import Confidence, Facts, Finding, Findings, Options, Scope, Severity, measured, rule

_COSTLY: dict[str, Callable[[str], bool]] = {
    "HCCL_ALGO": bool,
    "HCCL_BLOCKING_WAIT": lambda value: value == "1",
    "TORCH_HCCL_BLOCKING_WAIT": lambda value: value == "1",
    "ASCEND_LAUNCH_BLOCKING": lambda value: value == "1",
    "MULTI_STREAM_MEMORY_REUSE": lambda value: value == "0",
}


@rule(
    "NPU108",
    "environment-review",
    title="settings that cost time",
    sentence="{variable} is set to {setting}.",
    confidence=Confidence.LOW,
    needs="E",
    advice_texts={
        "review_environment": "Unset it, unless you know why it is set; the default suits nearly all programs."
    },
    platforms=("ascend",),
)
def find(facts: Facts, options: Options) -> Findings:
    """Environment variables are set that usually cost time.

    What it finds
        `HCCL_ALGO` (which switches the choice by size off), a wait that blocks (`HCCL_BLOCKING_WAIT`,
        `TORCH_HCCL_BLOCKING_WAIT`), `ASCEND_LAUNCH_BLOCKING`, or `MULTI_STREAM_MEMORY_REUSE=0`.
    Why it costs time
        The host waits for each operation or collective, one algorithm is used for all sizes, or memory of other streams
        is kept.
    How it is measured
        The variables as the profile states them. What they cost cannot be told from the recording.
    What to do
        Unset each of them unless you know why it is set.

    References
        msprof-analyze advisor; CANN HCCL environment variables; torch_npu environment variables.
    """
    stated = facts.context.trace.environment or {}
    for name, costs in _COSTLY.items():
        value = stated.get(name, "")
        if not costs(value):
            continue
        yield Finding(evidence=measured(variable=name, setting=value), scope=Scope(ops=(name,)), severity=Severity.LOW)
