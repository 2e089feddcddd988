"""Shorter kernels save time only where the next kernel is already there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rules.make import STEP, facts_of, kernel, program
from tests.rules.sequences import Run, mm, steps
from traceanalyze.rules.common.computing import computing
from traceanalyze.rules.common.launching import Launching
from traceanalyze.rules.ranking import with_late_host

US = 1000


def late(b, at, number):
    """Each kernel of 30 µs is launched 40 µs after the one before: ten are idle."""
    for part in range(int(STEP / 40)):
        kernel(b, at + part * 40, 30, host=9)


def left(trace, part):
    """What is left of a saving of this part of all compute."""
    facts = facts_of(trace.trace())
    work = facts.once(computing)
    asked = round(facts.mean(int(work.time.sum())) * part)
    return with_late_host(facts, work.spans(np.ones(len(work), np.bool_)), asked), asked


def test_where_every_launch_is_late_nothing_is_saved():
    saved, asked = left(program(late), 0.5)
    assert asked > 0.3 * STEP * US
    assert saved < 0.02 * asked


def test_where_the_queue_is_full_all_is_saved():
    saved, asked = left(steps([mm(900), Run("aten::add", 900), mm(900), Run("aten::add", 900)]), 0.5)
    assert saved == asked


def test_of_a_step_that_is_late_in_one_half_the_other_half_is_saved():
    def mixed(b, at, number):
        late_part(b, at)
        for part in range(20):
            b.op("aten::mm", at + STEP / 2 + 10 * part, 8)
            b.launch(at + STEP / 2 + 10 * part + 2, 4, at + STEP / 2 + 20 + part * 48, 48)
        b.op("aten::item", at + STEP / 2 + 300, STEP / 2 - 310)
        b.api("cudaStreamSynchronize", at + STEP / 2 + 301, STEP / 2 - 315)

    def late_part(b, at):
        for part in range(int(STEP / 80)):
            kernel(b, at + part * 40, 20, host=19)

    saved, asked = left(program(mixed), 0.5)
    # 25 kernels of 20 µs are late, 20 of 48 µs are queued and waited for: half of 960 of 1460 µs.
    assert saved == pytest.approx(asked * 960 / 1460, rel=0.1)


@pytest.mark.parametrize(
    ("share", "late", "depth", "bound"),
    [
        (0.3, 0.5, None, True),
        (0.299, 0.5, None, False),
        (0.3, 0.499, None, False),
        (0.3, 0.499, 1, True),
        (0.3, 0.499, 1.5, False),
        (0.299, 0.5, 1, False),
    ],
)
def test_the_host_is_late_where_idle_time_is_its_own_and_work_comes_late_or_the_queue_is_empty(
    share, late, depth, bound
):
    nothing = np.zeros((0, 2), np.int64)
    assert Launching(share, late, depth, nothing, nothing[:, 0], nothing).bound(0.3, 0.5) is bound
