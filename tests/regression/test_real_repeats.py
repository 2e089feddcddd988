"""Real repeats: two recordings of one job are two runs; a change of its data loading is found and explained."""

from __future__ import annotations

import pytest

import traceanalyze
from traceanalyze.regression.baseline import Baseline, dump
from traceanalyze.regression.results import Overall, Verdict

SAMPLES = "kineto/kineto_tb/samples/resnet50_num_workers_"


@pytest.fixture
def folders(shared_traces):
    return shared_traces / f"{SAMPLES}0", shared_traces / f"{SAMPLES}4"


def step(result):
    return next(each for each in result.metrics if each.name == "step.time")


def test_two_recordings_in_a_folder_are_two_runs(folders):
    result = traceanalyze.gate(folders[0], folders[1])
    assert [len(side.runs) for side in (result.baseline, result.candidate)] == [2, 2]
    assert {run.usable_steps for side in (result.baseline, result.candidate) for run in side.runs} == {5}


def test_fewer_workers_are_a_regression_explained_by_data_loading(folders):
    result = traceanalyze.gate(folders[0], folders[1])
    assert (result.overall, result.exit_code) == (Overall.FAIL, 1)
    assert step(result).verdict == Verdict.REGRESSION
    assert max(result.why.parts, key=lambda row: row.change).name == "data_loading"
    assert result.why.reasons[0].name == "DataLoader"
    assert sum(row.change for row in result.why.parts) == pytest.approx(result.why.change)
    assert round(result.similarity, 2) == 0.87


def test_the_parts_are_the_reference_figures(folders):
    """Sums over six steps of the specification's table, warm-up step included."""
    result = traceanalyze.gate(folders[0], folders[1], warmup=0)
    parts = {row.name: row for row in result.why.parts}
    assert round(parts["data_loading"].candidate * 6 / 1000) == round((352_401 + 209_870) / 2)
    assert round(parts["compute"].baseline * 6 / 1000) == round((594_868 + 594_263) / 2)
    assert round(parts["sync"].baseline * 6 / 1000) == pytest.approx((37_541 + 43_183) / 2, abs=1)


def test_equal_runs_are_never_a_regression(folders):
    for folder in folders:
        result = traceanalyze.gate(folder, folder)
        assert result.exit_code == 0
        assert result.overall in {Overall.PASS, Overall.INCONCLUSIVE}
        assert [each.name for each in result.metrics if each.verdict == Verdict.REGRESSION] == []


def test_recordings_of_one_program_minutes_apart_fail_only_by_an_assumption(folders):
    """8 minutes between them, 17 % in step time, all of it data loading: one run a side cannot tell such noise."""
    first, second = sorted(map(str, folders[0].iterdir()))
    result = traceanalyze.gate(first, second)
    assert (result.exit_code, result.result.reason) == (1, "step.time (regression, ± assumed)")


def test_repeats_with_several_workers_are_never_a_regression(folders):
    """(Without workers the repeats really differ: the loader takes 24 ms a step more in one of them.)"""
    first, second = sorted(map(str, folders[1].iterdir()))
    for old, new in ((first, second), (second, first)):
        result = traceanalyze.gate(new, old)
        assert step(result).verdict in {Verdict.PASS, Verdict.INCONCLUSIVE}
        assert result.exit_code == 0


def test_a_baseline_of_real_runs_is_small(folders):
    runs = traceanalyze.gate(folders[0], folders[1]).baseline.runs
    assert len(dump(Baseline(runs * 10))) <= 100_000
