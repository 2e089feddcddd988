from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "SYN104",
    "device-to-host-copy",
    title="copies to the host inside the step",
    sentence="Copies to the host ({count} sync(s) in all) leave the device without work {idle} {per}.",
    confidence=Confidence.HIGH,
    needs="DLAO",
    advice_texts={
        "keep_on_device": "Keep the computation on the device.",
        "read_late": (
            "Copy results once, at the end of the step, into pinned memory with non_blocking=True and an event."
        ),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Tensors are copied to the host in the middle of the step.

    What it finds
        `.cpu()`, `.numpy()`, `.tolist()` and other copies from device to host that wait for the device.
    Why it costs time
        The host waits until the copy is done; meanwhile nothing new is launched.
    How it is measured
        Idle time of the device caused by sync calls that belong to copies from device to host (definitions §7).
    What to do
        Keep the computation on the device; gather what is to be read and copy it once, into pinned memory with
        `non_blocking=True` and an event.

    References
        pin_memory and non_blocking tutorial; PyTorch Performance Tuning Guide.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.DEVICE_TO_HOST))
