"""The first wait for a loader that starts its workers is no measure of its speed."""

from __future__ import annotations

import pytest

from tests.rules.data.cases import SEVERAL, SINGLE, loaded
from tests.rules.kernel.test_on_traces import said
from tests.rules.make import judged, program

US = 1000


def waits(*times, name=SEVERAL):
    """Steps of 2 ms whose batch takes so many µs, then 1 ms of work."""
    found = judged(program(loaded(lambda number: times[number], name=name), steps=len(times)), "DAT").findings
    return {(one.rule, one.sentence): one for one in found}


@pytest.mark.parametrize(
    ("times", "name", "once"),
    [
        ((800, 400, 400, 400), SEVERAL, True),
        ((799, 400, 400, 400), SEVERAL, False),
        ((800, 400, 400), SEVERAL, False),
        ((400, 800, 400, 400), SEVERAL, False),
        ((800, 400, 400, 400), SINGLE, False),
    ],
)
def test_a_first_wait_twice_as_long_as_any_other_is_the_start_of_the_workers(times, name, once):
    found = waits(*times, name=name)
    assert (("DAT101", "start") in found) == once
    steady = found["DAT101", "single" if name == SINGLE else ""]
    assert steady.explains == pytest.approx((sum(times) - 800 * once) * US / len(times), abs=1)
    if once:
        start = found["DAT101", "start"]
        assert (start.once, start.cost, start.saving) == (True, 800 * US / 4, None)
        assert steady.count == 3


def test_it_makes_a_loader_neither_uneven_nor_slower():
    """Otherwise eight waits of 20 µs and one of 950 have a coefficient of variation of 2.4."""
    assert set(waits(950, *[20] * 8)) == {("DAT101", "start")}
    assert ("DAT104", "") in waits(20, 950, *[20] * 7)
    # Batches that lie ready tell nothing of the workers; what is waited for does.
    assert ("DAT105", "") not in waits(100, 100, 100, 150, 150, 150, 900, 900, 900)
    assert ("DAT105", "") in waits(600, 600, 600, 900, 900, 900, 1200, 1200, 1200)


def test_a_recorded_resnet_starts_its_workers_once(shared_traces):
    """Its first `__next__` takes 1938.9 ms of 8.2 s; from there on the device waits 4.7 s, 748 ms at most."""
    found = {one.sentence: one for one in said(shared_traces, "kineto/param/resnet_kineto*", "DAT") if one.explains}
    assert found["start"].cost == pytest.approx(1_938_874_000, rel=0.01)
    assert 4_700_000_000 < found[""].saving < 5_200_000_000
