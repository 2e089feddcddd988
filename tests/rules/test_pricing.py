"""What findings save is what the replay of the program without them says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.rules.make import STEP, facts_of, judged, kernel, program
from tests.rules.sequences import Run, mm, steps
from traceanalyze.model.intervals import EMPTY, merge
from traceanalyze.replay.replay import Change
from traceanalyze.rules.common.computing import compute_finding, computing
from traceanalyze.rules.finding import Confidence, Finding, Severity
from traceanalyze.rules.pricing import all_together, beside_waits, priced, ranged

US = 1000


def late(b, at, number):
    """Each kernel of 30 µs is launched 40 µs after the one before: ten are idle."""
    for part in range(int(STEP / 40)):
        kernel(b, at + part * 40, 30, host=9)


def mixed(b, at, number):
    """Of 25 kernels of 20 µs each is late; of 20 of 48 µs all are queued, and waited for."""
    for part in range(25):
        kernel(b, at + part * 40, 20, host=19)
    for part in range(20):
        b.op("aten::mm", at + STEP / 2 + 10 * part, 8)
        b.launch(at + STEP / 2 + 10 * part + 2, 4, at + STEP / 2 + 20 + part * 48, 48)
    b.op("aten::item", at + STEP / 2 + 300, STEP / 2 - 310)
    b.api("cudaStreamSynchronize", at + STEP / 2 + 301, STEP / 2 - 315)


def compute(facts, part):
    """A finding that wants so much of all compute."""
    work = facts.once(computing)
    asked = round(facts.mean(int(work.time.sum())) * part)
    return Finding(saving=asked, draws="compute", intervals=work.spans(np.ones(len(work), np.bool_)))


@pytest.mark.parametrize(
    ("trace", "part"),
    [
        (program(late), 0.0),
        (steps([mm(900), Run("aten::add", 900), mm(900), Run("aten::add", 900)]), 1.0),
        (program(mixed), 960 / 1460),
    ],
)
def test_shorter_kernels_save_time_where_the_next_one_is_there(trace, part):
    facts = facts_of(trace.trace())
    asked = compute(facts, 0.5)
    found = priced(asked, facts).finding
    assert found.saving == pytest.approx(part * asked.saving, rel=0.1, abs=0.02 * asked.saving)


def test_of_an_excerpt_kernels_have_a_cost_and_no_saving():
    """A 512³ product, 0.268 GFLOP at 312 TFLOPS, takes 2000 µs, not 2 · 0.86; nothing tells what waits for it."""
    alone, several = (
        judged(steps([mm(2000, m=512, n=512, k=512)], count=count), "KRN119").findings[0] for count in (1, 8)
    )
    assert (alone.saving, alone.severity, alone.confidence) == (None, Severity.MEDIUM, Confidence.MEDIUM)
    assert alone.cost == pytest.approx(1998.28 * US, rel=1e-4)
    assert several.saving == pytest.approx(1998.28 * US, rel=1e-4)


def test_kernels_beside_others_save_the_time_they_have_for_themselves():
    """Of 1000 µs a kernel of another stream runs beside the second half, and as long again."""

    def body(b, at, number):
        b.launch(at, 5, at + 20, 1000)
        b.launch(at + 6, 5, at + 520, 1000, stream=9)
        b.api("cudaDeviceSynchronize", at + 12, 1508)

    facts = facts_of(program(body, length=1520).trace())
    work = facts.once(computing)
    first = np.arange(len(work)) % 2 == 0
    found = priced(compute_finding(facts, first, saving=1000 * US), facts).finding
    # Of the second one nothing tells that it could have begun sooner.
    assert found.saving == 0
    found = priced(compute_finding(facts, ~first, saving=1000 * US), facts).finding
    assert found.saving == pytest.approx(500 * US, rel=0.01)


def one(**fields):
    """The program with a kernel each 40 µs at the price of a finding."""
    facts = facts_of(program(late).trace())
    return priced(Finding(**fields), facts).finding, facts


def test_a_range_is_an_eighth_of_the_saving_and_no_less_than_a_part_of_the_step():
    found, facts = one(saving=1000 * US, draws="host")
    assert (found.low, found.saving, found.bound) == (880 * US, 1000 * US, 1120 * US)
    found, _ = one(saving=50 * US, draws="host")
    assert (found.low, found.bound) == (42 * US, 58 * US)
    assert facts.step_time == pytest.approx(STEP * US)


def test_a_range_ends_at_nothing_and_at_all_there_is():
    found, facts = one(saving=5 * US, draws="host")
    assert found.low == 0
    found, _ = one(saving=round(1.99 * STEP * US / 2), draws="host")
    assert found.bound == facts.step_time
    found, _ = one(saving=1000 * US, bound=1050 * US, draws="host")
    assert found.bound == 1050 * US


def test_what_is_uncertain_by_more_is_told_so_and_is_not_high():
    """Without a quarter and without three quarters of each kernel."""
    facts = facts_of(steps([mm(900), Run("aten::add", 900)]).trace())
    work = facts.once(computing)
    changes = [Change(events=work.event, shorter=work.time // 4 * quarter) for quarter in (1, 2, 3)]
    least, usual, most = changes
    price = priced(Finding(change=usual, between=(least, most), confidence=Confidence.HIGH), facts)
    assert price.finding.low is None  # Only of what is told the ends are replayed.
    found = ranged(price, facts).finding
    assert (found.low, found.saving, found.bound) == tuple(
        quarter * facts.per_step(work.time // 4) for quarter in (1, 2, 3)
    )
    assert found.confidence == Confidence.MEDIUM


def test_a_cost_is_the_time_that_it_explains_whatever_is_saved():
    facts = facts_of(program(late).trace())
    idle = facts.idle()
    every = facts.length(idle)
    # Of each ten µs 1.5 stay: a launch takes so long to reach the device.
    found = priced(Finding(saving=every, draws="idle", intervals=idle), facts).finding
    assert (found.saving, found.cost) == (pytest.approx(0.85 * every, rel=0.01), every)
    found = priced(Finding(saving=every, cost=found.saving, draws="idle", intervals=idle), facts).finding
    assert found.cost == found.saving
    found = priced(Finding(cost=every // 50, change=Change(merge(*idle.T)), intervals=idle), facts).finding
    assert (found.cost, found.saving > found.cost) == (every // 50, True)
    found = priced(Finding(cost=2 * every, change=Change(merge(*idle.T)), intervals=idle), facts).finding
    assert found.cost == 2 * every


def test_findings_together_are_one_replay():
    """Half of each kernel by two findings about the same half: it is gone once."""
    facts = facts_of(steps([mm(900), Run("aten::add", 900)]).trace())
    asked = priced(compute(facts, 0.5), facts).finding
    assert all_together([asked, asked], facts)[1] == asked.saving
    assert all_together([], facts) is None
    assert all_together([Finding(change=Change(EMPTY), saving=0)], facts) is None


def test_what_a_waiting_rank_saves_may_be_waited_for_longer():
    waits = Finding(rule="COM120", cost=80, confidence=Confidence.HIGH)
    mine = Finding(rule="HST101", saving=100, low=90, bound=110, confidence=Confidence.HIGH)
    less = replace(mine, saving=50, low=40, severity=Severity.HIGH)
    within, overlap = replace(less, bound=80), replace(mine, rule="COM101")
    found = beside_waits([waits, mine, less, within, overlap], 80)
    assert [(one.saving, one.low, one.severity, one.confidence) for one in found] == [
        (None, None, None, Confidence.HIGH),
        (100, 10, None, Confidence.MEDIUM),
        (50, 0, Severity.HIGH, Confidence.MEDIUM),
        # All of it may turn into waiting; about a large part of the step something is said all the same.
        (50, 0, Severity.MEDIUM, Confidence.LOW),
        (100, 90, None, Confidence.HIGH),
    ]
    assert beside_waits([replace(within, severity=Severity.MEDIUM)], 80)[0].severity == Severity.LOW
    assert beside_waits([mine, overlap], 0) == [mine, overlap]
    # As rules about all ranks say what these wait for others.
    (one,) = beside_waits([within], 79)
    assert (one.low, one.severity) == (0, Severity.HIGH)
    assert beside_waits([within], 0) == [within]
