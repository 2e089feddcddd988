"""Repeatable scatter: the same question always gets the same answer, whatever was asked before."""

from __future__ import annotations

import zlib


def scattered(nominal: int, spread: float, *key: object) -> int:
    """`nominal` changed by up to ± `spread` (a share of it). A fault elsewhere does not shift it: no state is kept."""
    draw = zlib.crc32("|".join(map(str, key)).encode()) / 2**31 - 1
    return round(nominal * (1 + spread * draw))
