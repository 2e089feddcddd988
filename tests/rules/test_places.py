"""Every finding that is about stretches of time says where to look, and which line of the program it is."""

from __future__ import annotations

import numpy as np

from tests.rules.make import STEP, crowded, finding, kernel, program
from tests.rules.sequences import Run, steps
from traceanalyze.rules.evaluate import located
from traceanalyze.rules.finding import Evidence, Finding, Scope

US = 1000
"""ns; programs are written in µs."""


def first(one):
    return one.evidence[0]


def lines(b, at, number):
    """Half of the step one function launches slowly, then another does at three times the pace."""
    b.python("train.py(10): slow", at, STEP / 2 - 1)
    for part in range(25):
        kernel(b, at + part * STEP / 50, 3, host=16)
    b.python("train.py(20): quick", at + STEP / 2, STEP / 2 - 1)
    for part in range(50):
        kernel(b, at + STEP / 2 + part * STEP / 100, 14, host=16)


def test_the_longest_stretch_and_its_line_are_told():
    one = finding(program(lines), "HST101")
    assert first(one).line == "train.py(10): slow"
    assert one.scope.ops == ("train.py(10): slow",)
    # 40 µs from launch to launch, of which a kernel takes 3.
    assert (first(one).end - first(one).start) // US == 37
    step = first(one).start // (STEP * US) * STEP * US
    assert step <= first(one).start < step + STEP / 2 * US


def test_without_stacks_the_stretch_alone_is_told():
    one = finding(program(crowded), "HST101")
    assert first(one).line is None
    assert first(one).start < first(one).end
    assert one.scope.ops == ()


def test_the_stretch_of_kernels_is_that_of_the_longest_of_them():
    layout = "void cudnn::ops::nchwToNhwcKernel<float>"
    product, short, long = Run("aten::mm", 900), *(Run("aten::conv2d", dur, kernel=layout) for dur in (150, 400))
    one = finding(steps([product, short, product, long]), "KRN107")
    assert (first(one).end - first(one).start) // US == 400


def test_what_has_a_place_or_no_stretch_stays_as_it_is():
    placed = Finding(evidence=(Evidence("idle", 1, "DURATION", 5, 6),), intervals=np.empty((0, 2), np.int64))
    whole = Finding(evidence=(Evidence("busy", 0.5, "SHARE"),), scope=Scope(ops=("x",)))
    assert located(placed, None) is placed
    assert located(whole, None) is whole
