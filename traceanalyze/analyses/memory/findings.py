"""What the detectors found on one device, worst first, each with its amount, its line and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traceanalyze.analyses.memory import LINE
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare, sentences

if TYPE_CHECKING:
    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis

_SAY = sentences(
    advice_oom_isolation=(
        "A request of {request} failed although a free piece was large enough, in another stream or pool: use one "
        "stream for large tensors, or free them before switching streams."
    ),
    advice_oom_fragmentation=(
        "A request of {request} failed although {free} were free inside segments, the largest piece {hole}: set "
        "{variable}=expandable_segments:True."
    ),
    advice_oom_split=(
        "A request of {request} failed with {free} free inside segments and {device} on the device: "
        "expandable_segments:True joins the two."
    ),
    advice_oom_pieces=(
        "A request of {request} failed although {free} were free inside segments, the largest piece {hole}; as a "
        "replay shows, it fails with expandable_segments:True, too: allocate long-lived tensors first, or need less."
    ),
    advice_oom_other_processes=(
        "A request of {request} failed with {device} free on the device, most of which others hold: look for other "
        "processes, and for NCCL or HCCL buffers."
    ),
    advice_oom_capacity=(
        "A request of {request} failed with {free} free inside segments and {device} on the device: the device is "
        "full; reduce what the table of that moment names (smaller batch, checkpointing, sharding)."
    ),
    advice_oom_unknown="A request of {request} failed with {free} free inside segments.",
    advice_oom_unlocated=(
        "A request of {request} failed; how much was free is not known, as the layout of memory is not exact."
    ),
    advice_leak_likely=(
        "Every step leaves {amount} behind at {line} (seen over {steps} steps): keep `.item()` or `.detach()` instead "
        "of tensors with their graph, and drop references at the end of the step."
    ),
    advice_leak_suspected=(
        "Perhaps a leak: {steps} steps each leave {amount} behind at {line}; a longer history would tell."
    ),
    advice_retry_timed=(
        "{count} allocation(s) found the device full: {amount} were given back and taken anew, which cost at most "
        "{cost}. Leave more room (smaller batch, checkpointing), or set_per_process_memory_fraction(0.95) with "
        "garbage_collection_threshold:0.8."
    ),
    advice_retry=(
        "{count} allocation(s) found the device full: {amount} were given back and taken anew. Leave more room "
        "(smaller batch, checkpointing), or set_per_process_memory_fraction(0.95) with "
        "garbage_collection_threshold:0.8."
    ),
    advice_churn_empty_cache=(
        "{amount} went back to the device and were taken again in {cycles} cycles, by empty_cache at {line}: remove "
        "it; then {avoided} fewer requests go to the device, as a replay shows."
    ),
    advice_churn_empty_cache_needed=(
        "{amount} went back to the device and were taken again in {cycles} cycles, by empty_cache at {line}; without "
        "it a request would fail, as a replay shows: leave more room before it is removed."
    ),
    advice_churn_empty_cache_unknown=(
        "{amount} went back to the device and were taken again in {cycles} cycles, by empty_cache at {line}: remove it."
    ),
    advice_churn_retry=(
        "{amount} went back to the device and were taken again in {cycles} cycles, because the device is full: leave "
        "more room, or set expandable_segments:True."
    ),
    advice_churn_failed_retry=(
        "{amount} went back to the device and were taken again in {cycles} cycles before it failed."
    ),
    advice_churn_gc=(
        "{amount} went back to the device and were taken again in {cycles} cycles, by the allocator's garbage "
        "collection: raise garbage_collection_threshold."
    ),
    advice_churn_unknown=(
        "{amount} went back to the device and were taken again in {cycles} cycles; the stacks do not tell why."
    ),
    advice_empty_cache="empty_cache is called at {line}; it costs time and rarely helps inside a loop.",
    advice_fragmentation=(
        "The reserve grew for a request of {request} although {free} were free, the largest piece {hole}; {avoidable} "
        "could be saved: expandable_segments:True, or allocate long-lived tensors first (blocks of {pinner} are in the "
        "way)."
    ),
    advice_spike=(
        "{share} of the peak are blocks freed again at once, the largest at {line}: compute in pieces, in place, or "
        "with a fused operator."
    ),
    advice_gradients=(
        "{amount} of gradients live through the next forward pass: call zero_grad(set_to_none=True) right after step()."
    ),
    advice_activations="Activations are {share} of the peak: activation checkpointing trades them for compute.",
    advice_activations_module=(
        "Activations are {share} of the peak: checkpointing of what is called at {line} saves {saved}, for compute."
    ),
    advice_growing_sizes=(
        "In {steps} steps a request at {line} was larger than any before ({first}, at last {last}), and {amount} were "
        "taken from the device: run one batch of the largest size first, or bucket or pad the lengths."
    ),
    advice_growing_sizes_expandable=(
        "In {steps} steps a request at {line} was larger than any before ({first}, at last {last}), and {amount} were "
        "taken from the device: run one batch of the largest size first, bucket or pad the lengths, or set "
        "expandable_segments:True, which saves {saved}."
    ),
    advice_oversized_blocks=(
        "The reserve grew {count} times for requests such as {request} although {hole} lay free in one piece: raise "
        "max_non_split_rounding_mb, or leave max_split_size_mb out, which saves {amount}."
    ),
    advice_small_blocks=(
        "{count} blocks below 1 MiB live throughout; alone they keep {segments} segments with {amount} free: one "
        "buffer with views in place of many tiny tensors."
    ),
    advice_near_limit="The reserve comes close to the device's {capacity}.",
    advice_rounding="Blocks are {share} larger than what was asked for: many tiny tensors; use one buffer with views.",
    advice_expandable_with_max_split="max_split_size_mb has no effect with expandable_segments.",
    advice_gc_threshold_without_fraction=(
        "garbage_collection_threshold has no effect without a memory fraction (set_per_process_memory_fraction)."
    ),
    advice_history_never_recorded=(
        "The snapshot has no history: call {module}._record_memory_history(max_entries=1000000) at the start."
    ),
    advice_state_only_recording=(
        'The history was not recorded (context="state"): call _record_memory_history(context="all", stacks="python").'
    ),
    advice_no_memory_stacks=(
        'No call stacks were recorded: call _record_memory_history(context="all", stacks="python").'
    ),
)

_FINDINGS = declare(
    "memory_findings",
    "Findings",
    Column("severity", Kind.TERM, "how much it matters: high, medium or note"),
    Column("memory_finding", Kind.TERM, "what was found", heading="finding"),
    Column("amount_bytes", Kind.MEMORY, "memory it is about"),
    Column("share", Kind.SHARE, "part of what the advice names, such as the peak"),
    Column("count", Kind.COUNT, "how many there are"),
    LINE,
)
_ORDER = ("critical", "warn", "info")
_CYCLE = 0.01
"""Share of the history's time that retries must cost to be a warning (own)."""
_WASTE = 0.05
"""Rounding beyond this share is worth saying; real files have at most 2.95 %."""
_ACTIVATIONS = 0.5
_OVERSIZED = 2
"""Growths, as MEM106."""
_OVER_AND_OVER = 2
"""Cycles; one call of empty_cache between two phases is nobody's mistake."""
_SOON = 1000
"""Steps: a leak that fills the device within these ends the run."""


