"""Numbers for people: durations, shares, sizes and counts with no more digits than they are worth."""

from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of time and the decimals shown with it."""

    name: str
    ns: int
    digits: int


TIMES = (("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1))
SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
"""Larger than a byte, largest first."""
MEMORY_SIZES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
"""The same of device memory."""


def _unit_of(ns: int, among: tuple[tuple[str, int], ...] = TIMES) -> tuple[str, int]:
    """Largest unit of which the duration has at least one."""
    return next((unit for unit in among if abs(ns) >= unit[1]), TIMES[-1])


def _supported(ns: int, resolution_ns: int) -> int:
    """Decimals of a unit of `ns` nanoseconds that a clock of this resolution can fill."""
    digits = 0
    while ns > resolution_ns:
        ns //= 10
        digits += 1
    return digits


def duration(ns: int, resolution_ns: int = 1) -> str:
    """A single duration with its unit and four significant digits, such as `177.6 ms`."""
    if ns == 0:
        return "0 ms"
    name, size = _unit_of(ns)
    whole = len(str(abs(ns) // size))
    digits = min(max(4 - whole, 0), _supported(size, resolution_ns))
    return f"{ns / size:,.{digits}f} {name}"


def column_unit(longest_ns: int, resolution_ns: int = 1) -> Unit:
    """The unit and decimals that suit a whole column whose largest value is given."""
    name, size = _unit_of(longest_ns, TIMES if longest_ns >= 10**10 else TIMES[1:])
    digits = 2 if longest_ns >= 10 * size else 3
    return Unit(name, size, min(digits, _supported(size, resolution_ns)))


def in_unit(ns: int, unit: Unit) -> str:
    """A duration as a number in the given unit, without its name."""
    return f"{ns / unit.ns:,.{unit.digits}f}"


def between(low: int, high: int, unit: Unit | None = None) -> str:
    """A range of durations with no more digits than it is worth, `10–14 ms`; as a cell of a column in its unit."""
    name, size = _unit_of(high) if unit is None else (unit.name, unit.ns)
    digits = max(2 - len(str(high // size)), 0) if high >= size else 2 if unit is None else unit.digits
    ends = dict.fromkeys(f"{end / size:,.{digits}f}" for end in (low, high))
    return "–".join(ends) + ("" if unit else f" {name}")


def percent(fraction: float) -> str:
    """A share in a sentence: whole percent, decimals near 0 and 100, where rounding must not claim none or all."""
    value = fraction * 100
    if 0 < value < 0.05:
        return "<0.1 %"
    if 99.95 <= value < 100:
        return ">99.9 %"
    digits = 1 if abs(value) < 9.95 or 99 <= value < 100 else 0
    return f"{value:.{digits}f} %"


def percent_cell(fraction: float) -> str:
    """A share as a number in a column headed %."""
    text = f"{fraction * 100:.1f}"
    return "0.0" if text == "-0.0" else text


def quantity(number: float, unit: str, *, change: bool = False) -> str:
    """A number in its unit; see `model.table.Quantity`."""
    sign = "+" if change else ""
    match unit:
        case "ns" | "B":
            text = (duration if unit == "ns" else memory)(round(number))
            return f"+{text}" if change and number > 0 else text
        case "%":
            return f"{100 * number:{sign}.1f} %"
        case "percent" | "points":
            return f"{number:{sign}.1f} {'%' if unit == 'percent' else unit}"
        case "count":
            return f"{number:+,.6g}" if change else count(number)
    return f"{number:{sign},.4g} {unit}"


def ratio(value: float) -> str:
    """A plain factor, such as `1.44`."""
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def count(value: float) -> str:
    """A whole number with thousands separators; a fraction only where there is one."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def memory(value: int) -> str:
    """Bytes of device memory in binary units, as allocators and devices count them."""
    for name, unit in MEMORY_SIZES:
        if abs(value) >= unit:
            return f"{value / unit:,.{2 if abs(value) < 10 * unit else 1 if abs(value) < 100 * unit else 0}f} {name}"
    return f"{value:,} B"


def size(value: int) -> str:
    """Bytes in decimal units, as file managers and disks count them."""
    for name, unit in SIZES:
        if value >= unit:
            return f"{value / unit:.{1 if value < 100 * unit else 0}f} {name}"
    return f"{value:,} B"
