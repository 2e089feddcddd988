"""Ranks made by hand: collectives of one group in steps of one length, in ns."""

from __future__ import annotations

import numpy as np

from traceanalyze.model.collectives import SENDS, TYPES
from traceanalyze.ranks.results import Group, Partners, RankCollectives, RankSummary

WORLD = (0, 1)


def ints(values):
    return np.array(values, np.int64)


def rank(
    number,
    *collectives,
    steps=("ProfilerStep#1",),
    length=1000,
    world=2,
    group=None,
    names=None,
    clock=0,
    links=(),
    peers=(),
    **parts,
):
    """`collectives` are (step, type, bytes, start, end) in the order of the program; times on the true clock.

    `peers` are (place of a send or receive, rank at its other end).
    """
    step, kind, size, start, end = (
        (list(column) for column in zip(*collectives, strict=True)) if collectives else [[]] * 5
    )
    count = len(step)
    ends = {at: -1 for at, each in enumerate(kind) if each in SENDS} | dict(peers)
    kinds = ints([TYPES.index(each) for each in kind])
    return RankSummary(
        rank=number,
        label=str(number),
        world_size=world,
        steps=tuple(steps),
        marked=True,
        counted=np.ones(len(steps), np.bool_),
        step_time=np.full(len(steps), length),
        parts={key: np.full(len(steps), value) if np.isscalar(value) else ints(value) for key, value in parts.items()},
        groups=(Group("0-1", WORLD, 2) if group is None else group,),
        collectives=RankCollectives(
            group=np.zeros(count, np.int64),
            kind=kinds,
            bytes=ints(size),
            step=ints(step),
            start=ints(start) + clock,
            end=ints(end) + clock,
            exposed=ints(end) - ints(start),
            moved=np.full(count, -1),
            waited_for=np.full(count, -1),
            event=np.arange(count),
        ),
        links=tuple(links),
        group_names=names or {},
        partners=Partners(ints([*ends]), ints([*ends.values()]), kinds[[*ends]], ints([size[at] for at in ends])),
    )
