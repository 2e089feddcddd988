"""Repeatable scatter: the same question always gets the same answer, whatever was asked before."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterator


def scattered(nominal: int, spread: float, *key: object) -> int:
    """`nominal` changed by up to ± `spread` (a share of it). A fault elsewhere does not shift it: no state is kept."""
    draw = crc32("|".join(map(str, key)).encode()) / 2**31 - 1
    return round(nominal * (1 + spread * draw))


def draws(*key: object) -> Iterator[float]:
    """What `scattered` draws for the key and 1, the key and 2, and so on."""
    before = crc32("|".join(map(str, key)).encode())
    return (crc32(b"|%d" % number, before) / 2**31 - 1 for number in count(1))
