"""MEM103: the program runs at the limit of the device's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyze.analyses.results import NotMeasured
from traceanalyze.rules.common.allocations import allocator_calls, allocator_finding, device_memory, steady
from traceanalyze.rules.finding import Confidence, Finding
from traceanalyze.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceanalyze.rules.facts import Facts
    from traceanalyze.rules.finding import Finding
    from traceanalyze.rules.rule import Options


@rule(
    "MEM103",
    "memory-limit",
    confidence=Confidence.HIGH,
    needs="DLM",
    advice=("less_memory", "gc_threshold"),
    options={"share": (0.90, "own: reserved memory over the capacity, from which on frees are retries")},
    order=-1,
    rare=True,
)
def find(facts: Facts, options: Options) -> Iterator[Finding]:
    """The program runs at the limit of the device's memory.

    What it finds
        Memory given back to the device in steps after the first while nearly all of it is reserved.
    Why it costs time
        A request that does not fit makes the allocator wait for the device, give back its cache and try again.
    How it is measured
        Free calls in such steps, with a highest recorded reserve of 90 % of the device's memory or more; the cost as in
        MEM101.
    What to do
        A smaller micro-batch, activation checkpointing, a sharded optimizer; `garbage_collection_threshold:0.8`.

    References
        Understanding CUDA memory usage; Ascend foundation-model tuning guide.
    """
    known, calls = device_memory(facts), facts.once(allocator_calls)
    if known is None or isinstance(known[0].peak_reserved, NotMeasured):
        return
    near = known[0].peak_reserved >= options.number("share") * known[1]
    if near and steady(facts, calls.frees & ~calls.pinned):
        yield allocator_finding(facts, ~calls.pinned)
