"""Peak rates of devices from a user's TOML file."""

from __future__ import annotations

import re
from math import isfinite
from pathlib import Path
from typing import Any

from traceanalyze.errors import UsageError
from traceanalyze.model.device_peaks import DTYPES, Peaks

_KEYS = ("pattern", "name", "bandwidth_gbs", "tflops")


def read_peaks(path: str) -> tuple[Peaks, ...]:
    """The `[[device]]` entries of a file, in its order.

    Raises:
        UsageError: The file cannot be read or says something else.
    """
    try:
        return tuple(_peaks(entry, index, path) for index, entry in enumerate(_entries(path), 1))
    except UsageError as error:
        raise UsageError(f"--device-peaks {path}: {error}") from error


def _entries(path: str) -> list[Any]:
    import tomllib

    try:
        with Path(path).open("rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError("is not TOML: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"is not TOML: {error}") from error
    entries = found.pop("device", None)
    if found:
        raise UsageError(f"unknown: {', '.join(found)}; write [[device]] entries")
    if not isinstance(entries, list) or not entries:
        raise UsageError("holds no [[device]] entry")
    return entries


def _peaks(entry: Any, index: int, path: str) -> Peaks:
    """One entry, checked."""
    where = f"device {index}"
    if not isinstance(entry, dict) or set(entry) != set(_KEYS):
        raise UsageError(f"{where}: write {', '.join(_KEYS)}, and nothing else")
    rates = entry["tflops"]
    if not isinstance(rates, dict) or not set(rates) <= set(DTYPES):
        raise UsageError(f"{where}: tflops: write TYPE = number in braces, where TYPE is one of {', '.join(DTYPES)}")
    return Peaks(
        device=_text(entry["name"], f"{where}: name"),
        pattern=_pattern(entry["pattern"], f"{where}: pattern"),
        tflops={dtype: _rate(rate, f"{where}: tflops: {dtype}") for dtype, rate in rates.items()},
        bandwidth=_rate(entry["bandwidth_gbs"], f"{where}: bandwidth_gbs"),
        source=path,
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where}: write a text")
    return value


def _pattern(value: Any, where: str) -> str:
    text = _text(value, where)
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"{where}: {text}: not a regular expression: {error}") from error
    return text


def _rate(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
        raise UsageError(f"{where}: write a number above 0")
    return float(value)
