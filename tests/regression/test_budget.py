"""What a budget file may say, and how it is refused."""

from __future__ import annotations

import re

import pytest

from traceanalyze.errors import UsageError
from traceanalyze.regression.budget import Budget, check_keys, read_budget
from traceanalyze.regression.metrics import METRICS, Amount, Level, amount, metric_of, selector_of

SPECIFIED = b"""
[gate]
confidence       = 0.95
noise_floor      = "1%"
noise_floor_points = 1.0
prior_weight     = 4
warmup_steps     = 1
on_inconclusive  = "warn"
on_improvement   = "note"
on_missing       = "fail"
match            = ["device", "world_size", "torch", "profiler_options"]
min_workload_similarity = 0.0

[gate.metrics."step.time"]
level        = "error"
max_increase = "5%"
min_effect   = "1 ms"
max          = "320 ms"

[gate.metrics."kernel.count"]
level = "error"
max_increase = 0

[gate.metrics."gpu.busy_ratio"]
level = "warn"
max_decrease = "2 points"

[gate.metrics."memory.reserved_peak"]
max = "72 GiB"

[[gate.override]]
when = { device = "Ascend910*", world_size = 8 }
metrics."step.time".max_increase = "8%"
"""


def of(text, environment=None, name="traceanalyze.toml"):
    return read_budget(text if isinstance(text, bytes) else text.encode(), name).for_environment(environment or {})


def test_the_example_of_the_specification():
    found = of(SPECIFIED)
    step = found.rules["step.time"]
    assert (step.level, step.budget) == (Level.ERROR, Amount(0.05, True))
    assert (step.min_effect, step.highest) == (Amount(1e6), 320e6)
    assert (found.rules["kernel.count"].level, found.rules["kernel.count"].budget) == (Level.ERROR, Amount(0))
    assert found.rules["gpu.busy_ratio"].budget == Amount(2)
    assert found.rules["memory.reserved_peak"].highest == 72 * 2**30
    assert found.rules["memory.reserved_peak"].level == Level.ERROR
    assert found.rules["launch.count"].level == Level.WARN


def test_saying_the_defaults_changes_nothing():
    assert of(SPECIFIED.partition(b"[gate.metrics")[0]).settings == Budget().settings


def test_overrides_fit_their_environment_and_later_ones_win():
    npu = {"device": "Ascend910B3", "world_size": 8}
    assert of(SPECIFIED, npu).rules["step.time"].budget == Amount(0.08, True)
    assert of(SPECIFIED, npu).rules["step.time"].highest == 320e6
    assert of(SPECIFIED, npu | {"world_size": 4}).rules["step.time"].budget == Amount(0.05, True)
    more = SPECIFIED + b'[[gate.override]]\nwhen = {}\nmetrics."step.time".max_increase = "9%"\n'
    assert of(more, npu).rules["step.time"].budget == Amount(0.09, True)


def test_the_table_of_pyproject():
    text = '[project]\nname = "x"\n[tool.traceanalyze.gate]\non_missing = "warn"\n'
    assert of(text, name="some/pyproject.toml").settings.on_missing == "warn"


def test_other_tables_of_pyproject_are_not_ours_but_all_below_our_own_are():
    for mine, told in (("gaet", "there is no section [gaet]; did you mean gate?"), ("rules", "")):
        text = f"[tool.other.gaet]\n[metric]\nx = 5\n[tool.traceanalyze.{mine}]\n"
        if not told:
            assert of(text, name="pyproject.toml").settings == Budget().settings
            continue
        with pytest.raises(UsageError, match=re.escape(told)):
            of(text, name="pyproject.toml")


def test_selectors_are_metrics():
    found = of('[gate.metrics."op[\\"aten::mm\\"].device_time"]\nmax_increase = "10%"\n')
    assert found.selectors == ('op["aten::mm"].device_time',)
    assert metric_of('kernel["*flash*"].count').unit == "count"
    assert selector_of('collective["all_reduce"].busbw').pattern == "all_reduce"
    assert not metric_of('collective["all_reduce"].busbw').lower_is_better
    assert metric_of('module["layers.*"].host_time') is None


