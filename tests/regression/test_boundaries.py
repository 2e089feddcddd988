"""Every comparison of the gate just at its boundary, and just beyond it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.regression.make import run, runs
from tests.regression.test_verdict import counted, judge, verdict
from traceanalyze.errors import UsageError
from traceanalyze.model.table import NotMeasured
from traceanalyze.regression import samples
from traceanalyze.regression.results import Verdict
from traceanalyze.regression.statistics import drifts, outliers, two_populations

PASS, REGRESSION, IMPROVEMENT, INCONCLUSIVE = (
    Verdict.PASS,
    Verdict.REGRESSION,
    Verdict.IMPROVEMENT,
    Verdict.INCONCLUSIVE,
)


@pytest.mark.parametrize(
    ("old", "new", "budget", "expected"),
    [
        ([2], [8], "max = 8\nmax_increase = 9", (PASS, "within_budget")),
        ([2], [9], "max = 8\nmax_increase = 9", (REGRESSION, "above_limit")),
        ([2], [2], "min = 2", (PASS, "within_budget")),
        ([2], [1], "min = 2\nmax_increase = 9", (REGRESSION, "below_limit")),
        ([5], [8], "max_increase = 3", (PASS, "within_budget")),
        ([5], [9], "max_increase = 3", (REGRESSION, "over_budget")),
        ([5], [2], "max_increase = 3", (PASS, "within_budget")),
        ([5], [1], "max_increase = 3", (IMPROVEMENT, "improved")),
        ([5], [9], "max_increase = 3\nmin_effect = 4", (REGRESSION, "over_budget")),
        ([5], [9], "max_increase = 3\nmin_effect = 5", (PASS, "below_min_effect")),
        ([5], [1], "max_increase = 3\nmin_effect = 4", (IMPROVEMENT, "improved")),
        ([5], [1], "max_increase = 3\nmin_effect = 5", (PASS, "below_min_effect")),
        ([100], [102], 'max_increase = "2%"', (PASS, "within_budget")),
        ([100], [98], 'max_increase = "2%"', (PASS, "within_budget")),
        ([100], [97], 'max_increase = "2%"', (IMPROVEMENT, "improved")),
    ],
)
def test_constant_counts(old, new, budget, expected):
    assert verdict(counted(old, new, f'[gate.metrics."sync.count"]\n{budget}\n'), "sync.count") == expected


@pytest.mark.parametrize(
    ("old", "new", "tested"),
    [
        ([2, 2, 5], [5, 8, 8], True),
        ([2, 2, 4], [5, 8, 8], False),
        ([5, 8, 8], [2, 2, 5], True),
        ([5, 8, 8], [2, 2, 4], False),
        ([2, 2, 5], [2, 2, 5], False),
        ([2, 2, 5], [2, 2, 6], True),
        ([2, 2, 5], [5, 2, 5], True),
    ],
)
def test_counts_that_vary_are_tested_only_where_their_ranges_meet_and_differ(old, new, tested):
    result = counted([old], [new])
    found = next(each for each in result.metrics if each.name == "sync.count")
    assert (found.statistics is not None) == tested
    if found.verdict == REGRESSION and not tested:
        assert found.reason == "varies_apart"


def ratios(old, new, budget):
    """Busy shares in percent, three runs a side; a lower one is worse."""
    sides = [[run(n, counts={"gpu.busy_ratio": value}) for n in range(3)] for value in (old, new)]
    result = judge(*sides, f'[gate.metrics."gpu.busy_ratio"]\nlevel = "error"\n{budget}\n')
    return next(each for each in result.metrics if each.name == "gpu.busy_ratio")


@pytest.mark.parametrize(
    ("old", "new", "budget", "expected"),
    [
        (90.0, 88.0, 'max_decrease = "2 points"', (REGRESSION, "over_budget")),
        (90.0, 88.25, 'max_decrease = "2 points"', (INCONCLUSIVE, "interval_straddles")),
        (88.0, 90.0, 'max_decrease = "2 points"', (IMPROVEMENT, "improved")),
        (88.0, 89.75, 'max_decrease = "2 points"', (PASS, "within_budget")),
        (90.0, 88.0, 'max_decrease = "2 points"\nmin_effect = 2', (REGRESSION, "over_budget")),
        (90.0, 88.0, 'max_decrease = "2 points"\nmin_effect = 2.5', (INCONCLUSIVE, "near_min_effect")),
        (90.0, 88.0, 'max_decrease = "2 points"\nmin_effect = 6', (PASS, "below_min_effect")),
        (88.0, 90.0, 'max_decrease = "2 points"\nmin_effect = 2', (IMPROVEMENT, "improved")),
        (88.0, 90.0, 'max_decrease = "2 points"\nmin_effect = 2.5', (PASS, "within_budget")),
        (90.0, 90.0, "max_decrease = 0", (PASS, "within_budget")),
        (90.0, 90.25, "max_decrease = 0", (PASS, "within_budget")),
        (90.0, 89.75, "max_decrease = 0", (INCONCLUSIVE, "interval_straddles")),
    ],
)
def test_ratios(old, new, budget, expected):
    found = ratios(old, new, budget)
    assert (found.verdict, found.reason) == expected


def test_the_interval_of_three_runs_is_that_of_a_t_table():
    """t at 97.5 % with 8 degrees of freedom is 2.306; the prior counts 4 runs of a spread of 1 point, the runs none."""
    found = ratios(90.0, 88.0, 'max_decrease = "2 points"').statistics
    spread = (4 * 1.0**2 / 8) ** 0.5
    assert found.effect == 2.0
    assert found.half_width == pytest.approx(2.306 * spread * (2 / 3) ** 0.5, abs=5e-4)
    assert found.significant


@pytest.mark.parametrize(
    ("value", "expected"),
    [(99_999, (PASS, "below_floor")), (100_000, (PASS, "within_budget"))],
)
def test_a_time_at_its_floor_is_compared(value, expected):
    budget = '[gate.metrics."idle.time"]\nmin_effect = "100 us"\nmax_increase = "50%"\n'
    sides = [[run(n, counts={"idle.time": value}) for n in range(3)] for _ in range(2)]
    assert verdict(judge(*sides, budget), "idle.time") == expected


def test_the_likeness_of_workloads_at_its_limits():
    other = runs(300, workload={"aten::mm": 8, "aten::add": 2})
    same = judge(runs(300), other).similarity
    assert "workload" in dict(judge(runs(300), other).notes)
    alike = runs(300, workload={"aten::mm": 8})
    assert judge(runs(300), alike).similarity == 0.8
    assert "workload" not in dict(judge(runs(300), alike).notes), "just alike enough"
    assert judge(runs(300), alike, "[gate]\nmin_workload_similarity = 0.8\n").similarity == 0.8
    with pytest.raises(UsageError, match="less than min_workload_similarity"):
        judge(runs(300), alike, "[gate]\nmin_workload_similarity = 0.81\n")
    assert same < 0.8


@pytest.mark.parametrize(("recorded", "days"), [("2026-04-01T00:00:00+00:00", None), ("2026-04-01T00:00:01+00:00", 90)])
def test_a_baseline_is_old_after_ninety_days(recorded, days):
    notes = dict(judge(runs(300, time_of_day="2026-01-01T00:00:00+00:00"), runs(300, time_of_day=recorded)).notes)
    assert notes.get("stale") == (None if days is None else {"days": days})


@pytest.mark.parametrize(("changes", "told"), [(3, False), (4, True)])
def test_three_accepted_changes_are_not_told(changes, told):
    old = [run(n, time=300, accepted=str(n)) for n in range(changes)]
    assert ("accepted" in dict(judge(old, runs(300)).notes)) == told


@pytest.mark.parametrize(("steps", "told"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_run_of_three_steps_is_not_short(steps, told):
    short = replace(run(time=[300] * 3), usable_steps=steps)
    assert ("few_steps" in dict(judge(runs(300), [short]).notes)) == told


def test_the_budget_at_twice_the_noise_is_not_near_it():
    times = dict(judge(runs(300), runs(300), '[gate]\nnoise_floor = "2%"\n').metrics[0].notes)
    assert "budget_below_noise" not in times, "log 1.05 is 4.88 %, more than twice 2 %"
    times = dict(judge(runs(300), runs(300), '[gate]\nnoise_floor = "2.5%"\n').metrics[0].notes)
    assert "budget_below_noise" in times, "and less than twice 2.5 %"


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([1, 1, 1, 5, 5], True),
        ([1, 1, 1, 5], False),
        ([1, 2, 3, 7, 8], False),
        ([1, 2, 3, 8, 9], False),
        ([1, 2, 2, 2, 2, 2, 2, 2, 2, 9], False),
        ([1, 1, 2, 2, 2, 2, 2, 2, 9, 9], True),
    ],
)
def test_two_kinds_of_steps(steps, found):
    """A gap wider than 4 MAD, a fifth of the steps on either side, five steps at least."""
    assert two_populations(steps) is found


def test_a_run_is_far_from_the_others_beyond_a_z_of_three_and_a_half():
    assert outliers([10, 11, 12, 13, 14, 17.1]) == []
    assert outliers([10, 11, 12, 13, 14, 30]) == [5]
    assert outliers([10, 10, 10, 30]) == [], "no spread to measure by"
    assert outliers([10, 11, 30]) == [], "too few"


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([100, 100, 100, 101, 101, 101], False),
        ([100, 100, 100, 102, 102, 102], True),
        ([100, 100, 102, 102], False),
        ([100, 103, 106, 106, 109, 112], False),
    ],
)
def test_a_run_drifts_by_more_than_a_percent_and_three_deviations(steps, found):
    assert drifts(steps) is found


@pytest.mark.parametrize(
    ("busy", "skew"), [((1, 1, 2), 100.0), ((2, 3, 4), 100 / 3), ((5, 5), 0.0), ((0, 0, 2), None), ((0, 1), 100.0)]
)
def test_the_busiest_rank_is_compared_with_the_median_one_wherever_that_has_worked(busy, skew):
    found = samples._skew([np.array([each], np.float64) for each in busy], [[0]] * len(busy))
    if skew is None:
        assert found == NotMeasured("no_device_events")
    else:
        assert (found.value, found.per_step) == (pytest.approx(skew), (pytest.approx(skew),))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((), "one_rank"),
        ((1,), "one_rank"),
        ((1, None), "no_device_events"),
        ((None, None), "no_device_events"),
        ((1, NotMeasured("no_api")), "no_device_events"),
        ((1, 2, None), "no_device_events"),
    ],
)
def test_ranks_are_only_compared_where_there_are_several_and_all_have_a_device(columns, reason):
    known = [np.array([each], np.float64) if isinstance(each, int) else each for each in columns]
    assert samples._skew(known, [[0]] * len(known)) == NotMeasured(reason)
