"""Small programs to judge, and what one rule says about them.

The cases of a rule stand in `tests/rules/<family>/cases.py`, or in a file of its own beside it (`cases_*.py`, as
`python -m tests.new_rule` writes it), by its id:

    FIRES = {
        "HST107": [
            Fires(
                program(after_python(900)),         # the trace, a few events
                saving=890,                         # µs a step; what the rule promises
                severity="HIGH", count=4,
                evidence={"idle": 890, "longest": 900},
                each=890,                           # µs of its time in each step (or one number for each step)
                first=(30, 920),                    # its first stretch
                options={"share": (0.1, 0.445, 0.446)},
            )
        ]
    }
    SILENT = {"HST107": [program(busy), Silent(program(after_python(900)), share=0.5)]}

Answers are computed on paper. `options` are the rule's thresholds: the default, a value with which the rule still
fires on this trace, and one with which it is silent; one of the two is just what the trace has, so that `>` and `>=`
are told apart. `prices` are options that change what is saved. What looks like the matter but is none, or lies just on
the other side of a threshold, stands in `SILENT`. `test_cases.py` asks for all of it; `python -m tests.rules.make
HST107` prints what the rule says now, to compare with the answer on paper.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.builder import TraceBuilder
from traceanalyze.analyses.analyze import analyze_context
from traceanalyze.analyses.context import Context
from traceanalyze.analyses.options import Options
from traceanalyze.report.contents.words import cost_of
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import evaluate, plan
from traceanalyze.rules.facts import Facts
from traceanalyze.rules.pricing import OVER, WITHIN, WITHIN_STEP
from traceanalyze.rules.registry import every_rule
from traceanalyze.rules.rule import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceanalyze.analyses.memory.allocator import AllocatorAnalysis
    from traceanalyze.model.trace import Trace
    from traceanalyze.rules.finding import Finding, Outcome

    Body = Callable[[TraceBuilder, float, int], None]
    Source: TypeAlias = "TraceBuilder | Trace | WithSnapshot"

STEP = 2000.0
"""µs a step."""


@dataclass(frozen=True)
class WithSnapshot:
    """A program, and what a snapshot of its allocator tells."""

    program: TraceBuilder
    allocator: AllocatorAnalysis


class Silent:
    """A program that a rule says nothing about, with some options."""

    def __init__(self, program: Source, **options: float) -> None:
        self.program, self.options = program, options


@dataclass(frozen=True)
class Fires:
    """A program that a rule speaks about, and what it must say; times in µs."""

    program: Source
    saving: float | None = None
    low: float | None = None
    """Where it is less than any saving may be (`rules/pricing.py`)."""
    bound: float | None = None
    """Where it is not the end of the range that any saving has, for idle time cut to that; without a saving, what it is
    at most."""
    cost: float | None = None
    """What it explains, where that lies outside of the range of the saving."""
    once: bool = False
    severity: str = "INFO"
    confidence: str = ""
    """Where it is not that of the rule."""
    sentence: str = ""
    count: int = 1
    evidence: Mapping[str, float | str | tuple[float, ...]] = field(default_factory=dict)
    """By label; of several under one label a tuple."""
    ops: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    """Where it is not that of the rule."""
    draws: str = ""
    each: float | tuple[float, ...] | None = None
    """Time of the intervals in each step; None without intervals."""
    first: tuple[float, float] | None = None
    """The earliest of them, from the first event on."""
    look: tuple[float, float] | None = None
    """Where the first evidence with a place lies."""
    line: str = ""
    """Its line of the program."""
    options: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Name → default, a value with which the rule fires on this program, and one with which it is silent."""
    prices: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    """Name → default, another value, and the saving (without one, the bound) with that."""
    given: Mapping[str, float] = field(default_factory=dict)
    """Options that are not their defaults."""


def facts_of(trace: Trace, allocator: AllocatorAnalysis | None = None) -> Facts:
    context = Context(trace, Options())
    return Facts(analyze_context(context), context, allocator)


def known(source: Source) -> Facts:
    """The facts of a program."""
    allocator = source.allocator if isinstance(source, WithSnapshot) else None
    trace = source.program if isinstance(source, WithSnapshot) else source
    return facts_of(trace.trace() if isinstance(trace, TraceBuilder) else trace, allocator)


def judged(source: Source, *rules: str) -> Outcome:
    """What the named rules (all where none is named) say."""
    return evaluate(known(source), plan(RuleConfig(select=rules)))


def said(facts: Facts, rule: str, options: Mapping[str, float]) -> Finding | None:
    """What one rule says with some options; it may say only one thing."""
    found = evaluate(facts, plan(RuleConfig((rule,), (), {rule: options}))).findings
    assert len(found) <= 1
    return found[0] if found else None


def finding(source: Source, rule: str) -> Finding | None:
    """What one rule says with its default options."""
    return said(known(source), rule, {})