_KINDS = {
    **dict.fromkeys(("avoided", "count", "cycles", "segments", "steps"), Kind.COUNT),
    **dict.fromkeys(("line", "module", "pinner", "variable"), Kind.NAME),
    "share": Kind.SHARE,
    "cost": Kind.DURATION,
}
"""Of the values that advice mentions; all others are bytes."""


@dataclass(frozen=True)
class MemoryFinding:
    """One thing to know, with the sentence that explains it."""

    severity: str
    key: str
    advice: Message
    amount: int | None = None
    share: float | None = None
    count: int | None = None
    line: str = ""


def memory_findings(analysis: AllocatorAnalysis) -> tuple[MemoryFinding, ...]:
    """Everything found, critical first, then by amount."""
    found = (
        *_ooms(analysis),
        *_leaks(analysis),
        *_retries(analysis),
        *_churn(analysis),
        *_fragmentation(analysis),
        *_habits(analysis),
        *_patterns(analysis),
        *_limits(analysis),
    )
    return tuple(sorted(found, key=_rank))


def _rank(one: MemoryFinding) -> tuple[int, int, int, str]:
    """A failed request is what everybody looks for, and a leak ends in one."""
    kind = 0 if one.key.startswith("oom") else 1 if one.key == "leak" else 2
    return _ORDER.index(one.severity), kind, -(one.amount or 0), one.key


