"""Sets of time as sorted lists of disjoint `(start, end)` pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def clip(spans: Iterable[Span], start: int, end: int) -> list[Span]:
    return [(max(a, start), min(b, end)) for a, b in spans if a < end and b > start]


def subtract(left: list[Span], right: list[Span]) -> list[Span]:
    """What of `left` is not in `right`; both sorted and disjoint."""
    rest: list[Span] = []
    at = 0
    for start, end in left:
        while at < len(right) and right[at][1] <= start:
            at += 1
        here, cursor = at, start
        while here < len(right) and right[here][0] < end:
            if right[here][0] > cursor:
                rest.append((cursor, right[here][0]))
            cursor = max(cursor, right[here][1])
            here += 1
        if cursor < end:
            rest.append((cursor, end))
    return rest


def intersect(left: list[Span], right: list[Span]) -> list[Span]:
    return subtract(left, subtract(left, right))
