"""Views of tensors that Python takes part in, as a public trace shows them after an asynchronous collective."""

from __future__ import annotations

import pytest

from tests.rules.make import finding, kernel, program


def viewing(each, *, name="aten::slice", fast=3):
    """Steps of 8 ms: a split with ten views of `each` µs, ten of 3 µs after it, and twenty small kernels."""

    def body(b, at, number):
        b.op("aten::split_with_sizes", at, 10 * each + 20)
        for part in range(10):
            b.op(name, at + 10 + part * each, each)
            b.op("aten::as_strided", at + 11 + part * each, fast - 1)
        at += 10 * each + 100
        for part in range(10):
            b.op("aten::view", at + 2 * fast * part, fast)
        at += 20 * fast
        for part in range(20):
            kernel(b, at + 100 + 40 * part, 5)

    return program(body, length=8000)


def test_the_outermost_operator_around_slow_views_is_named():
    found = finding(viewing(300), "HST101")
    known = {each.label: each.value for each in found.evidence}
    assert (found.sentence, found.scope.ops[0], found.advice[0]) == (
        "views",
        "aten::split_with_sizes",
        "plain_tensors",
    )
    # Ten of 300 µs a step, of which 2 are in the view that each calls; the others take 2 or 3 µs.
    assert known["views"] == 10 * 298_000
    assert known["what"] == "aten::split_with_sizes"
    assert 298 / 3 <= known["times"] <= 298 / 2


@pytest.mark.parametrize(
    "program",
    [
        viewing(99),  # As an operator with many arguments takes.
        viewing(300, name="aten::clone"),  # That copies.
        viewing(300, fast=70),  # Others with as much to do are hardly faster.
    ],
)
def test_other_operators_are_no_slow_views(program):
    assert finding(program, "HST101").sentence == ""
