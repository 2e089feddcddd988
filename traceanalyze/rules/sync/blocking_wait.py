from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "SYN108",
    "blocking-wait",
    title="host waits for collectives",
    sentence="The host waits for collectives ({count} sync(s) in all): {idle} {per} the device has no work.",
    confidence=Confidence.MEDIUM,
    needs="DLA",
    advice_texts={
        "unset_blocking_wait.cuda": "Unset TORCH_NCCL_BLOCKING_WAIT; remove barriers that only serve timing.",
        "unset_blocking_wait.ascend": "Unset TORCH_HCCL_BLOCKING_WAIT; remove barriers that only serve timing.",
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The host waits for collectives.

    What it finds
        Sync calls in the waits of `torch.distributed`.
    Why it costs time
        The host launches nothing while it waits; streams can wait for each other without it.
    How it is measured
        Idle time of the device that these calls caused (definitions §7).
    What to do
        Unset `TORCH_NCCL_BLOCKING_WAIT` or `TORCH_HCCL_BLOCKING_WAIT`; remove barriers.

    References
        torch.distributed; torch_npu environment variables.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.COLLECTIVE_WAIT))
