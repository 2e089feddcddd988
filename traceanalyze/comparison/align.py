"""Two sequences of calls matched in order: as many equal ones as possible, in near linear time.

The longest common subsequence is found bit-parallel (Hyyrö 2004): a row of the table of lengths is one whole number,
whose bit j is 0 where the length grows at column j. Only a band around the diagonal is looked at. A matching that
leaves out d tokens strays at most d from the diagonal, so the band is widened until what it leaves out proves it wide
enough. Hence sequences of length n that differ by d take n · d / 64 operations; `MEMORY_BITS` bounds the worst case.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceanalyze.analyses.context import Context
from traceanalyze.analyses.grouping import group
from traceanalyze.comparison.calls import Calls, Stream, calls_of, common_tokens
from traceanalyze.comparison.canonical_ops import Fused, Level, busy_calls, canonical_ops, is_written, opened
from traceanalyze.comparison.names import FUSED, canonical
from traceanalyze.comparison.side import CompareOptions, vendor

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


Tokens = Sequence[NDArray[np.int64]]
"""Tokens of the places of both sides; equal ones may be matched."""

FIRST_BAND = 64
"""Least half width of the first band tried."""
MEMORY_BITS = 1 << 28
"""Bits that a table may take (32 MB)."""
_FIRST, _MOST_NAMES = 0xE000, 2000
"""First of the letters that stand for names, and more operators than a program has."""


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


Row = tuple[int, int]
"""Places of two matched calls; -1 for a side that has none."""


class Pairing(NamedTuple):
    """Rows in order of time, and the level of the call tree of each side that they are of."""

    rows: list[Row]
    levels: tuple[Level, Level]
    left: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Calls of the steps that the other side does not have as many of."""


def fused_names(base: Context, candidate: Context, options: CompareOptions) -> Fused:
    """Operators that a side runs as one and the other may have written as several.

    Known ones, and across vendors what a side runs alone where the other has the same calls every time.
    """
    return base.once(_fused_names, candidate, options)


def _fused_names(base: Context, candidate: Context, options: CompareOptions) -> Fused:
    sides, run = (base, candidate), set[str]()
    for side in sides:
        names = side.op_names
        run |= {canonical(side.trace.strings.text(int(names[at])), options) for at in group(names).first.tolist()}
    known: Fused = tuple((f"aten::{name}", pattern) for name, pattern in FUSED if f"aten::{name}" in run)
    npus = [vendor(side) == "ascend" for side in sides]
    return (*known, *_written_out(sides, options, known)) if npus[0] != npus[1] else known


