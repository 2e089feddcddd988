"""Error rates of the gate by simulation: python tests/benchmarks/bench_gate.py [--smoke] [--repetitions N].

Step times are 100·(1 + δ)·(1 + a_run + ε + spike): a run-to-run part, an AR(1) part (ρ = 0.3) and rare spikes, on a
quiet, a medium and a noisy node. The gate judges medians of 10 steps a run, budget 5 %. The table is that of the
acceptance targets; the program fails where a rate misses its target by more than the tolerance.

A second table has steps of other lengths, from 1 ms to 1 s. Their times are whole microseconds, as clocks of recordings
are, with a jitter of the host that a shorter step does not shrink. There +10 % must be caught, and no change be passed.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from traceanalyze.regression.budget import Settings, default
from traceanalyze.regression.evaluate import evaluate
from traceanalyze.regression.explain import Explain
from traceanalyze.regression.metrics import METRICS
from traceanalyze.regression.results import Verdict
from traceanalyze.regression.samples import RunSample, Sample

STEPS = 10
RHO = 0.3
REPETITIONS = 4000
NAME = "step.time"
HEADING = (
    "node, runs          same: regression, inconcl.       +3 %: regression, inconcl.       +5 %: regr."
    "      +10 %: regr.     -10 %: improv.   half-width"
)
MS = 1e6


@dataclass(frozen=True)
class Node:
    """How steady a machine is: standard deviations of runs and steps, probability of a spike."""

    name: str
    run: float
    step: float
    spike: float


NODES = {
    node.name: node
    for node in (
        Node("quiet", 0.003, 0.005, 0.03),
        Node("medium", 0.008, 0.010, 0.05),
        Node("noisy", 0.015, 0.020, 0.08),
    )
}

# node, runs a side: no change regression / inconclusive, +3 % regression / inconclusive, +5 % regression,
# +10 % regression, −10 % improvement, half-width: percent, as specified.
EQUAL = {
    ("quiet", 1): (0.0, 3.8, 0.0, 100, 50, 100, 100, 3.9),
    ("quiet", 3): (0.0, 0.0, 0.0, 5.7, 50, 100, 100, 1.4),
    ("quiet", 5): (0.0, 0.0, 0.0, 0.0, 50, 100, 100, 0.9),
    ("medium", 1): (0.0, 23, 7.1, 86, 50, 100, 100, 3.9),
    ("medium", 3): (0.0, 0.0, 0.6, 43, 50, 100, 100, 1.8),
    ("medium", 5): (0.0, 0.0, 0.1, 16, 51, 100, 100, 1.3),
    ("noisy", 1): (2.9, 33, 23, 56, 50, 97, 99, 3.9),
    ("noisy", 3): (0.1, 8.7, 9.7, 58, 49, 99.9, 100, 2.7),
    ("noisy", 5): (0.0, 1.4, 4.4, 51, 50, 100, 100, 2.1),
}
# node, runs of baseline and candidate: no change regression / inconclusive, +10 % regression, half-width.
LEARNED = {
    ("medium", 5, 1): (0.0, 2.2, 100, 2.2),
    ("medium", 10, 3): (0.0, 0.0, 100, 1.3),
    ("noisy", 5, 1): (0.6, 39, 97, 4.3),
    ("noisy", 10, 3): (0.0, 3.2, 100, 2.5),
    ("noisy", 20, 3): (0.0, 1.3, 100, 2.3),
}
# Independent metrics on the noisy node, one run a side, no change: any false regression with Holm.
FAMILY = {5: 2.8, 10: 1.0}


# Steps in ms; of both nodes, runs a side: least share of +10 % caught, largest share of false alarms, percent.
LENGTHS = (1, 3, 10, 100, 1000)
EVERY_LENGTH = {("quiet", 1): (95, 0.2), ("quiet", 5): (95, 0.2), ("medium", 1): (95, 0.2), ("medium", 5): (95, 0.2)}
JITTER = {"quiet": 2e3, "medium": 5e3}
"""Standard deviation of a step's time that does not depend on its length, ns."""


def medians(rng, node, delta, runs, repetitions, length=None):
    """Per-run medians, (repetitions, runs), of steps of 100 ms; of another length in ms with jitter and a clock."""
    shape = (repetitions, runs)
    noise = np.empty((*shape, STEPS))
    noise[..., 0] = rng.normal(0, node.step, shape)
    for step in range(1, STEPS):
        fresh = rng.normal(0, node.step * math.sqrt(1 - RHO**2), shape)
        noise[..., step] = RHO * noise[..., step - 1] + fresh
    spikes = (rng.random(noise.shape) < node.spike) * rng.uniform(0.05, 0.25, noise.shape)
    times = (length or 100) * MS * (1 + delta) * (1 + rng.normal(0, node.run, shape)[..., None] + noise + spikes)
    if length is not None:
        times = np.round(times + rng.normal(0, JITTER[node.name], times.shape), -3)
    return np.median(times, axis=-1)


def run_of(values):
    """A run that has nothing but these metrics."""
    metrics = {name: Sample(float(value)) for name, value in values.items()}
    return RunSample("", "", "", (0,), {}, {}, metrics, {}, Explain(0, {}), STEPS)


def judged(old, new, settings, *, stored):
    """Result of one comparison of step times."""
    rule = {NAME: default(METRICS[NAME])}
    return evaluate(rule, [run_of({NAME: v}) for v in old], [run_of({NAME: v}) for v in new], settings, stored=stored)[
        0
    ]


