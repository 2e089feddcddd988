"""Two sequences of calls matched in order: as many equal ones as possible, in near linear time.

The longest common subsequence is found bit-parallel (Hyyrö 2004): a row of the table of lengths is one whole number,
whose bit j is 0 where the length grows at column j. Only a band around the diagonal is looked at. A matching that
leaves out d tokens strays at most d from the diagonal, so the band is widened until what it leaves out proves it wide
enough. Hence sequences of length n that differ by d take n · d / 64 operations; `MEMORY_BITS` bounds the worst case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

FIRST_BAND = 64
"""Least half width of the first band tried."""
MEMORY_BITS = 1 << 28
"""Bits that a table may take (32 MB)."""


class _Rows(NamedTuple):
    """A table of lengths within a band."""

    bits: list[int]
    """Rows; all columns right of the band are 1: there the length does not grow."""
    left: list[int]
    """First column of each row."""
    length: int
    """Of the longest common subsequence within the band."""


def align(a: NDArray[np.int64], b: NDArray[np.int64]) -> Pairs:
    """Positions in `a` and in `b` of pairs of equal tokens, both ascending; swapping `a` and `b` swaps the result.

    No other matching in order has more pairs, provided that `len(a) * len(b) <= MEMORY_BITS` or that this one leaves
    out at most `MEMORY_BITS / (2 * shorter + longer)` tokens. So whatever so many tokens are inserted into a copy of a
    sequence, all its tokens are matched. Beyond that it is the longest matching within the widest band that fits.

    Args:
        a: tokens, any whole numbers.
        b: tokens.
    """
    if (len(a), a.tolist()) > (len(b), b.tolist()):
        right, left = align(b, a)
        return left, right
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    i, j = _middle(a[head : len(a) - tail].tolist(), b[head : len(b) - tail].tolist())
    first, last = np.arange(head), np.arange(tail, 0, -1)
    return np.concatenate((first, head + i, len(a) - last)), np.concatenate((first, head + j, len(b) - last))


def _common(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Length of the common beginning."""
    size = min(len(a), len(b))
    differ = np.flatnonzero(a[:size] != b[:size])
    return int(differ[0]) if len(differ) else size


def _middle(a: list[int], b: list[int]) -> Pairs:
    """The same for two lists of which the first is not longer."""
    if not a:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    fits = MEMORY_BITS // (2 * len(a) + len(b))
    widest = len(b) if len(a) * len(b) <= MEMORY_BITS else max(FIRST_BAND, fits)
    band = min(max(FIRST_BAND, len(b) - len(a)), widest)
    while True:
        rows = lengths(a, b, band)
        if len(a) + len(b) - 2 * rows.length <= band or band == widest:
            return _traced(rows, len(b))
        band = min(4 * band, widest)


def lengths(a: list[int], b: list[int], band: int) -> _Rows:
    """The table with columns up to `band` left and right of the diagonal; a block of rows shares its columns."""
    bits, lefts = [], []
    row = left = right = length = 0
    for begin in range(0, len(a), band):
        block = a[begin : begin + band]
        new_left = max(left, begin * len(b) // len(a) - band)
        new_right = min((begin + len(block)) * len(b) // len(a) + band, len(b))
        dropped = new_left - left
        # Columns that leave the band keep the length they added; columns that enter it have added nothing yet.
        length += dropped - (row & ((1 << dropped) - 1)).bit_count()
        row = (row >> dropped) | ((1 << (new_right - new_left)) - (1 << (right - new_left)))
        left, right = new_left, new_right
        places = _places(b[left:right], set(block))
        outside = -1 << (right - left)
        for token in block:
            same = row & places.get(token, 0)
            row = ((row + same) | (row - same)) & ~outside
            bits.append(row | outside)
            lefts.append(left)
    return _Rows(bits, lefts, length + (right - left) - row.bit_count())


def _places(b: list[int], wanted: set[int]) -> dict[int, int]:
    """For each token wanted a number with a bit set for each of its places."""
    found: dict[int, bytearray] = {}
    size = (len(b) + 7) // 8
    for place, token in enumerate(b):
        if token in wanted:
            if token not in found:
                found[token] = bytearray(size)
            found[token][place >> 3] |= 1 << (place & 7)
    return {token: int.from_bytes(places, "little") for token, places in found.items()}


def _traced(rows: _Rows, columns: int) -> Pairs:
    """The pairs, from the last row back to the first."""
    i, j = [], []
    row, column = len(rows.bits) - 1, columns - 1
    while row >= 0 and column >= 0:
        if column < rows.left[row]:
            row -= 1
        elif rows.bits[row] >> (column - rows.left[row]) & 1:
            column -= 1
        elif row and not rows.bits[row - 1] >> (column - rows.left[row - 1]) & 1:
            row -= 1
        else:
            i.append(row)
            j.append(column)
            row -= 1
            column -= 1
    return np.array(i[::-1], np.int64), np.array(j[::-1], np.int64)
