"""Of an optimizer only its own kernels and launches count."""

from __future__ import annotations

import pytest

from tests.rules.host.cases import optimized, zeroed
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
    ("steps", "within", "certain"),
    [
        (12, (3, 7, 11), [True]),
        (8, (3, 7), [True]),
        (6, (3,), []),
        (12, (3, 4, 11), [False]),
        (10, (1, 3, 5, 7, 9), [True]),
    ],
)
def test_an_optimizer_that_comes_once_in_several_steps_is_a_pattern(steps, within, certain):
    """Gradients are accumulated over four steps, whose optimizer takes 4.8 ms."""

    def body(b, at, number):
        (optimized("aten::addcdiv_", 480) if number in within else busy)(b, at, number)

    found = judged(program(body, steps=steps, length=7000), "HST111").findings
    assert [one.least > 0 for one in found] == certain


def test_fills_too_short_for_the_clock_are_counted():
    """Half of them take 0 µs in recordings whose clock counts microseconds."""
    b = program(zeroed("Optimizer.zero_grad#Adam.zero_grad"))
    for one in [one for one in b.events if one.get("cat") == "gpu_memset"][::2]:
        one["dur"] = 0
    assert (found := finding(b, "HST112")).count == found.evidence[0].value == 80


def test_kernels_and_time_of_an_optimizer_are_those_of_a_step():
    """Two of them a step."""

    def body(b, at, number):
        for begin in (at, at + 900):
            b.annotation("Optimizer.step#Adam.step", begin, 900)
            for part in range(60):
                kernel(b, begin + 15 * part, 5, host=4, op="aten::addcdiv_")

    assert finding(program(body), "HST111").evidence[0].value == 120
