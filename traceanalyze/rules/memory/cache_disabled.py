import numpy as np

from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.allocations import allocator_calls, allocator_finding, steady
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "MEM111",
    "cache-disabled",
    title="allocator's cache switched off",
    sentence=(
        "Nearly every tensor is allocated by the device: {count} allocator call(s) in all (takes|take) "
        "{time} {per}, and (leaves|leave) "
        "the device idle for {idle}."
    ),
    confidence=Confidence.HIGH,
    needs="DLA",
    advice_texts={
        "enable_cache.cuda": "Unset PYTORCH_NO_CUDA_MEMORY_CACHING.",
        "enable_cache.ascend": "Unset PYTORCH_NO_NPU_MEMORY_CACHING.",
    },
    options={"share": (0.3, "own: device allocations over kernels"), "least": (50.0, "own: device allocations a step")},
    order=-2,
)
def find(facts: Facts, options: Options) -> Findings:
    """Every tensor is allocated by the device.

    What it finds
        As good as one device allocation an operator, in all steps.
    Why it costs time
        Without the cache each request is a call of the device's allocator, and each free waits for the device.
    How it is measured
        Device allocation calls, 50 a step or more and 30 % of the kernels or more; the cost as in MEM101.
    What to do
        Unset `PYTORCH_NO_CUDA_MEMORY_CACHING` (Ascend: `PYTORCH_NO_NPU_MEMORY_CACHING`); it is for debugging.

    References
        CUDA semantics; torch_npu environment variables.
    """
    calls, device = facts.once(allocator_calls), facts.context.device
    taken = ~calls.pinned & ~calls.frees
    kernels = int(np.sum((device.kind == EventKind.KERNEL) & facts.inside(device.start)))
    often = taken.sum() >= max(options.number("least") * facts.window.count, options.number("share") * kernels)
    if often and 2 * steady(facts, taken) >= facts.window.count - 1:
        yield allocator_finding(facts, ~calls.pinned)
