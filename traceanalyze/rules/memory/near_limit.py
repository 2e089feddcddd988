from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.allocations import device_memory, memory_finding, reserved_of_capacity
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)


@rule(
    "MEM109",
    "near-limit",
    title="little device memory left",
    sentence={
        "": "At its peak {peak} of {capacity} are allocated ({of_capacity}).",
        "snapshot": "At most {reserved} of {capacity} are reserved ({of_capacity}).",
    },
    evidence={"reserved": "peak of reserved memory"},
    confidence=Confidence.MEDIUM,
    needs="D",
    advice=("less_memory", "hccl_buffers"),
    advice_texts={
        "hccl_buffers.cuda": "Lower precision where the model allows it.",
        "hccl_buffers.ascend": "Each communicator takes 2 × HCCL_BUFFSIZE (200 MB): fewer groups or smaller buffers.",
    },
    options={
        "share": (0.90, "TensorBoard plugin: peak of allocated memory over the capacity"),
        "reserved": (0.95, "own: peak of reserved memory over the capacity"),
    },
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """Little of the device's memory is left.

    What it finds
        A peak of allocated memory above 90 % of the device's; with a snapshot a reserve of 95 %.
    Why it costs time
        It costs nothing yet; a longer sequence or fragmentation ends in retries (MEM103) or a failed request.
    How it is measured
        Highest recorded total of the allocator over the device's memory; not judged where either is unknown.
    What to do
        Activation checkpointing, lower precision, a sharded optimizer; on Ascend fewer or smaller communication
        buffers.

    References
        Understanding CUDA memory usage; CANN HCCL variables.
    """
    reserved = reserved_of_capacity(facts)
    if reserved is not None:
        most, capacity = reserved
        if most >= options.number("reserved") * capacity:
            pressed = bool(facts.allocator and facts.allocator.retries)
            yield memory_finding(
                Severity.MEDIUM if pressed else Severity.INFO,
                "",
                1,
                *measured(of_capacity=most / capacity),
                Evidence("reserved", most, "MEMORY"),
                *measured(capacity=capacity),
                sentence="snapshot",
            )
        return
    missing = facts.missing("M")
    if missing is not None:
        raise UnmeasuredError(missing)
    known = device_memory(facts)
    if known is None or isinstance(known[0].peak_allocated_bytes, NotMeasured):
        return
    peak, capacity = known[0].peak_allocated_bytes, known[1]
    if peak > options.number("share") * capacity:
        evidence = measured(of_capacity=peak / capacity, peak=peak, capacity=capacity)
        yield Finding(evidence=evidence, severity=Severity.INFO)
