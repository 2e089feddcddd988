"""Recordings that lack some kind of event are judged all the same: no rule trips over what is not there."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from tests.builder import TraceBuilder
from tests.rules.make import STEP, facts_of, judged, program
from traceanalyze.model.intervals import total
from traceanalyze.readers.kineto import read_text
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import evaluate, plan

KINDS = ("kernel", "cuda_runtime", "cpu_op", "user_annotation", "gpu_memcpy")
LACKING = tuple(chain.from_iterable(combinations(KINDS, count) for count in range(len(KINDS))))


def training():
    def body(b, at, number):
        for part in range(5):
            b.op("aten::mm", at + part * 100, 40)
            b.launch(at + part * 100 + 2, 4, at + part * 100 + 50, 60)
        b.op("aten::item", at + 600, 800)
        b.copy(at + 610, 780, at + 650, 20)

    return program(body, length=STEP)


@pytest.mark.parametrize("lacking", LACKING, ids="+".join)
def test_every_rule_can_be_asked(lacking):
    trace = training()
    trace.events = [each for each in trace.events if each["cat"] not in lacking]
    outcome = judged(trace)
    assert {each.rule for each in outcome.not_applicable}.isdisjoint(each.rule for each in outcome.findings)


def cut_file(steps: int, *, in_order: bool):
    """Steps of 10 ms whose operators come first in the file, which ends after 70 % of the kernels; buffers as written.

    The device works for nine tenths of the time.
    """
    marks, ops, kernels = TraceBuilder(), TraceBuilder(), TraceBuilder()
    for number in range(steps):
        marks.step(number, 10_000 * number, 10_000)
        for part in range(20):
            at = 10_000 * number + 500 * part
            ops.op("aten::mm", at, 40)
            kernels.launch(at + 2, 4, at + 10, 450)
    half = len(kernels.events) // 2
    events = kernels.events if in_order else kernels.events[half:] + kernels.events[:half]
    marks.events += ops.events + events[: int(0.7 * len(events))]
    return facts_of(read_text(marks.text()[:-9].encode()))


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("in_order", [True, False])
def test_what_is_cut_out_of_a_file_is_no_idle_time_to_save(steps, in_order):
    facts = cut_file(steps, in_order=in_order)
    assert [one.rule for one in evaluate(facts, plan(RuleConfig())).findings if one.saving or one.cost] == []
    if in_order and steps > 1:  # Four steps are whole.
        assert facts.window.count == 4
        assert facts.mean(total(facts.idle_time)) < 0.11 * 10_000_000
