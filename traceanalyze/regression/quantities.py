"""Numbers with units as people write them in a budget: `5%`, `1 ms`, `72 GiB`, `2 points`."""

from __future__ import annotations

from traceanalyze.errors import UsageError
from traceanalyze.frozen import frozen
from traceanalyze.model.patterns import regex

_NUMBER = regex(r"\s*([-+]?\d+(?:_\d+)*(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%/]*)\s*")
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {
    "b": 1.0,
    **{f"{letter}b": 1000.0**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024.0**power for power, letter in enumerate("kmgt", 1)},
}
UNITS = {
    "ns": "a time such as 1 ms",
    "B": "bytes such as 72 GiB",
    "points": "points such as 2 points",
    "1/s": "a number",
    "GB/s": "a number of GB/s",
    "count": "a number",
}
"""Unit in which a metric is kept → what people write for it."""


@frozen
class Amount:
    """An amount in the unit of its metric, or a share of the baseline."""

    value: float
    relative: bool = False
    """`value` is a fraction of the baseline's value."""


def amount(written: object, unit: str, place: str, *, relative: bool = True) -> Amount:
    """What was written, in the unit in which the metric is kept.

    Args:
        written: a number (of times in ms, otherwise in `unit`) or a text with a unit.
        unit: a key of `UNITS`.
        place: where it is written, for the message.
        relative: whether a percentage is allowed.

    Raises:
        UsageError: It is no number, of another unit, or negative.
    """
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        raise UsageError(f"{place}: {written!r} is not a number; write {UNITS[unit]}")
    if isinstance(written, int | float):
        return Amount(_checked(float(written) * (1e6 if unit == "ns" else 1), place))
    found = _NUMBER.fullmatch(written)
    if found is None:
        raise UsageError(f"{place}: {written!r} is not a number; write {UNITS[unit]}")
    number, suffix = _checked(float(found[1]), place), found[2]
    if suffix == "%" and relative:
        return Amount(number / 100, relative=True)
    factor = _factor(suffix, unit)
    if factor is None:
        raise UsageError(f"{place}: {written!r} has the wrong unit; write {UNITS[unit]}{' or 5%' if relative else ''}")
    return Amount(number * factor)


def share(written: object, place: str) -> float:
    """A share: `5%`, or a fraction such as 0.05."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return _checked(float(written), place)
    found = _NUMBER.fullmatch(written) if isinstance(written, str) else None
    if found is None or found[2] not in {"%", ""}:
        raise UsageError(f"{place}: {written!r} is not a share; write 5% or 0.05")
    return _checked(float(found[1]), place) / (100 if found[2] else 1)


def _factor(suffix: str, unit: str) -> float | None:
    if not suffix:
        return 1e6 if unit == "ns" else 1.0
    if unit == "ns":
        return _TIMES.get(suffix)
    if unit == "B":
        return _BYTES.get(suffix.lower())
    return 1.0 if suffix.lower() in {unit.lower(), unit.lower().removesuffix("s")} else None


def _checked(value: float, place: str) -> float:
    if not 0 <= value < float("inf"):
        raise UsageError(f"{place}: {value:g} must not be negative or infinite")
    return value