def _written_out(sides: Sequence[Context], options: CompareOptions, known: Fused) -> Fused:
    """What only one side runs, and what the other has instead of it, which it has nowhere else.

    Of PyTorch's own operators one is none other's name.
    """
    names = [_in_order(side, options, known) for side in sides]
    every = sorted({*names[0], *names[1]})
    if len(every) > _MOST_NAMES:
        return ()
    # A letter for each name, so that calls in order are a text.
    letter = {name: chr(_FIRST + at) for at, name in enumerate(every)}
    texts = ["".join(letter[name] for name in own) for own in names]
    matched = align(*(np.array([ord(one) for one in text], np.int64) for text in texts))
    gaps = [
        [text[left + 1 : right] for left, right in pairwise((-1, *positions.tolist(), len(text)))]
        for text, positions in zip(texts, matched, strict=True)
    ]
    run = [{*text} for text in texts]
    pytorch = {letter[name] for name in every if name.startswith("aten::")}
    parts: dict[tuple[int, str], set[str]] = {}
    for at in (0, 1):
        for own, instead in zip(gaps[at], gaps[1 - at], strict=True):
            part, kinds = instead[: len(instead) // max(len(own), 1)], {*own}
            whole = part if len(kinds) == 1 and part * len(own) == instead else ""
            for one in kinds - run[1 - at]:
                parts.setdefault((at, one), set()).add(whole)
    found: dict[str, str] = {}
    for (at, one), (part, *more) in sorted(parts.items(), key=lambda each: (-max(map(len, each[1])), each[0])):
        another = {*run[at], *found} | (pytorch if one in pytorch else set())
        if part and not more and part not in another and texts[1 - at].count(part) == texts[at].count(one):
            found[one], texts[1 - at] = part, texts[1 - at].replace(part, " ")
    named = [(every[ord(one) - _FIRST], tuple(every[ord(each) - _FIRST] for each in found[one])) for one in found]
    return tuple(entry for name, part in named for entry in _entries(name, part))


def _entries(name: str, part: tuple[str, ...]) -> Fused:
    """What is to be looked for: both, under the name of the fused operator that is known to be written so."""
    known = next((f"aten::{own}" for own, pattern in FUSED if is_written(part, pattern)), None)
    return ((name, part),) if known is None else ((known, (name,)), (known, part))


def _in_order(context: Context, options: CompareOptions, known: Fused) -> list[str]:
    """Names of the forward calls with device work in the last step."""
    ops, (_, calls) = canonical_ops(context, options, known), busy_calls(context)
    started = context.op_nest.start[calls] >= (context.steps.host_start[-1] if len(context.steps) else 0)
    calls = calls[started & ~ops.backward[calls] & (ops.unit[calls] == calls)]
    return [ops.names[code] for code in ops.own[calls].tolist()]


def paired(base: Context, candidate: Context, options: CompareOptions) -> tuple[tuple[Calls, Calls], Pairing]:
    """Calls of both sides and how they are matched, which is worked out once for two sides."""
    return base.once(_paired, candidate, options)


def _paired(base: Context, candidate: Context, options: CompareOptions) -> tuple[tuple[Calls, Calls], Pairing]:
    fused = fused_names(base, candidate, options)
    sides = calls_of(base, options, fused), calls_of(candidate, options, fused)
    return sides, pair_calls(*sides, options.max_kernel_num)


def pair_calls(base: Calls, candidate: Calls, most: int | None) -> Pairing:
    """Match the calls of both sides; the first step with the first step, and so on.

    Of each step the calls of one pass on one thread are matched in order (see `align`). What that leaves over is
    matched by its order of occurrence among the equal calls of the step: it has moved. A matched pair of calls with
    more device events than `most` gives way to the calls inside.
    """
    sides = (base, candidate)
    tokens = common_tokens(sides)
    (places, level), (other_places, other_level) = (side.top() for side in sides)
    streams = [base.streams(places, level.owner), candidate.streams(other_places, other_level.owner)]
    steps = min(len(side.context.steps) for side in sides)
    rows: list[Row] = []
    for step in range(steps):
        keys = sorted({key for side in streams for key in side if key[0] == step})
        timed = [row for key in keys for row in _timed(_stream(key, streams, tokens), sides, step)]
        rows += _with_moved([row for _, row in sorted(timed, key=lambda item: item[0])], tokens)
    nothing = np.zeros(0, np.int64)
    left, other_left = (
        np.concatenate([nothing, *(places for key, places in side.items() if key[0] >= steps)]) for side in streams
    )
    found = Pairing(rows, (level, other_level), (left, other_left))
    return found if most is None else _drilled(sides, found, tokens, most)


def _stream(key: Stream, streams: Sequence[dict[Stream, NDArray[np.int64]]], tokens: Tokens) -> list[Row]:
    """Rows of one stream."""
    nothing = np.zeros(0, np.int64)
    a, b = (side.get(key, nothing) for side in streams)
    return _matched(a, b, tokens)


def _matched(a: NDArray[np.int64], b: NDArray[np.int64], tokens: Tokens) -> list[Row]:
    """Rows of two sequences of calls; what has no partner stands before the next match."""
    rows: list[Row] = []
    i, j = align(tokens[0][a], tokens[1][b])
    first, second = a.tolist(), b.tolist()
    at = below = 0
    for x, y in zip(i.tolist(), j.tolist(), strict=True):
        rows += [(place, -1) for place in first[at:x]]
        rows += [(-1, place) for place in second[below:y]]
        rows.append((first[x], second[y]))
        at, below = x + 1, y + 1
    rows += [(place, -1) for place in first[at:]]
    rows += [(-1, place) for place in second[below:]]
    return rows


def _timed(rows: list[Row], sides: Sequence[Calls], step: int) -> list[tuple[int, Row]]:
    """Rows of a stream with the time since the step began: the base's, of new calls that of the row before."""
    at = 0
    timed = []
    nested, begun = sides[0].context.op_nest, int(sides[0].context.steps.host_start[step])
    for row in rows:
        if row[0] >= 0:
            at = max(at, int(nested.start[row[0]]) - begun)
        timed.append((at, row))
    return timed


def _with_moved(rows: list[Row], tokens: Tokens) -> list[Row]:
    """The rows after what is alone on both sides has been matched by order of occurrence."""
    waiting: dict[int, list[int]] = {}
    for place, other in reversed(rows):
        if place < 0:
            waiting.setdefault(int(tokens[1][other]), []).append(other)
    partner = {}
    for place, other in rows:
        if other < 0 and (offered := waiting.get(int(tokens[0][place]))):
            partner[place] = offered.pop()
    moved = set(partner.values())
    return [
        (place, partner.get(place, -1)) if other < 0 else (place, other)
        for place, other in rows
        if place >= 0 or other not in moved
    ]


def _drilled(sides: Sequence[Calls], found: Pairing, tokens: Tokens, most: int) -> Pairing:
    """Matched calls with more than `most` device events replaced by the calls right inside them, again and again.

    A pair stays as it is where one side has no calls inside. An opened call stays too, with the work it launched
    itself.
    """
    rows, levels = found.rows, found.levels
    while True:
        counts = [side.owned(level.owner)[1] for side, level in zip(sides, levels, strict=True)]
        deeper: dict[Row, list[Row]] = {}
        for row in rows:
            if min(row) >= 0 and max(count[place] for count, place in zip(counts, row, strict=True)) > most:
                a, b = (
                    side.children(place) if level.whole[place] else np.zeros(0, np.int64)
                    for side, level, place in zip(sides, levels, row, strict=True)
                )
                if len(a) and len(b):
                    deeper[row] = [row, *_with_moved(_matched(a, b, tokens), tokens)]
        if not deeper:
            return Pairing(rows, levels, found.left)
        rows = [each for row in rows for each in deeper.get(row, [row])]
        base, candidate = (
            opened(side.context.op_nest.stop, level, np.array([row[index] for row in deeper], np.int64))
            for index, (side, level) in enumerate(zip(sides, levels, strict=True))
        )
        levels = (base, candidate)
