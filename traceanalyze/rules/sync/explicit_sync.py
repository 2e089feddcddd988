from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "SYN103",
    "explicit-sync",
    title="explicit synchronisation",
    sentence=(
        "Waiting for the device outside of operators ({count} time(s) in all) leaves it without work {idle} {per}."
    ),
    confidence=Confidence.HIGH,
    needs="DLA",
    advice_texts={
        "device_events.cuda": "Remove the calls; take times with torch.cuda.Event.",
        "device_events.ascend": "Remove the calls; take times with torch_npu.npu.Event.",
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """The program waits for the whole device or a stream.

    What it finds
        Calls such as `torch.cuda.synchronize()` outside of operators, in half of the steps or more.
    Why it costs time
        The device runs dry, and waits until the host has launched new work.
    How it is measured
        Idle time of the device that the calls caused (definitions §7). The last one of a trace, mostly the profiler's
        own, is left out.
    What to do
        Remove them; take times with events of the device.

    References
        CUDA semantics.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.EXPLICIT))
