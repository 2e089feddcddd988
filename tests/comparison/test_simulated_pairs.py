"""A simulated workload against the same with a fault: every part differs by exactly what the simulation says."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from statistics import median

import pytest
from hypothesis import given

from tests.comparison.make import compared
from tests.examples import examples
from tests.simulate.compare import CAUSES
from tests.simulate.faults import FAULTS, without
from tests.simulate.simulate import simulate
from tests.simulate.strategies import workloads
from tests.simulate.test_faults import CASES
from tests.simulate.truth.summary import truth
from tests.simulate.workload import Fault
from tests.simulate.writers.kineto import write
from tests.simulate.writers.layouts import TODAY
from traceanalyze.comparison.attribution import headline, headline_keys
from traceanalyze.comparison.side import side
from traceanalyze.readers.kineto import read_text

_BUSY = {"compute": "compute", "comm_exposed": "communication", "mem_exposed": "memory_ops"}
_FEW = examples(6)
HEADLINE = {
    "slow_loader": "data_loading",
    "gc_pause": "untraced",
    "straggler": "compute",
    "exposed_comm": "communication",
    "fp32": "compute",
    "empty_cache": "dispatch",
}
"""Faults of which one part is the whole story, so that it must rank first."""


def recorded(schedule):
    return side(read_text(write(schedule, TODAY)))


def per_step(schedule):
    """Mean of each part over the complete steps after the start of the run (§18), as the simulation knows them."""
    known = truth(schedule)
    owned = [step.owned for step in known.steps]
    some = [count for count in owned if count]
    usual = (median(some) if len(some) > 2 else max(some)) if some else 0
    rows = [i for i in range(len(owned)) if len(owned) == 1 or owned[i] >= 0.8 * usual]
    while len(rows) > 2 and known.steps[rows[0]].time > 2 * median(known.steps[i].time for i in rows[1:]):
        del rows[0]
    means = dict.fromkeys([*_BUSY.values(), *(cause.name.lower() for cause in CAUSES.values())], Fraction(0))
    for i in rows:
        for word, key in _BUSY.items():
            means[key] += Fraction(known.parts[i][word], len(rows))
        for word, time in known.idle[i].items():
            means[CAUSES[word].name.lower()] += Fraction(time, len(rows))
    return means, Fraction(sum(known.steps[i].time for i in rows), len(rows))


def differences(found, parts=None):
    return {
        part.key: Fraction(part.candidate, found.candidate.count) - Fraction(part.base, found.base.count)
        for part in (found.parts if parts is None else parts)
    }


def check(base, candidate):
    """The comparison of two schedules, after checking it against what they know."""
    found = compared(recorded(base), recorded(candidate))
    (old, old_step), (new, new_step) = per_step(base), per_step(candidate)
    found_differences = differences(found)
    assert found_differences == {key: new[key] - old[key] for key in old}
    assert sum(found_differences.values()) == new_step - old_step
    for part in found.parts:
        rows = [row for row in found.contributions if row.part == part.key]
        assert (sum(row.base for row in rows), sum(row.candidate for row in rows)) == (part.base, part.candidate)
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_switching_a_fault_on_moves_each_part_by_what_it_costs(name):
    plain, size = CASES[name]
    rank = 0 if name == "host_barrier" else plain.ranks.count - 1
    faulty = replace(plain, faults=(Fault(name, size),))
    found = check(simulate(plain)[rank], simulate(faulty)[rank])
    if name in HEADLINE:
        by_part = differences(found, headline(found.parts))
        assert max(by_part, key=lambda key: by_part[key]) == HEADLINE[name]
        first = found.contributions[0].part
        assert headline_keys(found.parts)[first] == HEADLINE[name]


@_FEW
@given(workload=workloads(tick=1))
def test_random_workloads_with_and_without_their_first_fault(workload):
    if workload.faults:
        other = without(workload, workload.faults[0].name)
        check(simulate(other)[-1], simulate(workload)[-1])


def test_a_slow_loader_is_the_first_contribution():
    plain, size = CASES["slow_loader"]
    found = check(simulate(plain)[0], simulate(replace(plain, faults=(Fault("slow_loader", size),)))[0])
    first = found.contributions[0]
    assert (first.part, first.name) == ("data_loading", "DataLoader")