def rates(rng, node, delta, runs, repetitions, *, stored=False, length=None):
    """Shares in percent of each verdict, and the median half-width in percent."""
    old = medians(rng, node, 0, runs[0], repetitions, length)
    new = medians(rng, node, delta, runs[1], repetitions, length)
    settings = Settings()
    count = dict.fromkeys(Verdict, 0)
    half = []
    for one, other in zip(old.tolist(), new.tolist(), strict=True):
        found = judged(one, other, settings, stored=stored)
        count[found.verdict] += 1
        half.append(found.statistics.half_width)
    shares = {verdict: 100 * number / repetitions for verdict, number in count.items()}
    return shares, 100 * math.expm1(float(np.median(half)))


def cell_equal(rng, node, runs, repetitions):
    """One row of the first table."""
    sides = (runs, runs)
    same, width = rates(rng, node, 0, sides, repetitions)
    three, _ = rates(rng, node, 0.03, sides, repetitions)
    five, _ = rates(rng, node, 0.05, sides, repetitions)
    ten, _ = rates(rng, node, 0.10, sides, repetitions)
    faster, _ = rates(rng, node, -0.10, sides, repetitions)
    return (
        same[Verdict.REGRESSION],
        same[Verdict.INCONCLUSIVE],
        three[Verdict.REGRESSION],
        three[Verdict.INCONCLUSIVE],
        five[Verdict.REGRESSION],
        ten[Verdict.REGRESSION],
        faster[Verdict.IMPROVEMENT],
        width,
    )


def cell_learned(rng, node, runs, repetitions):
    """One row of the second table."""
    same, width = rates(rng, node, 0, runs, repetitions, stored=True)
    ten, _ = rates(rng, node, 0.10, runs, repetitions, stored=True)
    return same[Verdict.REGRESSION], same[Verdict.INCONCLUSIVE], ten[Verdict.REGRESSION], width


def lengths(options, repetitions):
    """Print the table of other lengths; what it misses."""
    missed = []
    print("\nsteps of every length: +10 %: caught; same: false alarms, inconclusive; half-width")
    for length in LENGTHS:
        for (name, runs), (least, most) in EVERY_LENGTH.items():
            rng = np.random.default_rng([options.seed, length, runs, list(NODES).index(name)])
            same, width = rates(rng, NODES[name], 0, (runs, runs), repetitions, length=length)
            ten, _ = rates(rng, NODES[name], 0.10, (runs, runs), repetitions, length=length)
            caught, wrong, open_ = ten[Verdict.REGRESSION], same[Verdict.REGRESSION], same[Verdict.INCONCLUSIVE]
            # One false alarm among few comparisons is no rate.
            bad = caught < least or wrong > max(most, 100 / repetitions)
            missed.extend([(f"{length} ms, {name}, {runs}", 0)] * bad)
            cells = f"{caught:6.1f} (≥ {least})  {wrong:5.2f} (≤ {most}) {open_:6.1f} {width:6.1f}{'!' if bad else ''}"
            print(f"{length:5d} ms, {name + ',':7s} {runs} {cells}", flush=True)
    return missed


def family(rng, metrics, repetitions):
    """Percent of comparisons of several independent unchanged metrics with any regression."""
    rules = {f"m{i}.time": default(METRICS[NAME]) for i in range(metrics)}
    node, wrong = NODES["noisy"], 0
    values = [medians(rng, node, 0, 1, repetitions)[:, 0].reshape(-1, 1) for _ in range(2 * metrics)]
    table = np.concatenate(values, axis=1)
    for row in table.tolist():
        old, new = (dict(zip(rules, side, strict=True)) for side in (row[:metrics], row[metrics:]))
        found = evaluate(rules, [run_of(old)], [run_of(new)], Settings())
        wrong += any(each.verdict == Verdict.REGRESSION for each in found)
    return 100 * wrong / repetitions


def main():
    """Print the tables; 1 when a rate misses its target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="few repetitions, three rows, wide tolerance")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    repetitions = 300 if options.smoke else options.repetitions
    tolerance = 8.0 if options.smoke else 1.5 if repetitions <= 4000 else 1.0
    misses = []

    def line(label, found, expected):
        # The last number is the half-width, not a rate.
        allowed = [tolerance] * (len(found) - 1) + [0.2 + tolerance / 10]
        rows = list(zip(found, expected, allowed, strict=True))
        bad = [i for i, (a, b, most) in enumerate(rows) if abs(a - b) > most]
        misses.extend((label, i) for i in bad)
        cells = "  ".join(f"{a:6.1f} ({b:5g}){'!' if i in bad else ' '}" for i, (a, b, _) in enumerate(rows))
        print(f"{label:16s}{cells}", flush=True)

    print(f"{repetitions} comparisons a cell; measured (target), percent\n")
    print(HEADING)
    for (name, runs), expected in list(EQUAL.items())[:: 3 if options.smoke else 1]:
        rng = np.random.default_rng([options.seed, runs, list(NODES).index(name)])
        line(f"{name}, {runs}", cell_equal(rng, NODES[name], runs, repetitions), expected)
    print("\nbaseline of several runs: same: regression, inconclusive; +10 %: regression; half-width")
    for (name, old, new), expected in list(LEARNED.items())[:: 4 if options.smoke else 1]:
        rng = np.random.default_rng([options.seed, old, new, list(NODES).index(name)])
        line(f"{name}, {old} / {new}", cell_learned(rng, NODES[name], (old, new), repetitions), expected)
    misses.extend(lengths(options, repetitions))
    print("\nany false regression among unchanged metrics, noisy node, one run a side")
    for metrics, expected in FAMILY.items():
        rng = np.random.default_rng([options.seed, metrics])
        found = family(rng, metrics, repetitions)
        bad = abs(found - expected) > tolerance
        misses.extend([(f"{metrics} metrics", 0)] * bad)
        print(f"{metrics:3d} metrics      {found:6.1f} ({expected:5g}){'!' if bad else ''}")
    if misses:
        print(f"\nmissed: {misses}", file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
