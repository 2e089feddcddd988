"""Ranks by what they are called."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Each once; numbers by their value, before other names."""
    return tuple(sorted(set(labels), key=lambda label: (0, int(label), "") if label.isdecimal() else (1, 0, label)))


def spans(labels: Sequence[str]) -> str:
    """`0-3,5`: numbers in a row are joined."""
    numbers = [int(label) for label in labels if label.isdecimal()]
    if len(numbers) < len(labels):
        return ",".join(labels)
    breaks = [0, *(at for at, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1), len(numbers)]
    parts = [numbers[start:stop] for start, stop in pairwise(breaks) if stop > start]
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
