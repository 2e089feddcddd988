"""Sends and receives of ranks that tell their partners, against the same paired one by one."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from tests.ranks.make import rank
from traceanalyze.ranks.compare import compare_ranks
from traceanalyze.ranks.results import Group
from traceanalyze.ranks.sends import between, moves, sends

RANKS, STEPS = 4, ("ProfilerStep#1", "ProfilerStep#2")


def plans(chance: random.Random):
    """Of each rank its sends and receives in order: (step, kind, bytes, start, end), partner. Some are lost."""
    found = [[] for _ in range(RANKS)]
    for at in range(60):
        one, two = chance.sample(range(RANKS), 2)
        size, begin = chance.choice([64, 64, 128]), 1000 * at
        for each, kind, partner in ((one, "send", two), (two, "recv", one)):
            if chance.random() < 0.95:
                span = begin + chance.randrange(400), begin + chance.randrange(500, 900)
                told = partner if chance.random() < 0.95 else chance.choice([-1, each, 9])
                found[each].append(((at // 30, kind, size, *span), told))
    return found


def paired(made):
    """The k-th with the k-th of each direction and step, up to one whose sizes differ."""
    queues = defaultdict(lambda: ([], []))
    for each, own in enumerate(made):
        for row, ((step, kind, *_), partner) in enumerate(own):
            if partner in set(range(RANKS)) - {each}:
                way = (each, partner) if kind == "send" else (partner, each)
                queues[step, way][kind == "recv"].append((each, row))
    found = {}
    for one, two in queues.values():
        for a, b in zip(one, two, strict=False):
            (first, _), (second, _) = made[a[0]][a[1]], made[b[0]][b[1]]
            if first[2] != second[2]:
                break
            found[a] = found[b] = min(first[4] - first[3], second[4] - second[3])
    return found


@pytest.mark.parametrize("seed", range(8))
def test_pairs_are_those_of_the_order_of_each_direction(seed):
    made = plans(random.Random(seed))
    members = tuple(range(RANKS))
    found = compare_ranks(
        [
            rank(
                number,
                *(each for each, _ in own),
                steps=STEPS,
                world=RANKS,
                length=30_000,
                group=Group("0-3", members, RANKS),
                peers=[(row, partner) for row, (_, partner) in enumerate(own)],
            )
            for number, own in enumerate(made)
        ]
    )
    truth, shortest = paired(made), defaultdict(list)
    for (_, kind, size, begin, end), _ in (each for own in made for each in own):
        shortest[kind, size].append(end - begin)
    pairs = between(found.ranks, found.rows)
    for number, (own, each) in enumerate(zip(made, moves(pairs), strict=True)):
        assert each.row.tolist() == list(range(len(own)))
        assert [(number, row) in truth for row in each.row.tolist()] == each.exact.tolist()
        wanted = [truth.get((number, row), min(shortest[what[0][1:3]])) for row, what in enumerate(own)]
        assert each.time.tolist() == wanted
    waits = [
        [sum(end - begin - time for (at, _, _, begin, end), time in rows if at == step) for step in (0, 1)]
        for rows in (
            list(zip((what for what, _ in own), each.time.tolist(), strict=True))
            for own, each in zip(made, moves(pairs), strict=True)
        )
    ]
    assert found.between is not None
    assert (found.between.by_step.tolist(), found.between.bound) == (waits, True)
    rows = list(sends(found, pairs).records())
    told = [row for row in rows if isinstance(row.receiver, str)]
    assert sum(row.paired for row in told) * len(STEPS) == len(truth) / 2
    assert sum(row.transfer_ns for row in told) == pytest.approx(sum(truth.values()) / 2 / len(STEPS), abs=len(told))
    assert sum(row.sends + row.receives for row in rows) * len(STEPS) == sum(map(len, made))
