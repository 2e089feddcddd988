from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "SYN107",
    "scaler-sync",
    title="gradient scaler waits",
    sentence="The gradient scaler ({count} sync(s) in all) leaves the device without work {idle} {per}.",
    confidence=Confidence.MEDIUM,
    needs="DLAP",
    advice_texts={
        "bf16_no_scaler": "bfloat16 needs no gradient scaler.",
        "fused_scaler": "A fused optimizer (fused=True) takes the scaler's flag on the device.",
        "fused_scaler.ascend": "torch_npu.optim.NpuFused* optimizers take the scaler's flag on the device.",
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The gradient scaler reads from the device whether gradients are finite.

    What it finds
        Sync calls in `GradScaler.step`, `unscale_` or `update`.
    Why it costs time
        Each step the device waits until the host has read the flag and launched the optimizer.
    How it is measured
        Idle time of the device that these calls caused (definitions §7).
    What to do
        bfloat16 needs no scaler; fused optimizers take the flag on the device.

    References
        Automatic mixed precision package.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.SCALER))
