"""Host time that only some device events need."""

from __future__ import annotations

import numpy as np

from tests.rules.make import known, program
from traceanalyze.model import intervals
from traceanalyze.rules.common.replay import launching

US = 1000


def reduces(b, at, number):
    """DDP asks for an all-reduce of 20 µs in the hook of a gradient that is accumulated in 50."""
    b.op("torch::autograd::AccumulateGrad", at, 50)
    b.op("c10d::allreduce_", at + 20, 20)
    b.launch(at + 25, 5, at + 60, 500, name="ncclDevKernel_AllReduce_Sum_bf16")


def test_a_gradient_is_accumulated_without_its_all_reduce_too():
    facts = known(program(reduces))
    assert intervals.total(launching(facts, np.arange(len(facts.context.device)))) == 4 * 20 * US
