"""Calls of two sides matched by the call tree: by step, pass and thread, in order, and inside each other if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from traceanalyze.compare.align import align
from traceanalyze.compare.calls import calls_of, common_tokens
from traceanalyze.compare.canonical_ops import fused_names
from traceanalyze.compare.levels import opened
from traceanalyze.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceanalyze.analyses.context import Context
    from traceanalyze.compare.calls import Calls, Stream
    from traceanalyze.compare.levels import Level
    from traceanalyze.compare.options import CompareOptions

    Tokens = Sequence[NDArray[np.int64]]
    """Tokens of the places of both sides; equal ones may be matched."""

Row = tuple[int, int]
"""Places of two matched calls; -1 for a side that has none."""


@frozen
class Pairing:
    """Rows in order of time, and the level of the call tree of each side that they are of."""

    rows: list[Row]
    levels: tuple[Level, Level]
    left: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Calls of the steps that the other side does not have as many of."""


_Key = tuple[int | None, bool, tuple[tuple[str, str], ...]]
_known: WeakKeyDictionary[Context, WeakKeyDictionary[Context, dict[_Key, Pairing]]] = WeakKeyDictionary()


def paired(base: Context, candidate: Context, options: CompareOptions) -> tuple[tuple[Calls, Calls], Pairing]:
    """Calls of both sides and how they are matched, which is worked out once for two sides."""
    fused = fused_names(base, candidate, options)
    sides = calls_of(base, options, fused), calls_of(candidate, options, fused)
    key = (options.max_kernel_num, options.use_input_shape, tuple(sorted(options.op_name_map.items())))
    found = _known.setdefault(base, WeakKeyDictionary()).setdefault(candidate, {})
    if key not in found:
        found[key] = pair_calls(*sides, options.max_kernel_num)
    return sides, found[key]


def pair_calls(base: Calls, candidate: Calls, most: int | None) -> Pairing:
    """Match the calls of both sides; the first step with the first step, and so on.

    Of each step the calls of one pass on one thread are matched in order (see `align`). What that leaves over is
    matched by its order of occurrence among the equal calls of the step: it has moved.

    Args:
        base: one side.
        candidate: the other.
        most: a matched pair of calls with more device events gives way to the calls inside.
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
