"""Recordings that lack some kind of event are judged all the same: no rule trips over what is not there."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from tests.rules.make import STEP, judged, program

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