@pytest.mark.parametrize(
    ("written", "unit", "value"),
    [
        ("5%", "count", Amount(0.05, True)),
        ("1 ms", "ns", Amount(1e6)),
        ("250 us", "ns", Amount(250e3)),
        (3, "ns", Amount(3e6)),
        ("72 GiB", "B", Amount(72 * 2**30)),
        ("1.5GB", "B", Amount(1.5e9)),
        ("2 points", "points", Amount(2)),
        ("1 point", "points", Amount(1)),
        (7, "count", Amount(7)),
    ],
)
def test_quantities(written, unit, value):
    assert amount(written, unit, "here") == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gate", "not TOML"),
        (f"[gate]\nx = {'9' * 5000}", "not TOML: a number is too long"),
        (f"[gate]\nx = {'[' * 3000}", "nested too deeply"),
        (b"\xff", "not TOML"),
        ("[gate]\nconfidance = 0.9", "did you mean confidence?"),
        ("[gaet.metrics.'step.time']\nmax = '1 ms'", "there is no section [gaet]; did you mean gate?"),
        ("x = 5", "traceanalyze.toml: x stands in no section"),
        ("[metric.step_time]\nmax = 1", "there is no section [metric]; did you mean gate.metrics?"),
        ("[gate]\nconfidence = 'x'", "'x' is not a number; write a number such as 0.95"),
        ("[gate]\nprior_weight = 'x'", "'x' is not a number; write a number"),
        ("[gate]\nnoise_floor_points = 'x'", "write points such as 2 points"),
        ("[gate]\nconfidence = 0.3", "between 0.5 and 1"),
        ("[gate]\nnoise_floor = 0", "must be above 0"),
        ("[gate]\nnoise_floor = '1 ms'", "not a share"),
        ("[gate]\non_missing = 'explode'", "not one of pass, warn, fail"),
        ("[gate]\nwarmup_steps = -1", "not a number of steps"),
        ("[gate]\nmatch = 'device'", "list of names"),
        ("[gate]\nmatch = ['devise']", "did you mean device?"),
        ("[gate]\nmetrics = 3", "must be a table"),
        ("gate = 3", "must be a table"),
        ('[gate.metrics."step.tim"]\nmax = 1', "did you mean step.time?"),
        ('[gate.metrics."step.time"]\nmax_incraese = 1', "did you mean max_increase?"),
        ('[gate.metrics."step.time"]\nlevel = "fatal"', "not one of off, warn, error"),
        ('[gate.metrics."step.time"]\nmax = "3 GiB"', "wrong unit; write a time such as 1 ms"),
        ('[gate.metrics."step.time"]\nmax = "5%"', "wrong unit"),
        ('[gate.metrics."step.time"]\nmax = true', "not a number"),
        ('[gate.metrics."step.time"]\nmax = "soon"', "not a number"),
        ('[gate.metrics."step.time"]\nmax = -1', "must not be negative"),
        ('[gate.metrics."step.time"]\nmax_increase = "0.4%"', "no measurement can pass"),
        ('[gate.metrics."step.time"]\nmax_increase = "3 ms"', "is a share such as 5%"),
        ('[gate.metrics."step.time"]\nmax_decrease = "5%"', "write max_increase"),
        ('[gate.metrics."gpu.busy_ratio"]\nmax_increase = "5 points"', "write max_decrease"),
        ('[gate.metrics."gpu.busy_ratio"]\nmax_decrease = "5%"', "wrong unit"),
        ('[gate.metrics."step.time"]\nmax_increase = "6%"\nmax_change = "5%"', "say the same"),
        ("[gate.override]\nwhen = {}", "two brackets"),
        ('[[gate.override]]\nwhen = { devise = "x" }', "did you mean device?"),
        ('[[gate.override]]\nmetrics."step.tim".max = 1', "did you mean step.time?"),
        ("[[gate.override]]\nif = 1", "there is no if"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_nearest_name(text, told):
    with pytest.raises(UsageError, match=re.escape(told)):
        of(text)


def test_keys_of_an_option():
    assert check_keys(["torch"], "--no-match") == ("torch",)
    with pytest.raises(UsageError, match="no_match: there is no tourch; did you mean torch"):
        check_keys(["tourch"], "--no-match")


def test_defaults_are_those_of_the_specification():
    assert of("").rules["step.time"].min_effect is None, "as small as the noise leaves"
    assert {name for name, metric in METRICS.items() if metric.level == Level.ERROR} == {"step.time"}
    warned = {name for name, metric in METRICS.items() if metric.level == Level.WARN}
    assert warned == {
        "kernel.count",
        "launch.count",
        "sync.count",
        "collective.count",
        "collective.bytes",
        "alloc.device_malloc.count",
        "alloc.device_free.count",
        "alloc.retry.count",
        "compile.graph_break.count",
        "compile.recompile.count",
        "memory.allocated_peak",
        "memory.reserved_peak",
        "findings.high",
        "findings.total",
    }
