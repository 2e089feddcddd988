"""Verdicts on runs whose answer is known."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.regression.make import run, runs
from traceanalyze.errors import UsageError
from traceanalyze.locales import texts
from traceanalyze.regression.budget import Budget, read_budget
from traceanalyze.regression.explain import WhyRow
from traceanalyze.regression.results import Overall, SideSummary, Verdict
from traceanalyze.regression.samples import Sample
from traceanalyze.regression.verdict import gate
from traceanalyze.report import ci
from traceanalyze.report.console import Style
from traceanalyze.report.console import render as on_console
from traceanalyze.report.contents.gate import build_gate
from traceanalyze.report.json import render


def judge(old, new, budget="", *, stored=False, **how):
    rules = read_budget(budget.encode(), "traceanalyze.toml").for_environment(new[0].environment)
    return gate(SideSummary("baseline", tuple(old), stored), SideSummary("candidate", tuple(new)), rules, **how)


def verdict(result, name="step.time"):
    return next((each.verdict, each.reason) for each in result.metrics if each.name == name)


def counted(old, new, budget="", name="sync.count"):
    sides = [[run(number, counts={name: value}) for number, value in enumerate(values)] for values in (old, new)]
    return judge(*sides, budget)


@pytest.mark.parametrize(
    ("old", "new", "expected", "overall", "code"),
    [
        ([300, 303, 299], [318, 321, 316], Verdict.REGRESSION, Overall.FAIL, 1),
        ([300], [318], Verdict.REGRESSION, Overall.FAIL, 1),
        ([300], [312], Verdict.INCONCLUSIVE, Overall.INCONCLUSIVE, 0),
        ([300, 301, 300], [301, 300, 300], Verdict.PASS, Overall.PASS, 0),
        ([300, 303, 299], [270, 271, 269], Verdict.IMPROVEMENT, Overall.PASS, 0),
    ],
)
def test_the_examples_of_the_specification(old, new, expected, overall, code):
    result = judge(runs(*old), runs(*new))
    assert verdict(result)[0] == expected
    assert (result.overall, result.exit_code) == (overall, code)


@pytest.mark.parametrize("step", [0.004, 0.4, 1.8, 4, 40, 4000])
def test_a_step_of_any_length_is_judged_alike(step):
    result = judge(runs(*[step] * 3), runs(*[1.1 * step] * 3))
    assert verdict(result) == (Verdict.REGRESSION, "over_budget")
    assert result.metrics[0].floor == pytest.approx(0.01 * step * 1e6)


@pytest.mark.parametrize("floor", ["0.5 ms", "12%"])
def test_a_floor_that_the_budget_sets_must_be_exceeded_too(floor):
    """10 % of 4 ms are 0.4 ms; 12 % would be 0.48 ms. The interval of one run, 14.4 %, reaches beyond both."""
    budget = f'[gate.metrics."step.time"]\nmin_effect = "{floor}"\n'
    assert verdict(judge(runs(4, 4, 4), runs(4.4, 4.4, 4.4), budget)) == (Verdict.PASS, "below_min_effect")
    result = judge(runs(4), runs(4.4), budget)
    assert verdict(result) == (Verdict.INCONCLUSIVE, "near_min_effect")
    row = next(table for table in build_gate(result).summary if table.key == "gate_metrics").rows[0]
    assert ("5 %, Δ ≥ 500.0 µs" if "ms" in floor else "5 %, Δ ≥ 480.0 µs") in row
    assert verdict(judge(runs(40, 40, 40), runs(46, 46, 46), budget))[0] == Verdict.REGRESSION


def test_what_is_less_than_the_noise_of_a_run_does_not_count():
    """Fifty runs a side resolve 0.8 %, beyond the budget; but a run is known to 1 % only."""
    budget = '[gate.metrics."step.time"]\nmax_increase = "0.5%"\n'
    assert verdict(judge(runs(*[100] * 50), runs(*[100.7] * 50), budget)) == (Verdict.PASS, "below_min_effect")
    assert verdict(judge(runs(*[100] * 50), runs(*[101.2] * 50), budget)) == (Verdict.REGRESSION, "over_budget")


@pytest.mark.parametrize(
    ("step", "idle", "expected"),
    [
        (10, 95_000, (Verdict.PASS, "below_floor")),
        (9, 95_000, (Verdict.PASS, "below_min_effect")),
        (9, 179_000, (Verdict.INCONCLUSIVE, "near_min_effect")),
        (9, 181_000, (Verdict.REGRESSION, "over_budget")),
    ],
)
def test_a_part_of_the_step_counts_from_the_noise_of_the_step_on(step, idle, expected):
    """1 % of 10 ms are 100 µs, of 9 ms 90 µs: from 90 µs to 180 µs is a change of as much."""
    budget = '[gate.metrics."idle.time"]\nmax_increase = "5%"\n'
    result = judge(*([run(time=step, counts={"idle.time": value})] for value in (90_000, idle)), budget)
    assert verdict(result, "idle.time") == expected
    assert next(each.floor for each in result.metrics if each.name == "idle.time") == pytest.approx(step * 1e4)


def test_of_some_metrics_more_is_better():
    budget = '[gate.metrics]\n"gpu.busy_ratio".max_decrease = "2 points"\n"step.samples_per_s".level = "error"\n'
    sides = [
        [run(n, counts={"gpu.busy_ratio": busy, "step.samples_per_s": rate}) for n in range(3)]
        for busy, rate in ((90.0, 1000.0), (80.0, 1200.0))
    ]
    result = judge(*sides, budget)
    assert verdict(result, "gpu.busy_ratio")[0] == Verdict.REGRESSION
    assert verdict(result, "step.samples_per_s")[0] == Verdict.IMPROVEMENT
    assert verdict(judge(*reversed(sides), budget), "gpu.busy_ratio")[0] == Verdict.IMPROVEMENT
    assert verdict(judge(*reversed(sides), budget), "step.samples_per_s")[0] == Verdict.REGRESSION


def test_holm_looks_at_all_gated_times():
    """t is 3.0 with 4 degrees of freedom, p 0.02: significant alone, not among five."""
    names = ("compute.time", "idle.time", "forward.time", "backward.time")
    budget = "".join(f'[gate.metrics."{name}"]\nlevel = "warn"\n' for name in names)
    same = dict.fromkeys(names, 50_000_000)
    old, new = run(time=300, counts=same), run(time=300 * math.exp(3.0 * 0.01 * math.sqrt(2)), counts=same)
    floor = '[gate]\nnoise_floor = "1%"\n[gate.metrics."step.time"]\nmax_increase = "3%"\n'
    assert verdict(judge([old], [new], floor))[0] == Verdict.REGRESSION
    assert verdict(judge([old], [new], floor + budget))[0] == Verdict.INCONCLUSIVE


def test_an_absolute_limit_holds_for_the_candidate_alone():
    budget = '[gate.metrics."step.time"]\nmax = "320 ms"\n'
    assert verdict(judge((), runs(400, 401, 402), budget)) == (Verdict.REGRESSION, "above_limit")
    assert verdict(judge((), runs(322), budget)) == (Verdict.INCONCLUSIVE, "near_limit")
    assert verdict(judge((), runs(250), budget)) == (Verdict.PASS, "within_limit")
    assert verdict(judge(runs(400, 401, 399), runs(400, 401, 402), budget)) == (Verdict.REGRESSION, "above_limit")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([311], Verdict.PASS),
        ([312], Verdict.INCONCLUSIVE),
        ([329], Verdict.INCONCLUSIVE),
        ([330], Verdict.REGRESSION),
        ([316, 316, 316], Verdict.PASS),
        ([317, 317, 317], Verdict.INCONCLUSIVE),
        ([323, 323, 323], Verdict.INCONCLUSIVE),
        ([324, 324, 324], Verdict.REGRESSION),
    ],
)
def test_a_limit_is_near_within_what_the_prior_and_the_runs_leave_open(times, expected):
    """The prior counts as four runs of 1 %: of one run t is 2.776, so 2.8 %; of three 2.447 × √(4/6) / √3, so 1.2 %."""
    budget = '[gate.metrics."step.time"]\nmax = "320 ms"\n'
    assert verdict(judge((), runs(*times), budget))[0] == expected


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (306, (Verdict.PASS, "within_limit")),
        (307, (Verdict.INCONCLUSIVE, "near_limit")),
        (333, (Verdict.INCONCLUSIVE, "near_limit")),
        (334, (Verdict.REGRESSION, "above_limit")),
    ],
)
def test_runs_that_vary_leave_more_open(time, expected):
    """Three runs 5 % apart: √((4 × 1 %² + 2 × 5 %²) / 6) is 3 %, times 2.447 / √3 is 4.24 % of 320."""
    times = (time * math.exp(part * 0.05) for part in (-1, 0, 1))
    assert verdict(judge((), runs(*times), '[gate.metrics."step.time"]\nmax = "320 ms"\n')) == expected


@pytest.mark.parametrize(
    ("busy", "limit", "expected"),
    [
        (83, "min = 80", (Verdict.PASS, "within_limit")),
        (82, "min = 80", (Verdict.INCONCLUSIVE, "near_limit")),
        (78, "min = 80", (Verdict.INCONCLUSIVE, "near_limit")),
        (77, "min = 80", (Verdict.REGRESSION, "below_limit")),
        (77, "max = 80", (Verdict.PASS, "within_limit")),
        (83, "max = 80", (Verdict.REGRESSION, "above_limit")),
    ],
)
def test_a_limit_of_a_ratio_is_near_within_some_points(busy, limit, expected):
    """One run: t of 2.776 times one point."""
    budget = f'[gate.metrics."gpu.busy_ratio"]\n{limit}\n'
    assert verdict(judge((), [run(counts={"gpu.busy_ratio": busy})], budget), "gpu.busy_ratio") == expected


@pytest.mark.parametrize(
    ("counts", "limit", "expected"),
    [
        ([3], "max = 3", (Verdict.PASS, "within_limit")),
        ([4], "max = 3", (Verdict.REGRESSION, "above_limit")),
        ([3], "min = 3", (Verdict.PASS, "within_limit")),
        ([2], "min = 3", (Verdict.REGRESSION, "below_limit")),
        ([0], "max = 0", (Verdict.PASS, "within_limit")),
        ([0], "min = 1", (Verdict.REGRESSION, "below_limit")),
        ([2, 4], "max = 3", (Verdict.REGRESSION, "above_limit")),
        ([2, 4], "max = 4", (Verdict.PASS, "within_limit")),
        ([2, 4], "min = 3", (Verdict.REGRESSION, "below_limit")),
    ],
)
def test_a_limit_of_a_count_holds_to_the_last_one(counts, limit, expected):
    found = counted((), counts, f'[gate.metrics."sync.count"]\n{limit}\n')
    assert verdict(found, "sync.count") == expected


def test_without_a_baseline_and_limits_there_is_nothing_to_judge():
    with pytest.raises(UsageError, match="nothing to judge"):
        judge((), runs(300))


@pytest.mark.parametrize(
    ("old", "new", "budget", "expected"),
    [
        ([2], [2], "", Verdict.PASS),
        ([2], [3], "", Verdict.REGRESSION),
        ([3], [2], "", Verdict.IMPROVEMENT),
        ([0], [1], "", Verdict.REGRESSION),
        ([0], [1], "max_increase = 1", Verdict.PASS),
        ([0], [1], 'max_increase = "50%"', Verdict.REGRESSION),
        ([100], [102], 'max_increase = "2%"', Verdict.PASS),
        ([100], [103], 'max_increase = "2%"', Verdict.REGRESSION),
        ([100], [103], 'max_increase = "2%"\nmin_effect = 4', Verdict.PASS),
        ([100], [97], 'max_increase = "2%"', Verdict.IMPROVEMENT),
        ([2], [2], "max = 1", Verdict.REGRESSION),
        ([2], [2], "min = 3", Verdict.REGRESSION),
        ([2, 2, 2], [3, 3, 3], "", Verdict.REGRESSION),
    ],
)
def test_constant_counts_are_compared_as_numbers(old, new, budget, expected):
    text = f'[gate.metrics."sync.count"]\n{budget}\n' if budget else ""
    result = counted(old, new, text)
    assert verdict(result, "sync.count")[0] == expected
    assert next(each for each in result.metrics if each.name == "sync.count").statistics is None


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 3), st.integers(1, 3))
def test_constant_counts_are_never_inconclusive(old, new, runs_old, runs_new):
    result = counted([old] * runs_old, [new] * runs_new)
    expected = Verdict.REGRESSION if new > old else Verdict.IMPROVEMENT if new < old else Verdict.PASS
    assert verdict(result, "sync.count")[0] == expected


def test_counts_that_vary_apart_are_a_regression_and_overlapping_ones_a_matter_of_noise():
    assert verdict(counted([[2, 3, 2, 3, 2]], [[5, 6, 5, 6, 5]]), "sync.count") == (Verdict.REGRESSION, "varies_apart")
    wide = verdict(counted([[2, 9, 3, 8, 4]], [[3, 9, 5, 8, 2]]), "sync.count")
    assert wide[0] == Verdict.INCONCLUSIVE
    same = counted([[2, 9, 3, 8, 4]], [[4, 2, 8, 9, 3]], '[gate.metrics."sync.count"]\nmax_increase = "2%"\n')
    assert verdict(same, "sync.count")[0] == Verdict.PASS


def test_a_count_that_varies_is_told_in_words():
    """Medians are equal, means are not: a change of 0 would say nothing."""
    result = counted([0, 0, 0], [0, 0, 3])
    assert verdict(result, "sync.count") == (Verdict.INCONCLUSIVE, "varies")
    line = "varies from step to step (0 in the baseline, 0-3 in the candidate), so whether it changed cannot be told"
    assert line in " ".join(on_console(build_gate(result), texts(), Style(width=100)).split())
    assert ci.github([build_gate(result)], texts()).endswith(f"::sync.count: {line}\n")


def test_the_largest_step_counts_against_an_absolute_limit():
    assert verdict(counted([[2, 2, 2]], [[2, 9, 2]], '[gate.metrics."sync.count"]\nmax = 8\n'), "sync.count") == (
        Verdict.REGRESSION,
        "above_limit",
    )


@given(st.floats(200, 400), st.floats(0, 60), st.integers(1, 4))
def test_slower_never_turns_a_regression_into_anything_else(time, more, count):
    """Unless the runs of the candidate differ more: all of them get slower by as much."""
    old = runs(*[300] * 3)
    first, second = (verdict(judge(old, runs(*[value] * count)))[0] for value in (time, time + more))
    order = [Verdict.IMPROVEMENT, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION]
    assert order.index(second) >= order.index(first)


@given(st.lists(st.floats(100, 200), min_size=1, max_size=5))
def test_equal_sides_are_never_a_regression(values):
    assert verdict(judge(runs(*values), runs(*values)))[0] in {Verdict.PASS, Verdict.INCONCLUSIVE}


def test_the_same_input_gives_the_same_bytes():
    sides = runs(300, 303, 299), runs(318, 321, 316)
    documents = [render([build_gate(judge(*sides))], texts()) for _ in range(2)]
    assert documents[0] == documents[1]
    assert json.loads(documents[0])["verdict"] == "fail"


@pytest.mark.parametrize(
    ("settings", "how", "overall", "code"),
    [
        ("", {}, Overall.INCONCLUSIVE, 0),
        ('on_inconclusive = "pass"', {}, Overall.PASS, 0),
        ('on_inconclusive = "fail"', {}, Overall.INCONCLUSIVE, 3),
        ("", {"strict": True}, Overall.INCONCLUSIVE, 3),
        ("", {"strict": True, "exit_zero": True}, Overall.INCONCLUSIVE, 0),
    ],
)
def test_inconclusive(settings, how, overall, code):
    result = judge(runs(300), runs(312), f"[gate]\n{settings}\n", **how)
    assert (result.overall, result.exit_code) == (overall, code)
    found = next(each for each in result.metrics if each.name == "step.time")
    assert found.statistics.runs_needed == 3


def test_an_improvement_can_fail():
    sides = runs(300, 300, 300), runs(200, 200, 200)
    assert judge(*sides).exit_code == 0
    assert judge(*sides, '[gate]\non_improvement = "fail"\n').exit_code == 1


@pytest.mark.parametrize(("setting", "code"), [("fail", 1), ("warn", 0), ("pass", 0)])
def test_a_metric_that_one_side_lacks(setting, code):
    budget = f'[gate]\non_missing = "{setting}"\n[gate.metrics."kernel.count"]\nmax_increase = 0\n'
    result = judge([run(time=300, counts={"kernel.count": 5})], [run(time=300)], budget)
    assert verdict(result, "kernel.count") == (Verdict.MISSING, "missing_candidate")
    assert result.exit_code == code


def test_a_metric_that_nobody_has_and_nobody_asked_for_is_not_judged():
    result = judge(runs(300), runs(300))
    assert verdict(result, "kernel.count") == (Verdict.NOT_MEASURED, "missing_both")
    asked = judge(runs(300), runs(300), '[gate.metrics."kernel.count"]\nmax_increase = 0\n')
    assert verdict(asked, "kernel.count")[0] == Verdict.MISSING
    assert asked.exit_code == 1


def test_warnings_fail_only_when_strict():
    sides = [run(time=300, counts={"sync.count": 1})], [run(time=300, counts={"sync.count": 2})]
    assert judge(*sides).exit_code == 0
    assert judge(*sides, strict=True).exit_code == 1


def test_a_regression_comes_before_inconclusive():
    budget = '[gate]\non_inconclusive = "fail"\n[gate.metrics."sync.count"]\nmax_increase = 0\n'
    sides = [run(time=300, counts={"sync.count": 1})], [run(time=312, counts={"sync.count": 2})]
    assert judge(*sides, budget).exit_code == 1


def test_environments_must_match_and_all_differences_are_told():
    other = runs(300, environment={"device": "other", "torch": "2.8"})
    with pytest.raises(UsageError, match=r"device: GPU / other; torch: 2\.9 / 2\.8"):
        judge(runs(300), other)
    result = judge(runs(300), other, waived=("device", "torch"))
    assert [each.key for each in result.differences] == ["device", "torch"]
    assert result.waived == ("device", "torch")


def test_unknown_matches_only_unknown():
    unknown = runs(300, environment={"torch": None})
    assert judge(unknown, unknown).exit_code == 0
    with pytest.raises(UsageError, match=r"torch: unknown / 2\.9"):
        judge(unknown, runs(300))


def test_profiler_options_must_match_even_if_the_budget_does_not_ask():
    other = runs(300, environment={"profiler_options": ("device", "host", "stacks")})
    with pytest.raises(UsageError, match="profiler_options: device, host / device, host, stacks"):
        judge(runs(300), other, "[gate]\nmatch = []\n")


def test_other_keys_are_only_told():
    result = judge(runs(300), runs(300, environment={"driver": "555"}))
    assert [(each.key, each.baseline, each.candidate) for each in result.differences] == [("driver", (None,), ("555",))]


def test_ranks_must_be_the_same():
    with pytest.raises(UsageError, match="different ranks"):
        judge(runs(300, ranks=(0, 1)), runs(300, ranks=(0,)))


def test_workloads_that_differ_warn_or_fail():
    other = runs(300, workload={"aten::mm": 5, "aten::add": 5})
    result = judge(runs(300), other)
    assert result.similarity == pytest.approx(5 / 15)
    assert ("workload", {"similarity": "0.33"}) in result.notes
    with pytest.raises(UsageError, match="less than min_workload_similarity"):
        judge(runs(300), other, "[gate]\nmin_workload_similarity = 0.8\n")


def test_a_selector_that_fits_nothing_is_a_mistake_and_on_one_side_missing():
    name = 'op["aten::nm"].count'
    budget = f"[gate.metrics.'{name}']\nmax_increase = 0\n"
    nothing = run(time=300, missing={name: "selector_matches_nothing"})
    with pytest.raises(UsageError, match="no name fits"):
        judge([nothing], [nothing], budget)
    some = run(time=300, counts={name: 3})
    assert verdict(judge([some], [nothing], budget), name)[0] == Verdict.MISSING


def test_a_budget_that_names_a_metric_later_fails_no_comparison():
    """The stored runs were never asked; one that was is compared with, and a limit holds for the candidate alone."""
    name = 'kernel["gemm*"].count'
    budget = f"[gate.metrics.'{name}']\nmax_increase = 0\n"
    new = [run(9, time=300, counts={name: 3})]
    later = judge(runs(300, 301), new, budget, stored=True)
    assert verdict(later, name) == (Verdict.NOT_MEASURED, "asked_later")
    assert later.exit_code == 0
    page = " ".join(on_console(build_gate(later), texts(), Style(width=100)).split())
    assert "`traceanalyze baseline update` adds runs that have it" in page
    assert "so not judged: kernel" not in page
    one = [*runs(300, 301), run(5, time=300, counts={name: 2})]
    assert verdict(judge(one, new, budget, stored=True), name)[0] == Verdict.REGRESSION
    limit = judge(runs(300, 301), new, f"[gate.metrics.'{name}']\nmax = 2\n", stored=True)
    assert verdict(limit, name) == (Verdict.REGRESSION, "above_limit")
    lacking = [run(time=300, missing={name: "no_device_events"})]
    assert verdict(judge(lacking, new, budget, stored=True), name)[0] == Verdict.MISSING


def test_the_noise_floor_is_learned_from_five_runs_of_a_stored_baseline():
    """Differences of neighbours: √(Σ d² / 8) of the logarithms."""
    noisy = runs(290, 300, 310, 295, 305)

    def floor(old, *, stored):
        return judge(old, runs(310), stored=stored).metrics[0].statistics.noise_floor

    assert floor(noisy, stored=True) == pytest.approx(0.02692, abs=0.00001)
    assert floor(noisy[:4], stored=True) == 0.01
    assert floor(noisy, stored=False) == 0.01


def test_drift_of_a_baseline_is_no_noise():
    """2 % more every run: 14 % in all, but a run is 1.4 % from the next; the drift is told, and +10 % is found."""
    drifting = runs(*(300 * 1.02**n for n in range(8)))
    found = judge(drifting, runs(390, 391, 390), stored=True).metrics[0]
    assert found.statistics.noise_floor == pytest.approx(math.log(1.02) / math.sqrt(2))
    assert "baseline_drift" in dict(found.notes)
    assert found.verdict == Verdict.REGRESSION
    steady = judge(runs(300, 302, 299, 301, 300), runs(300), stored=True).metrics[0]
    assert "baseline_drift" not in dict(steady.notes)


def test_with_one_run_a_side_the_interval_is_assumed():
    one = judge(runs(300), runs(330))
    assert one.metrics[0].statistics.assumed
    assert one.reason == "step.time (regression, ± assumed)"
    page = on_console(build_gate(one), texts(), Style(width=100))
    assert page.startswith("FAIL: step.time +10.0 % (± assumed).")
    assert re.search(r"^step\.time .* 1 run +5 % +regression$", page, re.MULTILINE)
    assert "so ± is assumed to be that of a usual machine (step.time 4.0 %)" in " ".join(page.split())
    for more in (judge(runs(300, 301), runs(330)), judge(runs(300, 301, 302, 300, 299), runs(330), stored=True)):
        assert not more.metrics[0].statistics.assumed
        assert "assumed" not in on_console(build_gate(more), texts(), Style(width=100))


def test_a_budget_near_the_noise_is_told():
    budget = '[gate]\nnoise_floor = "3%"\n'
    assert "budget_below_noise" in dict(judge(runs(300), runs(300), budget).metrics[0].notes)
    assert "budget_below_noise" not in dict(judge(runs(300), runs(300)).metrics[0].notes)


def test_old_baselines_and_many_accepted_changes_are_told():
    old = [run(n, time=300, time_of_day="2026-01-01T00:00:00+00:00", accepted=str(n)) for n in range(4)]
    new = runs(300, time_of_day="2026-06-01T00:00:00+00:00")
    keys = dict(judge(old, new).notes)
    assert keys["stale"] == {"days": 151}
    assert keys["accepted"] == {"count": 4}


def test_what_fails_comes_first():
    budget = '[gate.metrics."launch.count"]\nmax_increase = 0\n'
    old = [run(time=300, counts={"sync.count": 1, "launch.count": 3, "kernel.count": 9})]
    new = [run(time=312, counts={"sync.count": 4, "kernel.count": 1})]
    found = [(each.name, str(each.verdict)) for each in judge(old, new, budget).metrics[:4]]
    assert found == [
        ("launch.count", "missing"),
        ("step.time", "inconclusive"),
        ("sync.count", "regression"),
        ("kernel.count", "improvement"),
    ]


def test_why_sums_to_the_change():
    old = runs(300, parts={"compute": 200, "data_loading": 100})
    new = runs(330, parts={"compute": 201, "data_loading": 129})
    why = judge(old, new).why
    assert (why.baseline, why.candidate) == (300e6, 330e6)
    assert {row.name: row.change for row in why.parts} == {"compute": 1e6, "data_loading": 29e6}
    assert sum(row.change for row in why.parts) == why.change


def test_few_steps_are_told():
    short = run(time=[300, 300])
    assert isinstance(short.metrics["step.time"], Sample)
    from dataclasses import replace

    assert ("few_steps", {"run": "run0", "steps": 2}) in judge(runs(300), [replace(short, usable_steps=2)]).notes


def test_the_default_budget_is_that_of_an_empty_file():
    assert read_budget(b"", "x").budget.rules == Budget().rules


def test_a_row_without_counts_has_none():
    row = WhyRow("compute", "", "", 10.0, 12.0)
    assert (row.baseline_count, row.candidate_count, row.change) == (0, 0, 2.0)
