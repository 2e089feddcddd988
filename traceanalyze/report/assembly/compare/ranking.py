"""Rows of a section by how much they change, with their share of all changes of the section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traceanalyze.report.assembly.compare.per_step import PerStep

T = TypeVar("T")


@frozen
class Ranked(Generic[T]):
    """One row with its place, counted from 1, and its share."""

    place: int
    row: T
    base: int
    candidate: int
    share: float | None
    """Of the sum of all absolute changes of the section, negative for what got less."""


def ranked(rows: Iterable[T], amounts: Callable[[T], tuple[int, int]], per: PerStep) -> list[Ranked[T]]:
    """Largest absolute change first; equal ones keep their order."""
    found = [(row, *amounts(row)) for row in rows]
    changes = [per.exact(base, candidate) for _, base, candidate in found]
    whole = sum(map(abs, changes))
    order = sorted(range(len(found)), key=lambda index: -abs(changes[index]))
    return [
        Ranked(place, *found[index], changes[index] / whole if whole else None)
        for place, index in enumerate(order, start=1)
    ]
