"""What the pins of regression are made of beside samples: gates of numbers drawn at random, one answer each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from traceanalyze.errors import TraceAnalyzeError

Parts = Iterator[tuple[str, object]]
Case = Callable[[], Parts]
_UNITS = {
    "ns": ("1 ms", "0.2ms", "300 us", "2s"),
    "points": ("1 points", "3 points", "90 points"),
    "B": ("10 MiB", "1GB", "5%", 4096),
    "count": (0, 3, "10%", 100),
    "1/s": ("5%", 900),
    "GB/s": ("5%", 20),
}


def _outcome(make: Callable[[], object]) -> object:
    try:
        return make()
    except (TraceAnalyzeError, ValueError) as error:
        return type(error).__name__, str(error)


def _numbers(generator: random.Random, count: int) -> list[float]:
    """Of some shape: even, spread, of two kinds, drifting, with an outlier, all equal, whole, with zeros."""
    middle, shape = 10 ** generator.uniform(-2, 6), generator.randrange(8)
    spread = generator.choice((0.0, 0.001, 0.01, 0.1, 0.5))
    found = [middle * (1 + spread * generator.gauss(0, 1)) for _ in range(count)]
    if shape == 1:
        found = [value * generator.choice((1, 2)) for value in found]
    elif shape == 2:
        found = [value * (1 + 0.05 * at) for at, value in enumerate(found)]
    elif shape == 3 and found:
        found[generator.randrange(count)] *= 10
    elif shape == 4:
        found = [float(round(value)) for value in found]
    elif shape == 5:
        found = [value * generator.choice((0, 1)) for value in found]
    return [abs(value) for value in found]


def _statistics(seed: int) -> Parts:
    from traceanalyze.regression import statistics as of

    generator = random.Random(seed)
    tails, sides = [], []
    for _ in range(80):
        t, df, p = generator.gauss(0, 4), generator.choice((1, 2, 3.5, 5, 8, 20, 150)), generator.uniform(0.001, 0.999)
        tails.append((of.survival(t, df), of.quantile(p, df)))
    yield "tails", tails
    yield "ends", [of.survival(t, 3) for t in (float("inf"), float("-inf"), 0.0, 1e9, -1e9)]
    for number in range(60):
        old, new = (_numbers(generator, generator.randrange(1, 12)) for _ in range(2))
        prior = of.Prior(
            generator.choice((0.003, 0.01, 0.1)), generator.choice((1, 4, 9)), generator.uniform(0.6, 0.999)
        )
        got = of.estimate(old, new, prior)
        sides.append(
            (
                *(
                    got,
                    of.half_width_alone(got, len(new), prior),
                    number % 3 or of.runs_needed(got, generator.uniform(0.2, 2) * got.spread, prior),
                ),
                *(of.mann_whitney(old, new), of.two_populations(new), of.outliers(new), of.drifts(new)),
                *(of.learned_floor(old, 0.01), of.learned_floor(new, 1, least=0.5)),
                of.holm([round(generator.random(), 2) for _ in range(number % 9)]),
            )
        )
    for at in range(0, len(sides), 20):
        yield f"sides {at}", sides[at : at + 20]
    yield "empty", (of.mann_whitney([], [1]), of.two_populations([]), of.outliers([]), of.drifts([]))
    yield "quantiles", [_outcome(partial(of.quantile, p, 3)) for p in (0.0, 1.0, 0.5, 0.025, 1e-9)]


def _budget(generator: random.Random) -> str:
    """A budget file of any metrics, mostly one that can be meant."""
    from traceanalyze.regression.metrics import METRICS

    lines = ["[gate]"]
    for key, values in (
        ("confidence", (0.8,)),
        ("noise_floor", ("2%", 0.001, "0.5%")),
        ("noise_floor_points", (0.2, "2 points")),
        ("prior_weight", (1, 10)),
        ("on_inconclusive", ("pass", "warn", "fail")),
        ("on_improvement", ("note", "fail")),
        ("on_missing", ("pass", "warn", "fail")),
        ("min_workload_similarity", (0.5, "90%")),
    ):
        # Others than the usual ones take long to count the runs that are needed.
        if generator.random() < (0.05 if key in {"confidence", "prior_weight"} else 0.25):
            value = generator.choice(values)
            lines.append(f"{key} = {value!r}" if not isinstance(value, str) else f'{key} = "{value}"')
    for name in generator.sample(sorted(METRICS), 9):
        metric = METRICS[name]
        lines.append(f'[gate.metrics."{name}"]')
        if generator.random() < 0.7:
            lines.append(f'level = "{generator.choice(("warn", "error", "off"))}"')
        if generator.random() < 0.6:
            change = (
                generator.choice(("5%", "1%", "20%"))
                if metric.kind == "time"
                else generator.choice(_UNITS[metric.unit])
            )
            lines.append(f"{'max_increase' if metric.lower_is_better else 'max_decrease'} = {_toml(change)}")
        for key in ("min_effect", "max", "min"):
            if generator.random() < 0.25:
                value = generator.choice([each for each in _UNITS[metric.unit] if "%" not in str(each)])
                lines.append(f"{key} = {_toml(value)}")
    return "\n".join(lines)


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _side(generator: random.Random, centre: dict[str, float], count: int, scale: float) -> tuple[Any, ...]:
    """Runs around the values of each metric."""
    from tests.regression.make import run
    from traceanalyze.regression.metrics import METRICS
    from traceanalyze.regression.samples import Sample

    found = []
    spread = generator.choice((0.0, 0.002, 0.02, 0.2))
    lost = generator.sample(sorted(METRICS), 2) if generator.random() < 0.4 else []
    for number in range(count):
        metrics = {}
        for place, (name, value) in enumerate(centre.items()):
            if name in lost and generator.random() < 0.7:
                continue
            metric = METRICS[name]
            # No two metrics change alike: which of equal changes comes first would hang on a last digit.
            moved = 1 if scale == 1 else scale * (1 + place / 1000)
            steps = tuple(
                value * moved * (1 + spread * generator.gauss(0, 1)) for _ in range(generator.choice((2, 5, 7)))
            )
            if metric.kind == "exact":
                steps = tuple(float(round(each)) for each in steps)
            if generator.random() < 0.1:
                steps = tuple(each * (1 + at) for at, each in enumerate(steps))
            middle = sorted(steps)[len(steps) // 2]
            ranks = {rank: middle * (1 + 0.1 * rank) for rank in range(generator.choice((0, 3)))}
            metrics[name] = Sample(middle, () if metric.per_run else steps, ranks)
        parts = {part: generator.uniform(0, 9) for part in ("compute", "idle", "communication")}
        extra = (
            {"host": f"h{number}", "torch": generator.choice(("2.9", "2.9", "2.8"))} if generator.random() < 0.2 else {}
        )
        one = run(
            *(number,),
            parts=parts,
            environment=extra,
            workload={"aten::mm": generator.choice((10, 10, 12)), "aten::add": generator.randrange(3)},
            missing=dict.fromkeys(lost, "not_recorded"),
            findings={"SYN101": number % 2, "DAT101": 1} if generator.random() < 0.5 else None,
        )
        found.append(replace(one, metrics=metrics, usable_steps=generator.choice((1, 2, 5))))
    return tuple(found)


def _judged(seed: int) -> tuple[Any, str]:
    """A gate and the budget it is of."""
    from traceanalyze.regression.budget import read_budget
    from traceanalyze.regression.metrics import METRICS
    from traceanalyze.regression.results import SideSummary
    from traceanalyze.regression.verdict import gate

    generator = random.Random(seed)
    centre = {
        name: 10 ** generator.uniform(4, 9) if each.unit == "ns" else generator.choice((0, 1, 3, 50, 97.5, 4000, 2**30))
        for name, each in METRICS.items()
    }
    old = _side(generator, centre, generator.choice((0, 1, 2, 3, 6, 9)), 1)
    new = _side(generator, centre, generator.choice((1, 2, 3, 6)), generator.choice((0.8, 0.97, 1, 1, 1.04, 1.06, 1.3)))
    budget = _budget(generator)
    rules = read_budget(budget.encode(), "traceanalyze.toml").for_environment(new[0].environment)
    how: dict[str, Any] = {
        "strict": generator.random() < 0.3,
        "exit_zero": generator.random() < 0.2,
        "waived": ("torch",) if generator.random() < 0.8 else (),
    }
    stored = generator.random() < 0.5
    return gate(SideSummary("baseline", old, stored), SideSummary("candidate", new), rules, **how), budget


def gates(first: int, count: int) -> Iterator[tuple[int, object]]:
    """Gates of these seeds, or how they were refused."""
    for seed in range(first, first + count):
        yield seed, _outcome(partial(_judged, seed))


def _gates(first: int, count: int) -> Parts:
    from traceanalyze.locales import texts
    from traceanalyze.report.console import Style, render
    from traceanalyze.report.contents.gate import build_gate

    for seed, found in gates(first, count):
        if not isinstance(found[0], str):  # type: ignore[index]
            result, budget = found  # type: ignore[misc]
            yield f"{seed} budget", budget
            yield f"{seed} metrics", [replace(one, rule=None) for one in result.metrics]
            yield f"{seed} rules", [one.rule for one in result.metrics]
            yield (
                f"{seed} rest",
                [
                    getattr(result, name)
                    for name in result.__dataclass_fields__
                    if name not in {"metrics", "baseline", "candidate", "budget"}
                ],
            )
            yield f"{seed} text", render(build_gate(result), texts(), Style(width=100)) if seed % 4 == 0 else ""
        else:
            yield f"{seed}", found


_BUDGETS = (
    "[gate]\nconfidence = 1.0",
    '[gate]\nconfidence = "high"',
    "[gate]\nconfidence = 0.5",
    "[gate]\nconfidense = 0.9",
    "[gate]\nnoise_floor = 0",
    "[gate]\nprior_weight = -1",
    '[gate]\non_missing = "ask"',
    '[gate]\nmatch = "torch"',
    '[gate]\nmatch = ["torch", "cann", "hots"]',
    '[gate]\nmatch = ["torch", "host"]',
    "[gate]\nwarmup_steps = true",
    "[gate]\nwarmup_steps = 3",
    "[gate]\nwarmup_steps = -1",
    "[gate]\ntokens_per_step = 4096",
    '[gate]\ntokens_per_step = "many"',
    '[gate.metrics."step.tme"]\nmax_increase = "5%"',
    '[gate.metrics."step.time"]\nmax_increase = "5 ms"',
    '[gate.metrics."step.time"]\nmax_increase = "0.4%"',
    '[gate.metrics."step.time"]\nmax_increase = "0.5%"',
    '[gate.metrics."step.time"]\nmax_decrease = "5%"',
    '[gate.metrics."step.time"]\nmax_change = "5%"\nmax_increase = "5%"',
    '[gate.metrics."step.tokens_per_s"]\nmax_decrease = "100%"',
    '[gate.metrics."step.tokens_per_s"]\nmax_decrease = "99%"',
    '[gate.metrics."step.time"]\nmax = "1.5 s"\nmin = "1 us"\nmin_effect = 3',
    '[gate.metrics."step.time"]\nmax = "1 kg"',
    '[gate.metrics."kernel.count"]\nmax_increase = -3',
    '[gate.metrics."kernel.count"]\nlevel = "loud"',
    '[gate.metrics."memory.allocated_peak"]\nmax = "80 gib"\nmax_increase = "100 MB"',
    '[gate.metrics]\n"kernel.count" = 3',
    '[gate.metrics."op[\\"aten::mm\\"].device_time"]\nlevel = "warn"',
    '[gate.metrics."op[\\"aten::mm\\"].busbw"]\nlevel = "warn"',
    '[[gate.override]]\nwhen = {device = "H*"}\nmetrics = {"step.time" = {max_increase = "9%"}}\n',
    "[gate.override]\nwhen = {}",
    "[[gate.override]]\nwhere = {}",
    '[[gate.override]]\nwhen = {devise = "x"}',
    "[gate",
    "ÿ",
    "[metrics]\n",
    "[rules]\n",
    "gate = 3",
    '[gate]\nmin_workload_similarity = "120%"',
    '[gate]\nmin_workload_similarity = "abc"',
    '[gate]\nnoise_floor_points = "3 ms"',
    "[gate]\nnoise_floor_points = 0",
    '[gate.metrics."gpu.busy_ratio"]\nmax_decrease = "5%"',
    '[gate.metrics."rank.skew"]\nmax_increase = "5 points"\nmin = "1 points"',
)


def _budgets() -> Parts:
    from traceanalyze.regression.budget import read_budget

    def read(text: str, source: str, environment: dict[str, Any]) -> object:
        found = read_budget(text.encode("latin-1"), source).for_environment(environment)
        return found.settings, {name: rule for name, rule in found.rules.items() if rule.named}, found.selectors

    for number, text in enumerate(_BUDGETS):
        yield (
            f"{number}",
            [
                _outcome(partial(read, text, "traceanalyze.toml", environment))
                for environment in ({}, {"device": "H100"}, {"device": ("A1", "H2")}, {"device": None})
            ],
        )
        nested = text.replace("[gate", "[tool.traceanalyze.gate")
        yield f"{number} pyproject", _outcome(partial(read, nested, "pyproject.toml", {}))


def _baselines() -> Parts:
    """Baselines written, read, added to and damaged."""
    import json

    from tests.pinned import tables
    from tests.pinned.inputs import odd_json
    from traceanalyze.regression import baseline as of
    from traceanalyze.report.contents.gate_metrics import baseline_tables

    generator = random.Random(5)
    for seed in range(12):
        generator = random.Random(seed)
        centre = {
            name: 10 ** generator.uniform(0, 9)
            for name in ("step.time", "kernel.count", "gpu.busy_ratio", "findings.total")
        }
        runs = _side(generator, centre, generator.randrange(1, 25), 1)
        runs = tuple(
            replace(
                one,
                time=f"2026-01-{at + 1:02}T00:00:00",
                label="x" * (at % 3),
                accepted=runs[3].id if at in {3, 4} else "",
            )
            for at, one in enumerate(runs)
        )
        before, twice = of.added(of.Baseline((), "made", "1", "y"), runs, keep=generator.choice((3, 20)))
        content = of.dump(before)
        yield f"{seed} written", content.decode()
        yield f"{seed} read", _outcome(partial(of.load, content, "file"))
        yield f"{seed} twice", (twice, of.added(before, runs[::2]))
        yield from tables(baseline_tables(before), f"{seed} ")
    document = json.loads(content)
    for number in range(60):
        odd, _ = odd_json(document, generator)
        yield f"odd {number}", _outcome(partial(of.load, json.dumps(odd).encode(), "file"))


REGRESSION: dict[str, Case] = {
    "statistics": partial(_statistics, 1),
    **{f"gates {first}": partial(_gates, first, 20) for first in range(0, 100, 20)},
    "budgets": _budgets,
    "baselines": _baselines,
}
