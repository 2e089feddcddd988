"""The statistics against scipy, the specification's worked example, and laws they must keep."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyze.regression.statistics import (
    Estimate,
    Prior,
    drifts,
    estimate,
    holm,
    learned_floor,
    mann_whitney,
    outliers,
    quantile,
    runs_needed,
    survival,
    two_populations,
)

times = st.lists(st.floats(90, 110), min_size=1, max_size=6)


def logs(values):
    return [math.log(value) for value in values]


@pytest.mark.parametrize(
    ("df", "expected"), [(4, 2.776), (6, 2.447), (8, 2.306), (10, 2.228), (12, 2.179), (20, 2.086)]
)
def test_quantiles_of_the_tables(df, expected):
    assert round(quantile(0.975, df), 3) == expected


def test_one_degree_of_freedom_is_the_cauchy_distribution():
    for t in (-30.0, -1.0, 0.0, 0.5, 2.0, 1e6):
        assert survival(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-14)


@given(st.floats(-60, 60), st.floats(1, 500))
def test_survival_is_that_of_scipy(t, df):
    stats = pytest.importorskip("scipy.stats")
    # Beside 0 it is SciPy that is off, by up to 1e-9 (for one degree of freedom the value is known: Cauchy's).
    assert survival(t, df) == pytest.approx(float(stats.t.sf(t, df)), abs=5e-9)


@given(st.floats(0.001, 0.9995), st.floats(1.5, 500))
def test_quantiles_are_those_of_scipy(p, df):
    stats = pytest.importorskip("scipy.stats")
    assert quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=1e-10, abs=1e-10)


def test_quantiles_need_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(1.0, 5)


def test_the_worked_example():
    found = estimate(logs([300, 303, 299]), logs([318, 321, 316]), Prior(0.01))
    assert found.df == 8
    assert found.spread == pytest.approx(0.00881, abs=5e-6)
    assert found.effect == pytest.approx(0.05709, abs=5e-6)
    assert found.half_width == pytest.approx(0.01658, abs=5e-6)
    assert found.p == pytest.approx(2.3e-5, rel=0.01)


def test_one_run_a_side():
    found = estimate(logs([300]), logs([318]), Prior(0.01))
    assert (round(found.effect, 4), round(found.half_width, 4)) == (0.0583, 0.0393)


@pytest.mark.parametrize(("runs", "percent"), [(1, 3.9), (2, 2.5), (3, 1.9), (5, 1.4), (8, 1.1)])
def test_half_widths_of_the_specification(runs, percent):
    """With a spread of exactly the noise floor."""
    prior = Prior(0.01)
    df = prior.weight + 2 * runs - 2
    assert 100 * quantile(0.975, df) * 0.01 * math.sqrt(2 / runs) == pytest.approx(percent, abs=0.06)


@given(times, times)
def test_swapping_the_sides_negates_the_effect(old, new):
    there, back = estimate(logs(old), logs(new), Prior(0.01)), estimate(logs(new), logs(old), Prior(0.01))
    assert there.effect == pytest.approx(-back.effect, abs=1e-12)
    assert there.half_width == pytest.approx(back.half_width, rel=1e-12)
    assert there.p + back.p == pytest.approx(1, abs=1e-12)


@given(st.floats(90, 110), st.floats(90, 110), st.integers(1, 6))
def test_an_identical_run_never_widens_the_interval(old, new, count):
    before = estimate(logs([old] * count), logs([new] * count), Prior(0.01))
    after = estimate(logs([old] * count), logs([new] * (count + 1)), Prior(0.01))
    assert after.half_width <= before.half_width


def test_welch_is_not_needed_but_the_pooled_t_is_that_of_scipy():
    """With no weight of the prior it is the classical test."""
    stats = pytest.importorskip("scipy.stats")
    old, new = [1.0, 1.5, 0.7, 1.1], [1.4, 2.0, 1.9]
    found = estimate(old, new, Prior(1.0, weight=0))
    expected = stats.ttest_ind(new, old, alternative="greater")
    assert found.p == pytest.approx(float(expected.pvalue), abs=1e-10)


def test_holm_is_that_of_a_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.7]) == [0.7]


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_and_keeps_the_order(p):
    found = holm(p)
    assert all(after >= before and after <= 1 for before, after in zip(p, found, strict=True))
    ordered = [found[index] for index in sorted(range(len(p)), key=p.__getitem__)]
    assert ordered == sorted(ordered)


def test_a_floor_is_learned_from_five_runs():
    assert learned_floor([1.0, 1.1, 0.9, 1.0], 0.01) == 0.01
    assert learned_floor([0.0, 0.02, 0.01, 0.03, 0.04], 0.01) == pytest.approx(math.sqrt(0.00025 * 0.5))
    assert learned_floor([1.0] * 5, 0.01) == 0.003


def test_runs_needed_resolve_half_the_budget():
    found = estimate(logs([300]), logs([312]), Prior(0.01))
    assert runs_needed(found, math.log(1.05), Prior(0.01)) == 3
    assert runs_needed(found, 1e-6, Prior(0.01)) is None


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_runs_needed_just_at_what_a_number_of_runs_resolves(count):
    """Half of the budget is t at 97.5 % with 4 + 2 n - 2 degrees of freedom, times spread and the root of 2 / n."""
    stats = pytest.importorskip("scipy.stats")
    resolved = 2 * float(stats.t.ppf(0.975, 2 + 2 * count)) * 0.01 * math.sqrt(2 / count)
    found = Estimate(0.0, 0.0, 0.01, 4.0, 1.0)
    assert runs_needed(found, resolved * (1 + 1e-6), Prior(0.01)) == count
    assert runs_needed(found, resolved * (1 - 1e-6), Prior(0.01)) == count + 1


def test_mann_whitney_is_that_of_scipy():
    stats = pytest.importorskip("scipy.stats")
    old, new = [1, 2, 2, 3, 5, 8, 13], [2, 4, 6, 6, 9, 14, 15, 16]
    expected = stats.mannwhitneyu(old, new, method="asymptotic").pvalue
    assert mann_whitney(old, new) == pytest.approx(float(expected), rel=1e-9)
    assert mann_whitney([], [1]) is None
    assert mann_whitney([1, 1], [1]) is None


def test_two_kinds_of_steps():
    assert two_populations([100, 101, 100, 101, 102, 140, 99, 141])
    assert not two_populations([100, 101, 99, 102, 98, 100, 101, 103])
    assert not two_populations([100] * 9 + [150])


def test_outliers_and_drift():
    assert outliers([100, 101, 99, 100, 130]) == [4]
    assert outliers([100, 130]) == []
    assert drifts([100, 100.1, 100, 110, 110.1, 110])
    assert not drifts([100, 104, 98, 101, 99, 103])
    # The first half is all that comes before the second.
    assert not drifts([100, 100, 110, 110, 110, 110, 110, 110, 110, 110])
    assert drifts([100, 100, 100, 100, 100, 110, 110, 110, 100, 100])
    # From six steps on, by more than a hundredth.
    assert drifts([100, 100, 100, 102, 102, 102])
    assert not drifts([100, 100, 102, 102, 102])
    assert not drifts([99.5, 99.5, 99.5, 100.5, 100.5, 100.5])
    assert drifts([99.4, 99.4, 99.4, 100.5, 100.5, 100.5])