def answer(facts: Facts, found: Finding) -> dict[str, Any]:
    """The finding in the words of `Fires`."""
    rule = next(one for one in every_rule() if one.id == found.rule)
    begin = int(facts.context.trace.events.ts.min())
    evidence: dict[str, Any] = {}
    for one in found.evidence:
        value = us(int(one.value)) if one.kind == "DURATION" else _plain(one.value)
        old = evidence.get(one.label)
        evidence[one.label] = value if old is None else (*(old if isinstance(old, tuple) else (old,)), value)
    place = next((one for one in found.evidence if one.start is not None), None)
    room = max(round(WITHIN * (found.saving or 0)), round(WITHIN_STEP * facts.step_time))
    low, high = (None, None) if found.saving is None else (max(0, found.saving - room), found.saving + room)
    spans = found.intervals
    if high is not None and found.draws.startswith("idle") and spans is not None:
        # Idle time that is gone saves hardly more than itself, unless the replay gains more.
        known = facts.amount_of(found.draws)
        high = min(high, round(OVER * max(found.saving or 0, facts.length(spans))), high if known is None else known)
    if high is not None and found.draws in {"compute", "comm_exposed", "mem_exposed"} and spans is not None:
        high = min(high, max(found.saving or 0, facts.length(spans)))
    times = () if spans is None else tuple(us(time) for time in facts.by_step(spans).tolist())
    return {
        "saving": None if found.saving is None else us(found.saving),
        "low": None if found.low in {None, low} else us(found.low or 0),
        "bound": None if found.bound in {None, high} else us(found.bound or 0),
        "cost": None if (cost := cost_of(found)) is None else us(cost),
        "once": found.once,
        "severity": "" if found.severity is None else found.severity.name,
        "confidence": "" if found.confidence in {None, rule.confidence} else found.confidence.name,
        "sentence": found.sentence,
        "count": found.count,
        "evidence": evidence,
        "ops": found.scope.ops,
        "advice": () if found.advice == rule.advice else found.advice,
        "draws": found.draws,
        "each": None if spans is None else times[0] if len(set(times)) == 1 else times,
        "first": _from(begin, spans[spans[:, 0].argmin()].tolist()) if spans is not None and len(spans) else None,
        "look": None if place is None else _from(begin, (place.start, place.end)),
        "line": "" if place is None else place.line or "",
    }


def us(ns: int) -> float:
    """ns as µs."""
    return ns // 1000 if ns % 1000 == 0 else ns / 1000


def _plain(value: float | str) -> float | str:
    return round(float(value), 6) if isinstance(value, float) else value


def _from(begin: int, span: Any) -> tuple[float, float]:
    return us(span[0] - begin), us(span[1] - begin)


def program(body: Body, *, steps: int = 4, length: float = STEP) -> TraceBuilder:
    """Steps of one length; the body of each is given its begin and number."""
    b = TraceBuilder()
    for number in range(steps):
        at = number * length
        b.step(number, at, length)
        body(b, at, number)
    return b


ON_DEVICE, ON_HOST = {"kernel", "gpu_memcpy", "gpu_memset"}, {"cpu_op", "cuda_runtime", "python_function"}


def waiting(b: TraceBuilder) -> TraceBuilder:
    """The same program of a host that waits for the device wherever it does nothing else until an event has ended."""
    every = [(one["cat"], one["ts"], one["ts"] + one["dur"]) for one in b.events if one["ph"] == "X"]
    done = sorted(end for cat, _, end in every if cat in ON_DEVICE)
    edges = [(at, at) for cat, begin, end in every if cat == "user_annotation" for at in (begin, end)]
    host = sorted({(begin, end) for cat, begin, end in every if cat in ON_HOST} | set(edges))
    ended = 0.0
    for (_, end), (begin, _) in pairwise(host):
        ended = max(ended, end)
        inside = [at for at in done if ended + 2 < at <= begin]
        if inside:
            b.api("cudaDeviceSynchronize", ended + 0.5, inside[-1] - ended - 0.5)
    return b


def waited(body: Body, *, steps: int = 4, length: float = STEP) -> TraceBuilder:
    """A program of steps of a host that waits."""
    return waiting(program(body, steps=steps, length=length))


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


def case_modules(family: str = "*") -> list[ModuleType]:
    """The modules with the cases of rules, of one family or of all."""
    files = sorted(Path(__file__).parent.glob(f"{family}/cases*.py"))
    return [import_module(f"tests.rules.{file.parent.name}.{file.stem}") for file in files]


def show(rule: str) -> None:
    """Print what a rule says about its cases."""
    for case in (one for cases in case_modules(FAMILIES[rule[:3]]) for one in cases.FIRES.get(rule, [])):
        facts = known(case.program)
        found = said(facts, rule, case.given)
        shown = {} if found is None else answer(facts, found)
        print(", ".join(f"{key}={value!r}" for key, value in shown.items() if value not in (None, "", (), {}, False)))


if __name__ == "__main__":
    # Cases are made of the classes of the module that they import, not of those of this one, which is run.
    import_module("tests.rules.make").show(sys.argv[1])
