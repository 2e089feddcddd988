from dataclasses import replace

import numpy as np

from traceanalyze.analyses.steps.window import step_labels
from traceanalyze.model.intervals import contains, merge
from traceanalyze.model.table import NotMeasured
from traceanalyze.rules.common.allocations import (
    allocator_calls,
    allocator_finding,
    device_memory,
    flushes,
    memory_finding,
    steady,
)
from traceanalyze.rules.rule import (
    Confidence,
    Evidence,
    Facts,
    Finding,
    Findings,
    Options,
    Scope,
    Severity,
    UnmeasuredError,
    measured,
    rule,
)


@rule(
    "MEM103",
    "memory-limit",
    title="at the limit of device memory",
    sentence={
        "": (
            "The allocator gives memory back to make room: {count} allocator call(s) in all (takes|take) "
            "{time} {per}, and "
            "leave the device idle for {idle}."
        ),
        "flushed": (
            "Memory ran short in step {step}: inside {what} the allocator gave {count} block(s) of its cache back and "
            "took memory anew, {flush} in all."
        ),
        "flushed_trace": (
            "Memory ran short: inside {what} the allocator gave {count} block(s) of its cache back and took memory "
            "anew, {flush} in all."
        ),
        "snapshot": "{count} request(s) found the device full: {amount} were given back and taken again.",
    },
    evidence={"flush": "time of these calls", "step": "step"},
    confidence=Confidence.HIGH,
    needs="DLA",
    advice=("less_memory", "gc_threshold"),
    advice_texts={
        "gc_threshold": (
            "torch.cuda.set_per_process_memory_fraction(0.95) with garbage_collection_threshold:0.8 frees blocks "
            "before the limit is reached."
        ),
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
        Memory given back to the device in steps after the first while nearly all of it is reserved; an operator in any
        recorded step that gives four blocks back in a row or more and takes one after that; or requests of the
        snapshot's history that found the device full.
    Why it costs time
        A request that does not fit makes the allocator wait for the device, give back its cache and try again.
    How it is measured
        Free calls in such steps, with a highest recorded reserve of 90 % of the device's memory or more; the cost as in
        MEM101. Of an operator that gives memory back the time of its calls is told, which comes again whenever memory
        is short; its price is that of all calls from then on in steps that count. In a snapshot: releases followed by
        growth, or by a failure, in the same call.
    What to do
        A smaller micro-batch, activation checkpointing, a sharded optimizer; `garbage_collection_threshold:0.8`
        together with `set_per_process_memory_fraction`, without which it has no effect.

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
    elif len(facts.once(flushes).op):
        yield _flushed(facts)
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


def _flushed(facts: Facts) -> Finding:
    """Operators in which the allocator gave its cache back, at the price of its calls from then on in steps that count.

    What it takes in later steps it had given back.
    """
    found, calls, steps = facts.once(flushes), facts.once(allocator_calls), facts.context.all_steps
    longest = int(found.time.argmax())
    what = facts.name(int(facts.context.op_nest.row[found.op[longest]]))
    row = int(np.searchsorted(steps.start, found.start[longest], "right")) - 1
    label = step_labels(steps.name)[max(row, 0)]
    place = Evidence("what", what, "NAME", int(found.start[longest]), int(found.end[longest]))
    evidence = place, *measured(count=int(found.frees.sum())), Evidence("flush", int(found.time.sum()), "DURATION")
    chosen = ~calls.pinned & (calls.start >= found.start.min())
    counts = bool((chosen & contains(merge(found.start, found.end), calls.start)).any())
    return replace(
        allocator_finding(facts, chosen) if chosen.any() else Finding(),
        severity=None if counts else Severity.MEDIUM,
        sentence="flushed" if facts.marked else "flushed_trace",
        evidence=(*evidence, Evidence("step", label, "TEXT")) if facts.marked else evidence,
        scope=Scope(steps=(label,) if facts.marked else (), ops=(what,)),
        count=len(found.op),
    )
