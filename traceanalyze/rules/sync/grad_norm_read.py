from traceanalyze.analyses.idle.syncs import LONG_NS
from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "SYN106",
    "grad-norm-read",
    title="norm of the gradients read",
    sentence=(
        "Reading the norm of the gradients ({count} sync(s) in all) leaves the device without work {idle} {per}."
    ),
    confidence=Confidence.MEDIUM,
    needs="DLAO",
    advice_texts={"norm_on_device": "Keep the norm on the device (error_if_nonfinite=False) and log it rarely."},
)
def find(facts: Facts, options: Options) -> Findings:
    """The norm of the gradients is read on the host.

    What it finds
        Sync calls in `clip_grad_norm_` or under operators of norms.
    Why it costs time
        Between backward pass and optimizer the device waits until the host has read the norm and launched the
        optimizer.
    How it is measured
        Idle time of the device that these calls caused (definitions §7), with the Python of less than 10 ms that uses
        the norm.
    What to do
        Keep the norm on the device: `error_if_nonfinite=False`, log it rarely.

    References
        PyTorch Performance Tuning Guide.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.GRAD_NORM), with_use=LONG_NS)
