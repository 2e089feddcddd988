"""Round times along an axis."""

from __future__ import annotations

from dataclasses import replace

from traceanalyze import units


def ticks(length: int, most: int, start: int = 0) -> list[tuple[int, str]]:
    """Multiples of a round time from `start` over `length` ns, at most `most` beside the first, each with its label."""
    step = next(step for step in _round_times() if length / step <= most)
    # Seconds from two of them on: labels stay short.
    unit = replace(units.column_unit(5 * (start + length)), digits=3)
    return [(at, _label(at, unit)) for at in range(-(-start // step) * step, start + length + 1, step)]


def _label(ns: int, unit: units.Unit) -> str:
    if ns == 0:
        return "0"
    number = units.in_unit(ns, unit)
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit.name}"


def _round_times() -> list[int]:
    return [digit * 10**power for power in range(18) for digit in (1, 2, 5)]
