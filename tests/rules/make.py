"""Small programs to judge, and what one rule says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.model.trace import Trace
    from traceanalyze.rules.finding import Finding, Outcome

    Body = Callable[[TraceBuilder, float, int], None]

STEP = 2000.0
"""µs a step."""


@dataclass(frozen=True)
class WithSnapshot:
    """A program, and what a snapshot of its allocator tells."""

    program: TraceBuilder
    allocator: AllocatorAnalysis


def facts_of(trace: Trace, allocator: AllocatorAnalysis | None = None) -> Facts:
    context = Context(trace, Options())
    return Facts(analyze_context(context), context, allocator)


def judged(source: TraceBuilder | Trace | WithSnapshot, *rules: str) -> Outcome:
    """What the named rules (all where none is named) say."""
    allocator = source.allocator if isinstance(source, WithSnapshot) else None
    trace = source.program if isinstance(source, WithSnapshot) else source
    trace = trace.trace() if isinstance(trace, TraceBuilder) else trace
    return evaluate(facts_of(trace, allocator), plan(RuleConfig(select=rules)))


def finding(source: TraceBuilder | Trace | WithSnapshot, rule: str) -> Finding | None:
    """What one rule says; it may say only one thing."""
    found = judged(source, rule).findings
    assert len(found) <= 1
    return found[0] if found else None


def program(body: Body, *, steps: int = 4, length: float = STEP) -> TraceBuilder:
    """Steps of one length; the body of each is given its begin and number."""
    b = TraceBuilder()
    for number in range(steps):
        at = number * length
        b.step(number, at, length)
        body(b, at, number)
    return b


def kernel(b: TraceBuilder, at: float, dur: float, *, host: float = 20, op: str = "aten::mm", **more: object) -> None:
    """An operator of `host` µs that launches a kernel, which begins when the operator ends."""
    b.op(op, at, host)
    b.launch(at + host / 4, host / 2, at + host, dur, **more)


def busy(b: TraceBuilder, at: float, number: int) -> None:
    """A healthy step: the device works nearly all of the time."""
    for part in range(4):
        kernel(b, at + part * STEP / 4, STEP / 4 - 21)


def crowded(b: TraceBuilder, at: float, number: int) -> None:
    """A hundred operators of 20 µs, each with a kernel of 3 µs: the device waits for the host."""
    for part in range(100):
        kernel(b, at + part * STEP / 100, 3, host=16)


def half(b: TraceBuilder, at: float, number: int) -> None:
    """The device is idle in the first half of the step."""
    kernel(b, at, STEP / 2, host=STEP / 2)
