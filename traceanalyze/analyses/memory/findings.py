"""What the detectors found on one device, worst first, each with its amount, its line and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
from traceanalyze.analyses.memory.columns import LINE
from traceanalyze.analyses.memory.patterns import GrowingSizes, OversizedBlocks, SmallBlocks
from traceanalyze.analyses.memory.steps import Leak
from traceanalyze.frozen import frozen
from traceanalyze.model.table import Column, Kind, Message, NotMeasured, Table, declare

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


@frozen
class MemoryFinding:
    """One thing to know, with the sentence that explains it."""

    severity: str
    key: str
    amount: int | None
    share: float | None
    count: int | None
    line: str
    advice: Message


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


def _peak(analysis: AllocatorAnalysis) -> int:
    return max(int(analysis.moments.array("requested_bytes")[0]), 1)


def _ooms(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    for one in analysis.ooms:
        values = (
            ("request", Kind.MEMORY, one.request),
            ("free", Kind.MEMORY, one.free),
            ("hole", Kind.MEMORY, one.largest_hole),
            ("device", Kind.MEMORY, one.device_free),
        )
        advice = Message(f"advice_oom_{one.kind}", values)
        yield MemoryFinding("critical", f"oom_{one.kind}", one.request, None, 1, one.line, advice)


def _leaks(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    if isinstance(analysis.leaks, NotMeasured):
        return
    for leak in analysis.leaks:
        values = (
            ("amount", Kind.MEMORY, leak.per_step),
            ("line", Kind.NAME, leak.line),
            ("steps", Kind.COUNT, leak.steps),
        )
        severity = "info" if leak.confidence != "likely" else "critical" if _soon_full(analysis, leak) else "warn"
        share = leak.per_step / _peak(analysis)
        advice = Message(f"advice_leak_{leak.confidence}", values)
        yield MemoryFinding(severity, "leak", leak.per_step, share, leak.steps, leak.line, advice)


def _soon_full(analysis: AllocatorAnalysis, leak: Leak) -> bool:
    """Whether the leak fills what is left of the device within `_SOON` steps."""
    if analysis.capacity is None:
        return False
    left = analysis.capacity - analysis.most_reserved
    return left < _SOON * leak.per_step


def _retries(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    runs = list(analysis.retries.records())
    if not runs:
        return
    costs = [run.cost_ns for run in runs if run.cost_ns is not None]
    span = 0 if analysis.time is None or not len(analysis.time) else int(analysis.time[-1] - analysis.time[0])
    often = len(runs) * 100 >= len(analysis.steps) > 0 or sum(costs) >= _CYCLE * span > 0
    severity = "critical" if analysis.ooms else "warn" if often else "info"
    amount = sum(run.released_bytes for run in runs)
    known = ("count", Kind.COUNT, len(runs)), ("amount", Kind.MEMORY, amount)
    advice = Message("advice_retry_timed", (*known, ("cost", Kind.DURATION, sum(costs))))
    if not costs:
        advice = Message("advice_retry", known)
    yield MemoryFinding(severity, "retry", amount, None, len(runs), runs[0].source_line, advice)


def _churn(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    churn = analysis.churn
    if isinstance(churn, NotMeasured) or not churn.released:
        return
    lines = [run.source_line for run in analysis.runs.records() if run.release_kind == churn.kind]
    line, kind = lines[0] if lines else "", churn.kind.removeprefix("release_")
    values = (("amount", Kind.MEMORY, churn.recycled), ("cycles", Kind.COUNT, churn.cycles), ("line", Kind.NAME, line))
    if churn.flagged:
        advice = Message(f"advice_churn_{kind}", values)
        yield MemoryFinding("warn", "churn", churn.recycled, churn.ratio, churn.cycles, line, advice)
    elif kind == "empty_cache":
        advice = Message("advice_empty_cache", values)
        yield MemoryFinding("info", "empty_cache", churn.released, churn.ratio, len(lines), line, advice)


def _fragmentation(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    found = analysis.fragmentation
    if isinstance(found, NotMeasured) or found.level == "none":
        return
    values = (
        ("request", Kind.MEMORY, found.request),
        ("free", Kind.MEMORY, found.free),
        ("hole", Kind.MEMORY, found.largest_hole),
        ("avoidable", Kind.MEMORY, found.avoidable),
        ("pinner", Kind.NAME, found.pinner),
    )
    advice = Message("advice_fragmentation", values)
    yield MemoryFinding(found.level, "fragmentation", found.avoidable, found.share, found.growths, found.line, advice)


def _habits(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    spike, gradients = analysis.spike, analysis.gradients
    if not isinstance(spike, NotMeasured) and spike.flagged:
        values = (("share", Kind.SHARE, spike.share), ("line", Kind.NAME, spike.line))
        advice = Message("advice_spike", values)
        yield MemoryFinding("warn", "spike", spike.bytes, spike.share, None, spike.line, advice)
    if not isinstance(gradients, NotMeasured) and gradients.flagged:
        advice = Message("advice_gradients", (("amount", Kind.MEMORY, gradients.bytes),))
        yield MemoryFinding("info", "held_gradients", gradients.bytes, gradients.share, None, "", advice)
    amount, share, line = analysis.activations
    if share >= _ACTIVATIONS:
        advice = Message("advice_activations", (("share", Kind.SHARE, share),))
        yield MemoryFinding("info", "activation_peak", amount, share, None, line, advice)


def _patterns(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    """How the program asks for memory."""
    if not isinstance(analysis.growing, NotMeasured) and analysis.growing.flagged:
        yield _growing(analysis.growing)
    if not isinstance(analysis.oversized, NotMeasured) and analysis.oversized.growths >= _OVERSIZED:
        yield _oversized(analysis.oversized)
    if not isinstance(analysis.small, NotMeasured) and analysis.small.flagged:
        yield _small(analysis.small)


def _growing(found: GrowingSizes) -> MemoryFinding:
    values = (
        ("steps", Kind.COUNT, found.steps),
        ("first", Kind.MEMORY, found.smallest),
        ("last", Kind.MEMORY, found.largest),
        ("amount", Kind.MEMORY, found.grown),
        ("line", Kind.NAME, found.line),
    )
    advice = Message("advice_growing_sizes", values)
    severity = "warn" if found.retries else "info"
    return MemoryFinding(severity, "growing_sizes", found.grown, None, found.steps, found.line, advice)


def _oversized(found: OversizedBlocks) -> MemoryFinding:
    values = (
        ("count", Kind.COUNT, found.growths),
        ("request", Kind.MEMORY, found.request),
        ("hole", Kind.MEMORY, found.unused),
        ("amount", Kind.MEMORY, found.grown),
    )
    advice = Message("advice_oversized_blocks", values)
    return MemoryFinding("info", "oversized_blocks", found.grown, None, found.growths, found.line, advice)


def _small(found: SmallBlocks) -> MemoryFinding:
    values = (
        ("count", Kind.COUNT, found.count),
        ("segments", Kind.COUNT, found.segments),
        ("amount", Kind.MEMORY, found.held),
    )
    advice = Message("advice_small_blocks", values)
    return MemoryFinding("info", "small_blocks", found.held, found.share, found.count, found.line, advice)


def _limits(analysis: AllocatorAnalysis) -> Iterator[MemoryFinding]:
    if analysis.near_limit and analysis.capacity is not None:
        reserved = analysis.most_reserved
        share, severity = reserved / analysis.capacity, "warn" if len(analysis.retries) else "info"
        advice = Message("advice_near_limit", (("capacity", Kind.MEMORY, analysis.capacity),))
        yield MemoryFinding(severity, "near_limit", reserved, share, None, "", advice)
    if analysis.rounding_waste >= _WASTE:
        advice = Message("advice_rounding", (("share", Kind.SHARE, analysis.rounding_waste),))
        yield MemoryFinding("info", "rounding", None, analysis.rounding_waste, None, "", advice)
    for key in analysis.settings:
        yield MemoryFinding("info", key, None, None, None, "", Message(f"advice_{key}"))
