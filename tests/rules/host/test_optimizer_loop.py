"""Of an optimizer only its own kernels and launches count."""

from __future__ import annotations

from tests.rules.host.cases import optimized
from tests.rules.make import finding, kernel, program


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
