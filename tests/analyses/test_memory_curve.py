"""Memory over time on hand-made records."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.builder import TraceBuilder
from tests.examples import examples
from traceanalyze.analyses.memory.recorded import POINTS, thinned
from traceanalyze.model.table import NotMeasured

UNKNOWN = NotMeasured("no_memory_totals")


def curve_of(b):
    b.step(1, 0, 100)
    b.device(10, 5)
    return b.table("memory_curve")


def test_few_records_are_all_there():
    b = TraceBuilder()
    b.memory(10, 500, allocated=1500, reserved=4000)
    b.memory(20, -200, allocated=1300, reserved=4096)
    curve = curve_of(b)
    assert curve.column("relative") == (False, False)
    assert curve.column("record_ns") == (10_000, 20_000)
    assert curve.column("in_use_bytes") == (1500, 1300)
    assert curve.column("reserved_bytes") == (4000, 4096)


def test_old_records_give_the_running_sum():
    b = TraceBuilder()
    for at, size in ((10, 300), (30, -400), (20, 50)):
        b.memory(at, size)
    curve = curve_of(b)
    assert set(curve.column("relative")) == {True}
    assert curve.column("in_use_bytes") == (300, 350, -50)
    assert set(curve.column("reserved_bytes")) == {UNKNOWN}


def test_totals_without_reserved_and_records_without_totals():
    b = TraceBuilder()
    b.memory(10, 500, allocated=500)
    b.memory(20, 100)
    b.memory(30, 100, allocated=700)
    curve = curve_of(b)
    assert (curve.column("record_ns"), curve.column("in_use_bytes")) == ((10_000, 30_000), (500, 700))
    assert set(curve.column("reserved_bytes")) == {UNKNOWN}


SIZES = st.integers(POINTS - 1, 3000)


@examples(20)
@given(SIZES, st.integers(0, 2**32), st.booleans())
def test_peaks_and_lows_stay_exact(size, seed, relative):
    random = np.random.default_rng(seed)
    t = np.sort(random.integers(0, 10**12, size))
    allocated, reserved = random.integers(1, 10**11, (2, size))
    curves = (allocated,) if relative else (allocated, reserved)
    kept = thinned(t, curves)
    assert 0 < len(kept) <= POINTS
    assert (np.diff(t[kept]) >= 0).all()
    for curve in curves:
        assert (curve[kept].max(), curve[kept].min()) == (curve.max(), curve.min())


def test_records_of_one_instant():
    same = np.zeros(POINTS + 1, np.int64)
    assert thinned(same, (np.arange(POINTS + 1),)).tolist() == [0, POINTS]
