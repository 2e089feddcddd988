"""Exact reading of decimal texts: nanoseconds from microseconds without a floating-point step in between."""

from __future__ import annotations

import math
import re

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

_DECIMAL = re.compile(rb"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)([0-9]+))?")
_INTEGER = re.compile(rb"([+-]?)0*([0-9]+)")
_CANONICAL = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_LONGEST_EXPONENT = 10  # digits; beyond that the exponent outweighs any mantissa that fits into a value
_INT64_DIGITS = 19


def nanoseconds(text: bytes) -> tuple[int, bool] | None:
    """`text` microseconds as (ns, is it finer than a microsecond), rounded half to even.

    None if the text is not a decimal number or its value does not fit into an int64.
    """
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, whole, fraction, pure_fraction, exponent_sign, exponent = found.groups()
    fraction = fraction or pure_fraction or b""
    digits = ((whole or b"") + fraction).lstrip(b"0")
    if not digits:
        return 0, False
    shift = _exponent(exponent_sign, exponent) - len(fraction)
    magnitude = _scaled(digits, shift + 3)
    value = None if magnitude is None else -magnitude if sign == b"-" else magnitude
    if value is None or not INT64_MIN <= value <= INT64_MAX:
        return None
    return value, shift + len(digits) - len(digits.rstrip(b"0")) < 0


def _exponent(sign: bytes | None, digits: bytes | None) -> int:
    digits = (digits or b"").lstrip(b"0")[: _LONGEST_EXPONENT + 1]
    value = int(digits or b"0")
    return -value if sign == b"-" else value


def _scaled(digits: bytes, shift: int) -> int | None:
    """`digits` × 10^shift, rounded half to even; None if that has more digits than an int64."""
    if len(digits) + shift > _INT64_DIGITS:
        return None
    if shift >= 0:
        return int(digits.ljust(len(digits) + shift, b"0"))
    kept, rest = digits[:shift], digits[shift:]
    if len(digits) + shift < 0:
        return 0
    value = int(kept or b"0")
    half = b"5".ljust(len(rest), b"0")
    return value + (rest > half or (rest == half and value % 2 == 1))


def integer(text: bytes) -> int | None:
    """An integer in [-2^63, 2^64) as an int64: the upper half wraps, as unsigned ids do. None for anything else."""
    found = _INTEGER.fullmatch(text)
    if found is None or len(found[2]) > _INT64_DIGITS + 1:
        return None
    value = -int(found[2]) if found[1] == b"-" else int(found[2])
    if not INT64_MIN <= value < 1 << 64:
        return None
    return value - (1 << 64) if value > INT64_MAX else value


def real(text: bytes) -> float | None:
    """A finite decimal number, or None."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def canonical_integer(text: bytes) -> int | None:
    """An int64 in the one form that maps back to the same text, or None: what may stand for its text as an id."""
    value = int(text) if _CANONICAL.fullmatch(text) else None
    return value if value is not None and INT64_MIN <= value <= INT64_MAX else None
