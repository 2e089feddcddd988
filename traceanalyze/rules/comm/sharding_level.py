from dataclasses import replace

from traceanalyze.model.patterns import regex
from traceanalyze.model.phases import OPTIMIZER_STEP
from traceanalyze.model.table import NotMeasured
from traceanalyze.model.vocabulary import EventKind
from traceanalyze.rules.common.allocations import device_memory
from traceanalyze.rules.common.communication import comm_finding, communicating
from traceanalyze.rules.facts import RANGES
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

_SHARDED = regex(r"FSDP::|FullyShardedDataParallel|fully_shard|partition_parameters|zero/stage3|DeepSpeedZero")
_REPLICATED = regex(r"^DistributedDataParallel\.forward|c10d::.*Reducer")


@rule(
    "COM117",
    "sharding-level",
    title="level of sharding",
    sentence={
        "": (
            "All-gathers of sharded parameters are exposed {exposed} {per} ({part} of their time), and {left} of the "
            "device's memory is never used."
        ),
        "replicated": (
            "DistributedDataParallel keeps the optimizer's state on every rank, and {used} of the device's memory "
            "({capacity}) is used."
        ),
    },
    evidence={"used": "memory used"},
    confidence=Confidence.MEDIUM,
    needs="DM",
    advice=("shard_less",),
    advice_texts={
        "shard_less": (
            "reshard_after_forward=False (FSDP2), ShardingStrategy.SHARD_GRAD_OP or ZeRO-2: parameters stay after the "
            "forward and are gathered once a step."
        ),
        "shard_more": (
            "Shard the optimizer: ZeroRedundancyOptimizer (ZeRO-1) or FSDP with SHARD_GRAD_OP; full sharding only "
            "where parameters do not fit, either."
        ),
    },
    options={
        "exposed": (0.20, "own: of the time of all-gathers"),
        "share": (0.05, "own: of the step, in exposed all-gathers"),
        "left": (0.20, "as KRN114: of the device's memory"),
        "full": (0.90, "as MEM109: peak of allocated memory over the capacity"),
    },
    order=1,
)
def find(facts: Facts, options: Options) -> Findings:
    """Parameters are sharded more than memory needs, or the optimizer less.

    What it finds
        Fully sharded training (FSDP, ZeRO-3) whose all-gathers are exposed for more than 20 % of their time, while 20 %
        of the device's memory is never used; or DistributedDataParallel, whose optimizer keeps all its state on every
        rank, at a peak of 90 % of the device's memory.
    Why it costs time
        Sharded parameters are gathered twice a step, in the forward and again in the backward; parameters that stay
        after the forward are gathered once. Replicated optimizer state takes the memory that a larger batch needs.
    How it is measured
        Exposed time of all-gathers; half of it, those of the backward, is the estimate, all of it the most. Highest
        reserve (peak of allocated memory) over the device's memory. Sharding is recognised by ranges and functions of
        FSDP and DeepSpeed.
    What to do
        Memory left: `reshard_after_forward=False` (FSDP2), `ShardingStrategy.SHARD_GRAD_OP`, ZeRO-2 or ZeRO-1. Memory
        short: ZeRO-1 (`ZeroRedundancyOptimizer`) or SHARD_GRAD_OP; full sharding where parameters do not fit, either.

    References
        FSDP; Ascend foundation-model tuning guide.
    """
    work = facts.once(communicating)
    kinds = (*RANGES, EventKind.PYTHON)
    gathers = work.of_kind("all_gather")
    sharded = bool(gathers.any()) and bool(len(facts.rows(kinds, _SHARDED)))
    replicated = bool(work.of_kind("all_reduce").any()) and not sharded and bool(len(facts.rows(kinds, _REPLICATED)))
    if not sharded and not (replicated and len(facts.rows(kinds, OPTIMIZER_STEP))):
        return
    known = device_memory(facts)
    if known is None:
        raise UnmeasuredError("unknown_capacity")
    memory, capacity = known
    if replicated:
        peak = memory.peak_allocated_bytes
        if not isinstance(peak, NotMeasured) and peak > capacity * options.number("full"):
            yield Finding(
                sentence="replicated",
                evidence=(Evidence("used", peak / capacity, "SHARE"), *measured(capacity=capacity)),
                advice=("shard_more",),
                severity=Severity.INFO,
            )
        return
    exposed, whole = work.exposed_mean(facts, gathers), facts.per_step(work.time[gathers])
    left = None if isinstance(memory.peak_reserved_bytes, NotMeasured) else 1 - memory.peak_reserved_bytes / capacity
    if left is None or left < options.number("left"):
        return
    if exposed < options.number("exposed") * whole or facts.share(exposed) < options.number("share"):
        return
    evidence = measured(exposed=exposed, part=exposed / whole, left=left)
    yield replace(comm_finding(facts, gathers, evidence, saving=exposed // 2), scope=Scope())
