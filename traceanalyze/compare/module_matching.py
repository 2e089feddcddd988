"""Modules of two models matched level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceanalyze.compare.align import align

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceanalyze.analyses.module_places import Places

    Match = tuple[int, int]
    """Positions in `Places.places`; -1 for a side that has none."""


def match_modules(base: Places, candidate: Places) -> list[Match]:
    """Every module of both sides once, parents before children.

    Children of matched modules are matched in the order of their first call: one by one if their classes are the same
    (names count through the whole program, so their numbers may differ); else by name, and between these by class.
    """
    trees = _children(base), _children(candidate)
    found: list[Match] = []
    waiting: list[Match] = [(-1, -1)]
    while waiting:
        parent = waiting.pop(0)
        a, b = (
            tree.get(place, []) if place >= 0 or parent == (-1, -1) else []
            for tree, place in zip(trees, parent, strict=True)
        )
        rows = _siblings(a, b, base, candidate)
        found += rows
        waiting += rows
    return found


def _children(found: Places) -> dict[int, list[int]]:
    """Modules inside each module, in the order of their first call; those in none under -1."""
    never = np.iinfo(np.int64).max
    first = np.full(len(found.places), never)
    np.minimum.at(first, found.of, found.nest.start)
    for index in range(len(found.places) - 1, -1, -1):
        parent = found.places[index].parent
        if parent >= 0:
            first[parent] = min(first[parent], first[index])
    tree: dict[int, list[int]] = {}
    for index in np.argsort(first, kind="stable").tolist():
        tree.setdefault(found.places[index].parent, []).append(index)
    return tree


def _siblings(a: Sequence[int], b: Sequence[int], base: Places, candidate: Places) -> list[Match]:
    classes = [base.places[i].name for i in a], [candidate.places[j].name for j in b]
    if classes[0] == classes[1]:
        return list(zip(a, b, strict=True))
    names = [_own_name(base, i) for i in a], [_own_name(candidate, j) for j in b]
    rows: list[Match] = []
    at = below = 0
    for x, y in [*_aligned(*names), (len(a), len(b))]:
        rows += _by_class(a[at:x], b[below:y], base, candidate)
        if x < len(a):
            rows.append((a[x], b[y]))
        at, below = x + 1, y + 1
    return rows


def _by_class(a: Sequence[int], b: Sequence[int], base: Places, candidate: Places) -> list[Match]:
    pairs = _aligned([base.places[i].name for i in a], [candidate.places[j].name for j in b])
    left, right = {x for x, _ in pairs}, {y for _, y in pairs}
    alone = [(place, -1) for x, place in enumerate(a) if x not in left]
    new = [(-1, place) for y, place in enumerate(b) if y not in right]
    return [*((a[x], b[y]) for x, y in pairs), *alone, *new]


def _aligned(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    number = {name: index for index, name in enumerate(sorted({*a, *b}))}
    i, j = align(*(np.array([number[name] for name in side], np.int64) for side in (a, b)))
    return list(zip(i.tolist(), j.tolist(), strict=True))


def _own_name(found: Places, index: int) -> str:
    """Name of a module without those around it."""
    place = found.places[index]
    return place.path if place.parent < 0 else place.path[len(found.places[place.parent].path) + 1 :]
