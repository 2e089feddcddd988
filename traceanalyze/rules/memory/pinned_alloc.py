from traceanalyze.rules.common.allocations import allocator_calls, allocator_finding, steady
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "MEM113",
    "pinned-alloc",
    title="pinned memory allocated in steps",
    sentence="Pinned memory is allocated in the steps: {count} call(s) in all (takes|take) {time} {per}.",
    confidence=Confidence.LOW,
    needs="DLA",
    advice_texts={
        "pinned_pool.ascend": "Use pinned buffers again instead of making new ones in each step.",
        "pinned_pool": (
            "Use pinned buffers again, or pinned_use_cuda_host_register:True, pinned_num_register_threads:8 in the "
            "allocator's settings."
        ),
    },
)
def find(facts: Facts, options: Options) -> Findings:
    """Pinned memory is allocated in the steps.

    What it finds
        `cudaHostAlloc` and the like in steps after the first.
    Why it costs time
        Pinning locks pages one by one, and holds a lock of the driver that launches need.
    How it is measured
        As MEM101, for calls that allocate or free pinned memory.
    What to do
        Keep pinned buffers and use them again; the allocator's settings for pinning in the background.

    References
        CUDA semantics.
    """
    calls = facts.once(allocator_calls)
    if steady(facts, calls.pinned):
        yield allocator_finding(facts, calls.pinned)
