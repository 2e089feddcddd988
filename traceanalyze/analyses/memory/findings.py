"""What the detectors found on one device, worst first, each with its amount, its line and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
from traceanalyze.analyses.memory.columns import LINE
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, Value, declare

_FINDINGS = declare(
    "memory_findings",
    "Findings",
    Column("severity", Kind.TERM, "critical, warning or information"),
    Column("memory_finding", Kind.TERM, "what was found", heading="finding"),
    Column("amount_bytes", Kind.MEMORY, "memory it is about"),
    Column("share", Kind.SHARE, "part of the step"),
    Column("count", Kind.COUNT, "how many there are"),
    LINE,
)
_ORDER = ("critical", "warn", "info")
_CYCLE = 0.01
"""Share of the history's time that retries must cost to be a warning (memory-snapshot specification, D2)."""
_WASTE = 0.05
"""Rounding beyond this share is worth saying; real files have at most 2.95 % (D10)."""
_ACTIVATIONS = 0.5
_OVERSIZED = 2
"""Growths, as MEM106."""
_SOON = 1000
"""Steps: a leak that fills the device within these ends the run."""


_KINDS = {
    **dict.fromkeys(("count", "cycles", "segments", "steps"), Kind.COUNT),
    **dict.fromkeys(("line", "pinner"), Kind.NAME),
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
    return Message(f"advice_{key}", tuple((name, _KINDS.get(name, Kind.MEMORY), each) for name, each in values.items()))


def _ooms(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    for one in analysis.ooms:
        key = f"oom_{one.kind}"
        advice = _advice(key, request=one.request, free=one.free, hole=one.largest_hole, device=one.device_free)
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
    if churn.flagged:
        advice = _advice(f"churn_{kind}", **values)
        yield MemoryFinding("warn", "churn", advice, churn.recycled, churn.ratio, churn.cycles, line)
    elif kind == "empty_cache":
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
        yield MemoryFinding("info", "activation_peak", _advice("activations", share=share), amount, share, line=line)


def _patterns(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    """How the program asks for memory."""
    growing, oversized, small = analysis.growing, analysis.oversized, analysis.small
    if not isinstance(growing, NotMeasured) and growing.flagged:
        steps, grown, line = growing.steps, growing.grown, growing.line
        first, last = growing.smallest, growing.largest
        advice = _advice("growing_sizes", steps=steps, first=first, last=last, amount=grown, line=line)
        severity = "warn" if growing.retries else "info"
        yield MemoryFinding(severity, "growing_sizes", advice, grown, count=steps, line=line)
    if not isinstance(oversized, NotMeasured) and oversized.growths >= _OVERSIZED:
        count, grown, hole = oversized.growths, oversized.grown, oversized.unused
        advice = _advice("oversized_blocks", count=count, request=oversized.request, hole=hole, amount=grown)
        yield MemoryFinding("info", "oversized_blocks", advice, grown, count=count, line=oversized.line)
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
        yield MemoryFinding("info", key, _advice(key))
