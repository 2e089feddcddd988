"""What rules about ranks promise in full, and their thresholds to the last digit: answers on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.rank.test_rank_rules import alternating, outlasted, pair
from tests.rules.rank.test_run_rules import MS, bandwidth, clocked, parallel, reading
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group, LinkTraffic
from traceanalyze.rules.across_ranks import RANKS, evaluate_run
from traceanalyze.rules.config import RuleConfig
from traceanalyze.rules.evaluate import plan
from traceanalyze.rules.registry import every_rule


def linked(time):
    """Three links of one kind over which 20 kB go in 100 µs, over the last in another time."""
    links = tuple(LinkTraffic(0, to, "HCCS", 20, 1000, each) for to, each in ((1, 100_000), (2, 100_000), (3, time)))
    first, second = pair(0, 0)
    return [replace(first, links=links), second]


STRAGGLER = pair(MS, 0, compute=(3 * MS, 4 * MS))
UNEQUAL = pair(MS, 0, compute=(1 * MS, 2 * MS))
PAUSES = pair(0, 0, gc=([3 * MS, 0, 0], [0, 2 * MS, 0]))
READER = reading(2 * MS, loading=(3 * MS, 0))
CLOCK = clocked(100_000, 100_000, 125_000)
LAYOUT = parallel(("a", "b"))
SLOW = bandwidth(100)

FOUR = Group("0-3", (0, 1, 2, 3), 4)
TOGETHER, OUTLASTED = pair(MS // 2, 0, group=FOUR, world=4), outlasted(50 * MS)
TURNS = alternating(4, 1)

ANSWERS = [
    # They communicate for 1.5 and 1 ms with the two that are missing; 0.5 of the 1.5 is waiting for the other.
    ("RNK105", TOGETHER, None, None, "MEDIUM", 3, (), (), {"exposed": MS, "share": 0.1}),
    # Rank 0 waits 4 ms in two of four steps, rank 1 waits 1 ms in the others.
    ("RNK106", TURNS, 5 * MS // 4, 7 * MS // 5, "MEDIUM", 4, (), ("rank 1",), {"waiting": 1_250_000, "share": 0.125}),
    # Rank 0 waits 1 of 10 ms in each of three steps, as rank 1 computes 1 ms longer.
    ("RNK101", STRAGGLER, MS, MS, "MEDIUM", 3, (1,), ("rank 1",), {"wait": MS, "share": 0.1, "excess": MS}),
    # 1 and 2 ms: the mean is 1.5.
    ("RNK102", UNEQUAL, MS // 2, MS // 2, "MEDIUM", 3, (), ("rank 1",), {"most": 2 * MS, "least": MS}),
    # A fifth of 125 µs, over three steps.
    ("RNK103", linked(125_000), 8333, 8333, "LOW", 20, (0, 3), ("0 → 3",), {"link": "HCCS", "bandwidth": 0.008}),
    # 3 and 2 ms at different steps stop both for 5 ms; at the same step it would be 3.
    ("RNK104", PAUSES, 2 * MS // 3, 5 * MS // 3, "MEDIUM", 2, (), (), {"ranks": 2, "steps": 2}),
    # The other waits for 2 of the 3 ms that the reader takes.
    ("DAT106", READER, 2 * MS, 3 * MS, "HIGH", 4, (0,), ("rank 0",), {"time": 3 * MS, "wait": 2 * MS}),
    # Ten runs that take 25 µs longer, over four steps.
    ("KRN118", CLOCK, None, 62_500, "LOW", 2, (2,), ("rank 2",), {"slower": 0.25, "lost": 62_500, "kernels": 2}),
    ("COM116", LAYOUT, None, MS, "MEDIUM", 4, (), ("tp",), {"exposed": MS, "share": 0.1}),
    # 256 MiB at 100 GB/s three times a step: a third is saved at 150 GB/s, two thirds at 300.
    ("COM119", SLOW, 2_684_356, 5_368_710, "HIGH", 12, (), ("0-1",), {"expected": 300, "exposed": 8_053_065}),
]
THRESHOLDS = [
    ("RNK105", OUTLASTED, "share", 0.05, 0.05, 0.0501),
    ("RNK105", TOGETHER, "perhaps", 0.1, 0.1, 0.101),
    ("RNK106", TURNS, "share", 0.05, 0.125, 0.1251),
    ("RNK101", STRAGGLER, "share", 0.05, 0.1, 0.10000000000000002),
    ("RNK102", UNEQUAL, "imbalance", 0.1, 1 / 3, 0.33333333333333337),
    ("RNK103", linked(125_000), "below", 0.05, 0.19999999999999996, 0.2),
    ("RNK104", PAUSES, "pause", 0.01, 0.2, 0.20000000000000004),
    ("DAT106", READER, "share", 0.05, 0.3, 0.30000000000000004),
    ("DAT106", READER, "equal", 0.5, 2 / 3, 0.6666666666666667),
    ("KRN118", CLOCK, "slower", 0.1, 0.25, 0.26),
    ("KRN118", CLOCK, "same", 0.5, 1, 1.01),
    ("COM116", LAYOUT, "share", 0.05, 0.1, 0.10000000000000002),
    ("COM119", SLOW, "reached", 0.5, 0.338, 0.337),
    ("COM119", SLOW, "large_mb", 16, 256, 257),
    ("COM119", SLOW, "least", 10, 12, 13),
]


def found(ranks, rule, **options):
    return evaluate_run(compare_ranks(ranks), plan(RuleConfig((rule,), (), {rule: options}))).findings


@pytest.mark.parametrize(
    ("rule", "ranks", "saving", "bound", "severity", "count", "where", "ops", "values"),
    ANSWERS,
    ids=[one[0] for one in ANSWERS],
)
def test_a_rule_about_ranks_says_what_it_costs_and_where(
    rule, ranks, saving, bound, severity, count, where, ops, values
):
    (one,) = found(ranks, rule)
    assert (one.saving, one.bound, one.severity.name, one.count) == (saving, bound, severity, count)
    assert (one.scope.ranks, one.scope.ops) == (where, ops)
    said = {each.label: each.value for each in one.evidence}
    assert {label: said[label] for label in values} == pytest.approx(values)


@pytest.mark.parametrize(
    ("rule", "ranks", "name", "default", "fires", "silent"),
    THRESHOLDS,
    ids=[f"{one[0]}-{one[2]}" for one in THRESHOLDS],
)
def test_a_rule_about_ranks_is_silent_from_its_thresholds_on(rule, ranks, name, default, fires, silent):
    (known,) = (one for one in every_rule() if one.id == rule)
    assert known.defaults()[name] == default
    assert len(found(ranks, rule, **{name: fires})) == 1
    assert found(ranks, rule, **{name: silent}) == ()


def test_every_option_of_a_rule_about_ranks_has_a_threshold():
    wanted = {(one.id, name) for one in every_rule() if RANKS in one.needs for name in one.options}
    assert {(rule, name) for rule, _, name, *_ in THRESHOLDS} == wanted