def findings_table(found: tuple[MemoryFinding, ...]) -> Table:
    """Findings as a table, the advice as sentences below it."""
    table = _FINDINGS.fill(
        severity=[one.severity for one in found],
        memory_finding=[one.key for one in found],
        amount_bytes=[one.amount for one in found],
        share=[one.share for one in found],
        count=[one.count for one in found],
        source_line=[one.line or None for one in found],
    )
    return replace(table, notes=tuple(dict.fromkeys(one.advice for one in found)))


def _advice(key: str, **values: Value) -> Message:
    return Message(
        _SAY[f"advice_{key}"], tuple((name, _KINDS.get(name, Kind.MEMORY), each) for name, each in values.items())
    )


def _ooms(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    for one in analysis.ooms:
        key = f"oom_{one.kind}"
        said = "oom_pieces" if one.kind in {"fragmentation", "split"} and one.expandable is False else key
        values: dict[str, Value] = {"free": one.free, "hole": one.largest_hole, "device": one.device_free}
        advice = _advice(said, request=one.request, variable=analysis.variable, **values)
        yield MemoryFinding("critical", key, advice, one.request, count=1, line=one.line)


def _leaks(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    if isinstance(analysis.leaks, NotMeasured):
        return
    left = None if analysis.capacity is None else analysis.capacity - analysis.most_reserved
    peak = max(int(analysis.moments.array("requested_bytes")[0]), 1)
    for leak in analysis.leaks:
        size, soon = leak.per_step, left is not None and left < _SOON * leak.per_step
        severity = "info" if leak.confidence != "likely" else "critical" if soon else "warn"
        advice = _advice(f"leak_{leak.confidence}", amount=size, line=leak.line, steps=leak.steps)
        yield MemoryFinding(severity, "leak", advice, size, size / peak, leak.steps, leak.line)


def _retries(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    runs = list(analysis.retries.records())
    if not runs:
        return
    costs = [run.cost_ns for run in runs if run.cost_ns is not None]
    span = 0 if analysis.time is None or not len(analysis.time) else int(analysis.time[-1] - analysis.time[0])
    often = len(runs) * 100 >= len(analysis.steps) > 0 or sum(costs) >= _CYCLE * span > 0
    severity = "critical" if analysis.ooms else "warn" if often else "info"
    count, amount = len(runs), sum(run.released_bytes for run in runs)
    timed = _advice("retry_timed", count=count, amount=amount, cost=sum(costs))
    advice = timed if costs else _advice("retry", count=count, amount=amount)
    yield MemoryFinding(severity, "retry", advice, amount, count=count, line=runs[0].source_line)


def _churn(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    churn = analysis.churn
    if isinstance(churn, NotMeasured) or not churn.released:
        return
    lines = [run.source_line for run in analysis.runs.records() if run.release_kind == churn.kind]
    line, kind = lines[0] if lines else "", churn.kind.removeprefix("release_")
    values: dict[str, Value] = {"amount": churn.recycled, "cycles": churn.cycles, "line": line}
    if kind == "empty_cache" and not isinstance(churn.avoided, NotMeasured):
        if churn.cycles < _OVER_AND_OVER or churn.avoided == 0:
            # Between two phases, or it takes nothing from later requests.
            return
        kind = "empty_cache" if churn.avoided else "empty_cache_needed"
        values["avoided"] = churn.avoided
    elif kind == "empty_cache":
        kind = "empty_cache_unknown"
    if churn.flagged:
        advice = _advice(f"churn_{kind}", **values)
        yield MemoryFinding("warn", "churn", advice, churn.recycled, churn.ratio, churn.cycles, line)
    elif churn.kind == "release_empty_cache" and churn.cycles >= _OVER_AND_OVER:
        advice = _advice("empty_cache", **values)
        yield MemoryFinding("info", "empty_cache", advice, churn.released, churn.ratio, len(lines), line)


def _fragmentation(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    found = analysis.fragmentation
    if isinstance(found, NotMeasured) or found.level == "none":
        return
    advice = _advice(
        "fragmentation",
        request=found.request,
        free=found.free,
        hole=found.largest_hole,
        avoidable=found.avoidable,
        pinner=found.pinner,
    )
    yield MemoryFinding(found.level, "fragmentation", advice, found.avoidable, found.share, found.growths, found.line)


def _habits(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    spike, gradients = analysis.spike, analysis.gradients
    if not isinstance(spike, NotMeasured) and spike.flagged:
        advice = _advice("spike", share=spike.share, line=spike.line)
        yield MemoryFinding("warn", "spike", advice, spike.bytes, spike.share, line=spike.line)
    if not isinstance(gradients, NotMeasured) and gradients.flagged:
        advice = _advice("gradients", amount=gradients.bytes)
        yield MemoryFinding("info", "held_gradients", advice, gradients.bytes, gradients.share)
    amount, share, line = analysis.activations
    if share >= _ACTIVATIONS:
        module = next((one for one in analysis.levers.records() if one.lever == "lever_checkpoint"), None)
        advice = (
            _advice("activations", share=share)
            if module is None
            else _advice("activations_module", share=share, line=module.source_line, saved=module.saved_bytes)
        )
        yield MemoryFinding("info", "activation_peak", advice, amount, share, line=line)


def _patterns(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    """How the program asks for memory."""
    growing, oversized, small = analysis.growing, analysis.oversized, analysis.small
    if not isinstance(growing, NotMeasured) and growing.flagged:
        steps, grown, line = growing.steps, growing.grown, growing.line
        first, last = growing.smallest, growing.largest
        told: dict[str, Value] = {"steps": steps, "first": first, "last": last, "amount": grown, "line": line}
        if not isinstance(growing.saved, NotMeasured) and growing.saved > 0:
            advice = _advice("growing_sizes_expandable", **told, saved=growing.saved)
        else:
            advice = _advice("growing_sizes", **told)
        severity = "warn" if growing.retries else "info"
        yield MemoryFinding(severity, "growing_sizes", advice, grown, count=steps, line=line)
    if not isinstance(oversized, NotMeasured) and oversized.growths >= _OVERSIZED:
        count, saved, hole = oversized.growths, oversized.saved, oversized.unused
        if not isinstance(saved, NotMeasured) and saved > 0:
            advice = _advice("oversized_blocks", count=count, request=oversized.request, hole=hole, amount=saved)
            yield MemoryFinding("info", "oversized_blocks", advice, saved, count=count, line=oversized.line)
    if not isinstance(small, NotMeasured) and small.flagged:
        advice = _advice("small_blocks", count=small.count, segments=small.segments, amount=small.held)
        yield MemoryFinding("info", "small_blocks", advice, small.held, small.share, small.count, small.line)


def _limits(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    capacity, waste = analysis.capacity, analysis.rounding_waste
    if analysis.near_limit and capacity is not None:
        reserved, severity = analysis.most_reserved, "warn" if len(analysis.retries) else "info"
        yield MemoryFinding(
            severity, "near_limit", _advice("near_limit", capacity=capacity), reserved, reserved / capacity
        )
    if waste >= _WASTE:
        yield MemoryFinding("info", "rounding", _advice("rounding", share=waste), share=waste)
    for key in analysis.settings:
        values = {"module": analysis.module} if key == "history_never_recorded" else {}
        yield MemoryFinding("info", key, _advice(key, **values))
