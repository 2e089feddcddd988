"""Of an optimizer only its own kernels and launches count."""

from __future__ import annotations

import pytest

from tests.rules.host.cases import optimized
from tests.rules.make import busy, finding, judged, kernel, program


def late(wait):
    """The optimizer begins so many µs after the backward pass; the host does something else meanwhile."""

    def body(b, at, number):
        kernel(b, at, 500)
        b.op("aten::normal_", at + 520, wait)
        b.annotation("Optimizer.step#Adam.step", at + 520 + wait, 10 * 120)
        for part in range(120):
            kernel(b, at + 520 + wait + 10 * part, 5, host=4, op="aten::addcdiv_")

    return program(body, length=3000)


def test_what_the_host_does_before_the_optimizer_is_none_of_its_launches():
    assert finding(late(700), "HST111").bound == finding(late(0), "HST111").bound
    assert finding(late(0), "HST111").bound == finding(program(optimized("aten::addcdiv_", 120)), "HST111").bound


@pytest.mark.parametrize(
    ("steps", "within", "told"),
    [(12, (3, 7, 11), True), (8, (3, 7), True), (6, (3,), False), (12, (3, 4, 11), False), (10, (1, 3, 5, 7, 9), True)],
)
def test_an_optimizer_that_comes_once_in_several_steps_is_a_pattern(steps, within, told):
    """Gradients are accumulated over four steps, whose optimizer takes 4.8 ms."""

    def body(b, at, number):
        (optimized("aten::addcdiv_", 480) if number in within else busy)(b, at, number)

    found = judged(program(body, steps=steps, length=7000), "HST111").findings
    assert [one.rule for one in found] == ["HST111"] * told
