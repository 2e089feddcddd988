from dataclasses import replace

from traceanalyze.rules.common.allocations import allocator_calls, allocator_finding, steady
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, rule


@rule(
    "MEM101",
    "allocator-churn",
    title="device memory taken or given back in every step",
    sentence={
        "": (
            "Steps take memory from the device and give it back: {count} allocator call(s) in all "
            "(takes|take) {time} {per}, "
            "and leave the device idle for {idle}."
        ),
        "taken": (
            "Steps take memory from the device and give none back: {count} allocator call(s) in all "
            "(takes|take) {time} {per}, "
            "and leave the device idle for {idle}."
        ),
    },
    confidence=Confidence.HIGH,
    needs="DLA",
    advice=("expandable_segments", "reuse_buffers"),
    advice_texts={"reuse_buffers": "Keep sizes alike from step to step, and use buffers again."},
    options={"steps": (2.0, "own: steps after the first with such calls")},
)
def find(facts: Facts, options: Options) -> Findings:
    """Memory is taken from the device, or given back, in every step.

    What it finds
        Device allocation and free calls (`cudaMalloc`, `cudaFree`, `cuMemMap` …) in two or more steps after the first.
    Why it costs time
        The caching allocator is there so that steps need none of them. Each takes up to milliseconds, and freeing waits
        for the device.
    How it is measured
        The host's part of the idle gaps that such calls fill for the most part, or what a replay of the launches
        without them gains, whichever is more. The first step may allocate.
    What to do
        `expandable_segments:True`; keep sizes alike, reuse buffers, and stay away from the limit.

    References
        Understanding CUDA memory usage; CUDA semantics; torch_npu allocator settings.
    """
    calls = facts.once(allocator_calls)
    if steady(facts, ~calls.pinned) >= options.number("steps"):
        freed = (calls.frees & ~calls.pinned).any()
        yield replace(allocator_finding(facts, ~calls.pinned), sentence="" if freed else "taken")
