from traceanalyze.rules.common.syncs import SyncUse, sync_findings, used_for
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule

_USE_NS = 100_000
"""Own: what takes longer after a read may be work of the program's own, such as the next step of a simulation."""


@rule(
    "SYN101",
    "scalar-read",
    title="values read from the device",
    sentence="Reading values from the device ({count} time(s) in all) leaves it without work {idle} {per}.",
    confidence=Confidence.HIGH,
    needs="DLAO",
    advice_texts={
        "read_rarely": "Read values every N steps only, or sum them on the device (detach()) and read the sum.",
        "sync_debug_mode.cuda": 'torch.cuda.set_sync_debug_mode("warn") names the lines.',
        "sync_debug_mode.ascend": 'torch_npu.npu.set_sync_debug_mode("warn") names the lines.',
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """A value is read from the device, and the device runs dry meanwhile.

    What it finds
        Places such as `loss.item()`, `print(loss)` or `if tensor:` that read one number from the device.
    Why it costs time
        The host waits until everything launched so far has run; when it has the value, nothing is queued, and the
        device waits until the host has launched new work.
    How it is measured
        Idle time of the device that sync calls under `aten::item`, `_local_scalar_dense`, `is_nonzero` or `equal`
        caused (definitions §7), never the time the host was blocked. A read that costs nothing is no finding. Python of
        0.1 ms and more that follows a read until the next launch may be work of its own and counts at best; of 10 ms
        and more it is left to HST104 and HST107, and waits to their rules. At best nothing that follows needs the
        value; at worst all of it does, and what takes 1 ms without anything recorded ends when it did, also where small
        operators cut it into pieces.
    What to do
        Read values every N steps only; sum them on the device and read the sum.
        `torch.cuda.set_sync_debug_mode("warn")` names the places (not distributed and sparse operators, nor pageable
        copies).

    References
        PyTorch Performance Tuning Guide; CUDA semantics.
    """
    yield from sync_findings(facts, used_for(facts, SyncUse.SCALAR_READ), with_use=_USE_NS)
