from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.allocations import (
    allocator_calls,
    allocator_finding,
    device_memory,
    memory_finding,
    steady,
)
from traceanalyze.rules.rule import Confidence, Facts, Findings, Options, Severity, UnmeasuredError, measured, rule


@rule(
    "MEM103",
    "memory-limit",
    title="at the limit of device memory",
    sentence={
        "": (
            "The allocator gives memory back to make room: {count} allocator call(s) in all take {time} {per}, and "
            "leave the device idle for {idle}."
        ),
        "snapshot": "{count} request(s) found the device full: {amount} were given back and taken again.",
    },
    confidence=Confidence.HIGH,
    needs="DLA",
    advice=("less_memory", "gc_threshold"),
    advice_texts={
        "gc_threshold": "garbage_collection_threshold:0.8 frees blocks before the limit is reached.",
        "gc_threshold.ascend": (
            "torch_npu.npu.set_per_process_memory_fraction(0.95) with garbage_collection_threshold:0.95, then lower."
        ),
    },
    options={"share": (0.90, "own: reserved memory over the capacity, from which on frees are retries")},
    order=-1,
    rare=True,
)
def find(facts: Facts, options: Options) -> Findings:
    """The program runs at the limit of the device's memory.

    What it finds
        Memory given back to the device in steps after the first while nearly all of it is reserved, or requests of the
        snapshot's history that found the device full.
    Why it costs time
        A request that does not fit makes the allocator wait for the device, give back its cache and try again.
    How it is measured
        Free calls in such steps, with a highest recorded reserve of 90 % of the device's memory or more; the cost as in
        MEM101. In a snapshot: releases followed by growth, or by a failure, in the same call.
    What to do
        A smaller micro-batch, activation checkpointing, a sharded optimizer; `garbage_collection_threshold:0.8`.

    References
        Understanding CUDA memory usage; Ascend foundation-model tuning guide.
    """
    known, calls = device_memory(facts), facts.once(allocator_calls)
    freed = bool(steady(facts, calls.frees & ~calls.pinned))
    tried = facts.allocator.retries if facts.allocator else None
    missing = facts.missing("M")
    if tried and not freed:
        yield memory_finding(
            Severity.HIGH if facts.snapshot.ooms else Severity.MEDIUM,
            str(tried.column("source_line")[0]),
            len(tried),
            *measured(count=len(tried), amount=int(tried.array("released_bytes").sum())),
            sentence="snapshot",
        )
    elif tried:
        yield allocator_finding(facts, ~calls.pinned)
    elif missing is not None:
        # A snapshot without retries shows that there were none.
        if facts.allocator is None or facts.allocator.events <= 1:
            raise UnmeasuredError(missing)
    elif freed and known is not None and not isinstance(known[0].peak_reserved_bytes, NotMeasured):
        peak, capacity = known[0].peak_reserved_bytes, known[1]
        if peak >= options.number("share") * capacity:
            yield allocator_finding(facts, ~calls.pinned)
