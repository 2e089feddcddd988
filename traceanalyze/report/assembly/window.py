"""What steps are called, and the window of those that count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceanalyze.analyses.steps.window import Window, window_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Window", "median", "step_labels", "window_of"]

_NUMBER = re.compile(r"(\d+)$")


def step_labels(names: Sequence[str]) -> tuple[str, ...]:
    """What each step is called: the number of `ProfilerStep#5`, else its name, else its position among equal names."""
    found = [_NUMBER.search(name) for name in names]
    numbers = tuple(match.group(1) for match in found if match)
    if len(numbers) == len(names) == len(set(numbers)):
        return numbers
    return tuple(names) if len(set(names)) == len(names) else tuple(str(index) for index in range(len(names)))


def median(values: Sequence[int]) -> int:
    """Middle value; the mean of the two middle ones of an even number."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2
